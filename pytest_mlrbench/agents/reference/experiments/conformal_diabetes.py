"""Conformal intervals whose width follows a straight line in the prediction."""

from __future__ import annotations

import numpy as np

from .harness import Curve, Experiment, Metric, Outcome, log, main
from .learn import FOLDS, Bools, Floats, diabetes, out_of_fold, ridge, split

TRAIN, CALIBRATION, MISS, ALPHA, GROUPS, FLOOR = 200, 100, 0.1, 0.1, 3, 0.1


def half_width(scores: Floats) -> float:
    """Return the quantile of the calibration scores, with the finite-sample correction."""
    rank = int(np.ceil((len(scores) + 1) * (1 - MISS)))
    return float(np.sort(scores)[rank - 1])


def by_group(covered: Bools, predicted: Floats) -> list[float]:
    """Return the coverage in thirds of the test set, from low to high predicted value."""
    return [float(covered[part].mean()) for part in np.array_split(np.argsort(predicted), GROUPS)]


def run_seed(seed: int) -> Outcome:
    """Fit on one part, calibrate on the second, and measure intervals on the third."""
    x, y = diabetes()
    train, rest = split(len(y), TRAIN, seed)
    first, second = split(len(rest), CALIBRATION, seed)
    calibration, test = rest[first], rest[second]
    predicted = ridge(ALPHA).fit(x[train], y[train]).predict(x)
    error = np.abs(y - predicted)
    crossed = out_of_fold(ridge(ALPHA), x[train], y[train], seed, "predict")
    train_error = np.abs(y[train] - crossed)
    slope, offset = np.polyfit(crossed, train_error, 1)
    log.info("  size of the error: %.3f + %.4f * prediction", offset, slope)
    scale = np.maximum(offset + slope * predicted, np.quantile(train_error, FLOOR))
    scales = {
        "baseline": np.ones(len(y)),
        "proposed": scale,
        "ablation": np.random.default_rng(seed).permutation(scale),
    }
    scores, curves = {}, {}
    for name, s in scales.items():
        widths = half_width(error[calibration] / s[calibration]) * s[test]
        covered = error[test] <= widths
        groups = by_group(covered, predicted[test])
        curves[name] = groups
        scores[name] = {
            "gap": max(groups) - min(groups),
            "coverage": float(covered.mean()),
            "width": float(2 * widths.mean()),
        }
    return Outcome(scores, curves, {"slope": float(slope)})


EXPERIMENT = Experiment(
    task="conformal_diabetes",
    title="Error-scaled conformal intervals on diabetes",
    hypothesis=(
        "Dividing the conformal score by a linear model of the error, with the prediction as its"
        " only input, makes the coverage of low, middle and high predictions more alike than"
        " intervals of constant width."
    ),
    metric="gap",
    margin=0.02,
    data="disease progression of diabetes patients (scikit-learn, load_diabetes)",
    settings={
        "train": ("examples for the model and for the size of the error", TRAIN),
        "calibration": ("examples for the conformal quantile", CALIBRATION),
        "miss": ("allowed share of missed targets", MISS),
        "alpha": ("L2 strength of the ridge regression", ALPHA),
        "folds": ("folds of the out-of-fold errors", FOLDS),
        "floor": ("quantile of these errors below which the scale does not go", FLOOR),
        "groups": ("groups of equal size by predicted value", GROUPS),
    },
    methods={
        "baseline": "constant width",
        "proposed": "error-scaled width",
        "ablation": "shuffled scales",
    },
    metrics={
        "gap": Metric("coverage gap between groups", "lower"),
        "coverage": Metric("coverage", None),
        "width": Metric("interval width", "lower", 1),
    },
    observations={"slope": "growth of the expected error per unit of the prediction"},
    curve=Curve(
        label="coverage",
        x=tuple(range(1, GROUPS + 1)),
        x_label="third of the test set, from low to high prediction",
        caption="Coverage in each third of the test set",
        target=1 - MISS,
        target_label="coverage asked for",
    ),
    limitations=(
        "A group has only a few dozen test patients, so that a part of every gap is chance.",
        "The gap is measured on groups by prediction, the very quantity the scale depends on; other"
        " groups may gain less.",
        "The guarantee of the method is about the average coverage, not about groups.",
        "One data set and one linear model of the mean.",
        "The seeds share one pool of patients: their intervals describe the split, not new"
        " patients.",
    ),
    seeds=30,
    run_seed=run_seed,
)

if __name__ == "__main__":
    main(EXPERIMENT)
