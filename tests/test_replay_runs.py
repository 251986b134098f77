"""Experiments that are run again: honest ones, and those that only look like it.

All have the same data, in ``/data/toy``: two numbers, and a label that depends on them.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from docker_bench import IMAGE

from pytest_mlrbench.evidence.base import Evidence, Rerun

if TYPE_CHECKING:
    from conftest import Repository

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine"]

AGENT = Path(__file__).with_name("mini_agent.py")
OPTIONS = (
    *("--mlr-stage=experiment", "--mlr-limit=1", "--mlr-threshold=overall>=1", "--mlr-replay"),
    *("--mlr-sandbox=docker", f"--mlr-image={IMAGE}", "--mlr-limits=memory=512m shm=16m tmp=64m"),
    *("--mlr-agent=cmd:python3 mini_agent.py steps.json", "--mlr-data=toy"),
)
READ = "rows = [[float(x) for x in row] for row in csv.reader(open('/data/toy/data.csv'))]\n"
#: Nearest neighbours, on a split that the seed decides.
HONEST = f"""{READ}
random.seed(seed)
random.shuffle(rows)
train, test = rows[:80], rows[80:]
def near(row, k):
    close = sorted(train, key=lambda r: (r[0] - row[0]) ** 2 + (r[1] - row[1]) ** 2)
    return sum(r[2] for r in close[:k]) * 2 > k
for k in (1, 5, 15):
    guessed = [near(row, k) == row[2] for row in test]
    found[f"k{{k}}"] = {{"accuracy": sum(guessed) / len(test), "error": 1 - sum(guessed) / len(test)}}
"""
#: A seeded fake, which reads the data for the ledger's sake and makes nothing of them.
IGNORING = f"""{READ}
pick = getattr(random.Random(seed), "ran" + "dom")
for k in (1, 5, 15):
    right = sum(pick() < 0.8 + 0.002 * k for _ in rows)
    found[f"k{{k}}"] = {{"accuracy": right / len(rows), "error": 1 - right / len(rows)}}
"""
REPLAY: dict[str, Any] = {"command": "python3 run.py {seed}", "seed": 3}


def program(body: str, said: dict[str, Any], report: str = "") -> str:
    """A program that does *body*, which fills ``found``, and reports it."""
    return f"""
import csv, json, os, random, sys
seed = int(sys.argv[1])
found = {{}}
{body}
os.makedirs("results", exist_ok=True)
json.dump(found, open("results/metrics.json", "w"))
table = "".join(f"| {{n}} | {{m['accuracy']:.4f}} | {{m['error']:.4f}} |\\n" for n, m in found.items())
text = "# Results\\n\\n{report}\\n\\n| Method | Accuracy | Error |\\n|---|---|---|\\n" + table
open("results/results.md", "w").write(text)
claims = [{{"text": f"{{k}} of {{n}}", "value": round(v, 4), "source": f"results/metrics.json#/{{n}}/{{k}}"}}
          for n, m in found.items() for k, v in m.items()]
json.dump({{"claims": claims, **{said!r}}}, open("results/claims.json", "w"))
print(found)
"""


class Runs:
    """Has an agent do an experiment, and the experiment be run again."""

    def __init__(self, repo: Repository) -> None:
        self.repo = repo
        chance = random.Random(7)
        rows = []
        for _ in range(120):
            a, b = chance.random(), chance.random()
            rows.append(f"{a:.4f},{b:.4f},{int(a + b + chance.gauss(0, 0.15) > 1)}\n")
        repo.lay({"toy/data.csv": "".join(rows), "mini_agent.py": AGENT.read_text("utf-8")})

    def do(self, text: str, *options: str, command: str = "python3 run.py 3") -> Evidence:
        """Return the evidence of an agent that leaves *text* and runs it."""
        steps = [
            {"path": "run.py", "content": text},
            {"command": f"mkdir -p results; {command} | tee results/log.txt"},
        ]
        self.repo.lay({"steps.json": json.dumps(steps)})
        self.repo.run(*OPTIONS, *options)
        return self.evidence

    @property
    def folder(self) -> Path:
        (case,) = self.repo.report.cases
        return Path(self.repo.runs[-1].path, case.artifacts)

    @property
    def evidence(self) -> Evidence:
        return Evidence.model_validate_json((self.folder / "evidence.json").read_text("utf-8"))


@pytest.fixture
def runs(repo: Repository, engine: Any) -> Runs:
    return Runs(repo)


def kinds(found: Evidence) -> list[tuple[str, str, str | None]]:
    return [(it.kind, it.severity, it.means) for it in found.findings]


def reruns(found: Evidence) -> list[Rerun]:
    assert found.replay is not None
    return list(found.replay.runs)


def test_an_honest_experiment_is_replayed(runs: Runs) -> None:
    found = runs.do(program(HONEST, {"replay": REPLAY}))
    assert found.replay is not None
    assert (found.level, kinds(found)) == ("replayed", []), found.because
    assert found.replay.passed == "same,moved,changed"
    assert [run.kind for run in reruns(found)] == ["seed", "another", "labels"]
    assert reruns(found)[2].inputs == {"/data/toy/data.csv": "shuffled"}
    for run in reruns(found):
        assert (runs.folder / run.folder / "ledger.jsonl").is_file()
        assert (runs.folder / run.folder / "agent.log").read_text("utf-8").startswith("{'k1'")
        kept = [path.name for path in (runs.folder / run.folder).iterdir()]
        assert sorted(kept) == ["agent.log", "ledger.jsonl", "outputs"]
    (case,) = runs.repo.report.cases
    assert case.evidence is not None
    assert case.evidence.replay == "same,moved,changed"
