"""Training mode with frozen parts: batch normalisation that keeps its statistics, and keeps them."""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def set_training_mode(model: nn.Module, *, frozen_batch_norm: bool) -> None:
    """Put a model into training mode; call it again after every evaluation.

    Batch normalisation stays in evaluation mode, so that its running statistics do not move, where `frozen_batch_norm` asks
    for it, and inside every module whose parameters are all frozen (a frozen trunk must not drift through its statistics).
    """
    model.train()
    for module in model.modules():
        params = list(module.parameters())
        is_frozen = bool(params) and not any(p.requires_grad for p in params)
        if is_frozen or (frozen_batch_norm and isinstance(module, _BatchNorm)):
            for part in module.modules():
                if isinstance(part, _BatchNorm):
                    part.eval()
