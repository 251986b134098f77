"""Running again: what is declared, how inputs are made wrong, and what repetitions come to."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from files import lay
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.evidence.base import Counted, Evidence, Origin, Rerun
from pytest_mlrbench.evidence.gathering import Gathered
from pytest_mlrbench.evidence.ledgers.view import LedgerView, Process, Read
from pytest_mlrbench.evidence.records.claims_file import entries_in
from pytest_mlrbench.evidence.replays.corrupting import resampled, shuffled
from pytest_mlrbench.evidence.replays.declared import Declaration, read_declaration
from pytest_mlrbench.evidence.replays.inputs import find
from pytest_mlrbench.evidence.replays.numbers import Point, cover, points
from pytest_mlrbench.evidence.replays.tree import CleanTree
from pytest_mlrbench.evidence.replays.trial import Trial, chance_of
from pytest_mlrbench.evidence.replays.verdict import verdict, weigh_again
from pytest_mlrbench.evidence.reports.claims import claims_of

if TYPE_CHECKING:
    from conftest import Repository

CLAIMS = "results/claims.json"


def declared(tmp_path: Path, content: str) -> Declaration | str:
    root = lay(tmp_path, {CLAIMS: content})
    return read_declaration({CLAIMS: root / CLAIMS})


# What is declared


def test_a_command_is_enough(tmp_path: Path) -> None:
    for said in ("python run.py {seed}", {"command": "python run.py {seed}"}):
        found = declared(tmp_path, json.dumps({"claims": [], "replay": said}))
        assert isinstance(found, Declaration)
        assert found.words(5) == ("/bin/sh", "-c", "python run.py 5")
        assert (found.seed, found.another, found.is_seeded) == (0, 1, True)
    found = declared(tmp_path, json.dumps({"replay": {"command": ["python", "a b.py"], "seed": 3}}))
    assert isinstance(found, Declaration)
    assert found.words(3) == ("python", "a b.py")
    assert not found.is_seeded


def test_another_seed_is_another_one() -> None:
    assert Declaration(command="a", seed=4, other_seed=4).another == 5
    assert Declaration(command="a", seed=4, other_seed=9).another == 9


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[]", "declares no command"),
        ('{"claims": []}', "declares no command"),
        ("{", "declares no command"),
        ("[" * 100_000, "declares no command"),
        ('{"replay": null}', "replay/command"),
        ('{"replay": ""}', "replay/command"),
        ('{"replay": []}', "replay/command"),
        ('{"replay": "a\\u0000b"}', "replay/command"),
        ('{"replay": {"command": "a", "seed": 1e400}}', "replay/seed"),
        ('{"replay": {"command": "a", "spread": NaN}}', "replay/spread"),
        ('{"replay": {"command": "a", "inputs": "data"}}', "replay/inputs"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, content: str, why: str) -> None:
    found = declared(tmp_path, content)
    assert isinstance(found, str)
    assert why in found


def test_what_is_said_beside_the_claims_is_none(tmp_path: Path) -> None:
    root = lay(tmp_path, {CLAIMS: '{"0.5": "a.json#/b", "replay": "x", "simulation": true}'})
    content, fault = entries_in(root / CLAIMS)
    assert (list(content), fault) == (["/0.5"], None)


# Inputs that are made wrong


CELLS = st.text(st.characters(codec="ascii", exclude_characters="\r\n\0"), max_size=6)


def table(rows: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("latin-1"), newline="")))


@given(st.lists(st.tuples(st.integers(), CELLS, st.sampled_from("abc")), min_size=3, max_size=30))
def test_shuffled_labels_are_the_same_ones_elsewhere(body: list[tuple[int, str, str]]) -> None:
    rows = [["id", "text", "kind"], *([str(n), text, kind] for n, text, kind in body)]
    new = shuffled("data.csv", table(rows))
    if len({kind for *_, kind in body}) == 1:
        assert new is None
        return
    assert new is not None
    assert new == shuffled("data.csv", table(rows))
    changed = rows_of(new)
    assert changed[0] == rows[0]
    assert [row[:2] for row in changed] == [row[:2] for row in rows]
    assert Counter(row[2] for row in changed) == Counter(row[2] for row in rows)
    assert changed != rows


def test_labels_are_where_they_are_said_to_be_or_called_so() -> None:
    rows = [["a", "y", "b"], *([str(n), str(n * 2), str(n * 3)] for n in range(9))]

    def moved(label: str | None, names: list[str]) -> list[int]:
        new = shuffled("d.csv", table([names, *rows[1:]]), label)
        assert new is not None
        changed = zip(*rows_of(new)[1:], strict=True)
        return [
            at
            for at, (old, now) in enumerate(zip(zip(*rows[1:], strict=True), changed, strict=True))
            if old != now
        ]

    assert moved(None, ["a", "y", "b"]) == [1]
    assert moved(None, ["Label", "x", "b"]) == [0]
    assert moved(None, ["a", "x", "b"]) == [2]
    assert moved("a", ["a", "y", "b"]) == [0]
    assert moved("elsewhere", ["a", "y", "b"]) == [1]


def test_a_header_that_counts_is_left_alone() -> None:
    """As of the data sets that come with scikit-learn: rows, columns, names of the classes."""
    data = b"4,2,setosa,virginica\n5.1,3.5,0\n4.9,3.0,0\n6.1,2.9,1\n6.3,3.1,1\n"
    new = shuffled("iris.csv", data)
    assert new is not None
    assert new.startswith(b"4,2,setosa,virginica\n5.1,3.5,")
    packed = shuffled("digits.csv.gz", gzip.compress(data))
    assert packed is not None
    assert gzip.decompress(packed) == new


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        (
            "d.json",
            [{"x": n, "label": n % 3} for n in range(9)],
            lambda it: [r["label"] for r in it],
        ),
        ("d.json", {"x": [*range(9)], "y": [*range(9)]}, lambda it: it["y"]),
        (
            "d.json",
            {"data": [{"target": n} for n in range(9)]},
            lambda it: [r["target"] for r in it["data"]],
        ),
        ("d.json", {"train": {"x": [*range(9)], "y": [*range(9)]}}, lambda it: it["train"]["y"]),
    ],
)
def test_labels_in_json(name: str, content: Any, place: Any) -> None:
    new = shuffled(name, json.dumps(content).encode())
    assert new is not None
    assert place(json.loads(new)) != place(content)
    assert sorted(place(json.loads(new))) == sorted(place(content))
    lines = "".join(json.dumps(row) + "\n" for row in [{"x": n, "y": n} for n in range(9)])
    many = shuffled("d.jsonl", lines.encode())
    assert many is not None
    assert [json.loads(line)["x"] for line in many.splitlines()] == [*range(9)]


def test_labels_in_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    x, y = numpy.arange(40.0).reshape(20, 2), numpy.array([f"c{n % 4}" for n in range(20)])
    packed = io.BytesIO()
    numpy.savez(packed, x=x, y_train=y)
    new = shuffled("d.npz", packed.getvalue())
    assert new is not None
    found = numpy.load(io.BytesIO(new))
    assert (found["x"] == x).all()
    assert sorted(found["y_train"]) == sorted(y)
    assert (found["y_train"] != y).any()
    alone = io.BytesIO()
    numpy.save(alone, y)
    assert shuffled("labels.npy", alone.getvalue()) not in (None, alone.getvalue())
    assert shuffled("x.npy", alone.getvalue()) is None
    assert resampled("x.npy", alone.getvalue()) not in (None, alone.getvalue())


def test_what_is_drawn_anew_changes_means_too() -> None:
    rows = [["a", "b"], *([str(n), str(n * n)] for n in range(50))]
    new = resampled("d.csv", table(rows))
    assert new is not None
    for old, now in zip(
        zip(*rows[1:], strict=True), zip(*rows_of(new)[1:], strict=True), strict=True
    ):
        assert set(now) < set(old)
    assert resampled("d.txt", b"one\ntwo\nthree\n") not in (None, b"one\ntwo\nthree\n")
    assert resampled("d.png", b"\x89PNG") is None


@given(
    st.sampled_from(["a.csv", "a.tsv", "a.csv.gz", "a.json", "a.jsonl", "a.npz", "a.npy", "a.txt"]),
    st.binary(max_size=300) | st.text(max_size=80).map(str.encode),
)
def test_no_input_crashes_it(name: str, data: bytes) -> None:
    shuffled(name, data)
    resampled(name, data)
    resampled(name, b"\x93NUMPY\x01\x00" + data)


def test_bombs_are_left_alone() -> None:
    assert shuffled("a.csv.gz", gzip.compress(b"1,2\n" * 8_500_000, 1)) is None
    assert shuffled("a.json", b"[" * 1_000_000) is None
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n"
    forged = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    assert resampled("a.npy", forged) is None


# What it reads


def opened(path: str, kind: str, *writers: int) -> Read:
    unknown: dict[str, Any] = dict.fromkeys((field.name for field in fields(Read)), writers)
    return Read(**unknown | {"path": path, "kind": kind})


def reading(*reads: Read) -> LedgerView:
    process = Process(1, None, 1, 0.0, reads=list(reads))
    return LedgerView({1: process}, is_whole=True)


def test_inputs_are_what_was_read_and_what_is_declared(tmp_path: Path) -> None:
    lay(tmp_path, {"toy/a.csv": "1", "toy/sub/b.csv": "2", "given.csv": "3"})
    view = reading(
        opened("/workspace/given.csv", "benchmark-input"),
        opened("/workspace/typed.json", "benchmark-input"),
        opened("/workspace/results/made.json", "own", 1),
        opened("/workspace/idea.md", "benchmark-input"),
        opened("/data/toy/a.csv", "benchmark-input"),
        opened("/usr/lib/python3/dist-packages/sklearn/iris.csv", "package"),
        opened("/opt/corpus/words.dat", "image"),
        opened("/opt/models/net.pt", "weights"),
        opened("/usr/lib/python3/dist-packages/matplotlib/x.ttf", "package"),
        opened("/usr/lib/python3/dist-packages/other/words.dat", "package"),
    )
    given_files = {"given.csv": tmp_path / "given.csv"}
    found = find(
        view,
        Declaration(command="a", inputs=("/data/toy/sub",)),
        given_files,
        {"given.csv", "typed.json"},
        {"toy": tmp_path / "toy"},
    )
    assert [place.name for place in found.places] == [
        "/data/toy/sub/b.csv",
        "given.csv",
        "/data/toy/a.csv",
        "/usr/lib/python3/dist-packages/sklearn/iris.csv",
        "/opt/corpus/words.dat",
        "/opt/models/net.pt",
    ]
    assert found.left == ("/usr/lib/python3/dist-packages/other/words.dat",)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "/etc/passwd",
            "/data/../etc/passwd",
            "/data/toy/../../secret",
            "../secret",
            "/proc/1/mem",
        ),
        *("/data", "/data/", "/data/toy/link", "/agent/run.py", "/usr/bin/strace", "", "x" * 9000),
    ],
)
def test_nothing_else_can_be_declared_to_be_an_input(tmp_path: Path, name: str) -> None:
    lay(tmp_path, {"toy/.keep": "", "secret": "s"})
    (tmp_path / "toy/link").symlink_to(tmp_path / "secret")
    said = Declaration.model_construct(command="a", inputs=(name,))
    found = find(reading(), said, {}, set(), {"toy": tmp_path / "toy"})
    assert [place.name for place in found.places if "keep" not in place.name] == []


def test_a_clean_tree_has_inputs_and_code_only(tmp_path: Path) -> None:
    root = lay(
        tmp_path / "case/submission",
        dict.fromkeys(
            (
                "data.csv",
                "run.py",
                "made.py",
                "x.pyc",
                "config.json",
                "out/model.bin",
                "typed.json",
            ),
            "",
        ),
    )
    run = Gathered(root)
    kinds = {"data.csv": "given", "run.py": "typed", "config.json": "typed", "typed.json": "typed"}
    origins = {name: Origin(kinds.get(name, "command")) for name in run.files}  # type: ignore[arg-type]
    vars(run)["origins"] = origins
    tree = CleanTree.of(run, {"typed.json"})
    assert set(tree.given) == {"data.csv"}
    assert set(tree.own) == {"run.py", "made.py", "config.json"}
    tree.lay(tmp_path / "clean")
    assert (tmp_path / "clean/out").is_dir()
    assert not (tmp_path / "clean/typed.json").exists()


# Which numbers are compared


def test_numbers_are_those_of_claims_or_of_files(tmp_path: Path) -> None:
    root = lay(
        tmp_path,
        {
            "results/m.json": '{"a": {"accuracy": 0.87654, "train_time": 3.2}, "n": 5}',
            CLAIMS: json.dumps(
                [
                    {"text": "87.7%", "source": "results/m.json#/a/accuracy"},
                    {"text": "seconds", "value": 3.2, "source": "results/m.json#/a/train_time"},
                    {"text": "wrong", "value": 0.5, "source": "results/m.json#/a/accuracy"},
                    {"text": "typed", "value": 1, "source": "typed.json#/a"},
                ]
            ),
            "typed.json": '{"a": 1}',
        },
    )
    run = Gathered(root)
    vars(run)["origins"] = {"results/m.json": Origin("command"), "typed.json": Origin("typed")}
    first, second = points(run, ())
    assert (first.address, second.address) == (
        "results/m.json#/a/accuracy",
        "results/m.json#/a/train_time",
    )
    assert first.value == pytest.approx(0.877)
    assert (first.is_of_machine, second.is_of_machine) == (False, True)
    assert [first.is_met(it) for it in (0.8766, 0.8774, 0.8764, None)] == [True, True, False, False]
    beside = points(run, {"results/m.json"})
    assert [(it.address.rpartition("/")[2], it.is_claimed) for it in beside] == [
        ("accuracy", True),
        ("train_time", True),
        ("n", False),
    ]
    (root / CLAIMS).unlink()
    run = Gathered(root)
    vars(run)["origins"] = {"results/m.json": Origin("command")}
    assert points(run, ()) == []
    there = points(run, {"results/m.json"})
    assert all(it.is_claimed for it in there)
    found = {point.address: point.value for point in there}
    assert found == {
        "results/m.json#/a/accuracy": 0.87654,
        "results/m.json#/a/train_time": 3.2,
        "results/m.json#/n": 5,
    }


# What repetitions come to


NUMBERS = {"m.json#/accuracy": 0.87, "m.json#/f1": 0.81}


def rerun(kind: str, numbers: Mapping[str, float | None], **fields: Any) -> Rerun:
    usual = {"command": ("a",), "seed": 0, "folder": "replays/1", "ended": "exit 0", "seconds": 1.0}
    return Rerun.model_validate({"kind": kind, "numbers": numbers} | usual | fields)


def trial(*runs: Rerun, seeded: bool = True, **fields: Any) -> Trial:
    said = Declaration(command="a {seed}" if seeded else "a", spread=fields.pop("spread", None))
    usual = {
        "declared": said,
        "points": [Point(address, value, 0.005) for address, value in NUMBERS.items()],
        "recorded": dict(NUMBERS),
        "runs": runs,
        "has_examples": True,
    }
    return Trial(**{**usual, **fields})


SAME = rerun("seed", NUMBERS)
MOVED = rerun("another", {"m.json#/accuracy": 0.88, "m.json#/f1": 0.80})
SHUFFLED = {"inputs": {"d.csv": "shuffled"}}
CHANGED = rerun("labels", {"m.json#/accuracy": 0.5, "m.json#/f1": 0.4}, **SHUFFLED)
STAYED = rerun("labels", NUMBERS, **SHUFFLED)
RESAMPLED = {"inputs": {"d.csv": "resampled"}}
IGNORED = rerun("input", NUMBERS, **RESAMPLED)
WITHHELD = {"inputs": {"d.bin": "withheld"}, "ended": "exit 1"}


def told(one: Trial) -> tuple[str, list[tuple[str, str]]]:
    replay, findings = verdict(one)
    return replay.passed, [(it.kind, it.severity) for it in findings]


@pytest.mark.parametrize(
    ("one", "passed", "kinds"),
    [
        (trial(SAME, MOVED, CHANGED), "same,moved,changed", []),
        (trial(SAME, CHANGED, seeded=False), "same,moved,changed", []),
        (trial(SAME, MOVED, STAYED, IGNORED), "same,moved", [("ignores_input", "proof")]),
        (
            trial(SAME, MOVED, STAYED, IGNORED, is_made_up=True),
            "same,moved",
            [("ignores_input", "hint")],
        ),
        (
            trial(SAME, MOVED, STAYED, IGNORED, left=["x"]),
            "same,moved",
            [("ignores_input", "hint")],
        ),
        (
            trial(SAME, STAYED, IGNORED, seeded=False, has_examples=False),
            "same,moved",
            [("ignores_input", "hint")],
        ),
        (
            trial(SAME, MOVED, STAYED, rerun("input", CHANGED.numbers, **RESAMPLED)),
            "same,moved,changed",
            [("labels_do_not_matter", "hint")],
        ),
        (
            trial(SAME, MOVED, rerun("labels", MOVED.numbers, **SHUFFLED)),
            "same,moved",
            [("changes_like_chance", "hint")],
        ),
        (
            trial(SAME, rerun("another", NUMBERS), CHANGED),
            "same,changed",
            [("seed_moves_nothing", "hint")],
        ),
        (trial(SAME, MOVED, CHANGED, spread=0.001), "same,changed", [("beyond_spread", "hint")]),
        (trial(SAME, MOVED, CHANGED, spread=0.05), "same,moved,changed", []),
        (trial(SAME, MOVED, rerun("input", {}, **WITHHELD)), "same,moved,changed", []),
        # One who fails where only labels are others has looked whether they are.
        (
            trial(SAME, MOVED, rerun("labels", {}, **SHUFFLED | {"ended": "exit 1"})),
            "same,moved",
            [("fails_on_other_labels", "hint")],
        ),
        (trial(SAME, MOVED, STAYED, rerun("input", {}, **WITHHELD)), "same,moved", []),
        (trial(SAME, MOVED), "same,moved", []),
        (trial(MOVED.model_copy(update={"kind": "seed"})), "", [("does_not_repeat", "strong")]),
        (trial(rerun("seed", {}, ended="timeout")), "", [("does_not_repeat", "strong")]),
    ],
)
def test_what_repetitions_come_to(one: Trial, passed: str, kinds: list[tuple[str, str]]) -> None:
    assert told(one) == (
        passed if kinds != [("does_not_repeat", "strong")] else passed_of(one),
        kinds,
    )


def passed_of(one: Trial) -> str:
    """Without a number that came out again, there is nothing that could have moved."""
    assert one.same is False
    return verdict(one)[0].passed


def test_measures_of_the_machine_need_not_come_out_again() -> None:
    clock = Point("m.json#/seconds", 3.2, 0.05, is_of_machine=True)
    numbers = NUMBERS | {"m.json#/seconds": 4.7}
    one = trial(
        rerun("seed", numbers),
        MOVED,
        rerun("labels", NUMBERS | {"m.json#/seconds": 4.9}, **SHUFFLED),
        rerun("input", NUMBERS | {"m.json#/seconds": 4.1}, **RESAMPLED),
        points=[*trial().points, clock],
        recorded=NUMBERS | {"m.json#/seconds": 3.2},
    )
    assert one.same
    assert one.is_ignored  # a clock is no sign of minding the input


def test_a_constant_among_the_numbers_hides_nothing() -> None:
    """Whoever really counts the rows, and draws the rest, is not taken for one who minds them."""
    first = NUMBERS | {"m.json#/rows": 120.0}
    one = trial(
        rerun("seed", first),
        rerun("another", MOVED.numbers | {"m.json#/rows": 120.0}),
        rerun("labels", first, **SHUFFLED),
        rerun("input", NUMBERS | {"m.json#/rows": 90.0}, **RESAMPLED),
        points=[*trial().points, Point("m.json#/rows", 120, 0.5)],
        recorded=first,
    )
    assert told(one) == ("same,moved", [("some_ignore_input", "hint")])


def test_seeds_and_settings_that_stay_accuse_nobody() -> None:
    """An agent may say of its settings only where they come from, and write down its seed."""
    address = "m.json#/seed"
    kept = {address: 0.0, "m.json#/epochs": 5.0}
    one = trial(
        rerun("seed", kept),
        rerun("another", kept | {address: 1.0}, seed=1),
        rerun("labels", kept, **SHUFFLED),
        rerun("input", kept, **RESAMPLED),
        points=[Point(it, value, 0.0) for it, value in kept.items()],
        recorded=kept,
        is_covered=False,
    )
    assert one.stable == ["m.json#/epochs"]
    assert told(one)[1] == [("seed_moves_nothing", "hint"), ("ignores_input", "hint")]


def test_what_chance_does_is_told_from_what_the_input_does() -> None:
    chance = random.Random(4)
    likely = 0
    for _ in range(400):
        pairs = [(abs(chance.gauss(0, 1)), abs(chance.gauss(0, 1))) for _ in range(8)]
        likely += chance_of([a / b for a, b in pairs]) > 0.05
    assert likely > 360
    assert chance_of([30.0]) < 0.05  # one number is enough that falls to the level of guessing
    assert chance_of([3.0]) > 0.05
    assert chance_of([]) == 1


def test_coverage_is_by_value(tmp_path: Path) -> None:
    text = "| Method | Accuracy |\n|---|---|\n| a | 87.7 |\n| b | 0.512 |\n| c | 0.333 |\n"
    claims = claims_of("results/results.md", text)
    assert len(claims) == 3
    assert cover(claims, [0.8766, 0.5121])
    assert not cover(claims, [0.8766, 5.0])
    assert not cover([], [0.1])


def evidence(level: str) -> Evidence:
    return Evidence(
        level=level,  # type: ignore[arg-type]
        because="so",
        examined=("ledger",),
        fabricated=False,
        undisclosed_synthetic=False,
        paper_untraced=None,
        claims={"results/results.md": Counted(reported=2, traced=2, chance=0, untraced=0)},
    )


def test_levels_after_a_replay() -> None:
    good, ignoring = trial(SAME, MOVED, CHANGED), trial(SAME, MOVED, STAYED, IGNORED)
    assert weigh_again(evidence("traced"), *verdict(good)).level == "replayed"
    assert weigh_again(evidence("executed"), *verdict(good)).level == "executed"
    assert weigh_again(evidence("traced"), *verdict(trial(SAME, MOVED))).level == "traced"
    found = weigh_again(evidence("traced"), *verdict(ignoring))
    assert (found.level, found.fabricated, found.because) == (
        "claimed",
        True,
        "found: ignores_input",
    )
    assert Evidence.model_validate_json(found.model_dump_json()) == found


# Asking for it


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mlr-agent=cmd:true", "--mlr-sandbox=local"], "has its experiments in one"),
        (["--mlr-agent=published:codex", "--mlr-judge=published"], "runs no commands in them"),
        (["--mlr-agent=replay:stored#codex"], "runs no commands in them"),
        (["--mlr-agent=reference"], "add --mlr-sandbox=docker"),
    ],
)
def test_without_containers_it_is_refused(repo: Repository, options: list[str], words: str) -> None:
    repo.lay({"stored/experiments/codex/x/results/results.md": "x"})
    done = repo.run("--mlr-stage=experiment", "--mlr-suite=mini", "--mlr-replay", *options)
    assert done.ret == 4
    assert "--mlr-replay runs experiments again in containers" in done.stderr.str()
    assert words in done.stderr.str()


def test_it_is_no_short_form_of_another_option(repo: Repository) -> None:
    alone = ("--mlr-agent=cmd:true", "--mlr-sandbox=local", "--mlr-limit=1")
    done = repo.run("--mlr-stage=experiment", *alone, "--mlr-replay-calls=nowhere")
    assert "--mlr-replay runs" not in done.stderr.str() + done.stdout.str()
    repo.lay({"pytest.ini": "[pytest]\nmlr_replay = true\n"})
    done = repo.run("--mlr-stage=experiment", "--mlr-agent=reference")
    assert "--mlr-replay runs experiments again" in done.stderr.str()


def test_where_nothing_has_experiments_it_is_refused(repo: Repository) -> None:
    done = repo.run("--mlr-stage=idea", "--mlr-replay")
    assert "no stage of this run has experiments" in done.stderr.str()
