"""Generate benchmarks/published/*.csv from the source's numbers, or check the committed files.

    python ci/published/build.py DATA            write the files
    python ci/published/build.py DATA --check    compare them (exit 1 with a diff if they differ)

DATA (default: ``$MLRBENCH_DATA``) is a folder with ``published_scores.csv`` (one score a row:
mode, stage, task, agent_or_model, judge, dimension, score) and ``comparison.csv`` (one cell of a
published table a row). Names, dimension order and the number of values are declared in
``benchmarks/published/published.yaml``. The suites' task ids are checked against the scores and,
where DATA has it, against ``mlrbench/tasks/``; their titles are written by hand. Exit 2: no data.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import io
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
JUDGES = {"claude": "claude-3-7-sonnet", "gemini": "gemini-2-5-pro", "avg": "panel"}
MEANS_HEADER = ("source", "stage", "system", "judge", "dimension", "n", "published_mean")
DIFF_LINES = 40


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def to_csv(rows: Iterable[Iterable[str]]) -> str:
    """Return rows as CSV text with plain line feeds."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def score_files(config: dict[str, Any], rows: list[dict[str, str]]) -> dict[str, str]:
    """Return file name -> text for each stage; an incomplete or doubled review is an error."""
    expected = config["source"]["score_values"]
    if len(rows) != expected:
        raise SystemExit(f"published_scores.csv has {len(rows)} values, not {expected}")
    reviews: dict[str, dict[tuple[str, str], dict[str, str]]] = defaultdict(dict)
    for row in rows:
        column = f"{row['agent_or_model']}|{row['judge']}"
        review = reviews[row["stage"]].setdefault((row["task"], column), {})
        dimension = row["dimension"].lower()
        if dimension in review:
            raise SystemExit(f"two values of {dimension} for {row['task']}, {column}")
        if not 1 <= int(row["score"]) <= (5 if dimension == "confidence" else 10):
            raise SystemExit(
                f"{row['score']} is off the scale: {row['task']}, {column}, {dimension}"
            )
        review[dimension] = row["score"]
    if unknown := reviews.keys() - {stage["source_stage"] for stage in config["stages"].values()}:
        raise SystemExit(f"stages of published_scores.csv not declared: {sorted(unknown)}")
    files = {}
    for name, stage in config["stages"].items():
        here = reviews[stage["source_stage"]]
        for (task, column), review in here.items():
            if review.keys() != set(stage["dimensions"]):
                raise SystemExit(f"{name}, {task}, {column}: dimensions are {sorted(review)}")
        columns = sorted({column for _, column in here})
        table = [["task", *columns]]
        for task in sorted({task for task, _ in here}):
            found = (here.get((task, column)) for column in columns)
            order = stage["dimensions"]
            table.append([task, *(" ".join(r[d] for d in order) if r else "" for r in found)])
        files[f"{name}.csv"] = to_csv(table)
    return files


def means_file(config: dict[str, Any], rows: list[dict[str, str]]) -> str:
    """Return means.csv: the published cells under our names, in the order of the tables."""
    stages = {stage["source_stage"]: name for name, stage in config["stages"].items()}
    public = {
        (stage, raw): name
        for name, system in config["systems"].items()
        for stage, raw in system["raw"].items()
    }
    table: list[Iterable[str]] = [MEANS_HEADER]
    for row in rows:
        stage = stages[row["stage"]]
        # The two v3 values that came without a table number are labelled alike.
        source = "v3 (second hand)" if row["source"].startswith("v3 (") else row["source"]
        system, judge = public[stage, row["agent_or_model"]], JUDGES[row["judge"]]
        dimension = row["dimension"].lower()
        table.append((source, stage, system, judge, dimension, row["n"], row["published_mean"]))
    return to_csv(table)


def id_problems(data: Path, rows: list[dict[str, str]]) -> list[str]:
    """Return a sentence for each suite whose task ids are not those of the source."""
    wanted = {
        "mlrbench": {row["task"] for row in rows if row["stage"] == "idea"},
        "mlrbench-10": {row["task"] for row in rows if row["stage"] == "overall"},
    }
    problems = []
    texts = {path.stem for path in (data / "mlrbench" / "tasks").glob("*.md")}
    if texts and (odd := texts ^ wanted["mlrbench"]):
        problems.append(f"in either the task files or the scores, not in both: {sorted(odd)}")
    for suite, ids in wanted.items():
        path = BENCHMARKS / "suites" / suite / "suite.yaml"
        listed = yaml.safe_load(path.read_text("utf-8")).get("tasks") or [
            row["id"] for row in read(path.with_name("tasks.csv"))
        ]
        if listed != sorted(ids):
            missing, extra = sorted(ids - set(listed)), sorted(set(listed) - ids)
            problems.append(
                f"{path.relative_to(BENCHMARKS.parent)}: ids must be the source's {len(ids)}, each "
                f"once, sorted (missing: {missing}; not in the source: {extra})"
            )
    return problems


def differences(files: dict[str, str]) -> list[str]:
    """Return a shortened diff for each committed file that is not what would be generated."""
    problems = []
    for name, text in files.items():
        path = BENCHMARKS / "published" / name
        committed = path.read_bytes().decode() if path.is_file() else ""
        if committed == text:
            continue
        old, new = committed.splitlines(), text.splitlines()
        label = f"benchmarks/published/{name}"
        diff = list(difflib.unified_diff(old, new, label, "generated", lineterm="", n=0))
        rest = [f"... and {len(diff) - DIFF_LINES} more lines"] if len(diff) > DIFF_LINES else []
        ends = [f"{label}: line ends differ"] if not diff else []
        problems.append("\n".join([*diff[:DIFF_LINES], *rest, *ends]))
    return problems


def main() -> int:
    """Write or check; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=os.environ.get("MLRBENCH_DATA"))
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give the data folder, or set MLRBENCH_DATA")
    data = Path(options.data)
    for name in ("published_scores.csv", "comparison.csv"):
        if not (data / name).is_file():
            parser.error(f"{data} has no {name}")

    config = yaml.safe_load((BENCHMARKS / "published" / "published.yaml").read_text("utf-8"))
    rows = read(data / "published_scores.csv")
    files = score_files(config, rows)
    files["means.csv"] = means_file(config, read(data / "comparison.csv"))
    problems = id_problems(data, rows)
    if options.check:
        problems += differences(files)
    else:
        for name, text in files.items():
            (BENCHMARKS / "published" / name).write_text(text, encoding="utf-8", newline="\n")
    for problem in problems:
        print(problem)
    if not problems:
        done = "as generated" if options.check else "written"
        print(f"{len(files)} files {done}; {len(rows)} score values; task ids of 2 suites agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
