"""Whether the precision asked for says the same as full precision does: embeddings and loss of one batch."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch.nn.functional import cosine_similarity

from kinfold.checks.finding import Finding
from kinfold.checks.rehearsal import Rehearsal
from kinfold.evaluation.embed import embed_batches
from kinfold.records import Batch, Embedded
from kinfold.seeding import seeded

FULL = "32-true"
ALIKE = 0.99


@dataclass(frozen=True)
class Parity:
    """How one batch comes out in full precision and in another.

    Attributes:
        mean: of the cosine between an image's two embeddings.
        least: the smallest of them.
        full_loss: of the batch, from embeddings in full precision.
        loss: from the other embeddings.
    """

    mean: float
    least: float
    full_loss: float
    loss: float


def parity(rehearsal: Rehearsal, batch: Batch, precision: str) -> Parity:
    """Embed a batch from `Rehearsal.fed` twice, in evaluation mode.

    Args:
        rehearsal: its model and objective; neither changes.
        batch: a batch.
        precision: `bf16-mixed` or `16-mixed`.
    """
    full, other = (embed_batches(rehearsal.model, [batch], precision=each) for each in (FULL, precision))
    sim = cosine_similarity(full.embedding, other.embedding)
    return Parity(float(sim.mean()), float(sim.min()), _loss(rehearsal, full), _loss(rehearsal, other))


def precision_findings(found: Parity, precision: str) -> list[Finding]:
    """Return `precision_parity`: a warning where the mean cosine is below 0.99, else a note with the figures."""
    message = (
        f"`train.precision` = {precision!r} against 32-true on one batch: cosine of the embeddings {found.mean:.4f} in the mean, "
        f"{found.least:.4f} at least; loss {found.loss:.4g} instead of {found.full_loss:.4g}"
    )
    if found.mean >= ALIKE:
        return [Finding("precision_parity", "note", message, "nothing to do: the two agree")]
    return [Finding("precision_parity", "warning", message, "set train.precision = '32-true', or look for layers that overflow")]


@torch.no_grad()
def _loss(rehearsal: Rehearsal, embedded: Embedded) -> float:
    objective = deepcopy(rehearsal.objective)  # it may remember batches, or draw
    on_device = Embedded(*rehearsal.session.fabric.to_device(tuple(vars(embedded).values())))
    with seeded(0):
        return sum(float(objective(on_device, phase).total) for phase in objective.phases)
