"""Reports that are made to take long: the checklist reads them in bounds, and holds nobody up."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from builders import lay

from pytest_mlrbench.judges import check_data, check_records, check_texts, figures
from pytest_mlrbench.judges.base import Reviewable
from pytest_mlrbench.judges.check_files import Submission
from pytest_mlrbench.judges.checklist import run_checks
from pytest_mlrbench.judges.offline import ChecklistJudge
from pytest_mlrbench.judges.reading import Files
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.select import make_cases
from pytest_mlrbench.suites.stages import STAGES

SIZE = 1_900_000
#: Seconds that reading any file of that size may take: some machines are slow.
PATIENCE = 30
TABLE = "# Title\n\n## Results\n\n|a|b|\n|-|-|\n|x|0.1|\n\n"
IMAGES = "# Title\n\n## Results\n\n" + "![](" * 50_000
PROGRAM = 'open("m.json"); open("m.csv")'


def claims(*sources: str) -> str:
    return json.dumps([{"text": "a", "value": 1, "source": source} for source in sources])


def phrases(number: int) -> str:
    """Sentences that all begin alike, and go on in as many ways."""
    return "\n".join(f"We look for this {i + number} and {i} more of them." for i in range(40_000))


HOSTILE: Mapping[str, Mapping[str, str]] = {
    "images without an end": {"results/results.md": IMAGES},
    "a heading over many tables": {
        "results/results.md": f"# {'x' * 900_000}\n" + "|a|b|\n|-|-|\n|x|0.1|\n\n" * 15_000
    },
    "a source of a million folders": {"results/claims.json": claims("a/" * (SIZE // 2))},
    "a source with one name": {"results/claims.json": claims("a" * SIZE)},
    "100,000 claims": {"results/claims.json": "[" + '{"text":1},' * 100_000 + "1]"},
    "a row of many columns": {
        "m.csv": "\n".join(
            ",".join(cell(i) for i in range(150_000))
            for cell in (lambda i: f"c{i}", lambda i: "a" if i % 2 else "1")
        )
    },
    "many columns and short rows": {"m.csv": "a," * 450_000 + "\n" + "1\n" * 450_000},
    "a report like its task": {"results/results.md": phrases(0), "task.md": phrases(1)},
    "20,000 files": {f"some/{number}.json": "{}" for number in range(20_000)},
}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(files, id=name, marks=[pytest.mark.slow] if "like" in name else [])
        for name, files in HOSTILE.items()
    ],
)
def test_no_report_takes_long(tmp_path: Path, files: Mapping[str, str]) -> None:
    lay(tmp_path, {"results/results.md": TABLE, "task.md": "# Task", "run.py": PROGRAM} | {**files})
    start = time.process_time()
    run_checks("experiment", tmp_path, rubric("checklist"))
    assert time.process_time() - start < PATIENCE


def test_files_at_the_bottom_of_many_folders(tmp_path: Path) -> None:
    deep = "/".join("d" * 400)
    (tmp_path / deep).mkdir(parents=True)
    lay(tmp_path, {"results/results.md": TABLE} | {f"{deep}/f{i}.py": "1" for i in range(1000)})
    start = time.process_time()
    work = Submission("experiment", tmp_path)
    assert len(work.files) == 1001
    assert len(work.programs) == 500
    assert time.process_time() - start < 10


def test_one_picture_under_many_names_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []
    module = "pytest_mlrbench.judges.check_writing._is_image"
    monkeypatch.setattr(module, lambda data: looked.append(data) or True)
    links = "".join(f"![]({'./' * number}a.svg)\n" for number in range(100))
    lay(tmp_path, {"results/results.md": TABLE + links, "results/a.svg": "<svg>"})
    run_checks("experiment", tmp_path, rubric("checklist"))
    assert len(looked) == 1


def test_names_longer_than_a_path_lead_nowhere_and_are_not_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, {"a.md": "# A"})
    work, files = Submission("idea", tmp_path), Files(tmp_path, STAGES["idea"])

    def resolve(path: Path, strict: bool = False) -> Path:
        raise AssertionError("resolved")

    finds: list[Callable[[str], Path | None]] = [work.find, files.find]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "resolve", resolve)
        assert [find("./" * 2100 + "a.md") for find in finds] == [None, None]
    assert [find("a.md") for find in finds] == [tmp_path / "a.md"] * 2
    assert figures.image_links("![](" * 10) == []


def test_bounds_leave_honest_texts_alone() -> None:
    text = "![a](x.png)![b]( <y z.png> ) ![c](z.png 'a title')\n<img width=3 src='w.svg'>"
    assert check_texts.image_links(text) == ["x.png", "y", "z.png", "w.svg"]
    source = (
        "One two three four five. " + "We saw that it is. " * 200 + "We saw that it was not so."
    )
    kept = check_texts.without("We saw that it was not so. We saw that it was so.", source)
    assert kept == "We saw that it was so."
    spanning = check_texts.without("two three four five we saw", source)
    assert spanning == ""
    assert check_data.parse(b"a,b\n1,x\n2\n", ".csv") == [
        {"a": "1", "b": "x"},
        {"a": "2", "b": None},
    ]
    rows = [
        {"method": name, "acc": value} for name, value in zip("aabb", (1, 3, 5, 7), strict=True)
    ]
    means = [record[0] for record in check_records.records(rows) if len(record) == 4]
    assert means == [2, 6]


def test_the_checklist_leaves_the_loop_to_other_cases(tmp_path: Path) -> None:
    lay(tmp_path, {"idea.md": "# An idea\n" + "some more words. " * 12_000, "task.md": "# Task"})
    suite = load_suite("mini")
    (case,) = make_cases(suite, ["idea"], suite.tasks[:1])
    judge, work = ChecklistJudge("checklist", None), Reviewable(case, tmp_path, "digest", "")

    async def both() -> tuple[int, bool]:
        ticks = 0
        reviews = [asyncio.ensure_future(judge.review(work)) for _ in range(2)]
        while not all(review.done() for review in reviews):
            await asyncio.sleep(0.01)
            ticks += 1
        one, two = [review.result() for review in reviews]
        return ticks, one == two == await judge.review(work)

    ticks, same = asyncio.run(both())
    assert ticks > 5
    assert same
