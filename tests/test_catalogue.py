"""The catalogue of the 201 tasks: what it says of them holds, of the published texts too."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.source import is_result
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite

#: Categories the paper gives for ten of the tasks (Table 7 of the version of July 2025).
PUBLISHED_LABELS = {
    "iclr2025_bi_align": "trustworthy_ai",
    "iclr2025_buildingtrust": "trustworthy_ai",
    "iclr2025_data_problems": "trustworthy_ai",
    "iclr2025_dl4c": "llm_vlm",
    "iclr2025_mldpr": "trustworthy_ai",
    "iclr2025_question": "llm_vlm",
    "iclr2025_scope": "trustworthy_ai",
    "iclr2025_scsl": "trustworthy_ai",
    "iclr2025_verifai": "trustworthy_ai",
    "iclr2025_wsl": "ml_theory",
}
ALL = load_suite("mlrbench")


@pytest.fixture(scope="module")
def checkout() -> Path:
    if not (data := os.environ.get("MLRBENCH_DATA")):
        pytest.skip("MLRBENCH_DATA is not set: the published texts are not here")
    return Path(data) / "mlrbench"


@pytest.fixture(scope="module")
def suite(checkout: Path) -> Suite:
    return load_suite("mlrbench", tasks_dir=checkout)


def test_every_task_has_one_of_nine_categories() -> None:
    assert len(ALL.categories) == 9
    assert sum(category.published or 0 for category in ALL.categories.values()) == 201
    assert {task.category for task in ALL.tasks} == set(ALL.categories)


def test_the_ten_published_labels_are_kept() -> None:
    ten = load_suite("mlrbench-10")
    assert {task.id: task.category for task in ten.tasks} == PUBLISHED_LABELS
    assert ten.categories == ALL.categories


def test_our_counts() -> None:
    assert Counter(task.category for task in ALL.tasks) == {
        "trustworthy_ai": 53,
        "ml_theory": 50,
        "ai_for_science": 39,
        "llm_vlm": 26,
        "reinforcement_learning": 13,
        "ml_systems": 12,
        "computer_vision": 3,
        "others": 3,
        "multimodality": 2,
    }


def test_links_are_addresses() -> None:
    links = [task.link for task in ALL.tasks if task.link]
    assert len(links) == 142
    for link in links:
        parts = urlsplit(link)
        assert parts.scheme in ("http", "https"), link
        assert "." in parts.netloc, link


def test_thirteen_pairs_are_near_duplicates() -> None:
    groups = Counter(task.near_duplicates for task in ALL.tasks if task.near_duplicates)
    assert len(groups) == 13
    assert set(groups.values()) == {2}
    by_id = {task.id: task for task in ALL.tasks}
    assert all(by_id[first].near_duplicates == first for first in groups)


def test_the_source_is_one_commit() -> None:
    assert ALL.source
    assert re.fullmatch(r"[0-9a-f]{40}", ALL.source.commit)
    ten = load_suite("mlrbench-10").source
    assert ten == ALL.source


def test_known_inputs_are_those_of_a_stage() -> None:
    assert ALL.source
    needs = {need for stage in STAGES.values() for need in stage.inputs} - {"task.md", "results"}
    ids = {task.id for task in ALL.tasks}
    for path in ALL.source.digests:
        *_, task, name = path.replace("/results/", "/").split("/")
        assert task in ids, path
        if "/results/" in path:
            assert is_result(name), path
        else:
            assert name in needs, path


# Against the published texts


def test_the_digests_are_those_of_the_texts(suite: Suite) -> None:
    assert suite.source
    for task in suite.tasks:
        text = suite.source.find(task.id, "task.md")["task.md"].read_bytes()
        assert hashlib.sha256(text).hexdigest() == task.sha256, task.id


def test_the_digests_of_the_inputs_are_those_of_the_files(suite: Suite) -> None:
    assert suite.source
    for path, digest in suite.source.digests.items():
        content = suite.source.local(path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, path


def test_near_duplicates_share_their_word_sequences(suite: Suite) -> None:
    """At least 88 % of the five-word sequences of the shorter text are in the longer one too."""
    assert suite.source
    sequences = {}
    for task in suite.tasks:
        text = suite.source.find(task.id, "task.md")["task.md"].read_text("utf-8")
        words = re.findall(r"\w+", text.lower())
        sequences[task.id] = {tuple(words[i : i + 5]) for i in range(len(words) - 4)}
    found = {
        frozenset((one, other))
        for one, other in itertools.combinations(sequences, 2)
        if len(sequences[one] & sequences[other])
        >= 0.88 * min(len(sequences[one]), len(sequences[other]))
    }
    groups: dict[str, set[str]] = {}
    for task in suite.tasks:
        if task.near_duplicates:
            groups.setdefault(task.near_duplicates, set()).add(task.id)
    assert found == {frozenset(group) for group in groups.values()}


def test_103_tasks_have_the_published_idea_and_related_work(suite: Suite) -> None:
    there = [t for t in suite.tasks if not suite.missing_inputs(t, STAGES["proposal"])]
    assert len(there) == 103
    first = suite.inputs(there[0], STAGES["proposal"])
    assert list(first) == ["task.md", "idea.md", "related_work.md"]


def test_the_published_papers_are_not_given_to_who_writes_one(suite: Suite) -> None:
    by_id = {task.id: task for task in suite.tasks}
    given = suite.inputs(by_id["iclr2025_dl4c"], STAGES["paper"])
    assert not [name for name in given if "paper" in name]
    assert {"results/results.md", "results/log.txt", "results/learning_curves.png"} <= set(given)
