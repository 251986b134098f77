"""Task texts from the authors' data set on Hugging Face; what is not as published is not taken.

How the data set is stored is up to its authors, so its files are looked at; the data set's own
server offers it as Parquet too.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.fetching.fetch import Tally, keep, progress, take_stock
from pytest_mlrbench.fetching.wanted import (
    TEXT_STAGES,
    Stopped,
    Wanted,
    make_plan,
    source_of,
)
from pytest_mlrbench.suites.tasks import Suite, Task

_SPLIT = "all_tasks"
#: Where the server keeps its own conversion, and in which folder of it.
_CONVERTED = ("refs/convert/parquet", f"default/{_SPLIT}/")

Row: TypeAlias = Mapping[str, Any]


def fetch_texts(tally: Tally, suite: Suite, tasks: Sequence[Task]) -> None:
    """Fetch task texts from the data set; what is there and good is left alone.

    :param tally: is kept up to date; its problems say what could not be had.
    :raises InputError: the suite is not fetched, or the extra is not installed.
    """
    source = source_of(suite)
    todo = take_stock(tally, make_plan(suite, tasks, TEXT_STAGES, None))
    if not todo:
        return
    hub = _Hub(source.dataset)
    try:
        with progress(tally, todo, f"{source.dataset} (Hugging Face)") as bar:
            for wanted, text in _matching(hub, todo):
                keep(tally, wanted, text)
                bar.update()
    except Stopped as error:
        tally.problems.insert(0, str(error))
        return
    for wanted in todo:
        if not wanted.is_here():
            name = Path(wanted.path).stem
            differs = (
                "there with another text than the published one," if name in hub.seen else "not"
            )
            tally.problems.append(
                f"task {name} is {differs} in data set {source.dataset}: use --from github."
            )


def _matching(hub: _Hub, todo: Sequence[Wanted]) -> Iterator[tuple[Wanted, bytes]]:
    """Yield the texts that are as published, by their content: ids may be spelled otherwise."""
    missing: dict[str, list[Wanted]] = {}
    for wanted in todo:
        missing.setdefault(wanted.sha256, []).append(wanted)
    for row in hub.rows():
        for text in _spellings(row["task_description"]):
            for wanted in missing.pop(hashlib.sha256(text).hexdigest(), ()):
                yield wanted, text
        if not missing:
            return


def _spellings(text: str) -> Iterator[bytes]:
    """A table of texts may have lost a final newline, or changed the ends of lines."""
    for ends in dict.fromkeys((text, text.replace("\r\n", "\n"))):
        bare = ends.removesuffix("\n").removesuffix("\r")
        for spelled in dict.fromkeys((ends, bare, f"{bare}\n", f"{ends}\n")):
            yield spelled.encode("utf-8", "surrogatepass")


class _Hub:
    """The data set, and the ids of the tasks seen in it."""

    def __init__(self, dataset: str) -> None:
        try:
            import huggingface_hub
            import pyarrow.parquet
        except ImportError as error:
            raise InputError(
                f"--from huggingface needs {error.name}, which is not installed:"
                " pip install 'pytest-mlrbench[huggingface]'."
            ) from None
        self._dataset = dataset
        self._parquet = pyarrow.parquet
        self._api = huggingface_hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
        huggingface_hub.utils.disable_progress_bars()
        huggingface_hub.utils.logging.set_verbosity_error()  # it logs each of its own retries
        self.seen: set[str] = set()

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all files of the data set, those of the split first.

        :raises Stopped: the data set cannot be had.
        """
        for name in sorted(self._names("main"), key=lambda name: (_SPLIT not in name, name)):
            yield from self._read("main", name)
        revision, folder = _CONVERTED
        try:
            names = [name for name in self._names(revision) if name.startswith(folder)]
        except Stopped:
            if not self.seen:
                raise
            return  # there is no conversion of every data set
        for name in sorted(names):
            yield from self._read(revision, name)

    def _names(self, revision: str) -> list[str]:
        return [
            name
            for name in self._call("list_repo_files", revision=revision)
            if Path(name).suffix.lower() in (".parquet", ".jsonl", ".json", ".csv")
        ]

    def _read(self, revision: str, name: str) -> Iterator[Row]:
        with tempfile.TemporaryDirectory() as folder:
            path = self._call("hf_hub_download", filename=name, revision=revision, cache_dir=folder)
            data = Path(path).read_bytes()
        try:
            found = list(self._parse(Path(name).suffix.lower(), data))
        except (ValueError, KeyError, TypeError, csv.Error):
            return  # a file beside the table: what is not found in the others is named in the end
        for row in found:
            if isinstance(row, Mapping) and isinstance(row.get("task_description"), str):
                self.seen.add(str(row.get("task_id")))
                yield row

    def _parse(self, suffix: str, data: bytes) -> Iterable[Any]:
        if suffix == ".parquet":
            return list(self._parquet.read_table(io.BytesIO(data)).to_pylist())
        text = data.decode("utf-8-sig")
        if suffix == ".csv":
            csv.field_size_limit(max(csv.field_size_limit(), len(text)))
            return csv.DictReader(io.StringIO(text, newline=""))
        if suffix == ".jsonl":
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        return _json_rows(json.loads(text))

    def _call(self, name: str, **arguments: Any) -> Any:
        method = getattr(self._api, name)
        try:
            return method(repo_id=self._dataset, repo_type="dataset", **arguments)
        except Exception as error:  # of whichever HTTP library this version of the hub uses
            words = " ".join(str(error).split())[:300]
            raise Stopped(
                f"data set {self._dataset} on Hugging Face cannot be read"
                f" ({type(error).__name__}: {words}): check the network, or use --from github."
            ) from None


def _json_rows(data: Any) -> list[Any]:
    """Rows as a list, under one key, by column, or under their ids."""
    if isinstance(data, list):
        return data
    columns = data.get("task_description")
    if isinstance(columns, list):
        ids = data.get("task_id") or [None] * len(columns)
        return [
            {"task_id": task_id, "task_description": text}
            for task_id, text in zip(ids, columns, strict=True)
        ]
    if isinstance(columns, dict):  # as pandas writes it
        ids = data.get("task_id") or {}
        return [
            {"task_id": ids.get(key), "task_description": text} for key, text in columns.items()
        ]
    for value in data.values():
        if isinstance(value, list):
            return value
    return list(data.values())
