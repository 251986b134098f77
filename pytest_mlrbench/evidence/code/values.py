"""What is known of a value of the agent's program without running it: above all, where it is from.

The question is always the same: did anything have to be *computed* for this number? Literals, and
random numbers with arithmetic around them, say no. Whatever we do not understand says yes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count

#: Operations on literals in a row from which on it is a computation: a solver, not a typed value.
DEEPEST = 40
#: Draws that are remembered for one value, and parts of one text: beyond, precision is lost only.
MOST_DRAWS, MOST_PARTS = 48, 6000

#: Typed numbers that are summed up to one from which on they are data.
MOST_TYPED = 20

_numbers = count(1)


class Kind(IntEnum):
    """Where a value is from. What is made of several has the greatest of theirs."""

    #: Typed into the program.
    LITERAL = 0
    #: The command line or the environment.
    SETTING = 1
    #: A random generator, or a hash used as one.
    DRAWN = 2
    #: Anything else: data, models, comparisons, calls that we do not know.
    COMPUTED = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the program a value was made."""

    path: str
    line: int


class _Unknown:
    def __repr__(self) -> str:
        return "?"


UNKNOWN = _Unknown()
#: A yes or no of which it is not known which: what is counted or averaged of such is a calculation.
ANSWER = _Unknown()


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A number, a string, or an array of such of which only the whole is looked at.

    :param value: what it is, if that is known; else ``UNKNOWN`` or ``ANSWER``.
    :param draws: the random draws that it was made of.
    :param depth: operations that led to it.
    :param number: the same for what is only another form of the same value.
    :param is_spread: whether it says how far draws lie apart. That is what a simulation is run for;
        a table that is made up has their level beside it.
    """

    kind: Kind
    value: object = UNKNOWN
    draws: frozenset[int] = frozenset()
    depth: int = 0
    place: Place | None = None
    number: int = field(default_factory=lambda: next(_numbers))
    is_spread: bool = False

    @property
    def is_answer(self) -> bool:
        """Whether it is a yes or no."""
        return self.value is ANSWER or isinstance(self.value, bool)

    @property
    def is_known(self) -> bool:
        """Whether the value itself is known."""
        return not isinstance(self.value, _Unknown)


COMPUTED = Leaf(Kind.COMPUTED)
SETTING = Leaf(Kind.SETTING)
NONE = Leaf(Kind.LITERAL, None)


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A string with values in it."""

    parts: tuple[str | Leaf, ...]


@dataclass(slots=True, eq=False)
class Items:
    """A list, tuple, set or array.

    :param length: what its length depends on; ``LITERAL`` if the items are all there.
    """

    items: list[Value]
    length: Kind = Kind.LITERAL
    is_array: bool = False


@dataclass(slots=True, eq=False)
class Table:
    """A dictionary, or the attributes of an object.

    :param rest: what stands under keys that are not known.
    :param default: makes what is missing, as in a defaultdict.
    """

    cells: dict[object, Value] = field(default_factory=dict)
    rest: Value | None = None
    default: Value | None = None


@dataclass(slots=True, eq=False)
class Scope:
    """The names of a module, a class or a call."""

    path: str
    names: dict[str, Value] = field(default_factory=dict)
    outer: Scope | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the agent's, or a method bound to an object."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    bound: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class of the agent's; what it inherits from outside is not known."""

    scope: Scope
    bases: tuple[Value, ...]
    fields: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Thing:
    """An object of a class of the agent's."""

    kind: Class
    attributes: Table = field(default_factory=Table)


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """A name of an installed package: ``numpy.random.rand``."""

    name: str


#: How many parts a text had when something was written, where, whether for sure, after a failure.
Mark = tuple[int, Place, bool, bool]


@dataclass(slots=True, eq=False)
class Document:
    """A text that grows: an open file, or what is printed."""

    parts: list[str | Leaf] = field(default_factory=list)
    #: How many parts there were, where they were written, and under which conditions.
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class File:
    """A file that is open to be read."""

    path: Leaf


Value = Leaf | Text | Items | Table | Scope | Function | Class | Thing | Library | Document | File


def literal(value: object, place: Place | None = None) -> Leaf:
    """Return what stands in the program."""
    return Leaf(Kind.LITERAL, value, place=place)


def listed(words: str) -> frozenset[str]:
    """Return the words of a text, for a list of names that is longer than a line."""
    return frozenset(words.split())
