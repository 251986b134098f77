"""What repetitions of a declared command gave, and the three questions that are asked of it.

The same seed has to give the reported numbers again, another one to move them, and other inputs to
change them. The third tells most: a program that draws its results from a seeded generator repeats
better than an honest one, and only its not minding what it reads gives it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import atan, comb, pi

from pytest_mlrbench.evidence.base import Rerun
from pytest_mlrbench.evidence.replays.declared import Declaration
from pytest_mlrbench.evidence.replays.numbers import Point, is_same
from pytest_mlrbench.evidence.weighing import TRACED

#: Share of the numbers with chance in them that have to change with the input.
_MOST = 0.5
#: Numbers change with the input if they are so many times as far away as by another seed, so many
#: of them that chance has a lower probability.
_FAR, _LINE = (2.0, 5.0, 20.0, 100.0), 0.05


@dataclass(frozen=True)
class Trial:
    """All that the repetitions of one case gave.

    :param declared: what was to be run.
    :param points: the numbers that were compared.
    :param recorded: address → what stood there in the submission.
    :param left: what the command read and nobody could make wrong.
    :param is_covered: they are most of the numbers that are reported.
    :param is_made_up: the report says that its data are made up, or that it is a simulation.
    :param has_examples: it reports measures that there are only of examples.
    """

    declared: Declaration
    points: Sequence[Point]
    recorded: dict[str, float]
    runs: Sequence[Rerun]
    left: Sequence[str] = ()
    is_covered: bool = True
    is_made_up: bool = False
    has_examples: bool = False

    def run(self, kind: str) -> Rerun | None:
        """The repetition of that kind; null if there was none."""
        return next((it for it in self.runs if it.kind == kind), None)

    @property
    def same(self) -> bool | None:
        """Whether the numbers came out again, but for those that measure the machine."""
        first = self.run("seed")
        wanted = [it for it in self.points if it.is_claimed and not it.is_of_machine]
        if first is None or not wanted:
            return None
        met = sum(point.is_met(first.numbers.get(point.address)) for point in wanted)
        return is_well(first) and met >= TRACED * len(wanted)

    @property
    def complaint(self) -> str:
        """Why the first repetition came to no good end; empty if it did."""
        first = self.run("seed")
        return "" if first is None or is_well(first) else first.said or first.ended

    @property
    def tried(self) -> list[Rerun]:
        """The repetitions with inputs that were made wrong."""
        return [run for run in self.runs if run.kind in ("labels", "input")]

    @property
    def moved(self) -> bool | None:
        """Whether another seed moves them, within what is declared; true where there is none."""
        if not self.declared.is_seeded:
            return True
        other = self.run("another")
        if other is None or not is_well(other):
            return None
        return bool(self._moved) and not self.strays

    @property
    def changed(self) -> bool | None:
        """Whether other inputs change them, and more so than another seed does."""
        said = [self._changed(run) for run in self.tried]
        if True in said:
            return None if self.is_like_chance else True
        return False if said and None not in said else None

    def _changed(self, run: Rerun) -> bool | None:
        if not is_well(run):
            # A program may well fail that is given nothing, but not with other labels.
            return True if self.run("labels") is None and _is_withheld(run) else None
        deciding = [it for it in self.stable if it in self._moved] or self.stable
        if not deciding or all(run.numbers.get(it) is None for it in deciding):
            return None
        count = sum(self._is_other(run, it) for it in deciding)
        return count >= (_MOST * len(deciding) if self._moved else 1)

    @property
    def is_ignored(self) -> bool:
        """Whether not one of the numbers changed, though all inputs were made wrong."""
        return (
            bool(self.stable)
            and self.run("input") is not None
            and all(map(self._is_unchanged, self.tried))
        )

    @property
    def changed_without_labels(self) -> bool:
        """Whether shuffled labels change nothing, though other inputs do."""
        labels = self.run("labels")
        return labels is not None and self._is_unchanged(labels)

    def _is_unchanged(self, run: Rerun) -> bool:
        return is_well(run) and not any(self._is_other(run, it) for it in self.stable)

    def _is_other(self, run: Rerun, address: str) -> bool:
        first = self.run("seed")
        assert first is not None
        return not is_same(first.numbers.get(address), run.numbers.get(address))

    @cached_property
    def stable(self) -> list[str]:
        """Addresses of the numbers that came out again to their last digit.

        Of others, a change may be chance.
        """
        first = self.run("seed")
        there = first.numbers if first is not None and is_well(first) else {}
        return [
            it
            for it, value in self.recorded.items()
            if is_same(value, there.get(it)) and not self._is_seed(it)
        ]

    def _is_seed(self, address: str) -> bool:
        """Whether a number is the seed itself, written down."""
        runs = [it for it in (self.run("seed"), self.run("another")) if it and it.seed is not None]
        return len(runs) > 1 and all(it.numbers.get(address) == it.seed for it in runs)

    @cached_property
    def _moved(self) -> list[str]:
        other = self.run("another")
        if other is None or not is_well(other):
            return []
        return [it for it in self.stable if self._is_other(other, it)]

    @property
    def strays(self) -> list[Point]:
        """The numbers that another seed moves further than was declared."""
        other, spread = self.run("another"), self.declared.spread
        if other is None or spread is None:
            return []
        return [
            point
            for point in self.points
            if point.is_claimed
            and not point.is_of_machine
            and (value := other.numbers.get(point.address)) is not None
            and abs(value - point.value) > spread * abs(point.value) + point.slack
        ]

    @property
    def has_chance(self) -> bool:
        """Whether there are numbers that a seed moves."""
        return bool(self._moved)

    @property
    def is_like_chance(self) -> bool:
        """Whether inputs that were made wrong change numbers hardly more than another seed does.

        So it is where the content of the inputs is but a seed for what is made up.
        """
        tried = [run for run in self.tried if is_well(run) and not self._is_unchanged(run)]
        chances = [chance_of(self._times(run)) for run in tried]
        return bool(self._moved and chances) and min(chances) > _LINE

    def _times(self, run: Rerun) -> list[float]:
        """How many times as far as by another seed the claimed numbers are from the reported ones.

        Numbers that move by the same as others, as accuracy and error do, are one.
        """
        other = self.run("another")
        claimed = {point.address for point in self.points if point.is_claimed}
        found = {
            (round(abs(then - self.recorded[it]), 9), round(abs(now - self.recorded[it]), 9))
            for it in [it for it in self._moved if it in claimed] or self._moved
            if other
            and (then := other.numbers.get(it)) is not None
            and (now := run.numbers.get(it)) is not None
        }
        return [by_input / by_seed for by_seed, by_input in found if by_seed]


def chance_of(times: Sequence[float]) -> float:
    """How probable it is that numbers are so many times as far away by chance alone.

    Of two normal deviations of one size, one is t times the other with 2/pi atan(1/t).
    """
    probabilities = [1.0]
    for far in _FAR:
        count, single = sum(it > far for it in times), 2 / pi * atan(1 / far)
        more = range(count, len(times) + 1)
        probabilities.append(
            sum(comb(len(times), k) * single**k * (1 - single) ** (len(times) - k) for k in more)
        )
    return min(probabilities)


def _is_withheld(run: Rerun) -> bool:
    return "withheld" in run.inputs.values()


def is_well(run: Rerun) -> bool:
    """Whether a repetition came to a good end."""
    return run.ended == "exit 0"
