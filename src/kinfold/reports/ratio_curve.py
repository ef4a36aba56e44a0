"""A metric against the number of novel classes."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kinfold.atomic import atomic_path
from kinfold.errors import ConfigError

LINE, BASE, FAINT, GRID = "#0072b2", "#555555", "#555555", "#e4e4e4"


class RatioPoint(NamedTuple):
    """One place on the curve.

    Attributes:
        ratio: novel classes for each real one.
        value: the metric, a share.
        interval: in which it lies as far as the difference to 0 is known; `None` for 0 itself.
    """

    ratio: float
    value: float
    interval: tuple[float, float] | None = None


def draw_ratios(points: Sequence[RatioPoint], file: str | Path, *, metric: str, caption: str = "") -> None:
    """Draw the metric in percent against the ratio in percent, the base as a line across.

    Args:
        points: of which one has the ratio 0.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        metric: its name, for the axis.
        caption: below.

    Raises:
        ConfigError: no point, or none of ratio 0.
    """
    from matplotlib.figure import Figure

    ordered = sorted(points)
    if not ordered or ordered[0].ratio != 0:
        raise ConfigError("a curve over ratios needs a point of ratio 0, the base.")
    x, y = [100 * point.ratio for point in ordered], [100 * point.value for point in ordered]
    spans = [(100 * each.value, *(100 * end for end in each.interval)) if each.interval else (0.0, 0.0, 0.0) for each in ordered]
    figure = Figure(figsize=(4.6, 3.4), dpi=150)
    axes = figure.subplots()
    axes.axhline(y[0], color=BASE, linewidth=1, linestyle="--")
    axes.annotate("no novel class", (x[-1], y[0]), ha="right", va="bottom", fontsize=7.5, color=BASE)
    bars = [[max(0.0, value - low) for value, low, _ in spans], [max(0.0, high - value) for value, _, high in spans]]
    axes.errorbar(x, y, yerr=bars, color=LINE, marker="o", markersize=4, linewidth=1.6, capsize=2.5)
    axes.set_xlabel("novel classes, % of the real ones", fontsize=8, color=FAINT)
    axes.set_ylabel(f"{metric}, %", fontsize=8, color=FAINT)
    axes.tick_params(labelsize=7.5, colors=FAINT)
    axes.grid(color=GRID, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    lines = textwrap.wrap(caption, 82)
    figure.text(0.02, 0.02, "\n".join(lines), fontsize=6.5, color=FAINT, va="bottom", parse_math=False)
    figure.tight_layout(rect=(0, 0.02 + 0.045 * len(lines), 1, 1))
    with atomic_path(file) as temporary:
        figure.savefig(temporary)
