"""``mlrbench tasks fetch --from huggingface``: texts from a table of whatever form."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("huggingface_hub", reason="the extra 'huggingface' is not installed")
pytest.importorskip("pyarrow", reason="the extra 'huggingface' is not installed")

import pyarrow as pa
import pyarrow.parquet as pq
from github_server import Published, Server, answers, parts, serving, set_environment

from pytest_mlrbench.cli import main
from pytest_mlrbench.suites import loading
from pytest_mlrbench.suites.loading import load_suite

API = "/api/datasets/owner/texts/tree/"
CONVERTED = "refs/convert/parquet"


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    made = Published(tmp_path / "catalogue", binary=False)
    monkeypatch.setattr(loading, "shipped", lambda name: made.catalogue)
    return made


class Hub(Server):
    """As much of a hub as a data set needs: lists of files, and files."""

    def put(self, name: str, data: bytes, revision: str = "main") -> None:
        self.content[f"{revision}:{name}"] = data
        listed = f"{API}{revision}"
        files = json.loads(self.content.get(listed, b"[]"))
        files.append({"type": "file", "path": name, "size": len(data), "oid": "0" * 40})
        self.content[listed] = json.dumps(files).encode()

    @staticmethod
    def name_of(path: str) -> str:
        plain = unquote(urlsplit(path).path)
        if plain.startswith("/datasets/owner/texts/resolve/"):
            rest = plain.removeprefix("/datasets/owner/texts/resolve/")
            for revision in ("main", CONVERTED):
                if rest.startswith(f"{revision}/"):
                    return f"{revision}:{rest.removeprefix(f'{revision}/')}"
        return plain


@pytest.fixture
def hub(published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    made = Hub()
    with serving(made, made.name_of):
        set_environment(monkeypatch, made, tmp_path / "cache")
        monkeypatch.setenv("HF_ENDPOINT", made.url)
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        made.put("README.md", b"# Texts")
        yield made


Rows = Sequence[dict[str, object]]


def rows_of(published: Published, **texts: str) -> Rows:
    return [
        {
            "task_id": task,
            "task_name": task.title(),
            "task_description": texts.get(task, published.files[f"tasks/{task}.md"].decode()),
        }
        for task in published.ids
    ]


def parquet(rows: Rows) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), file)
    return file.getvalue()


def jsonl(rows: Rows) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def columns(rows: Rows) -> bytes:
    return json.dumps({key: [row[key] for row in rows] for key in rows[0]}).encode()


def pandas(rows: Rows) -> bytes:
    table = {key: {str(i): row[key] for i, row in enumerate(rows)} for key in rows[0]}
    return json.dumps(table).encode()


def comma(rows: Rows) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


FORMS = {
    "data/all_tasks-00000-of-00001.parquet": parquet,
    "all_tasks.jsonl": jsonl,
    "tasks.json": lambda rows: json.dumps(rows).encode(),
    "a/b.json": lambda rows: json.dumps({"version": 1, "rows": rows}).encode(),
    "c.json": columns,
    "d.json": pandas,
    "e.json": lambda rows: json.dumps({row["task_id"]: row for row in rows}).encode(),
    "all tasks.CSV": comma,
}


def fetch(
    folder: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, list[str]]:
    code = main(["tasks", "fetch", "--from", "huggingface", "--tasks-dir", str(folder), *words])
    out, err = capsys.readouterr()
    assert parts(folder) == []
    return code, out.splitlines()[-1] if out else "", err.splitlines()


def is_complete(published: Published, folder: Path) -> bool:
    found = {path.name: path.read_bytes() for path in folder.glob("tasks/*")}
    return found == {f"{t}.md": published.files[f"tasks/{t}.md"] for t in published.ids}


@pytest.mark.parametrize("name", FORMS)
def test_the_table_is_found_in_whatever_form(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    hub.put("other/notes.json", b"{")
    hub.put(name, FORMS[name](rows_of(published)))
    code, last, problems = fetch(tmp_path / "texts", capsys)
    assert (code, problems) == (0, [])
    assert last == f"5 of 5 files are in {tmp_path / 'texts'} (5 fetched now, 0 were there)"
    assert is_complete(published, tmp_path / "texts")


def test_the_servers_own_conversion_is_taken_where_there_is_no_table(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(published)
    hub.put("load_texts.py", b"")
    hub.put("default/all_tasks/0000.parquet", parquet(rows[:3]), CONVERTED)
    hub.put("default/all_tasks/0001.parquet", parquet(rows[3:]), CONVERTED)
    hub.put("default/others/0000.parquet", b"not parquet", CONVERTED)
    assert fetch(tmp_path / "texts", capsys)[::2] == (0, [])
    assert is_complete(published, tmp_path / "texts")


def test_ends_of_lines_and_of_the_text_are_put_right(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The published texts of the test end in a newline each."""
    text = {task: published.files[f"tasks/{task}.md"].decode() for task in published.ids}
    rows = rows_of(
        published,
        alpha=text["alpha"].removesuffix("\n"),
        beta=text["beta"] + "\n",
        gamma=text["gamma"].replace("\n", "\r\n"),
        delta=text["delta"].replace("\n", "\r\n").removesuffix("\r\n"),
    )
    hub.put("all_tasks.jsonl", jsonl(rows))
    assert fetch(tmp_path / "texts", capsys)[::2] == (0, [])
    assert is_complete(published, tmp_path / "texts")


