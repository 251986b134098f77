"""The two figures of every experiment, drawn from the content of ``metrics.json``.

``Figure`` is used without pyplot: it draws with Agg, needs no display and starts faster. A method
has its colour, marker and line in both figures, so that they can be read without colours too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from .findings import Metrics, role

#: Colour, marker and line of the methods, in their order; the colours differ to colour-blind eyes.
STYLES = (
    ("#000000", "o", "--"),
    ("#0072B2", "D", "-"),
    ("#D55E00", "s", ":"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "v", (0, (5, 1, 1, 1, 1, 1))),
)
#: How far the points of one place are spread, as a share of the distance between places.
SPREAD = 0.1


def _axes(metrics: Metrics, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.4, height), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(metrics["title"], fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _styled(metrics: Metrics) -> Iterator[tuple[str, str, tuple[str, str, Any]]]:
    """Yield key, label with role, and style of every method."""
    for style, (key, method) in zip(STYLES, metrics["methods"].items(), strict=False):
        yield key, f"{method['label']} ({role(key)})", style


def draw_scores(metrics: Metrics, path: Path) -> None:
    """Draw the metric of the hypothesis: each seed, mean and standard deviation per method."""
    figure, axes = _axes(metrics, 3.6)
    name = metrics["hypothesis"]["metric"]
    metric = metrics["metrics"][name]
    labels, means = [], []
    for row, (key, label, (colour, marker, _)) in enumerate(_styled(metrics)):
        score = metrics["methods"][key][name]
        axes.errorbar(score["mean"], row, xerr=score["std"], fmt=marker, color=colour, capsize=4)
        rows = row + np.linspace(0.16, 0.4, len(score["per_seed"]))  # apart, so that ties show
        axes.plot(score["per_seed"], rows, ".", color=colour, alpha=0.6)
        labels.append(label.replace(" (", "\n("))
        means.append(score["mean"])
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.4, -0.5)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    scale = ""
    if max(means) > 5 * min(means) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        scale = ", logarithmic scale"
    axes.set_xlabel(
        f"{metric['label']} ({metric['better']} is better{scale})\n"
        f"bars: mean ± std of {metrics['runs']} seeds, dots: single seeds",
        fontsize=9,
    )
    figure.savefig(path)


def draw_curve(metrics: Metrics, path: Path) -> None:
    """Draw the curve of every method: the mean over the seeds, one standard deviation around it."""
    figure, axes = _axes(metrics, 4.4)
    curve = metrics["curve"]
    x = np.array(curve["x"], dtype=float)
    if curve["target"] is not None:
        axes.axhline(curve["target"], color="#888888", linewidth=1, label=curve["target_label"])
    # Side by side, so that no bar hides another.
    width = SPREAD * np.diff(x).min()
    shifts = np.linspace(-width, width, len(metrics["methods"]))
    for shift, (key, label, (colour, marker, line)) in zip(shifts, _styled(metrics), strict=False):
        values = np.array(curve["per_seed"][key])
        axes.errorbar(
            x + shift,
            values.mean(axis=0),
            yerr=values.std(axis=0, ddof=1),
            color=colour,
            marker=marker,
            markersize=5,
            linestyle=line,
            linewidth=1.3,
            elinewidth=0.9,
            capsize=2.5,
            label=label,
        )
    axes.set_xticks(curve["x"])
    axes.set_xlabel(curve["x_label"])
    axes.set_ylabel(f"{curve['label']}\n(mean ± std of {metrics['runs']} seeds)", fontsize=9)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(path)
