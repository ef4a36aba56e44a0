"""Each rule fires on the state it is for, and keeps quiet on its neighbours; messages say cause and advice."""

import pytest

from kinfold.engine.alarms import LASTS, ROWS, RULES, WARM_UP, Vitals

HEALTHY = {"effective_rank": 20.0, "positive_similarity": 0.8, "negative_similarity": 0.3, "similarity_gap": 0.5}
POINT = {"positive_similarity": 0.991, "negative_similarity": 0.99, "similarity_gap": 0.001}
LINE = {"effective_rank": 1.3}
TURNED = {"positive_similarity": 0.2, "negative_similarity": 0.3, "similarity_gap": -0.1}
FEW = {"active_positive": 0.01, "active_negative": 0.005}


def vitals(*states, every=10, start=60, epoch=3, room=15, **facts) -> Vitals:
    """Return what the rules see after rows of these states, `every` updates apart, from update `start` on."""
    found = Vitals(**facts)
    for number, state in enumerate(states):
        found.step = start + number * every
        found.see_row({"step": found.step, "epoch": epoch, "room": room, **HEALTHY, **state})
    return found


def fired(found: Vitals) -> set[str]:
    return {code for code, rule in RULES.items() if rule(found) is not None}


NARROW = {"generated_variance": 0.03}
BAD_ROWS = {"collapse": POINT, "negatives_closer": TURNED, "few_active_pairs": FEW, "generator_collapse": NARROW}


def test_a_healthy_run_gives_no_warning():
    assert fired(vitals(*[{}] * 10, n_batches=500, n_inactive=20, drifts=[1.4, 0.4, 0.1, 0.0], n_proxies=9, n_epochs=4)) == set()


def test_a_run_that_has_not_begun_gives_no_warning():
    assert fired(Vitals()) == set()
    assert fired(Vitals(drifts=[0.0], n_batches=5, n_inactive=5, step=5)) == set()


