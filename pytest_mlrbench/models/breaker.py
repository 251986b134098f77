"""Who has failed often enough is not asked any more."""

from __future__ import annotations

from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.shared import Content, SharedState

#: As many calls of one address that failed with one cause, none having succeeded meanwhile.
OFTEN = 5
#: As many where nothing but the user can help: the key, the quota, the model's name.
TWICE = 2

_COUNTED = ("rate_limit", "provider", "timeout", "connection", "auth")


class Breaker:
    """Counts the final faults of each address, and of each model that is not known there.

    It stays open for the rest of the session, unless a call that was under way succeeds.

    :param state: where it is counted.
    """

    def __init__(self, state: SharedState) -> None:
        self._state = state

    def broken(self, config: ModelConfig) -> ModelFault | None:
        """Return why *config* is not to be asked; null where it may be."""
        tallies = self._state.look().get("session", {}).get("breaker", {})
        for place in _places(config):
            for cause, tally in tallies.get(place, {}).items():
                if tally["calls"] >= tally["enough"]:
                    return ModelFault(
                        tally["cause"],
                        f"{config} was not asked: {tally['calls']} calls in a row failed with"
                        f" {cause}, the last one so: {tally['said']}",
                        passing=False,
                        attempts=0,
                    )
        return None

    def failed(self, config: ModelConfig, fault: ModelFault) -> None:
        """Count a call that failed in the end."""
        kind = _kind(fault)
        if kind is None:
            return
        of_model, of_address = _places(config)
        enough = TWICE if kind in ("auth", "no quota", "no such model") else OFTEN
        with self._state.change() as content:
            tallies = _tallies(content)
            place = of_model if kind == "no such model" else of_address
            tally = tallies.setdefault(place, {}).setdefault(kind, {"calls": 0})
            tally.update(
                calls=tally["calls"] + 1, enough=enough, cause=fault.cause, said=fault.message
            )

    def succeeded(self, config: ModelConfig) -> None:
        """Forget the faults: it answers."""
        known = self._state.look().get("session", {}).get("breaker", {})
        if any(place in known for place in _places(config)):
            with self._state.change() as content:
                for place in _places(config):
                    _tallies(content).pop(place, None)


def _kind(fault: ModelFault) -> str | None:
    """Return the words that faults are counted under; null for those that are not."""
    if fault.cause == "rate_limit" and not fault.passing:
        return "no quota"
    if fault.cause == "bad_request" and fault.status == 404:
        return "no such model"
    return fault.cause if fault.cause in _COUNTED else None


def _tallies(content: Content) -> Content:
    tallies: Content = content.setdefault("session", {}).setdefault("breaker", {})
    return tallies


def _places(config: ModelConfig) -> tuple[str, str]:
    address = f"{config.provider} {config.address}".strip()
    return f"{address} {config.model}", address
