"""What a judge is shown of a case: texts, programs, data and figures, within a budget."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from pytest_mlrbench.judges.budget import Budget, Share, cut, shared_out
from pytest_mlrbench.judges.fence import neutral_name, neutralise
from pytest_mlrbench.judges.figures import Figure, Gallery, hang
from pytest_mlrbench.judges.pdf import read_pdf
from pytest_mlrbench.judges.reading import Content, Files
from pytest_mlrbench.suites.stages import STAGES, Stage

_PAPER, _PDF, _REPORT, _LOG = (
    *("results/paper.md", "results/paper.pdf"),
    *("results/results.md", "results/log.txt"),
)
_CODE = (
    *(".py", ".ipynb", ".sh", ".r", ".jl", ".m", ".c", ".cc", ".cpp", ".cu", ".h", ".rs", ".go"),
    *(".java", ".js", ".ts", ".yaml", ".yml", ".toml", ".cfg", ".ini"),
)
_CODE_NAMES = ("requirements.txt", "Makefile", "Dockerfile")
_DATA = (".json", ".jsonl", ".csv", ".tsv", ".log")
#: Names of files of which one notice speaks.
_FEW = 5
#: Files looked at for each one shown: many may be blank or no text.
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Block:
    """One text.

    :param what: what it is, in our words: nothing of it was chosen by the author.
    :param name: of its file, fit to be shown.
    :param missing: characters that were cut out of its middle.
    """

    what: str
    name: str
    text: str
    missing: int = 0


@dataclass
class Material:
    """All that a judge is shown.

    :param unseen: what is not shown, in our words: nothing in them was chosen by the author.
    :param notices: the same with names of files, and what was changed in which; for the record.
    """

    blocks: list[Block] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Source:
    """A text to be shown: what it is in our words, its path, and what it says."""

    what: str
    path: str
    content: Content


def gather(workspace: Path, stage_name: str, budget: Budget) -> Material:
    """Return what a judge of *stage_name* is shown of the work in *workspace*.

    The same files give the same material.

    :raises SystemFault: the paper is a PDF, and the library to read it is not installed.
    """
    stage = STAGES[stage_name]
    files = Files(workspace, stage)
    found, gallery = Material(), Gallery(budget)
    documents = _documents(files, stage, budget, found, gallery)
    _show(found, documents, budget.documents)
    if stage.runs_code:
        log = files.text(_LOG, budget.log.read)
        if log:
            _show(found, [_Source("the log of the author's runs", _LOG, log)], budget.log)
        elif _LOG not in stage.shown:
            _absent(found, _LOG)
        code = [one for one in files.names if _is_code(one)]
        data = [one for one in files.names if one.endswith(_DATA)]
        data.sort(key=lambda one: (not one.startswith("results/"), one))
        _collect(found, files, code, "a program or settings of the author", budget.code, _source)
        _collect(
            found, files, data, "data from the author's folder", budget.data, lambda _, text: text
        )
    if stage.has_figures:
        texts = {one.path: one.content.text for one in documents}
        ordered = [name for name in (_PAPER, _REPORT) if name in texts]
        hang(gallery, files, [(name, texts[name]) for name in ordered])
        found.figures = gallery.figures
        found.notices += gallery.notices
        if gallery.notices:
            found.unseen.append(
                f"{_number(len(gallery.notices), 'figure')} not there or not usable"
            )
        if gallery.more:
            _omit(found, f"{_number(gallery.more, 'further figure')} for which there was no room")
    return found


def with_evidence(material: Material, table: str) -> Material:
    """Return the material with a *table* of what was found out about the results in it.

    It is by us, but quotes the author, so it is treated as all the rest is.
    """
    what = "what a program found out about the reported results; it quotes the author"
    block = Block(what, "evidence", neutralise(table).text)
    return replace(material, blocks=[*material.blocks, block])


# Documents


def _documents(
    files: Files, stage: Stage, budget: Budget, found: Material, gallery: Gallery
) -> list[_Source]:
    sources = []
    for name in stage.shown:
        if name == _LOG:
            if files.find(name) is None:
                _absent(found, name)
            continue
        content = files.text(name, budget.documents.read)
        if name == _PAPER and (content is None or not content.text.strip()):
            pdf = _pdf(files, budget, found, gallery)
            name, content = (_PDF, pdf) if pdf else (name, content)
        if content is None:
            _absent(found, name)
            continue
        if files.changed(name):
            found.notices.append(f"{name} was changed by the author; shown is what was given")
        sources.append(_Source(_what(name, files, stage), name, content))
    return sources


def _what(name: str, files: Files, stage: Stage) -> str:
    if name in (*stage.required, _PDF):
        form = ", the text of a PDF" if name == _PDF else ""
        return f"{name}, the work under review{form}"
    return f"{name}, {'given to the author' if files.given(name) else 'by the author'}"


def _pdf(files: Files, budget: Budget, found: Material, gallery: Gallery) -> Content | None:
    path = files.find(_PDF)
    if path is None:
        return None
    pdf = read_pdf(path, budget.figures)
    if pdf.fault:
        _omit(found, f"{_PDF}, which {pdf.fault}")
    for number, data in pdf.pictures:
        gallery.add(f"{_PDF}, page {number}", data)
    gallery.more += pdf.more
    if pdf.unread:
        _omit(found, f"{_number(pdf.unread, 'further page')} of {_PDF}")
    return Content(pdf.text)


# Programs and data


def _is_code(name: str) -> bool:
    return name.lower().endswith(_CODE) or name.rsplit("/", 1)[-1] in _CODE_NAMES


def _collect(
    found: Material,
    files: Files,
    names: Sequence[str],
    what: str,
    share: Share,
    read: Callable[[str, str], str],
) -> None:
    sources: list[_Source] = []
    binary: list[str] = []
    waiting = iter(names)
    for name in islice(waiting, share.files * _TRIES):
        content = files.text(name, share.read)
        if content is None or content.binary:
            binary.append(name)
        elif content.text.strip():
            whole = content if content.unread else replace(content, text=read(name, content.text))
            sources.append(_Source(what, name, whole))
        if len(sources) == share.files:
            break
    _show(found, sources, share)
    for kind, some in (("no text", binary), ("more than there is room for", list(waiting))):
        if some:
            few = ", ".join(map(neutral_name, some[:_FEW])) + (", …" if len(some) > _FEW else "")
            _omit(found, f"{_number(len(some), 'file')} like {what}: {kind}", few)


def _source(name: str, text: str) -> str:
    """The cells of a notebook, without what they printed; any other program as it is."""
    if not name.lower().endswith(".ipynb"):
        return text
    try:
        cells = json.loads(text)["cells"]
        parts = [(str(cell["cell_type"]), "".join(cell["source"])) for cell in cells]
    except (ValueError, LookupError, TypeError, RecursionError):
        return text
    marks = {"code": "# %%"}
    return "\n\n".join(f"{marks.get(kind, f'# %% [{kind}]')}\n{said}" for kind, said in parts)


# Showing


def _show(found: Material, sources: Iterable[_Source], share: Share) -> None:
    sources = list(sources)
    neutral = [neutralise(one.content.text) for one in sources]
    rooms = shared_out([len(one.text.encode()) for one in neutral], share)
    for source, safe, room in zip(sources, neutral, rooms, strict=True):
        name = neutral_name(source.path)
        text, missing = cut(safe.text, room, source.content.unread)
        found.blocks.append(Block(source.what, name, text, missing))
        if missing:
            found.notices.append(f"{name}: {missing:,} characters were cut out of the middle")
        if safe.notice:
            found.notices.append(f"{name}: {safe.notice}")
        if source.content.odd:
            found.notices.append(f"{name}: what is not UTF-8 is shown as \N{REPLACEMENT CHARACTER}")


def _absent(found: Material, name: str) -> None:
    """Say that one of the stage's own files is not there."""
    found.unseen.append(f"{name}, which is not there")
    found.notices.append(f"{name} is not there")


def _omit(found: Material, what: str, names: str = "") -> None:
    """Say that something is not shown; only the record says its name."""
    found.unseen.append(what)
    found.notices.append(f"not shown: {what}" + (f" ({names})" if names else ""))


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