@pytest.mark.parametrize("code", BAD_ROWS)
@pytest.mark.parametrize("every", [1, 10, 50, 1000])
def test_a_state_must_last_for_fifty_updates_and_three_rows(code, every):
    n_rows = max(ROWS, LASTS // every + 1)
    state = BAD_ROWS[code]
    assert fired(vitals(*[state] * n_rows, every=every)) == {code}
    assert fired(vitals(*[state] * (n_rows - 1), every=every)) == set()
    assert fired(vitals(*[state] * (n_rows - 1), {}, every=every)) == set(), "the last row is well again"
    assert fired(vitals({}, *[state] * n_rows, every=every)) == {code}, "what was before is forgotten"


@pytest.mark.parametrize("code", BAD_ROWS)
def test_the_beginning_is_not_judged(code):
    assert fired(vitals(*[BAD_ROWS[code]] * 6, start=WARM_UP - 10)) == set()
    assert fired(vitals(*[BAD_ROWS[code]] * 6, start=WARM_UP)) == {code}


def test_old_rows_are_forgotten():
    assert len(vitals(*[{}] * 1000, every=1).rows) == LASTS + 1
    assert len(vitals(*[{}] * 1000, every=10).rows) == LASTS / 10 + 1
    assert len(vitals(*[{}] * 1000, every=1000).rows) == ROWS


def test_all_alike_without_any_positive_pair_is_a_collapse():
    found = Vitals()
    for number in range(6):
        found.see_row({"step": 60 + 10 * number, "epoch": 1, "room": 15, "effective_rank": 9.0, "negative_similarity": 0.99})
    assert fired(found) == {"collapse"}
    assert "mean similarity of 0.990, and" in RULES["collapse"](found)


@pytest.mark.parametrize("key", ["similarity_gap", "negative_similarity"])
def test_alike_but_getting_better_is_no_collapse(key):
    step = {"similarity_gap": 0.003, "negative_similarity": -0.004}[key]
    states = [{**POINT, key: POINT[key] + step * number} for number in range(6)]
    assert fired(vitals(*states)) == set()
    assert fired(vitals(*reversed(states))) == {"collapse"}


@pytest.mark.parametrize("state", [{"negative_similarity": 0.94}, {"similarity_gap": 0.03}])
def test_alike_but_told_apart_is_no_collapse(state):
    assert fired(vitals(*[{**POINT, **state}] * 6)) == set()


def test_a_line_is_a_collapse_where_there_is_room_for_more():
    assert fired(vitals(*[LINE] * 6)) == {"collapse"}
    assert fired(vitals(*[LINE] * 6, room=3)) == set(), "four classes, or an embedding of three numbers"
    assert fired(vitals(*[{"effective_rank": 2.1}] * 6)) == set()
    assert fired(vitals(*[{"effective_rank": 1.2 + 0.1 * number} for number in range(6)])) == set(), "it rises"


def test_negatives_may_be_closer_in_the_first_epoch():
    assert fired(vitals(*[TURNED] * 6, epoch=0)) == set()
    assert fired(vitals(*[{**TURNED, "similarity_gap": -0.1 + 0.01 * number} for number in range(6)])) == set(), "it rises"
    assert fired(vitals(*[{"similarity_gap": 0.001}] * 6)) == set()


def test_one_active_side_is_enough():
    """Batch-hard triplets take one negative of many for nearly every anchor."""
    assert fired(vitals(*[{**FEW, "active_positive": 0.3}] * 6)) == set()
    assert fired(vitals(*[{"active_negative": 0.01}] * 6)) == {"few_active_pairs"}
    assert fired(vitals(*[{**FEW, "active_positive": 0.002 * number} for number in range(6)])) == set(), "they grow"


def test_dead_batches_are_more_than_half_of_at_least_fifty():
    assert fired(Vitals(n_batches=49, n_inactive=49)) == set()
    assert fired(Vitals(n_batches=50, n_inactive=25)) == set()
    assert fired(Vitals(n_batches=50, n_inactive=26)) == {"dead_batches"}


def test_dead_batches_are_not_called_few_active_pairs_as_well():
    dead = {"active_positive": 0.0, "active_negative": 0.0}
    assert fired(vitals(*[dead] * 6)) == {"few_active_pairs"}
    assert fired(vitals(*[dead] * 6, n_batches=100, n_inactive=90)) == {"dead_batches"}


def test_classes_without_an_image_are_named_after_two_whole_epochs():
    missing = Vitals(n_proxies=10, never_hit=[2, 3, 5, 6, 7, 8], n_epochs=2)
    message = RULES["proxies_never_hit"](missing)
    assert "6 of 10 classes had no image" in message
    assert "number 2, 3, 5, 6, 7, …" in message
    assert fired(Vitals(n_proxies=10, never_hit=[2], n_epochs=1)) == set()
    assert fired(Vitals(n_proxies=10, never_hit=[], n_epochs=9)) == set()


@pytest.mark.parametrize(
    ("drifts", "step", "code"),
    [
        ([0.0], 50, "proxies_still"),
        ([0.0], 49, None),
        ([0.9e-4, 0.5e-4], 60, "proxies_still"),
        ([1.1e-4], 60, None),
        ([0.5, 0.2, 0.0], 60, None),  # at rest after training
        ([1.4, 1.2, 1.2], 60, "proxies_spin"),
        ([1.4, 1.2, 1.2], 49, None),
        ([1.4, 1.2], 60, None),  # the way from a random start
        ([1.4, 1.2, 0.9], 60, None),
        ([1.5, 1.5, 1.3], 60, None),  # they calm down
        ([0.1, 0.2, 1.2, 1.3], 60, "proxies_spin"),
    ],
)
def test_proxies_neither_stand_still_nor_spin(drifts, step, code):
    assert fired(Vitals(drifts=drifts, step=step)) == ({code} if code else set())


@pytest.mark.parametrize(
    ("code", "found", "cause", "advice"),
    [
        ("collapse", vitals(*[POINT] * 6), "mean similarity of 0.990, those of one class 0.991", "semi_hard"),
        ("collapse", vitals(*[LINE] * 6), "the effective rank is 1.3", "a learning rate of a tenth"),
        ("negatives_closer", vitals(*[TURNED] * 6), "by 0.100, and have been for 50 updates", "labels belong"),
        ("few_active_pairs", vitals(*[FEW] * 6), "1.0% of the positive and 0.5% of the negative pairs", "harder pairs"),
        ("dead_batches", Vitals(n_batches=1000, n_inactive=900), "900 of 1,000 batches had no active pair", "Raise the margin"),
        ("proxies_never_hit", Vitals(n_proxies=4, never_hit=[3], n_epochs=2), "1 of 4 classes", "images_per_class"),
        ("proxies_still", Vitals(drifts=[2e-5], step=80), "2.0e-05 rad", "requires_grad"),
        ("proxies_spin", Vitals(drifts=[1.5, 1.4, 1.5], step=80), "1.50 rad an epoch", "learning rate"),
        ("generator_collapse", vitals(*[NARROW] * 6), "is 0.030 of that within real classes", "objective.divergence = 'mmd'"),
    ],
)
def test_a_message_says_cause_and_advice(code, found, cause, advice):
    message = RULES[code](found)
    assert cause in message
    assert advice in message
    assert message.endswith(".")


def test_a_generator_that_widens_or_is_wide_enough_has_not_collapsed():
    assert fired(vitals(*[{"generated_variance": 0.02 * number} for number in range(6)])) == set()
    assert fired(vitals(*[{"generated_variance": 0.11}] * 6)) == set()
