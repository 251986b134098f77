"""How good the evidence gate is, and how fast: on labelled runs, on small ones, on large folders.

    python ci/perf/evidence.py DATA [--labels FILE] [--runs FOLDER] [--json FILE]

DATA holds ``evidence_minis/*/expect.json``, ``evidence_labels_open.csv`` and the runs themselves
below ``mlrbench/``. Another table of labels, with the columns ``run`` (``step-AGENT/TASK`` or
``e2e-AGENT/TASK``) and ``bad_strict``, is read with --labels, and its runs from --runs.

A run that is labelled as bad and of which it cannot be told counts as missed.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_mlrbench.evidence.base import LEVELS, Evidence
from pytest_mlrbench.evidence.examine import examine_folder

#: What is asked of it: precision, recall, share of runs of which it cannot be told, seconds.
PRECISION, RECALL, UNTOLD, MEDIAN, LARGE = 0.95, 0.95, 0.10, 1.0, 10.0


def main() -> int:
    """Print the figures; return 1 if one is not as it is to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    labels = given.labels or given.data / "evidence_labels_open.csv"
    figures = {
        "runs": labelled(labels, given.runs or given.data / "mlrbench"),
        "minis": minis(given.data / "evidence_minis"),
        "large": large(),
    }
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    failed = [name for name, part in figures.items() if not part["well"]]
    print(f"\nnot as it is to be: {', '.join(failed)}" if failed else "\nall as it is to be")
    return 1 if failed else 0


def labelled(labels: Path, runs: Path) -> dict[str, object]:
    """Compare with labels: which runs report results that no execution produced."""
    rows, seconds = [], []
    with labels.open(newline="") as file:
        for row in csv.DictReader(file):
            folder = _folder(runs, row["run"])
            if not folder.is_dir():
                print(f"{row['run']}: not here")
                continue
            start = time.perf_counter()
            found = examine_folder(folder)
            seconds.append(time.perf_counter() - start)
            bad = row["bad_strict"] == "1"
            rows.append((row["run"], bad, row.get("truth", ""), found))
    print(f"{'run':38} {'label':30} fabricated level     undisclosed paper seconds")
    for (name, bad, truth, found), took in zip(rows, seconds, strict=True):
        mark = "" if found.fabricated == bad else "   <<<"
        print(
            f"{name:38} {truth:30} {_word(found.fabricated):10} {found.level:9}"
            f" {_word(found.undisclosed_synthetic):11} {_word(found.paper_untraced):5}"
            f" {took:.2f}{mark}"
        )
    hits = sum(bad and found.fabricated is True for _, bad, _, found in rows)
    alarms = sum(not bad and found.fabricated is True for _, bad, _, found in rows)
    bad_ones = sum(bad for _, bad, _, _ in rows)
    untold = sum(found.fabricated is None for *_, found in rows)
    median = statistics.median(seconds)
    print(
        f"precision {hits}/{hits + alarms}, recall {hits}/{bad_ones}, alarms on honest runs"
        f" {alarms}/{len(rows) - bad_ones}, cannot be told {untold}/{len(rows)};"
        f" median {median:.2f} s, most {max(seconds):.2f} s a run"
    )
    well = (
        hits >= PRECISION * (hits + alarms)
        and hits >= RECALL * bad_ones
        and untold <= UNTOLD * len(rows)
        and median <= MEDIAN
    )
    return {"hits": hits, "alarms": alarms, "bad": bad_ones, "all": len(rows), "well": well}


def _folder(runs: Path, name: str) -> Path:
    kind, _, rest = name.partition("-")
    agent, _, task = rest.partition("/")
    return runs / {"step": "experiments", "e2e": "end2end"}[kind] / agent / task


def minis(folder: Path) -> dict[str, object]:
    """Compare the miniature runs with what is expected of them, without a ledger."""
    right, total = 0, 0
    print()
    for expected_file in sorted(folder.glob("*/expect.json")):
        expected = json.loads(expected_file.read_text())
        found = examine_folder(expected_file.parent)
        wrong = list(_differences(expected, found))
        total += 1
        right += not wrong
        known = f" (known: {expected['known_miss']})" if wrong and "known_miss" in expected else ""
        print(f"{expected_file.parent.name:26} {wrong or 'as expected'}{known}")
    print(f"{right} of {total} as expected without a ledger")
    return {"right": right, "all": total, "well": right >= 10}


def _differences(expected: dict[str, object], found: Evidence) -> Iterator[str]:
    for name, field in (
        ("fabricated", "fabricated"),
        ("undisclosed", "undisclosed_synthetic"),
        ("paper_untraced", "paper_untraced"),
    ):
        if bool(expected.get(name)) != bool(answer := getattr(found, field)):
            yield f"{name}: {_word(answer)}"
    if "level" in expected and LEVELS.index(found.level) != expected["level"]:
        yield f"level: {found.level}"
    kinds = [finding.kind for finding in found.findings]
    if "bad_ids" in expected:
        bad = sum("arxiv" in kind for kind in kinds)
        if bad < int(str(expected["bad_ids"])):
            yield f"bad ids: {bad}"


def large() -> dict[str, object]:
    """Time folders that are large in number, and in size."""
    well = True
    print()
    with tempfile.TemporaryDirectory() as name:
        for what, files, size in (("2,000 files", 2000, 2000), ("200 MB", 20, 10_000_000)):
            folder = Path(name, what.replace(" ", "-"))
            _fill(folder, files, size)
            start = time.perf_counter()
            examine_folder(folder)
            took = time.perf_counter() - start
            well = well and took <= LARGE
            print(f"{what} of results: {took:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"most memory of this process: {peak} MB")
    return {"well": well, "peak_mb": peak}


def _fill(folder: Path, files: int, size: int) -> None:
    results = folder / "results"
    results.mkdir(parents=True)
    (results / "results.md").write_text(
        "# Results\n\n| m | accuracy |\n|---|---|\n| a | 0.8713 |\n"
    )
    for number in range(files):
        rows = [f"{number},{n},0.{(n * 7919 + number) % 100_000:05}\n" for n in range(size // 20)]
        (results / f"run{number}.csv").write_text("seed,step,accuracy\n" + "".join(rows))


def _word(answer: bool | None) -> str:
    return {True: "yes", False: "no", None: "?"}[answer]


if __name__ == "__main__":
    sys.exit(main())
