"""Showing easy examples first to a classifier that is trained by stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .harness import Curve, Experiment, Metric, Outcome, log, main
from .learn import FOLDS, Floats, Ints, dataset, logistic, out_of_fold, split

LABELS, EPOCHS, BATCH, RATE, START, GROWTH, CLASSES = 200, 6, 20, 0.5, 0.2, 3, 10


def difficulty(x: Floats, y: Ints, seed: int) -> Floats:
    """Return how improbable each label is to a model that did not see it."""
    probabilities = out_of_fold(logistic(), x, y, seed, "predict_proba")
    hardness: Floats = 1 - probabilities[np.arange(len(y)), y]
    return hardness


def epochs(order: Ints, growing: bool, random: np.random.Generator) -> Iterator[Ints]:
    """Yield the examples of each epoch, always as many as there are.

    A growing pool starts with the first examples of *order* and holds all of them after a few
    epochs; from a part of the examples each is drawn more than once.
    """
    for epoch in range(EPOCHS):
        share = min(1.0, START + (1 - START) * epoch / GROWTH) if growing else 1.0
        pool = order[: round(share * len(order))]
        rounds = -(-len(order) // len(pool))
        yield np.concatenate([random.permutation(pool) for _ in range(rounds)])[: len(order)]


def train(x: Floats, y: Ints, schedule: Iterator[Ints]) -> Iterator[tuple[Floats, Floats]]:
    """Train a softmax regression by mini-batches and yield its weights after every epoch."""
    weights, bias, targets = np.zeros((x.shape[1], CLASSES)), np.zeros(CLASSES), np.eye(CLASSES)[y]
    for rows in schedule:
        for batch in np.array_split(rows, len(rows) // BATCH):
            logits = x[batch] @ weights + bias
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            slope = (powers / powers.sum(axis=1, keepdims=True) - targets[batch]) / len(batch)
            weights -= RATE * x[batch].T @ slope
            bias -= RATE * slope.sum(axis=0)
        yield weights, bias


def run_seed(seed: int) -> Outcome:
    """Train with every order and measure the accuracy after each epoch."""
    x, y = dataset("digits")
    x /= 16
    rows, test = split(len(y), LABELS, seed, y)
    hardness = difficulty(x[rows], y[rows], seed)
    easy = np.argsort(hardness, kind="stable")
    log.info("  difficulty: median %.3f, hardest %.3f", np.median(hardness), hardness.max())
    random = np.random.default_rng(seed)
    plans = {
        "baseline": (easy, False),
        "proposed": (easy, True),
        "ablation": (random.permutation(easy), True),
        "hard_first": (easy[::-1], True),
    }
    curves = {}
    for name, (order, growing) in plans.items():
        schedule = epochs(order, growing, np.random.default_rng(seed))
        curves[name] = [
            float(((x[test] @ weights + bias).argmax(axis=1) == y[test]).mean())
            for weights, bias in train(x[rows], y[rows], schedule)
        ]
    return Outcome(
        scores={name: {"final": curve[-1], "first": curve[0]} for name, curve in curves.items()},
        curves=curves,
        observations={"median": float(np.median(hardness)), "hardest": float(hardness.max())},
    )


EXPERIMENT = Experiment(
    task="curriculum_digits",
    title="An easy-first curriculum on digits",
    hypothesis=(
        "With few labels and a short training, a pool that grows from easy to hard examples gives a"
        " higher final test accuracy than visiting all examples in random order from the start."
    ),
    metric="final",
    margin=0.01,
    data="images of handwritten digits (scikit-learn, load_digits)",
    settings={
        "labels": ("labelled training examples", LABELS),
        "folds": ("folds of the estimate of difficulty", FOLDS),
        "epochs": ("epochs, each with as many updates for every method", EPOCHS),
        "batch": ("examples in a mini-batch", BATCH),
        "rate": ("learning rate", RATE),
        "start": ("share of the examples in the first pool", START),
        "growth": ("epochs until the pool holds all examples", GROWTH),
    },
    methods={
        "baseline": "all examples, random order",
        "proposed": "growing pool, easy first",
        "ablation": "growing pool, random order",
        "hard_first": "growing pool, hard first",
    },
    metrics={
        "final": Metric("final accuracy", "higher"),
        "first": Metric("accuracy after one epoch", "higher"),
    },
    observations={
        "median": "median difficulty of a training example",
        "hardest": "difficulty of the hardest training example",
    },
    curve=Curve(
        label="test accuracy",
        x=tuple(range(1, EPOCHS + 1)),
        x_label="epoch",
        caption="Test accuracy after every epoch",
    ),
    limitations=(
        "The loss is convex: in the end every order leads to the same place, and only the speed can"
        " differ. Deep networks are another matter.",
        "One measure of difficulty, one pacing and one learning rate are reported.",
        "The labels are clean; curricula are said to help more when they are not.",
        "Difficulty costs extra fits that the random order does not need.",
        "The seeds share one pool of digits: their intervals describe the split, not new data.",
    ),
    seeds=8,
    run_seed=run_seed,
)

if __name__ == "__main__":
    main(EXPERIMENT)
