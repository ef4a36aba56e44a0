"""A model over an iterable of batches → one record on the CPU."""

from collections.abc import Iterable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.modes import evaluating
from kinfold.records import Batch, Embedded

AUTOCAST = {"32-true": None, "bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


def embed_batches(
    model: nn.Module, batches: Iterable[Batch], *, device: torch.device | str | None = None, precision: str = "32-true"
) -> Embedded:
    """Embed every batch in evaluation mode, without gradients; rows keep the order of the batches, results are float32 on the CPU.

    Args:
        model: `feature, embedding = model(image)`. Each of its modules is afterwards in the mode that it was in before.
        batches: anything that yields `Batch`es; read once.
        device: where the images go; `None` means where the model's first parameter is. The model itself is not moved.
        precision: `32-true`, `bf16-mixed` or `16-mixed` (autocast).

    Raises:
        ConfigError: unknown precision.
        DataError: no batches.
    """
    if precision not in AUTOCAST:
        raise ConfigError(f"precision `{precision}` is not known; {did_you_mean(precision, AUTOCAST)}")
    first = next(model.parameters(), None)
    place = torch.device(device) if device is not None else first.device if first is not None else torch.device("cpu")
    dtype = AUTOCAST[precision]
    parts = list[tuple[Tensor, ...]]()
    with torch.no_grad(), evaluating(model), torch.autocast(place.type, dtype) if dtype else nullcontext():
        for batch in batches:
            feature, embedding = model(batch.image.to(place))
            parts.append(
                tuple(x.float().cpu() for x in (embedding, feature))
                + tuple(x.cpu() for x in (batch.label, batch.item, batch.view))
            )
    if not parts:
        raise DataError("there is nothing to embed: the batches are empty.")
    embedding, feature, label, item, view = (torch.cat(column) for column in zip(*parts, strict=True))
    return Embedded(embedding=embedding, feature=feature, label=label, item=item, view=view)
