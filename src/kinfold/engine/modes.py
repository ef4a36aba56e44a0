"""Training mode with frozen parts: batch normalisation that keeps its statistics, and keeps them."""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def set_training_mode(model: nn.Module, *, frozen_batch_norm: bool) -> None:
    """Put a model into training mode; call it again after every evaluation.

    Batch normalisation stays in evaluation mode, so that its running statistics do not move, where `frozen_batch_norm` asks
    for it, and where all its affine parameters are frozen (a frozen trunk must not drift through its statistics).
    """
    model.train()
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            own = list(module.parameters(recurse=False))
            is_frozen = bool(own) and not any(p.requires_grad for p in own)
            if frozen_batch_norm or is_frozen:
                module.eval()
