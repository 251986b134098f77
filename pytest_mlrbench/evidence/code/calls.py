"""What the standard library and numpy do to a value, as far as that is arithmetic or chance.

What is not named here is a computation: an unknown call never speaks against anybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from pytest_mlrbench.evidence.code.arithmetic import as_number, curved
from pytest_mlrbench.evidence.code.merging import each, either, made_of
from pytest_mlrbench.evidence.code.values import (
    COMPUTED,
    NONE,
    SETTING,
    Items,
    Kind,
    Leaf,
    Library,
    Place,
    Table,
    Value,
    listed,
    literal,
)

_draws = count(1)

#: Modules whose functions draw at random, and what makes an object with the same functions.
_CHANCE = ("random", "numpy.random", "secrets", "jax.random", "scipy.stats")
_GENERATORS = {"Random", "SystemRandom", "default_rng", "RandomState", "Generator", "PCG64"}
_TORCH_CHANCE = {"rand", "randn", "randint", "normal", "randperm"}
#: How many of the first arguments of a distribution say what is drawn; the others are its shape.
_SHAPES_ONLY = {"rand", "randn", "random", "random_sample", "standard_normal", "sample", "ranf"}
_ONE_PARAMETER = {"exponential", "poisson", "standard_t", "chisquare", "dirichlet", "pareto"}
_HASHES = {"zlib.crc32", "zlib.adler32", "binascii.crc32", "hash"}

#: Sums, bounds and roundings. Their result is as typed as what goes in.
_ARITHMETIC = listed(
    """
    mean average median std var sum min max amin amax nanmean nanstd clip minimum maximum round
    around round_ rint abs absolute fabs linspace arange logspace geomspace cumsum full full_like
    add subtract multiply divide true_divide negative percentile quantile fsum stdev pstdev fmean
    variance pvariance floor ceil trunc prod float64 float32 int64 int32 Fraction Decimal tensor
    repeat tile interp diff nan_to_num ptp
    """
)
#: How far numbers lie apart.
SPREADS = listed("std var nanstd stdev pstdev variance pvariance sem percentile quantile ptp")
SPREADS |= listed("abs absolute fabs")
#: The same, where it is asked of many samples at once.
EXTREMES = listed("min max amin amax median nanmedian sort")
#: They bend what goes in: of literals the result is still a literal, of draws a simulation.
_CURVED = listed("exp log log2 log10 log1p expm1 sqrt power pow square sin cos tan tanh sinh")
_CONTAINERS = listed("array asarray concatenate hstack vstack stack sort unique Series list")
_NOTHING = listed("zeros ones zeros_like ones_like empty")
#: Another form of the same thing.
SAME = listed(
    """
    tolist item copy astype flatten ravel reshape squeeze numpy cpu detach float int values
    to_numpy result encode decode hexdigest digest strip items_ tocsr numerator denominator
    """
)
_MATHS = ("numpy", "math", "statistics", "fractions", "decimal", "torch", "jax.numpy", "cmath")
_THROUGH = {
    "copy.deepcopy", "copy.copy", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm",
    "asyncio.run",
    "pandas.DataFrame", "pandas.Series", "pandas.DataFrame.from_dict", "types.SimpleNamespace",
    "dataclasses.asdict", "pandas.concat",
}  # fmt: skip
_SETTINGS = ("argparse.", "os.environ", "os.getenv", "sys.argv", "click.", "typer.", "absl.flags")


def draw(values: Sequence[Value], place: Place) -> Leaf:
    """Return a number drawn at random from what *values* say."""
    made = made_of(values, place)
    if made.kind is Kind.COMPUTED:
        return made
    return Leaf(Kind.DRAWN, draws=made.draws | {next(_draws)}, depth=made.depth, place=place)


def library(
    name: str, values: Sequence[Value], named: Mapping[str, Value], place: Place
) -> Value | None:
    """Return what a function of an installed package returns; none if it is not known here."""
    module, _, last = name.rpartition(".")
    if name.startswith("numpy.testing") or (name.startswith("scipy.") and last != "rvs"):
        return None
    if module in _CHANCE or module.startswith("scipy.stats.") or _is_torch_chance(module, last):
        return _chance(module, last, values, named, place)
    if name in _HASHES or module == "hashlib":
        return draw(values, place)
    if name.startswith(_SETTINGS):
        return SETTING
    if name in _THROUGH and (values or named):
        return values[0] if values else Table(dict[object, Value](named.items()))
    if module in _MATHS or module == "fractions" or name in ("float", "int", "complex"):
        return _maths(last, values, named, place)
    if name == "logging.getLogger":
        return Library("logging")
    if name == "collections.defaultdict":
        return Table(default=values[0] if values else None)
    if name in ("collections.OrderedDict", "collections.Counter") and not values:
        return Table()
    return None


def _is_torch_chance(module: str, last: str) -> bool:
    return module == "torch" and last in _TORCH_CHANCE


def _chance(
    module: str, last: str, values: Sequence[Value], named: Mapping[str, Value], place: Place
) -> Value:
    if last in _GENERATORS:
        return Library("numpy.random" if module.startswith("numpy") else "random")
    if last in ("seed", "shuffle", "setstate", "manual_seed", "set_state"):
        return NONE
    if last in ("choice", "choices", "sample", "permutation", "permuted") and values:
        options = values[0]
        if isinstance(options, Items) and options.items and last == "choice":
            chosen = options.items[0]
            for other in options.items[1:]:
                chosen = either(chosen, other)
            return draw([chosen], place) if isinstance(chosen, Leaf) else chosen
        return draw([options], place)
    said = 0 if last in _SHAPES_ONLY else 1 if last in _ONE_PARAMETER else 2
    telling = [
        v for k, v in named.items() if k not in ("size", "k", "key", "random_state", "dtype")
    ]
    return draw([*values[:said], *telling], place)


def _maths(
    last: str, given: Sequence[Value], named: Mapping[str, Value], place: Place
) -> Value | None:
    values = [*given, *named.values()]
    if last in _CONTAINERS:
        return _as_array(values)
    if last in _NOTHING:
        return literal(0.0 if last.startswith("z") else 1.0, place)
    if last in _CURVED:
        return each(values[0], lambda leaf: curved(leaf, place, last)) if values else None
    if last in ("nan", "inf", "pi", "e"):
        return literal(getattr(math, last), place)
    if last not in _ARITHMETIC and last not in ("float", "int"):
        return None
    one = values[0] if values else COMPUTED
    if last in ("float", "int", "float64", "float32", "Fraction", "Decimal"):
        return as_number(values, place, last) if values else literal(0, place)
    if last in ("round", "around", "clip", "abs", "minimum", "maximum") and isinstance(one, Items):
        return each(one, lambda leaf: measured(last, made_of([leaf], place)))
    made = made_of([v for v in values if v is not NONE], place)
    return measured(last, made, is_along="axis" in named or "dim" in named)


def measured(name: str, made: Leaf, *, is_along: bool = False) -> Leaf:
    """Return what a function of this name makes, where arithmetic would make *made* of it.

    :param is_along: whether it does so for every sample of an array.
    """
    if made.kind is not Kind.DRAWN or not (name in SPREADS or (is_along and name in EXTREMES)):
        return made
    return replace(made, is_spread=True)


def _as_array(values: Sequence[Value]) -> Value:
    one = values[0] if values else Items([])
    return Items(list(one.items), one.length, True) if isinstance(one, Items) else one
