"""The GPUs of a run: all that are visible, or those of ``--mlr-gpus``.

An outer ``CUDA_VISIBLE_DEVICES`` bounds the choice: a batch system may have given us a part of the
machine only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox.nvml import Device, NvmlError, nvml

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
FORMS = (
    "how many, 0 for none, or a list: indices as nvidia-smi counts (one alone as '1,'), INDEX:PART"
    " for a MIG device, or UUIDs"
)
#: What ends CUDA's reading of the list: a negative index, and words that batch systems write.
_END = re.compile(r"-\d+|none|void|nodevfiles|", re.IGNORECASE)
_INDEX = re.compile(r"(\d+)(?::(\d+))?")
_UUID = re.compile(r"(GPU|MIG)-[0-9a-z/-]+", re.IGNORECASE)
#: A UUID that is no mere beginning of one.
_WHOLE = re.compile(r"(GPU|MIG)(-GPU)?-\w{8}(-\w{4}){3}-\w{12}(/\d+/\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gpus:
    """What cases may be given, one each.

    :param uuids: of GPUs and MIG devices, in the order in which they are given out.
    :param described: words for the header of a run.
    """

    uuids: tuple[str, ...]
    described: str

    @classmethod
    def find(cls, said: str | None, environ: Mapping[str, str]) -> Gpus:
        """Return the GPUs of a run.

        :param said: the value of ``--mlr-gpus``; null where nothing was said, which is all that are
            visible, be it none.
        :raises InputError: what was asked for is not there, or cannot be understood.
        """
        wish = (said or "").strip()
        if wish == "0":
            return cls((), "no GPU (--mlr-gpus=0)")
        if said is not None and not _is_wish(wish):
            raise InputError(f"--mlr-gpus={said}: write {FORMS}.")
        try:
            with nvml() as session:
                devices, lost = session.devices, session.lost
        except NvmlError as error:
            return _without_nvml(error, wish, environ.get(VISIBLE))
        return _choose(wish, devices, lost, environ)


def _is_wish(wish: str) -> bool:
    words = _words(wish)
    return wish == "all" or (
        bool(words) and all(_INDEX.fullmatch(w) or _UUID.fullmatch(w) for w in words)
    )


def _words(wish: str) -> list[str]:
    return [word for part in wish.split(",") if (word := part.strip())]


def _choose(
    wish: str, devices: Sequence[Device], lost: Sequence[str], environ: Mapping[str, str]
) -> Gpus:
    visible = _visible(devices, environ)
    limited = f" ({VISIBLE}={environ[VISIBLE]})" if VISIBLE in environ else ""
    if wish.isdecimal():
        chosen = list(visible[: int(wish)])
        if len(chosen) < int(wish):
            raise InputError(
                f"--mlr-gpus={wish}: only {len(visible)} of this machine's {len(devices)} GPUs"
                f" can be used{limited}{_and(lost)}: ask for fewer, or 0 for none."
            )
    elif wish and wish != "all":
        chosen = _named(_words(wish), devices, f"--mlr-gpus={wish}")
        if hidden := [device for device in chosen if device not in visible]:
            raise InputError(
                f"--mlr-gpus={wish}: {_shown(hidden[0])} is not among those that"
                f" {VISIBLE}={environ.get(VISIBLE)} leaves: choose from these, or change that."
            )
    else:
        chosen = list(visible)
        if wish and not chosen:
            raise InputError(
                f"--mlr-gpus=all: this machine has no GPU that can be used{limited}{_and(lost)}:"
                " write 0 to run without."
            )
    return Gpus(
        tuple(device.uuid for device in chosen),
        _described(chosen, len(devices)) + limited + _and(lost),
    )


def _visible(devices: Sequence[Device], environ: Mapping[str, str]) -> Sequence[Device]:
    """Return what ``CUDA_VISIBLE_DEVICES`` leaves, in its order, read as CUDA reads it.

    :raises InputError: it names what is not there, or counts in an order that is not known here.
    """
    given = environ.get(VISIBLE)
    if given is None:
        return devices
    words = []
    for word in map(str.strip, given.split(",")):
        if _END.fullmatch(word):
            break
        words.append(word)
    kinds = {device.name for device in devices if device.part is None}
    counts = any(map(_INDEX.fullmatch, words))
    if counts and len(kinds) > 1 and environ.get(ORDER) != "PCI_BUS_ID":
        raise InputError(
            f"{VISIBLE}={given} counts the GPUs of this machine, which are not alike, in an order"
            f" that only CUDA knows: set {ORDER}=PCI_BUS_ID, or name them by UUID."
        )
    return _named(words, devices, f"{VISIBLE}={given}")


def _named(words: Iterable[str], devices: Sequence[Device], where: str) -> list[Device]:
    """Return the devices that *words* name, each once.

    :param where: the words, for messages.
    :raises InputError: one names none, or several by the beginning of their UUIDs.
    """
    found: dict[str, Device] = {}
    for word in words:
        if index := _INDEX.fullmatch(word):
            gpu, part = int(index[1]), index[2]
            # A GPU that is split stands for all of its parts.
            named = [d for d in devices if d.index == gpu and part in (None, str(d.part))]
        elif _UUID.fullmatch(word):
            named = [d for d in devices if d.uuid.lower().startswith(word.lower())]
            if len(named) > 1:
                raise InputError(
                    f"{where}: {word} is the beginning of {len(named)} UUIDs: write more of it."
                )
        else:
            named = []
        if not named:
            there = ", ".join(f"{_place(d)} {d.uuid}" for d in devices) or "none"
            raise InputError(f"{where}: there is no GPU {word!r} here; there are: {there}.")
        found.update((device.uuid, device) for device in named)
    return list(found.values())


def _without_nvml(error: NvmlError, wish: str, visible: str | None) -> Gpus:
    """Go by UUIDs alone, as for an engine on another machine; nothing else can be told apart."""
    if not wish and error.missing != "fault":
        return Gpus((), f"no GPU ({error})")
    words = _words(wish)
    if wish and all(map(_WHOLE.fullmatch, words)):
        if visible is not None:
            _check_visible(words, visible)
        uuids = tuple(dict.fromkeys(words))
        return Gpus(uuids, f"{_number(len(uuids))} as named ({error}: not looked at)")
    _refuse(error, wish)


def _check_visible(uuids: Iterable[str], visible: str) -> None:
    allowed = tuple(word.strip().lower() for word in visible.split(","))
    for uuid in uuids:
        # An empty word is the beginning of everything.
        if not any(word and uuid.lower().startswith(word) for word in allowed):
            raise InputError(
                f"--mlr-gpus: {uuid} is not among those that {VISIBLE}={visible} leaves: choose"
                " from these, or change that."
            )


def _refuse(error: NvmlError, wish: str) -> NoReturn:
    asked = f"--mlr-gpus={wish}" if wish else "GPUs cannot be found"
    remedy = {
        "package": "pip install nvidia-ml-py, name them by their whole UUIDs",
        "driver": "install it, name those of another machine by their whole UUIDs",
        "fault": "repair it",
    }[error.missing]
    raise InputError(f"{asked}: {error}: {remedy}, or run without any: --mlr-gpus=0.")


def _described(chosen: Sequence[Device], total: int) -> str:
    if not chosen:
        return "no GPU" if total else "no GPU on this machine"
    kinds = Counter(device.name for device in chosen)
    part = f" of {total}" if len(chosen) < total else ""
    named = ", ".join(f"{number} x {kind}" for kind, number in kinds.items())
    return f"{len(chosen)}{part} GPU{'s' * (max(total, len(chosen)) > 1)}: {named}"


def _number(count: int) -> str:
    return f"{count} GPU{'s' * (count > 1)}"


def _and(lost: Sequence[str]) -> str:
    return f"; not usable: {', '.join(lost)}" if lost else ""


def _place(device: Device) -> str:
    return str(device.index) if device.part is None else f"{device.index}:{device.part}"


def _shown(device: Device) -> str:
    return f"GPU {_place(device)} ({device.uuid})"
