"""A metric against the number of novel classes: what is drawn is what was measured."""

import pytest
from matplotlib.figure import Figure
from PIL import Image

from kinfold.errors import ConfigError
from kinfold.reports.ratio_curve import RatioPoint, draw_ratios

POINTS = [RatioPoint(2.0, 0.31, (0.28, 0.33)), RatioPoint(0.0, 0.30), RatioPoint(0.5, 0.25, (0.22, 0.27))]


@pytest.fixture
def axes(tmp_path, monkeypatch):
    """Return the axes of a drawn curve."""
    kept = []
    save = Figure.savefig

    def keep(figure, *how, **options):
        kept.append(figure)
        save(figure, *how, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    draw_ratios(POINTS, tmp_path / "curve.png", metric="map_at_r", caption="of a run")
    with Image.open(tmp_path / "curve.png") as image:
        assert min(image.size) > 300
    (figure,) = kept
    return figure.axes[0]


def test_points_lie_at_their_ratio_and_value_in_percent(axes):
    (bars,) = axes.containers
    x, y = bars.lines[0].get_data()
    assert list(x) == [0, 50, 200]
    assert list(y) == pytest.approx([30, 25, 31])


def test_bars_end_where_the_intervals_end(axes):
    (bars,) = axes.containers
    ends = [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()]
    assert ends[0] == pytest.approx([30, 30])
    assert ends[1] == pytest.approx([22, 27])
    assert ends[2] == pytest.approx([28, 33])


@pytest.mark.parametrize("points", [[], [RatioPoint(1.0, 0.3, (0.2, 0.4))]])
def test_a_curve_without_its_base_is_refused(points, tmp_path):
    with pytest.raises(ConfigError, match="needs a point of ratio 0"):
        draw_ratios(points, tmp_path / "curve.png", metric="map_at_r")
    assert not list(tmp_path.iterdir())
