"""What is wrong with the coarse levels of hierarchical proxies: they never begin, never move, or begin from nothing."""

import math

from kinfold.checks.finding import Finding
from kinfold.objectives.base import Objective
from kinfold.objectives.hpl import HierarchicalProxies
from kinfold.recipe import Recipe


def coarse_level_findings(objective: Objective, recipe: Recipe, *, n_batches: int) -> list[Finding]:
    """Hold an objective's steps against those of the run.

    Args:
        objective: any; others than `HierarchicalProxies` have no coarse levels.
        recipe: the settings.
        n_batches: of an epoch.

    Returns:
        `coarse_levels_never_begin` (warning): the warm-up is as long as the run. `never_refreshed` (warning): no refresh before the end.
        `groups_of_random_proxies` (note): the first clustering is of proxies that have learned nothing.
    """
    if not isinstance(objective, HierarchicalProxies) or not len(objective.levels):
        return []
    n_steps = math.ceil(n_batches / recipe.train.gradient_accumulation_steps) * recipe.train.epochs
    if objective.warmup_steps >= n_steps:
        message = f"`objective.warmup_steps` = {objective.warmup_steps}, but the run has {n_steps:,} steps: its coarse levels never begin"
        return [Finding("coarse_levels_never_begin", "warning", message, f"set objective.warmup_steps below {n_steps}")]
    found = []
    if objective.warmup_steps // objective.refresh_every == n_steps // objective.refresh_every:
        message = f"`objective.refresh_every` = {objective.refresh_every}, but the run has {n_steps:,} steps: no refresh comes before its end"
        remedy = "lower objective.refresh_every: groups and coarse proxies stay as they begin, while class proxies move on"
        found.append(Finding("never_refreshed", "warning", message, remedy))
    if not objective.is_given and objective.groups_from == "proxies" and objective.warmup_steps == 0:
        message = "the first groups are clusters of proxies that have learned nothing yet, and few proxies leave a group again"
        remedy = (
            "set objective.groups_from = 'embeddings', or objective.warmup_steps to an epoch or more; the paper begins as you do"
        )
        found.append(Finding("groups_of_random_proxies", "note", message, remedy))
    return found
