"""What the experiments take from scikit-learn, in one place and with types.

Every data set here ships inside scikit-learn; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.linear_model import (
    LogisticRegression,
    Ridge,
    lars_path,
)
from sklearn.model_selection import (
    KFold,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
FOLDS = 5


class Model(Protocol):
    """The part of a scikit-learn estimator that is used here."""

    def fit(self, x: Floats, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        """Train on the rows of *x* and return itself."""

    def predict(self, x: Floats) -> NDArray[Any]:
        """Return a class or a number for every row."""

    def decision_function(self, x: Floats) -> Floats:
        """Return the logits of every row."""


def dataset(name: Literal["digits", "wine", "breast_cancer"]) -> tuple[Floats, Ints]:
    """Return the features and the classes of a classification data set."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return x.astype(np.float64), y.astype(np.int64)


def diabetes() -> tuple[Floats, Floats]:
    """Return the features and the target of the diabetes regression data set."""
    x, y = datasets.load_diabetes(return_X_y=True)
    return x, y


def logistic(c: float = 1.0) -> Model:
    """Return a (multinomial) logistic regression with inverse L2 strength *c*."""
    model: Model = LogisticRegression(C=c, max_iter=2000)
    return model


def ridge(alpha: float) -> Model:
    """Return a ridge regression."""
    model: Model = Ridge(alpha=alpha)
    return model


def split(count: int, train: int, seed: int, classes: Ints | None = None) -> tuple[Ints, Ints]:
    """Return indices of a random training and test part, stratified where *classes* are given."""
    parts = train_test_split(
        np.arange(count), train_size=train, stratify=classes, random_state=seed
    )
    return parts[0], parts[1]


def out_of_fold(model: Model, x: Floats, y: NDArray[Any], seed: int, method: str) -> NDArray[Any]:
    """Predict every example with a model that was not trained on it."""
    kind = StratifiedKFold if y.dtype.kind == "i" else KFold
    folds = kind(FOLDS, shuffle=True, random_state=seed)
    predicted: NDArray[Any] = cross_val_predict(model, x, y, cv=folds, method=method)
    return predicted


def standardise(x: Floats, on: Sequence[int] | Ints) -> Floats:
    """Scale the columns to mean 0 and deviation 1, as measured on the rows *on*."""
    scaled: Floats = (x - x[on].mean(axis=0)) / x[on].std(axis=0)
    return scaled


def lars_order(x: Floats, y: Floats, steps: int) -> Ints:
    """Return the features in the order in which least angle regression takes them in.

    After *steps* features it stops, and the others follow in the order of their columns.
    """
    _, active, _ = lars_path(x, y, method="lar", max_iter=steps)
    rest = np.setdiff1d(np.arange(x.shape[1]), active)
    return np.concatenate([np.asarray(active, dtype=np.int64), rest])
