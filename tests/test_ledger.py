"""The ledger: what was written follows from what was written before."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.sandbox.ledger import Ledger, read


def three(path: Path) -> list[bytes]:
    ledger = Ledger(path)
    for number in range(3):
        ledger.write("step", number=number)
    return path.read_bytes().splitlines(keepends=True)


def test_events_come_back_in_order(tmp_path: Path) -> None:
    three(tmp_path / "l")
    assert [event["number"] for event in read(tmp_path / "l")] == [0, 1, 2]


def test_it_goes_on_where_another_process_left_off(tmp_path: Path) -> None:
    three(tmp_path / "l")
    Ledger(tmp_path / "l").write("step", number=3)
    assert [event["number"] for event in read(tmp_path / "l")] == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", ["changed", "taken out", "put in", "put elsewhere", "cut off"])
def test_tampering_shows(tmp_path: Path, damage: str) -> None:
    lines = three(tmp_path / "l")
    damaged = {
        "changed": [lines[0].replace(b'"number":0', b'"number":7'), *lines[1:]],
        "taken out": [lines[0], lines[2]],
        "put in": [lines[0], lines[0], *lines[1:]],
        "put elsewhere": [lines[1], lines[0], lines[2]],
        "cut off": [*lines[:2], lines[2][:20]],
    }[damage]
    (tmp_path / "l").write_bytes(b"".join(damaged))
    with pytest.raises(ValueError, match=r"l:[123]"):
        list(read(tmp_path / "l"))


def test_what_is_sound_before_the_damage_is_read(tmp_path: Path) -> None:
    lines = three(tmp_path / "l")
    (tmp_path / "l").write_bytes(b"".join(lines[:2]) + b"{}\n")
    events = read(tmp_path / "l")
    assert [next(events)["number"], next(events)["number"]] == [0, 1]
    with pytest.raises(ValueError, match="does not follow"):
        next(events)


def test_many_threads_make_one_chain(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l")

    def write(who: int) -> None:
        for number in range(100):
            ledger.write("step", who=who, number=number)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = list(read(tmp_path / "l"))
    assert len(events) == 800
    for who in range(8):
        assert [e["number"] for e in events if e["who"] == who] == list(range(100))


@given(name=st.binary(max_size=30))
def test_names_that_are_no_text_are_kept(
    name: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "l"
    Ledger(path).write("read", path=name.decode("utf-8", "surrogateescape"))
    (event,) = read(path)
    assert event["path"].encode("utf-8", "surrogateescape") == name
    assert path.read_bytes().count(b"\n") == 1
    assert json.loads(path.read_bytes())["e"] == "read"
