"""The two figures of every experiment, drawn from the content of ``metrics.json``.

``Figure`` is used without pyplot: it draws with Agg, needs no display and starts faster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from .findings import Metrics

COLOURS = ("#7f7f7f", "#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd")


def _axes(metrics: Metrics) -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.4, 3.6), dpi=90, layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(metrics["title"], fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_scores(metrics: Metrics, path: Path) -> None:
    """Draw the metric of the hypothesis: each seed, mean and standard deviation per method."""
    figure, axes = _axes(metrics)
    name = metrics["hypothesis"]["metric"]
    for row, (colour, method) in enumerate(zip(COLOURS, metrics["methods"].values(), strict=False)):
        score = method[name]
        axes.errorbar(score["mean"], row, xerr=score["std"], fmt="D", color=colour, capsize=4)
        rows = row + np.linspace(0.12, 0.36, len(score["per_seed"]))  # apart, so that ties show
        axes.plot(score["per_seed"], rows, ".", color=colour, alpha=0.6)
    axes.set_yticks(
        range(len(metrics["methods"])), [m["label"] for m in metrics["methods"].values()]
    )
    axes.set_ylim(len(metrics["methods"]) - 0.5, -0.5)
    means = [method[name]["mean"] for method in metrics["methods"].values()]
    if max(means) > 5 * min(means) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    metric = metrics["metrics"][name]
    axes.set_xlabel(f"{metric['label']} ({metric['better']} is better)")
    figure.savefig(path)


def draw_curve(metrics: Metrics, path: Path) -> None:
    """Draw the curve of every method: the mean over the seeds, one standard deviation around it."""
    figure, axes = _axes(metrics)
    curve = metrics["curve"]
    for colour, (key, method) in zip(COLOURS, metrics["methods"].items(), strict=False):
        values = np.array(curve["per_seed"][key])
        mean, std = values.mean(axis=0), values.std(axis=0, ddof=1)
        axes.plot(curve["x"], mean, "o-", color=colour, markersize=4, label=method["label"])
        axes.fill_between(curve["x"], mean - std, mean + std, color=colour, alpha=0.12, linewidth=0)
    axes.set_xticks(curve["x"])
    axes.set_xlabel(curve["x_label"])
    axes.set_ylabel(curve["label"])
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(path)
