"""The numbers of a file, with addresses; whatever the file holds, and however large it is."""

from __future__ import annotations

import json
import os
import resource
import struct
import time
import zipfile
from pathlib import Path

import pytest
from files import lay
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlrbench.evidence.records.values import (
    MOST_NUMBERS,
    Budget,
    Numbers,
    numbers_printed,
    read_all,
    read_numbers,
)


def shown(numbers: Numbers) -> dict[str, float]:
    return {numbers.place(index): value for index, value in enumerate(numbers.values)}


def read(folder: Path, name: str, text: str) -> dict[str, float]:
    return shown(read_numbers(name, lay(folder, {name: text}) / name))


# What a person finds where


def test_a_number_of_a_json_file_has_a_json_pointer(tmp_path: Path) -> None:
    text = '{"ours": {"acc": [0.9, "0.8", "87.5%"]}, "a/b~": -1e-3, "on": true, "none": null}'
    assert read(tmp_path, "m.json", text) == {
        "m.json#/ours/acc/0": 0.9,
        "m.json#/ours/acc/1": 0.8,
        "m.json#/ours/acc/2": 87.5,
        "m.json#/a~1b~0": -0.001,
    }


@pytest.mark.parametrize("name", ["m.jsonl", "m.json"])
def test_json_lines_are_read_under_either_name_even_if_the_last_is_cut(
    name: str, tmp_path: Path
) -> None:
    text = '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n{"step": 3, "lo'
    assert read(tmp_path, name, text) == {
        f"{name}#/0/step": 1,
        f"{name}#/0/loss": 0.5,
        f"{name}#/1/step": 2,
        f"{name}#/1/loss": 0.25,
    }


def test_a_cell_of_a_table_is_a_row_below_the_header_and_a_column(tmp_path: Path) -> None:
    text = 'method;acc;note\nours;0.9;"a;b"\nbase;n/a;7\n'
    lay(tmp_path, {"r.csv": text})
    found = read_numbers("r.csv", tmp_path / "r.csv")
    assert shown(found) == {"r.csv#1/acc": 0.9, "r.csv#2/note": 7}
    assert found.labels == ["ours a;b", "base n/a"]


def test_a_table_of_numbers_alone_has_no_header(tmp_path: Path) -> None:
    assert read(tmp_path, "r.tsv", "1\t2\n3\t4\n") == {
        "r.tsv#1/1": 1,
        "r.tsv#1/2": 2,
        "r.tsv#2/1": 3,
        "r.tsv#2/2": 4,
    }


def test_yaml_has_pointers_too(tmp_path: Path) -> None:
    assert read(tmp_path, "m.yaml", "ours:\n  5: [0.5, .inf]\n") == {"m.yaml#/ours/5/0": 0.5}


def test_a_log_has_lines_and_dates_and_versions_are_no_results(tmp_path: Path) -> None:
    text = (
        "2025-05-11 05:53:13,123 INFO v1.2.3 resnet18 acc=0.853, f1: 93.4% in 15.2ms\n"
        "loss 1.2e-05 −0.25 1,234\n"  # noqa: RUF001
    )
    lay(tmp_path, {"log.txt": text})
    found = read_numbers("log.txt", tmp_path / "log.txt")
    assert list(found.values) == [0.853, 93.4, 15.2, 1.2e-05, -0.25, 1234]
    assert found.keys == [":1"] * 3 + [":2"] * 3
    assert found.labels[0].endswith("acc=")


def test_of_a_progress_bar_the_last_state_counts() -> None:
    found = numbers_printed("stdout", "10%|#  | 1.5\r50%|## | 2.5\rdone, loss 0.5\r\n")
    assert list(found.values) == [0.5]


def test_of_a_notebook_the_outputs_count_and_not_the_code(tmp_path: Path) -> None:
    outputs = [{"text": ["acc\n", "0.75\n"]}, {"data": {"text/plain": "0.5"}}, {"text": 3}, None]
    cells = [{"source": "x = 0.1"}, {"source": ["y = 0.2"], "outputs": outputs}, 7]
    text = json.dumps({"cells": cells})
    assert read(tmp_path, "n.ipynb", text) == {
        "n.ipynb#/cells/1/outputs/0": 0.75,
        "n.ipynb#/cells/1/outputs/1": 0.5,
    }


def npy(kind: str, shape: tuple[int, ...], *numbers: float) -> bytes:
    codes = {"<f8": "<d", "<i4": "<i", ">f4": ">f"}
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    body = b"".join(struct.pack(codes.get(kind, "<d"), number) for number in numbers)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def test_arrays_are_read_without_numpy_and_without_pickles(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy("<f8", (2, 2), 0.5, float("nan"), 2.5, 3.5))
    (tmp_path / "o.npy").write_bytes(npy("|O", (1,), 1.0))
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive:
        archive.writestr("acc.npy", npy("<i4", (2,), 7, 8))
    found = read_all({name: tmp_path / name for name in ("a.npy", "o.npy", "z.npz")})
    assert {place: value for one in found for place, value in shown(one).items()} == {
        "a.npy#/0/0": 0.5,
        "a.npy#/1/0": 2.5,
        "a.npy#/1/1": 3.5,
        "z.npz#/acc/0": 7,
        "z.npz#/acc/1": 8,
    }


