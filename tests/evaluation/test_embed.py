import pytest
import torch
from torch import nn

from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.embed import embed_batches
from kinfold.records import Batch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.drop, self.head = nn.BatchNorm2d(3), nn.Dropout(0.5), nn.Linear(3, 2)

    def forward(self, image):
        assert not any(module.training for module in self.modules())
        assert not torch.is_grad_enabled()
        feature = self.drop(self.norm(image)).mean(dim=(2, 3))
        return feature, self.head(feature)


def batches(sizes):
    first = 0
    for n in sizes:
        item = torch.arange(first, first + n)
        yield Batch(item.float()[:, None, None, None].expand(n, 3, 2, 2).contiguous(), item % 3, item, torch.zeros_like(item))
        first += n


def test_rows_keep_their_order_and_modes_come_back():
    net = Net().train()
    net.norm.eval()
    before = net.norm.running_mean.clone()
    found = embed_batches(net, batches([2, 3, 1]))
    assert found.item.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.label.tolist() == [0, 1, 2, 0, 1, 2]
    torch.testing.assert_close(found.feature, torch.arange(6.0)[:, None].expand(6, 3), atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(found.embedding, net.head(found.feature))
    assert [net.training, net.norm.training, net.drop.training] == [True, False, True]
    assert torch.equal(net.norm.running_mean, before)
    found.embedding.clone().requires_grad_().sum().backward()


def test_modes_come_back_after_an_error():
    net = Net().train()
    with pytest.raises(RuntimeError):
        embed_batches(net, iter([Batch(torch.zeros(1, 4, 2, 2), *[torch.zeros(1, dtype=torch.long)] * 3)]))
    assert net.drop.training


def test_mixed_precision_answers_in_float32():
    found = embed_batches(Net(), batches([3]), precision="bf16-mixed", device="cpu")
    assert found.embedding.dtype == found.feature.dtype == torch.float32
    exact = embed_batches(Net().requires_grad_(False), batches([3]))
    assert found.embedding.shape == exact.embedding.shape


def test_nothing_to_embed_and_unknown_precision_are_refused():
    with pytest.raises(DataError, match="empty"):
        embed_batches(Net(), [])
    with pytest.raises(ConfigError, match="did you mean `bf16-mixed`"):
        embed_batches(Net(), batches([1]), precision="bf16_mixed")
