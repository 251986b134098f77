"""One limit of requests at once for all processes of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_mlrbench.models.limits import Limit
from pytest_mlrbench.models.shared import Content, SharedState, is_alive, own_name


def join(state: SharedState, workers: int) -> int:
    """Take a seat among the processes of a session; return its number, below *workers*.

    Whoever finds nobody else alive begins a new session: what the last one learnt of limits and
    faults is forgotten. What was spent is kept elsewhere in the document.
    """
    with state.change() as content:
        session = content.setdefault("session", {})
        seats: dict[str, str] = session.setdefault("seats", {})
        if own_name() not in seats.values():
            for seat, name in list(seats.items()):
                if not is_alive(name):
                    del seats[seat]
            if not seats:
                session.clear()
                session["seats"] = seats
            seats[str(next(n for n in range(len(seats) + 1) if str(n) not in seats))] = own_name()
        return next(int(seat) for seat, name in seats.items() if name == own_name()) % workers


class SharedLimit(Limit):
    """A worker's share of a limit that all workers of a run have together.

    The whole is split evenly, each worker having at least 1: where the whole is less than there are
    workers, as many requests as there are workers can be under way. What one worker learns the
    others know within ``FRESH`` seconds. A refusal halves the whole, once for all requests that
    were under way anywhere. A worker adds its successes to those of all when it has had as many as
    its share.

    :param place: what the limit is for.
    :param seat: the worker's number, below *workers*.
    """

    def __init__(
        self, state: SharedState, place: str, seat: int, workers: int, highest: int = 32
    ) -> None:
        super().__init__(highest)
        self._state = state
        self._place = place
        self._seat = seat
        self._workers = workers
        self._whole = highest
        self.refresh()

    def refresh(self) -> None:
        """Take over what others have learnt."""
        limits = self._state.look().get("session", {}).get("limits", {})
        self._take(limits.get(self._place) or self._first())

    def grow(self) -> None:
        """Count a success."""
        self.successes += 1
        if self.successes < self.current:
            return
        more, self.successes = self.successes, 0
        if self._whole >= self.highest:
            return  # the usual state costs no writing
        with self._state.change() as content:
            limit = self._entry(content)
            limit["successes"] += more
            while limit["successes"] >= limit["whole"]:
                limit["successes"] -= limit["whole"]
                limit["whole"] = min(self.highest, limit["whole"] + 1)
            self._take(limit)

    def shrink(self, window: int) -> None:
        """Halve, unless others have done so since the request was sent in *window*."""
        self.successes = 0
        with self._state.change() as content:
            limit = self._entry(content)
            if limit["window"] == window:
                limit.update(window=window + 1, whole=max(1, limit["whole"] // 2), successes=0)
            self._take(limit)

    def _first(self) -> dict[str, int]:
        return {"whole": self.highest, "window": 0, "successes": 0}

    def _entry(self, content: Content) -> dict[str, Any]:
        limits: dict[str, Any] = content.setdefault("session", {}).setdefault("limits", {})
        limit: dict[str, Any] = limits.setdefault(self._place, self._first())
        return limit

    def _take(self, limit: dict[str, int]) -> None:
        self._whole, self.window = limit["whole"], limit["window"]
        share, rest = divmod(self._whole, self._workers)
        self.current = max(1, share + (self._seat < rest))


def shared_limits(state: SharedState, workers: int, highest: int = 32) -> Callable[[str], Limit]:
    """Return what makes the limit of a place for this process, one of *workers*."""
    seat = join(state, workers)
    return lambda place: SharedLimit(state, place, seat, workers, highest)
