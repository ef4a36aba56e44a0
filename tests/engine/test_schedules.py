"""Learning-rate factors against torch's own schedulers, and the plateau rule."""

import pytest
import torch

from kinfold.engine.schedules import Plateau, factor
from kinfold.engine.settings import ScheduleSettings
from kinfold.errors import ConfigError

N_STEPS, PER_EPOCH = 40, 10


def ours(**settings) -> list[float]:
    schedule = ScheduleSettings(**settings)
    return [factor(schedule, step, n_steps=N_STEPS, steps_per_epoch=PER_EPOCH) for step in range(N_STEPS)]


def torchs(make) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer)
    rates = []
    for _ in range(N_STEPS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_cosine_is_torchs():
    expected = torchs(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=N_STEPS - 1))
    assert ours(kind="cosine") == pytest.approx(expected, abs=1e-9)


def test_cosine_with_restarts_is_one_cosine_after_another():
    found = ours(kind="cosine", restarts=[1, 3], final_factor=0.1)
    parts = [found[:10], found[10:30], found[30:]]
    for part in parts:
        schedule = ScheduleSettings(kind="cosine", final_factor=0.1)
        alone = [factor(schedule, step, n_steps=len(part), steps_per_epoch=PER_EPOCH) for step in range(len(part))]
        assert part == pytest.approx(alone)
        assert (part[0], part[-1]) == (1.0, pytest.approx(0.1))
    warm = ours(kind="cosine", restarts=[2], warmup_epochs=1)
    assert warm[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert (warm[10], warm[19], warm[20], warm[39]) == (1.0, pytest.approx(0.0), 1.0, pytest.approx(0.0))


def test_step_is_torchs():
    expected = torchs(lambda o: torch.optim.lr_scheduler.MultiStepLR(o, milestones=[10, 30], gamma=0.1))
    assert ours(kind="step", milestones=[1, 3]) == pytest.approx(expected)
    expected = torchs(lambda o: torch.optim.lr_scheduler.StepLR(o, step_size=20, gamma=0.5))
    assert ours(kind="step", every_epochs=2, gamma=0.5) == pytest.approx(expected)


def test_one_cycle_is_torchs():
    make = lambda o: torch.optim.lr_scheduler.OneCycleLR(  # noqa: E731
        o, max_lr=1.0, total_steps=N_STEPS, pct_start=0.3, cycle_momentum=False, final_div_factor=1e12
    )
    assert ours(kind="one_cycle") == pytest.approx(torchs(make), abs=1e-9)


def test_warm_up_rises_evenly_and_never_starts_at_zero():
    factors = ours(kind="constant", warmup_epochs=0.5)
    assert factors[:6] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1.0])


def test_past_its_end_a_schedule_keeps_its_last_factor():
    schedule = ScheduleSettings(kind="cosine", final_factor=0.25)
    assert factor(schedule, 10**6, n_steps=N_STEPS, steps_per_epoch=PER_EPOCH) == pytest.approx(0.25)


@pytest.mark.parametrize("kind", ["constant", "cosine", "one_cycle", "plateau"])
def test_one_step_in_all_is_no_division_by_zero(kind):
    assert 0 <= factor(ScheduleSettings(kind=kind), 0, n_steps=1, steps_per_epoch=1) <= 1


def test_plateau_drops_after_its_patience_and_counts_anew():
    plateau = Plateau(ScheduleSettings(kind="plateau", patience=1, gamma=0.5))
    scales = []
    for value in [0.1, 0.2, 0.2, 0.2, 0.1, 0.1, 0.3]:
        plateau.see(value)
        scales.append(plateau.scale)
    assert scales == [1, 1, 1, 0.5, 0.5, 0.25, 0.25]
    twin = Plateau(plateau.settings)
    twin.load_state_dict(plateau.state_dict())
    assert (twin.best, twin.scale, twin.n_waited) == (0.3, 0.25, 0)


def test_contradictions_are_refused():
    with pytest.raises(ConfigError, match="needs `milestones` or `every_epochs`"):
        ScheduleSettings(kind="step")
    with pytest.raises(ConfigError, match="rises by itself"):
        ScheduleSettings(kind="one_cycle", warmup_epochs=1)