# What is hostile


def test_a_zip_bomb_is_unpacked_to_a_bound_only(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        content = npy("<f8", (10_000_000,)) + bytes(80_000_000)
        archive.writestr("a.npy", content)
    begun = time.process_time()
    assert len(read_numbers("z.npz", tmp_path / "z.npz").values) <= MOST_NUMBERS
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep.json", b"[" * 500_000),
        ("deep2.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        ("nan.json", b'[NaN, Infinity, -Infinity, 1e999, "nan", "inf"]'),
        ("large.json", b"[" + b"9" * 100_000 + b"]"),
        ("hollow.json", b"[" + b"{}," * 200_000 + b"[]]"),
        ("binary.json", bytes(range(256)) * 100),
        ("quote.csv", b'a,b\n"' + b"x" * 300_000),
        ("wide.csv", b"," * 300_000 + b"\n1\n"),
        ("digits.txt", b"1" * 1_000_000),
        ("commas.txt", b"1,234" * 100_000),
        (
            "bomb.yaml",
            b"a: &a [x]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9))
                for c in range(ord("b"), ord("q"))
            ),
        ),
        ("tag.yaml", b"!!python/object/apply:os.system ['true']"),
        ("bad.npy", b"\x93NUMPY\x01\x00\xff\xff{"),
        ("bad.npz", b"PK\x03\x04 nothing"),
        ("bad.ipynb", b'{"cells": {"a": 1}}'),
        ("empty.csv", b""),
    ],
)
def test_odd_content_is_no_fault(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    begun = time.process_time()
    found = read_numbers(name, tmp_path / name)
    assert time.process_time() - begun < 5
    assert all(value - value == 0 for value in found.values)


def test_what_is_no_file_has_no_numbers(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "circle.json").symlink_to("circle.json")
    (tmp_path / "folder.json").mkdir()
    names = ("pipe.json", "circle.json", "folder.json", "absent.json")
    assert not any(one.values for one in read_all({name: tmp_path / name for name in names}))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["json", "csv", "yaml", "txt", "npy", "ipynb"]))
def test_no_content_raises(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, kind: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{kind}"
    path.write_bytes(data)
    found = read_numbers(path.name, path)
    assert len(found.values) == len(found.keys) == len(found.labels)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_as_it_is_written(number: float) -> None:
    assert list(numbers_printed("out", f"loss: {number!r}, then").values) == [number]


# What is large


def test_a_huge_table_is_read_to_a_bound_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("w") as file:
        file.write("id,acc\n" + "".join(f"{row},0.{row}\n" for row in range(1000)))
        file.truncate(1_000_000_000)  # the rest is a hole
    begun = time.process_time()
    found = read_numbers("huge.csv", path)
    assert found.cut == "only 8.0 of 1000.0 MB are read"
    assert len(found.values) >= 1000
    assert time.process_time() - begun < 3


def test_of_a_long_log_both_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with path.open("w") as file:
        file.write("begin 0.125\n")
        file.writelines(
            "a line without any number in it, of which there are many\n" * 100_000 for _ in range(2)
        )
        file.write("final 0.875\n")
    assert shown(read_numbers("log.txt", path)) == {"log.txt:1": 0.125, "log.txt:-2": 0.875}


def test_two_thousand_files_and_two_hundred_megabytes_take_seconds_and_little_memory(
    tmp_path: Path,
) -> None:
    row = json.dumps({"loss": [index / 7 for index in range(200)]})
    files = {f"m{index}.json": tmp_path / f"m{index}.json" for index in range(2000)}
    for path in files.values():
        path.write_text(row)
    line = "".join(f"epoch {index} loss {index / 13:.4f} acc 0.{index}\n" for index in range(1000))
    for name in ("a.csv", "b.txt"):
        files[name] = tmp_path / name
        with files[name].open("w") as file:
            for _ in range(100_000_000 // len(line)):
                file.write(line)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    found = read_all(files)
    taken = time.process_time() - begun
    assert taken < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB
    assert all(one.values for one in found), "each file has its share"
    assert sum(len(one.values) for one in found) <= Budget().numbers + len(found)


def test_when_nothing_more_may_be_read_that_is_said(tmp_path: Path) -> None:
    lay(tmp_path, {"a.json": "[1, 2, 3]", "b.json": "[4, 5, 6, 7, 8, 9]"})
    budget = Budget(numbers=0)
    [found, _] = read_all({name: tmp_path / name for name in ("a.json", "b.json")}, budget)
    assert not found.values
    assert found.cut
    assert numbers_printed("stdout", "0.5", budget).cut
