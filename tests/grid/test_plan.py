"""The cells of a grid: all of them, merged right, and checked before anything runs."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.errors import ConfigError
from kinfold.grid.file import GridFile, read_grid
from kinfold.grid.plan import cells_of, merge

leaves = st.integers() | st.text(max_size=3)
trees = st.recursive(
    st.dictionaries(st.sampled_from("abc"), leaves), lambda inner: st.dictionaries(st.sampled_from("abc"), inner | leaves)
)


def paths(tree, prefix=()):
    """Return path → leaf; an empty table is a leaf of its own."""
    found = {}
    for key, value in tree.items():
        found |= paths(value, (*prefix, key)) if isinstance(value, dict) and value else {(*prefix, key): value}
    return found


@given(base=trees, overlay=trees)
def test_every_leaf_of_the_overlay_wins_and_every_other_leaf_of_the_base_stays(base, overlay):
    merged = paths(merge(base, overlay))
    for path, value in paths(overlay).items():
        if value != {}:
            assert merged[path] == value
    for path, value in paths(base).items():
        touched = any(path[: len(other)] == other[: len(path)] for other in paths(overlay))
        if not touched:
            assert merged[path] == value


@given(base=trees, overlay=trees)
def test_merging_changes_neither_side(base, overlay):
    before = repr((base, overlay))
    merge(base, overlay)
    assert repr((base, overlay)) == before


def test_cells_are_data_sets_times_variants_times_seeds(grid_file):
    below = "[datasets.birds]\n[datasets.small]\ndata.size = 16\n[variants.dim_8]\nmodel.dim = 8\nseeds = [1]\n"
    cells = cells_of(read_grid(grid_file("seeds = 2\nfolder = 'out'", below)))
    assert [cell.name for cell in cells] == [
        f"{dataset}, {variant}, seed {seed}"
        for dataset in ("birds", "small")
        for variant, seeds in (("base", (0, 1)), ("dim_8", (1,)))
        for seed in seeds
    ]
    assert cells[-1].folder.as_posix() == "out/small/dim_8/seed-1"
    assert (cells[-1].config.seed, cells[-1].config.model.dim, cells[-1].config.data.size) == (1, 8, 16)
    assert (cells[2].config.data.size, cells[0].config.model.dim) == (24, 16)
    assert not any(cell.config.evaluation.keep_embeddings for cell in cells)


def test_one_data_set_needs_no_folder_of_its_own(grid_file):
    for below in ("", "[datasets.birds]\n"):
        assert cells_of(read_grid(grid_file(below=below)))[0].folder.as_posix() == "runs/tiny/base/seed-0"


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        ("", "[variants.x]\nmodel.dimm = 8", r"variant `x`: `model.dimm` is not known: did you mean `dim`"),
        ("", "[datasets.b]\n[variants.x]\nmodel.dim = 0", r"dataset `b`, variant `x`: `model.dim`: .*\(got 0\)"),
        ("", "[datasets.b]\ndata.sise = 8", r"dataset `b`, \[base\]: `data.sise` is not known"),
        ("", "[variants.x]\nobjective.loss = 'proxy_ancor'", "variant `x`: `objective.loss` .* did you mean `proxy_anchor`"),
        ("", "[variants.x]\nobjective.loss_options.scal = 3", "variant `x`: `objective.loss_options.scal` is not known"),
        ("", "[variants.x]\nseed = 3", "variant `x`: `seed` is set by the grid"),
        ("", "[datasets.b]\nrun = 'x'", "`run` is set by the grid"),
        ("", "[variants.x]\nmodel.dim = 16", "variant `x` has the base's settings"),
        ("", "[variants.x]\nnote = 'nothing'", "variant `x` has the base's settings"),
        ("", "[variants.x]\nbatches.workers = 1", "variant `x` has the base's settings"),
        ("", "[datasets.b]\nmodel.dim = 8\n[variants.x]\nmodel.dim = 8", "dataset `b`, variant `x` has the base's settings"),
        ("", "[variants.x]\ndata.root = 'elsewhere'", "variant `x`: `data.root` must be that of the base"),
        ("", "[variants.x]\nevaluation.similarity = 'dot'", "`evaluation.similarity` must be that of the base"),
        ("", "[variants.x]\ndata.hold_out_every = 3", "`data.hold_out_every` must be that of the base"),
        ("metrics = ['map_at_x']", "", r"\[base\]: the metric 'map_at_x' is not measured: did you mean `map_at_r`"),
        ("metrics = ['nmi']", "", "'nmi' has one value for all queries"),
        ("", "[base.evaluation]\nafter_training = false", "`evaluation.after_training` = false"),
        ("", "[base.evaluation]\nmetrics = ['mrr']", "'recall_at_1' is not measured"),
        ("", "[base.evaluation]\nsimilarity = 'cosin'", "cosin"),
        ("", "[base.evaluation]\ncoarse_metrics = ['recal']", "recal"),
        (
            "levels = ['label', 'kind']",
            "[base.evaluation]\ncoarse_metrics = ['mrr']",
            r"\[base\]: the metric 'recall_at_1' is not measured on level `kind` \(`evaluation.coarse_metrics`\): Known: mrr",
        ),
        ("levels = ['label', 'kind']\nmetrics = ['recall_at_1', 'nmi']", "", "'nmi' has one value for all queries"),
        ("metrics = ['mrr', 'map']", "[base.evaluation]\nmetrics = ['mrr']\ncoarse_metrics = ['map']", "'map' is not measured"),
    ],
)
def test_each_fault_names_data_set_variant_and_key(grid_file, above, below, message):
    with pytest.raises(ConfigError, match=message):
        cells_of(read_grid(grid_file(above, below + "\n")))


def test_the_grids_of_the_docs_can_be_planned(place):
    page = (Path(__file__).parents[2] / "docs" / "grids.md").read_text(encoding="utf-8")
    grids = re.findall(r"^```ini\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(grids) == 2
    for text in grids:
        (place / "example.toml").write_text(text, encoding="utf-8")
        assert cells_of(read_grid("example.toml"))
    known = set(GridFile.model_fields) - {"base", "datasets", "variants"}
    assert not {name for name in known if f"| `{name}` |" not in page}, "every key has its line"


def test_a_best_epoch_is_not_compared_with_a_last_one(grid_file):
    below = "[variants.long]\ntrain.epochs = 3\n"
    held = read_grid(grid_file(below=below), ["data.hold_out_every=3"])
    with pytest.raises(ConfigError, match=r"variant `long`: the last epoch of the one .*`train.epochs` 1, here 3"):
        cells_of(held)
    assert cells_of(read_grid(grid_file(below=below))), "without validation there is but the last epoch"
    assert cells_of(read_grid(grid_file(below=below), ["data.hold_out_every=3", "train.evaluate_every=5"]))
