"""Run an experiment over its seeds and write down everything it measured.

An experiment declares its methods, metrics and hypothesis as data and gives one function for one
seed; the rest (statistics, files, the decision about the hypothesis) is the same for all, so that
no experiment can decide about itself more kindly than another.
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

from .figures import draw_curve, draw_scores
from .report import write_report

CONFIDENCE_PERCENT = 95
#: Holds for every experiment here, whatever else limits it.
EXPLORED = (
    "The settings and the margin were chosen after exploratory runs on the first seeds; a repeat"
    " with other seeds is the cleaner test."
)

log = logging.getLogger("experiment")


@dataclass(frozen=True, slots=True)
class Metric:
    """How a number is called, read and printed. With ``better=None`` it is only described."""

    label: str
    better: Literal["higher", "lower"] | None
    digits: int = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """A quantity measured per method along *x*: the second figure."""

    label: str
    x: Sequence[float]
    x_label: str
    caption: str
    #: Where the values should lie, drawn as a line, and what that is called.
    target: float | None = None
    target_label: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one seed gave: per method its metrics and its curve, and numbers about the mechanism."""

    scores: Mapping[str, Mapping[str, float]]
    curves: Mapping[str, Sequence[float]]
    observations: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. *methods* has at least ``baseline``, ``proposed`` and ``ablation``.

    The hypothesis is that ``proposed`` beats ``baseline`` on *metric* by *margin*.
    """

    task: str
    title: str
    hypothesis: str
    metric: str
    margin: float
    data: str
    settings: Mapping[str, tuple[str, float]]
    methods: Mapping[str, str]
    metrics: Mapping[str, Metric]
    observations: Mapping[str, str]
    curve: Curve
    limitations: Sequence[str]
    seeds: int
    run_seed: Callable[[int], Outcome]


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Return mean, sample standard deviation and the values themselves."""
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values, ddof=1)),
        "per_seed": [float(value) for value in values],
    }


def paired_gain(better: Sequence[float], worse: Sequence[float], sign: int) -> dict[str, Any]:
    """Compare two methods seed by seed, with a t interval for the mean gain."""
    gains = [sign * (a - b) for a, b in zip(better, worse, strict=True)]
    gain = summary(gains)
    half = (
        float(stdtrit(len(gains) - 1, (1 + CONFIDENCE_PERCENT / 100) / 2))
        * gain["std"]
        / len(gains) ** 0.5
    )
    return {
        **gain,
        "low": gain["mean"] - half,
        "high": gain["mean"] + half,
        "wins": sum(value > 0 for value in gains),
    }


def collect(
    experiment: Experiment, seeds: Sequence[int], outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Turn the outcomes into the content of ``metrics.json``, with the decision."""
    methods: dict[str, dict[str, Any]] = {}
    for method, label in experiment.methods.items():
        scores = {
            name: summary([outcome.scores[method][name] for outcome in outcomes])
            for name in experiment.metrics
        }
        methods[method] = {"label": label, **scores}
    sign = 1 if experiment.metrics[experiment.metric].better == "higher" else -1
    values = {name: method[experiment.metric]["per_seed"] for name, method in methods.items()}
    gains = {
        other: paired_gain(values["proposed"], values[other], sign)
        for other in ("baseline", "ablation")
    }
    return {
        "task": experiment.task,
        "title": experiment.title,
        "data": experiment.data,
        "seeds": list(seeds),
        "runs": len(seeds),
        "settings": {
            name: {"label": label, "value": value}
            for name, (label, value) in experiment.settings.items()
        },
        "metrics": {name: asdict(metric) for name, metric in experiment.metrics.items()},
        "methods": methods,
        "hypothesis": {
            "statement": experiment.hypothesis,
            "metric": experiment.metric,
            "margin": experiment.margin,
            "held": gains["baseline"]["mean"] >= experiment.margin and gains["baseline"]["low"] > 0,
        },
        "confidence_percent": CONFIDENCE_PERCENT,
        "gain_over": gains,
        "observations": {
            name: {"label": label, **summary([outcome.observations[name] for outcome in outcomes])}
            for name, label in experiment.observations.items()
        },
        "curve": {
            **asdict(experiment.curve),
            "per_seed": {
                method: [[float(y) for y in outcome.curves[method]] for outcome in outcomes]
                for method in experiment.methods
            },
        },
        "limitations": [*experiment.limitations, EXPLORED],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "matplotlib")},
        },
    }


def log_to(path: Path) -> None:
    """Send the log to *path* and to standard output, every line with its time."""
    form = logging.Formatter("%(asctime)s.%(msecs)03dZ %(message)s", "%Y-%m-%dT%H:%M:%S")
    form.converter = time.gmtime
    for handler in (
        logging.FileHandler(path, mode="w", encoding="utf-8"),
        logging.StreamHandler(sys.stdout),
    ):
        handler.setFormatter(form)
        log.addHandler(handler)
    log.setLevel(logging.INFO)


def run_seeds(experiment: Experiment, seeds: Sequence[int]) -> list[Outcome]:
    """Run every seed and log what it gave."""
    outcomes = []
    for number, seed in enumerate(seeds, start=1):
        log.info("seed %d (%d of %d)", seed, number, len(seeds))
        start = time.perf_counter()
        outcome = experiment.run_seed(seed)
        for method, scores in outcome.scores.items():
            log.info("  %s: %s", method, ", ".join(f"{k} {v:.4f}" for k, v in scores.items()))
        for name, value in outcome.observations.items():
            log.info("  %s %.4f", name, value)
        log.info("  took %.3f s", time.perf_counter() - start)
        outcomes.append(outcome)
    return outcomes


def main(experiment: Experiment) -> None:
    """Run *experiment* in the current folder and leave its files in ``results/``.

    Repeats use disjoint seeds, so that they are independent of each other.
    """
    parser = argparse.ArgumentParser(description=experiment.title)
    parser.add_argument("--repeat", type=int, default=1, help="1, 2, ...: each has its own seeds")
    repeat = parser.parse_args().repeat
    results = Path("results")
    results.mkdir(exist_ok=True)
    log_to(results / "log.txt")
    first = (repeat - 1) * experiment.seeds
    seeds = range(first, first + experiment.seeds)
    log.info(
        "experiment %s, repeat %d, seeds %d to %d", experiment.task, repeat, seeds[0], seeds[-1]
    )
    for name, (label, value) in experiment.settings.items():
        log.info("setting %s = %s (%s)", name, value, label)

    metrics = collect(experiment, seeds, run_seeds(experiment, seeds))
    log.info("versions: %s", ", ".join(f"{k} {v}" for k, v in metrics["versions"].items()))
    (results / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n", "utf-8")
    log.info("wrote results/metrics.json")
    draw_scores(metrics, results / "scores.png")
    draw_curve(metrics, results / "curve.png")
    log.info("wrote results/scores.png and results/curve.png")
    claims = write_report(metrics, repeat, results)
    log.info("wrote results/results.md and results/claims.json (%d claims)", claims)
    gain = metrics["gain_over"]["baseline"]
    log.info("gain %.4f, interval %.4f to %.4f", gain["mean"], gain["low"], gain["high"])
    log.info("hypothesis held: %s", metrics["hypothesis"]["held"])
