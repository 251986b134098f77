"""Whether a request would cost more than it is counted at.

What an answer costs is worked out from its tokens at the ordinary price of its model. Under a
maximum of money, what is billed above that does not pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_mlrbench.sandbox.gate_reading import Part, each, spelled
from pytest_mlrbench.sandbox.gate_refusals import Refusal

#: Tiers that cost the ordinary price or less. ``auto`` is among them, as it is what a request gets
#: that names none: it is dearer only where the owner of the key has bought or set a dearer tier for
#: all of their requests, and no agent can choose that.
_ORDINARY = {"auto", "default", "standard", "standardonly", "flex", "batch", "unspecified"}
#: Kinds of media whose tokens are dearer than those of text, in a prompt too.
_SOUND = ("audio/", "video/")


def check_tiers(parts: Sequence[Part], headers: Mapping[str, str]) -> None:
    """Check a request whose cost is limited.

    :param headers: as they are sent on.
    :raises Refusal: it would cost more than it is counted at.
    """
    modes = headers.get("anthropic-beta", "")
    found = ["fast mode"] if "fast-mode" in modes.lower() else []
    for what in (*found, *(one for part in parts for one in _dearer(part))):
        raise Refusal(
            403,
            "dearer",
            f"{what[:80]} may cost more than it would be counted at, and what the case may spend"
            " is limited: leave it out.",
        )


def _dearer(part: Part) -> Iterator[str]:
    """Yield what makes an answer dear."""
    tier, speed, place = part.get("servicetier"), part.get("speed"), part.get("inferencegeo")
    if not (tier is None or (isinstance(tier, str) and spelled(tier) in _ORDINARY)):
        yield f"the service tier {tier!r}"
    if speed not in (None, "standard"):
        yield f"the speed {speed!r}"
    if place not in (None, "global"):
        yield f"inference in {place!r} only"
    for name in ("modalities", "responsemodalities"):
        for one in each(part.get(name)):
            if not (isinstance(one, str) and one.lower() == "text"):
                yield f"output of {one!r}"
    for name in ("audio", "inputaudio", "speechconfig"):
        if part.get(name) is not None:
            yield "sound"
    kind = part.get("mimetype")
    if isinstance(kind, str) and kind.lower().startswith(_SOUND):
        yield "sound"
