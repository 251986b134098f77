"""What users write of the limits of a case, and what an engine says of those it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox import engine_limits
from pytest_mlrbench.sandbox.base import Limits
from pytest_mlrbench.sandbox.limits import parse, words_apart, words_of

ABLE = {
    "OSType": "linux",
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "MemTotal": 64 * 2**30,
    "NCPU": 8,
}


def test_nothing_said_is_the_usual() -> None:
    assert parse([]) == Limits()
    assert parse(["", " "]) == Limits()


def test_all_that_can_be_said() -> None:
    assert parse(["memory=1.5g cpus=2.5", "pids=100,shm=64M", "tmp=1G disk=2TiB log=1000"]) == (
        Limits(
            memory=3 * 2**29,
            cpus=2.5,
            pids=100,
            shm=64 * 2**20,
            tmp=2**30,
            disk=2 * 2**40,
            log=1000,
        )
    )


def test_of_two_the_later_counts() -> None:
    assert parse(["memory=1g", "memory=2g"]).memory == 2 * 2**30


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("memory", "NAME=VALUE"),
        ("memory=", "write a size"),
        ("memory=lots", "write a size"),
        ("memory=-1g", "write a size"),
        ("memory=1k", "6 MiB at least"),
        ("memory=٣g", "write a size"),
        ("cpus=none", "processors"),
        ("cpus=nan", "processors"),
        ("cpus=0", "processors"),
        ("cpus=inf", "processors"),
        ("pids=3.5", "processes"),
        ("pids=0", "processes"),
        ("pids=²", "processes"),
        ("gpus=2", "no limit 'gpus'"),
    ],
)
def test_a_word_of_no_use_is_named(word: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as told:
        parse(["disk=1g", word])
    assert word in str(told.value)
    assert str(told.value).endswith(".")


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 bytes"), (1536, "1.5 KiB"), (2**30, "1 GiB"), (2**50, "1024 TiB")]
)
def test_sizes_in_words(size: int, words: str) -> None:
    assert words_of(size) == words


@pytest.mark.parametrize(
    ("more", "less", "words"),
    [
        (5 * 2**30, 2**30, ("5 GiB", "1 GiB")),
        (int(52.3 * 2**30), 50 * 2**30, ("52.3 GiB", "50 GiB")),
        (int(50.02 * 2**30), 50 * 2**30, ("50.02 GiB", "50 GiB")),
        (int(1.58 * 2**30), int(1.56 * 2**30), ("1.58 GiB", "1.56 GiB")),
        (50 * 2**30 + 4096, 50 * 2**30, ("50.000004 GiB", "50 GiB")),
        (2**30, 1000 * 2**20, ("1 GiB", "1000 MiB")),
    ],
)
def test_two_sizes_in_words_can_be_told_apart(more: int, less: int, words: tuple[str, str]) -> None:
    assert words_apart(more, less) == words


def test_an_engine_that_keeps_all_limits_is_taken() -> None:
    engine_limits.check(ABLE, Limits(cpus=4), swap=2**30)


@pytest.mark.parametrize(
    ("lacking", "says"),
    [
        ({"MemoryLimit": False}, "cannot limit memory"),
        ({"PidsLimit": False}, "cannot limit pids"),
        ({"CpuCfsQuota": False}, "cannot limit processors"),
        ({"SwapLimit": False}, "swapaccount=1"),
        ({"OSType": "windows"}, "no Linux containers"),
        ({"MemTotal": 8 * 2**30}, r"16 GiB .* 8 GiB: add --mlr-limits memory=6144m"),
        ({"NCPU": 2}, "cpus=4: this machine has 2"),
    ],
)
def test_a_limit_that_would_not_be_kept_is_an_error(lacking: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        engine_limits.check({**ABLE, **lacking}, Limits(cpus=4), swap=2**30)


def test_swap_does_not_matter_where_there_is_none() -> None:
    engine_limits.check({**ABLE, "SwapLimit": False}, Limits(), swap=0)


def test_processors_do_not_matter_unless_they_are_limited() -> None:
    engine_limits.check({**ABLE, "CpuCfsQuota": False}, Limits(), swap=0)
