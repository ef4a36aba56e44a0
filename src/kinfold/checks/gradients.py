"""What one update says about training: groups without a gradient, slow proxies, batches without an active pair."""

import math

from kinfold.checks.dry_step import DryStep, GroupStep
from kinfold.checks.finding import Finding
from kinfold.checks.frozen import frozen
from kinfold.core.pairs import pairs_from_labels, without_same_item
from kinfold.records import Embedded

FEW_ACTIVE = 0.05
LARGE_STEP = 1.0
USUAL_SCALE = 100


def gradient_findings(step: DryStep) -> list[Finding]:
    """Judge what one update at the peak learning rates did.

    Returns:
        `inactive_batch` (warning): the gradient is exactly zero. `frozen_head` (error), `frozen_group` (warning): a group got no
        gradient, or does not move. `no_gradient` (note): parts of a group got none. `slow_proxies` (warning): no faster than the
        trunk. `large_step` (warning): an update as large as the weights. `few_active_pairs` (warning). `step_sizes` (note): the
        figures.
    """
    findings = [*_slow_proxies(step), *_large_steps(step)]
    if step.is_inactive:
        findings.append(_inactive())
    else:
        findings += [*_frozen(step), *_few_active(step)]
    return [*findings, _figures(step)]


def _inactive() -> Finding:
    return Finding(
        "inactive_batch",
        "warning",
        "the first batch teaches nothing: the gradient at the embeddings is exactly zero, no pair is active",
        "raise the margin of the loss, pick other pairs or triplets (objective.miner, objective.pick), or raise batches.batch_size",
    )


def _frozen(step: DryStep) -> list[Finding]:
    found = []
    for group in step.groups:
        if not group.n_tensors or not group.learning_rate:
            continue  # its settings say so: `frozen_findings` has told
        if not group.grad_norm > 0:
            remedy = "look for a `detach` between it and the loss, or for a loss that does not use it"
            found.append(frozen(group.name, f"`{group.name}` gets no gradient", remedy, "error"))
        elif not group.change:
            key = f"optimizer.{group.name}.learning_rate"
            reason = f"an update with the learning rate {group.learning_rate:.3g} leaves `{group.name}` where it was"
            found.append(frozen(group.name, reason, f"raise {key}", "warning"))
        elif group.without_gradient:
            message = f"{group.without_gradient:,} of {group.n_tensors:,} parameters of `{group.name}` got no gradient from the first batch"
            found.append(Finding("no_gradient", "note", message, "nothing to do if the network leaves them out on purpose"))
    return found


def _slow_proxies(step: DryStep) -> list[Finding]:
    rates = {group.name: group.learning_rate for group in step.groups}
    proxies, trunk = rates.get("proxies", math.inf), rates.get("trunk", 0.0)
    if not 0 < proxies <= trunk:
        return []
    return [
        Finding(
            "slow_proxies",
            "warning",
            f"the proxies' learning rate {proxies:.3g} is no larger than the trunk's, {trunk:.3g}; published recipes take about "
            f"{USUAL_SCALE} times as much, since a proxy starts at random and learns from its own class's images alone",
            f"set objective.lr_scale = {USUAL_SCALE}, or optimizer.proxies.learning_rate = {USUAL_SCALE * trunk:.3g}",
        )
    ]


def _large_steps(step: DryStep) -> list[Finding]:
    return [
        Finding(
            "large_step",
            "warning",
            f"one update at the peak learning rate {group.learning_rate:.3g} changes `{group.name}` by {group.change:.0%} of its size",
            f"lower optimizer.{group.name}.learning_rate",
        )
        for group in step.groups
        if group.name != "proxies" and group.change > LARGE_STEP
    ]


def _few_active(step: DryStep) -> list[Finding]:
    shares = {name: step.health[f"active_{name}"] for name in ("positive", "negative") if f"active_{name}" in step.health}
    if not shares or max(shares.values()) >= FEW_ACTIVE:
        return []
    n_pairs, n_images = _n_pairs(step.embedded), len(step.embedded.label)
    n_active = {name: round(share * n_pairs[name]) for name, share in shares.items()}
    if sum(n_active.values()) >= n_images / 2:  # hard mining takes few pairs by design: one an image is enough
        return []
    told = " and ".join(f"{n_active[name]:,} of {n_pairs[name]:,} {name} pairs" for name in shares)
    return [
        Finding(
            "few_active_pairs",
            "warning",
            f"few pairs of the first batch are active: {told} have a gradient, in {n_images:,} images",
            "raise the margin of the loss, loosen the mining (objective.miner, objective.pick), or raise batches.batch_size",
        )
    ]


def _n_pairs(embedded: Embedded) -> dict[str, int]:
    pairs = without_same_item(pairs_from_labels(embedded.label, embedded.label), embedded.item, embedded.item)
    return {"positive": int(pairs.positive.sum()), "negative": int(pairs.negative.sum())}


def _figures(step: DryStep) -> Finding:
    active = [
        f"{step.health[name]:.0%} of the {name.removeprefix('active_')} pairs are active"
        for name in sorted(step.health)
        if name.startswith("active_")
    ]
    groups = "; ".join(_of_group(group) for group in step.groups)
    message = f"one update at the peak learning rates: loss {step.values['loss']:.4g}; {groups}"
    return Finding("step_sizes", "note", "; ".join([message, *active]), "nothing to do: for comparison with other settings")


def _of_group(group: GroupStep) -> str:
    gradient = f"gradient {group.grad_norm:.2g}" if group.grad_norm > 0 else "no gradient"
    return f"`{group.name}` learning rate {group.learning_rate:.3g}, {gradient}, moves by {100 * group.change:.2g} %"
