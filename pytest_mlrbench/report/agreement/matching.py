"""Which rating is of which work, and what is wrong with a table of ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.report.agreement.judges import dimensions
from pytest_mlrbench.report.agreement.ratings import Rating, Work


@dataclass(frozen=True)
class Paper:
    """A work that people have rated, under the name by which they call its system."""

    work: Work
    system: str
    ratings: tuple[Rating, ...]

    @property
    def paired(self) -> bool:
        """Whether each of its reviewers rated it once, and there are two or more."""
        times = Counter(rating.reviewer for rating in self.ratings)
        return len(times) > 1 and set(times.values()) == {1}

    def score(self, judges: Sequence[str], dimension: str) -> float | None:
        """Return the mean of the judges; null unless each of them has scored it."""
        found = [self.work.scores.get(judge, {}).get(dimension) for judge in judges]
        given = [score for score in found if score is not None]
        return sum(given) / len(given) if given and len(given) == len(found) else None


def match(works: Sequence[Work], ratings: Sequence[Rating]) -> tuple[list[Paper], list[str]]:
    """Return the rated works in a fixed order, and what is wrong with the ratings.

    A rating belongs to the work of its task by its system, in a stage with the dimensions rated.

    :raises InputError: no rating belongs to a work, or one to several.
    """
    possible = _by_name(_rated_alike(works, ratings))
    by_paper: dict[tuple[str, str], list[Rating]] = {}
    for rating in ratings:
        by_paper.setdefault((rating.task, rating.system), []).append(rating)
    papers = [
        Paper(_only(possible[key], key), key[1], tuple(sorted(those, key=_order)))
        for key, those in sorted(by_paper.items())
        if key in possible
    ]
    if not papers:
        raise InputError(
            f"no rating belongs to a judged case: rated are {_some(by_paper)}; judged are"
            f" {_some(possible)}."
        )
    judged = {(paper.work.task, paper.system) for paper in papers}
    absent = [key for key in sorted(by_paper) if key not in judged]
    return papers, [*_faults(by_paper), *_unmatched(absent)]


def _order(rating: Rating) -> tuple[str, list[tuple[str, float]]]:
    return rating.reviewer, sorted(rating.scores.items())


def _rated_alike(works: Sequence[Work], ratings: Sequence[Rating]) -> list[Work]:
    """Leave out the stages that are not scored in what was rated."""
    rated = {name for rating in ratings for name in rating.scores}
    groups = dict.fromkeys(work.group for work in works)
    scored = {name: set(dimensions(w for w in works if w.group == name)) for name in groups}
    fitting = {name for name in groups if rated <= scored[name]} or {
        name for name in groups if rated & scored[name]
    }
    return [work for work in works if work.group in fitting]


def _by_name(works: Sequence[Work]) -> dict[tuple[str, str], list[Work]]:
    found: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        for name in sorted(work.known_as):
            found.setdefault((work.task, name), []).append(work)
    return found


def _only(works: Sequence[Work], key: tuple[str, str]) -> Work:
    if len(works) > 1:
        raise InputError(
            f"ratings of {'/'.join(key)} may be of {len(works)} cases, as {works[0].name} and"
            f" {works[1].name}: choose one by --stage or by the sources."
        )
    return works[0]


def _faults(by_paper: Mapping[tuple[str, str], Sequence[Rating]]) -> Iterator[str]:
    """Say what cannot be as it was meant: who rated twice, and what was rated by one."""
    twice = {}
    for key, ratings in sorted(by_paper.items()):
        for reviewer, n in Counter(rating.reviewer for rating in ratings).items():
            if n > 1:
                twice[reviewer, "/".join(key)] = n
    once = ["/".join(key) for key, ratings in sorted(by_paper.items()) if len(ratings) == 1]
    for (reviewer, paper), n in sorted(twice.items()):
        yield f"reviewer {reviewer} rated {paper} {n} times"
    if once and len(once) < len(by_paper):
        yield f"rated by one person only: {', '.join(once)}"
    if twice and sum(n - 1 for n in twice.values()) == len(once):
        yield (
            f"there are as many ratings too many ({len(once)}) as papers with one rating: some are"
            " likely under the wrong name"
        )


def _unmatched(absent: Sequence[tuple[str, str]]) -> Iterator[str]:
    if absent:
        yield f"rated and not judged, left out: {_some(absent)}"


def _some(keys: Sequence[tuple[str, str]] | Mapping[tuple[str, str], object]) -> str:
    names = ["/".join(key) for key in keys]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
