"""Temperature scaling without giving up labels: the temperature is fitted on out-of-fold logits."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar  # type: ignore[import-untyped,unused-ignore]

from .harness import Curve, Experiment, Metric, Outcome, log, main
from .learn import FOLDS, Floats, Ints, dataset, logistic, out_of_fold, split

LABELS, HELD_OUT, C, BINS, FIFTHS = 200, 40, 1000.0, 10, 5


def softmax(logits: Floats) -> Floats:
    """Return probabilities, computed without overflow."""
    powers: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def nll(logits: Floats, y: Ints) -> float:
    """Return the mean negative log-likelihood."""
    top = logits.max(axis=1)
    log_sum = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    return float((log_sum - logits[np.arange(len(y)), y]).mean())


def ece(logits: Floats, y: Ints) -> float:
    """Return the expected calibration error over bins of equal width."""
    probabilities = softmax(logits)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(y))


def overconfidence(logits: Floats, y: Ints) -> list[float]:
    """Return confidence minus accuracy in each fifth of the test set, least confident first."""
    probabilities = softmax(logits)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    parts = np.array_split(np.argsort(confidence), FIFTHS)
    return [float(confidence[part].mean() - right[part].mean()) for part in parts]


def temperature(logits: Floats, y: Ints) -> float:
    """Return the temperature with the smallest negative log-likelihood."""
    found = minimize_scalar(lambda t: nll(logits / np.exp(t), y), bounds=(-3, 5), method="bounded")
    return float(np.exp(found.x))


def run_seed(seed: int) -> Outcome:
    """Train on few labels, fit the temperature in four ways, and measure on the rest."""
    x, y = dataset("digits")
    x /= 16
    train, test = split(len(y), LABELS, seed, y)
    everything = logistic(C).fit(x[train], y[train])
    test_logits = everything.decision_function(x[test])
    inner, held = split(LABELS, LABELS - HELD_OUT, seed, y[train])
    fewer = logistic(C).fit(x[train[inner]], y[train[inner]])
    held_out = temperature(fewer.decision_function(x[train[held]]), y[train[held]])
    crossed_logits = out_of_fold(logistic(C), x[train], y[train], seed, "decision_function")
    crossed = temperature(crossed_logits, y[train])
    in_sample = temperature(everything.decision_function(x[train]), y[train])
    log.info(
        "  temperatures: held-out %.3f, cross-fitted %.3f, in-sample %.3f",
        held_out,
        crossed,
        in_sample,
    )
    scaled = {
        "baseline": fewer.decision_function(x[test]) / held_out,
        "proposed": test_logits / crossed,
        "ablation": test_logits / in_sample,
        "uncalibrated": test_logits,
    }
    return Outcome(
        scores={
            name: {
                "nll": nll(logits, y[test]),
                "ece": ece(logits, y[test]),
                "accuracy": float((logits.argmax(axis=1) == y[test]).mean()),
            }
            for name, logits in scaled.items()
        },
        curves={name: overconfidence(logits, y[test]) for name, logits in scaled.items()},
        observations={"crossed": crossed, "held_out": held_out, "in_sample": in_sample},
    )


EXPERIMENT = Experiment(
    task="calibration_digits",
    title="Cross-fitted temperature scaling on digits",
    hypothesis=(
        "With few labels, a temperature fitted on out-of-fold logits, with the model trained on"
        " every label, gives a lower test negative log-likelihood than a temperature fitted on a"
        " held-out part."
    ),
    metric="nll",
    margin=0.02,
    data="images of handwritten digits (scikit-learn, load_digits)",
    settings={
        "labels": ("labelled examples in all", LABELS),
        "held_out": ("of these, held out for the temperature of the baseline", HELD_OUT),
        "folds": ("folds of the cross-fitting", FOLDS),
        "c": ("inverse L2 strength C of the logistic regression", C),
        "bins": ("bins of the calibration error", BINS),
    },
    methods={
        "baseline": "held-out temperature",
        "proposed": "cross-fitted temperature",
        "ablation": "in-sample temperature",
        "uncalibrated": "no temperature",
    },
    metrics={
        "nll": Metric("negative log-likelihood", "lower"),
        "ece": Metric("expected calibration error", "lower", 4),
        "accuracy": Metric("accuracy", "higher"),
    },
    observations={
        "crossed": "temperature of the cross-fitted method",
        "held_out": "temperature of the held-out method",
        "in_sample": "temperature of the in-sample method",
    },
    curve=Curve(
        label="confidence minus accuracy",
        x=tuple(range(1, FIFTHS + 1)),
        x_label="fifth of the test set, from least to most confident",
        caption="Overconfidence in each fifth of the test set (zero is calibrated)",
        target=0.0,
        target_label="calibrated",
    ),
    limitations=(
        "One data set and one linear model; deep networks may be miscalibrated in other ways.",
        "The regularisation is weak on purpose, so that there is overconfidence to correct.",
        "The out-of-fold logits come from models with fewer labels than the final one, so the"
        " temperature may be slightly too high for it.",
        "Cross-fitting trains the model once more per fold, which the baseline does not need.",
        "The seeds share one pool of digits: their intervals describe the split, not new data.",
    ),
    seeds=8,
    run_seed=run_seed,
)

if __name__ == "__main__":
    main(EXPERIMENT)
