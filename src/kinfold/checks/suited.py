"""Whether table, model and objective go together: what `fit` would refuse, and permissions that nothing needs."""

from kinfold.checks.finding import Finding
from kinfold.checks.idle import idle
from kinfold.checks.wording import counted, listed
from kinfold.data.table import Table
from kinfold.models.embedder import Embedder
from kinfold.objectives.base import Objective
from kinfold.recipe import Recipe


def suited_findings(table: Table, embedder: Embedder, objective: Objective, recipe: Recipe) -> list[Finding]:
    """Look at what `fit` is given.

    Returns:
        `too_few_classes`, `shared_classes`, `does_not_fit` (error): `fit` would refuse it. `idle_setting` (warning): classes may be
        shared, but none is.
    """
    train = table.of_split("train")
    if train.n_classes < 2:
        return [too_few_classes(train)]
    return [*_shared(table, recipe), *_made_for(objective, n_classes=train.n_classes, dim=embedder.dim)]


def too_few_classes(train: Table) -> Finding:
    """Return the error that there are no two classes to tell apart."""
    message = f"split train has {counted(train.n_classes, 'class', 'classes')}: at least 2 are needed to tell classes apart"
    return Finding("too_few_classes", "error", message, "bring more classes, or look at the column `split`")


def _shared(table: Table, recipe: Recipe) -> list[Finding]:
    shared = table.shared_classes()
    if not shared:
        return idle(recipe, "", {"allow_shared_classes": "no class is in both train and test"})
    if recipe.allow_shared_classes:
        return []
    message = f"{counted(len(shared), 'class', 'classes')} {'is' if len(shared) == 1 else 'are'} in both train and test: {listed(shared)}"
    remedy = "make splits without overlap (`split_classes`), or accept it: allow_shared_classes = true"
    return [Finding("shared_classes", "error", message, remedy)]


def _made_for(objective: Objective, *, n_classes: int, dim: int) -> list[Finding]:
    found = []
    if objective.n_classes not in (None, n_classes):
        message = f"the objective was made for {objective.n_classes} classes, the training split has {n_classes}"
        found.append(Finding("does_not_fit", "error", message, 'make it with n_classes=table.of_split("train").n_classes'))
    if objective.dim not in (None, dim):
        message = f"the objective was made for embeddings of {objective.dim} numbers, the model gives {dim}"
        found.append(Finding("does_not_fit", "error", message, f"make it with dim={dim}"))
    return found