def test_other_texts_are_named_and_not_taken(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*rows_of(published, beta="Another text.\n")[:4], {"task_id": 5}, None, {}]
    hub.put("all_tasks.jsonl", "\n".join(json.dumps(row) for row in rows).encode())
    code, last, problems = fetch(tmp_path / "texts", capsys)
    assert (code, last[:6]) == (1, "3 of 5")
    assert problems == [
        "mlrbench: task beta is there with another text than the published one, in data set"
        " owner/texts: use --from github.",
        "mlrbench: task epsilon is not in data set owner/texts: use --from github.",
    ]
    assert not (tmp_path / "texts/tasks/beta.md").exists()


def test_texts_are_known_by_their_content_whatever_their_ids(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "task_id": number} for number, row in enumerate(rows_of(published))]
    hub.put("all_tasks.parquet", parquet(rows))
    assert fetch(tmp_path / "texts", capsys)[0] == 0


def test_what_is_there_is_not_asked_for_again(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.put("all_tasks.jsonl", jsonl(rows_of(published)))
    fetch(tmp_path / "texts", capsys, "--tasks", "alpha", "beta")
    assert len(list((tmp_path / "texts/tasks").iterdir())) == 2
    assert fetch(tmp_path / "texts", capsys)[1].endswith("(3 fetched now, 2 were there)")
    hub.asked.clear()
    assert fetch(tmp_path / "texts", capsys)[0] == 0
    assert hub.asked == []


def test_a_data_set_that_is_not_there_is_one_sentence(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.content.clear()
    code, last, problems = fetch(tmp_path / "texts", capsys)
    assert (code, last[:6], len(problems)) == (1, "0 of 5", 1)
    assert problems[0].startswith("mlrbench: data set owner/texts on Hugging Face cannot be read (")
    assert problems[0].endswith("): check the network, or use --from github.")


def test_a_file_that_is_refused_is_one_sentence(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.put("all_tasks.jsonl", jsonl(rows_of(published)))
    hub.always = {"main:all_tasks.jsonl": answers(403)}
    code, _, problems = fetch(tmp_path / "texts", capsys)
    assert (code, len(problems)) == (1, 1)
    assert "on Hugging Face cannot be read (" in problems[0]


def test_a_hub_that_cannot_be_reached_is_one_sentence(
    published: Published,
    hub: Hub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    # The library tries five times, which takes 23 seconds.
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    code, _, problems = fetch(tmp_path / "texts", capsys)
    assert (code, len(problems)) == (1, 1)
    assert "check the network, or use --from github." in problems[0]


@pytest.mark.parametrize("module", ["huggingface_hub", "pyarrow"])
def test_without_the_extra_it_is_named(
    published: Published,
    hub: Hub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    module: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    code, _, problems = fetch(tmp_path / "texts", capsys)
    assert code == 2
    assert problems == [
        f"mlrbench: --from huggingface needs {module}, which is not installed:"
        " pip install 'pytest-mlrbench[huggingface]'."
    ]


def test_the_texts_are_found_by_the_suites(
    published: Published, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.put("all_tasks.jsonl", jsonl(rows_of(published)))
    fetch(tmp_path / "texts", capsys, "--stage", "end_to_end")
    suite = load_suite("mlrbench", tasks_dir=tmp_path / "texts")
    assert all(suite.source and suite.source.find(task.id, "task.md") for task in suite.tasks)
