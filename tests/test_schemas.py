"""The shipped JSON Schemas describe what a run really writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import pytest_mlrbench
from conftest import Repository

ROOT = Path(__file__).parents[1]


def schema(name: str) -> Any:
    path = Path(pytest_mlrbench.__file__).parent / "schemas" / f"{name}.schema.json"
    return json.loads(path.read_text("utf-8"))


def test_the_schemas_are_those_of_the_models() -> None:
    command = [sys.executable, str(ROOT / "ci" / "schemas.py"), "--check"]
    subprocess.run(command, check=True)


def test_every_file_of_a_run_is_valid(repo: Repository) -> None:
    repo.measure("--mlr-json=report.json", "-k", "wsl or scope")
    (run,) = (folder.path for folder in repo.runs)
    found = {
        "report": [repo.path / "report.json"],
        "run": [run / "run.json"],
        "result": list(run.rglob("result.json")),
        "submission": list(run.rglob("submission.json")),
        "review": list(run.rglob("reviews/*.json")),
    }
    assert [len(paths) for paths in found.values()] == [1, 1, 2, 2, 4]
    for name, paths in found.items():
        for path in paths:
            jsonschema.validate(json.loads(path.read_text("utf-8")), schema(name))
    for line in (run / "journal.jsonl").read_text("utf-8").splitlines():
        jsonschema.validate(json.loads(line), schema("journal-line"))


@pytest.mark.parametrize("name", ["report", "result", "review"])
def test_a_schema_refuses_what_is_something_else(name: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"case": 3}, schema(name))
