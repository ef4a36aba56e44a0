"""Where numbers stop being finite: images, embeddings, a term of the loss, or its gradient."""

import torch

from kinfold.checks.finding import Finding
from kinfold.checks.rehearsal import Rehearsal
from kinfold.records import Batch, Embedded

CALMER = "lower the learning rates, clip gradients (train.clip_norm), or train in 32-true"


def not_finite(rehearsal: Rehearsal, batch: Batch, *, n_steps: int) -> Finding:
    """Say what is not finite, by going through a batch that could not be trained on once more.

    Args:
        rehearsal: where it stood when the error came.
        batch: from `Rehearsal.fed`.
        n_steps: updates before it.

    Returns:
        `not_finite`: an error on the first batch, a warning after updates at the peak learning rates, which a warm-up may avoid.
    """
    when = "on the first batch" if not n_steps else f"after {n_steps} update(s) at the peak learning rates"
    what = _what(rehearsal, batch)
    remedy = CALMER
    if not n_steps:
        remedy = (
            "look for a division, a logarithm or a square root at zero in the loss, and for broken images; or train in 32-true"
        )
    return Finding("not_finite", "warning" if n_steps else "error", f"{what} {when}", remedy)


def _what(rehearsal: Rehearsal, batch: Batch) -> str:
    if not bool(torch.isfinite(batch.image).all()):
        return "the images, as the model gets them, are not finite"
    session = rehearsal.session
    label, item, view = session.fabric.to_device((batch.label, batch.item, batch.view))
    feature, embedding = session.model(batch.image)
    if not bool(torch.isfinite(embedding).all()):
        return "the embeddings are not finite"
    for phase in rehearsal.objective.phases:
        losses = rehearsal.objective(Embedded(embedding, feature, label, item, view), phase)
        for name, term in losses.terms.items():
            if not bool(torch.isfinite(term)):
                return f"the loss term `{name}` is {float(term.detach())}"
            if term.requires_grad and not _has_finite_gradient(rehearsal, term, embedding):
                return f"the gradient of the loss term `{name}` is not finite, although its value is {float(term.detach()):.4g},"
    return "a gradient is not finite"


def _has_finite_gradient(rehearsal: Rehearsal, term: torch.Tensor, embedding: torch.Tensor) -> bool:
    wanted = [p for p in (embedding, *rehearsal.objective.parameters()) if p.requires_grad]
    gradients = torch.autograd.grad(term, wanted, retain_graph=True, allow_unused=True)
    return all(bool(torch.isfinite(each).all()) for each in gradients if each is not None)
