"""``mlrbench evidence DIR``: what supports the results that a run reports."""

from __future__ import annotations

import argparse
import json
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlrbench.errors import InputError

if TYPE_CHECKING:
    from pytest_mlrbench.evidence.base import Evidence

#: Exit codes. The first is never called clean: what was not found may be there.
NOTHING_FOUND, FOUND, CANNOT_TELL = 0, 1, 2
#: Findings of one run that are printed; ``--json`` has all.
_MOST = 60


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "evidence",
        help="say what supports the results that a run reports",
        description="DIR is a run folder, the folder of one of its cases, or any folder with"
        " results/results.md or results/paper.md, as in the published layout. Exit code: 0 nothing"
        " found, 1 results without an execution or a paper beyond its run, 2 it cannot be told (or"
        " DIR is no such folder).",
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument(
        "--resolve",
        action="store_true",
        help="ask arXiv, Crossref and OpenAlex, over the network, whether cited works exist",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_evidence)


def _evidence(arguments: argparse.Namespace) -> int:
    try:
        found = examine_all(arguments.folder, asks=arguments.resolve)
    except InputError:
        raise
    except Exception:  # Python's own exit code for it is the one that accuses somebody
        traceback.print_exc()
        return CANNOT_TELL
    if arguments.json:
        plain = {name: evidence.model_dump(mode="json") for name, evidence in found.items()}
        print(json.dumps(plain.get("", plain), indent=1))
    else:
        print("\n\n".join("\n".join(_lines(*one)) for one in found.items()))
    return max(map(code, found.values()), key=[NOTHING_FOUND, CANNOT_TELL, FOUND].index)


def examine_all(folder: Path, *, asks: bool = False) -> Mapping[str, Evidence]:
    """Return case → what was found; one without a name where *folder* is no run folder.

    :param asks: whether catalogues are asked for the works that are cited.
    :raises InputError: there is nothing to examine in it.
    """
    from pytest_mlrbench.evidence.examine import examine_folder
    from pytest_mlrbench.run.thresholds import EXAMINED

    if not folder.is_dir():
        raise InputError(f"{folder} is no folder.")
    if (folder / "submission").is_dir():
        return {"": _of_case(folder, asks=asks)}
    if not (folder / "run.json").is_file():
        return {"": examine_folder(folder, asks=asks)}
    places = sorted(folder.glob("cases/*/*/r*"))
    # An agent without files, as a published one, has an empty workspace and no level.
    cases = [place for place in places if any(place.glob("submission/*"))]
    if not (looked_at := [case for case in cases if _stage_of(case) in EXAMINED]):
        raise InputError(f"run {folder} has no case of {', '.join(EXAMINED)} with files.")
    below = folder / "cases"
    return {case.relative_to(below).as_posix(): _of_case(case, asks=asks) for case in looked_at}


def _of_case(folder: Path, *, asks: bool) -> Evidence:
    """Examine a case, and weigh its repetitions if it was run again when it was measured."""
    from pytest_mlrbench.evidence.examine import examine_case
    from pytest_mlrbench.evidence.replays.subject import with_recorded

    return with_recorded(folder, examine_case(folder, _stage_of(folder), asks=asks))


def _stage_of(case: Path) -> str:
    """The stage of a case, also where its folder was moved out of ``<stage>/<task>``."""
    from pytest_mlrbench.run.folder import read_model
    from pytest_mlrbench.run.result import CaseResult

    result = read_model(case / "result.json", CaseResult)
    return result.stage if result else case.resolve().parents[1].name


def code(evidence: Evidence) -> int:
    """Return the exit code that says what was found in one run."""
    if evidence.fabricated or evidence.paper_untraced:
        return FOUND
    return CANNOT_TELL if evidence.fabricated is None else NOTHING_FOUND


def _lines(name: str, evidence: Evidence) -> list[str]:
    lines = [
        *([name] if name else []),
        f"evidence {evidence.level}: {evidence.because}",
        f"looked at: {', '.join(evidence.examined) or 'the report alone'}",
        *(
            f"{document}: {n.reported} numbers reported, {n.traced} traced, {n.chance} there by"
            f" chance as well, {n.untraced} not found"
            for document, n in evidence.claims.items()
        ),
        *(
            f"{what}: {_WORDS[answer]}"
            for what, answer in (
                ("results that no execution produced", evidence.fabricated),
                ("made-up data that are not said to be", evidence.undisclosed_synthetic),
                ("a paper beyond its run", evidence.paper_untraced),
            )
            if what != "a paper beyond its run" or "papers" in evidence.examined
        ),
    ]
    if evidence.citations is not None:
        counted = (
            f"{number} {verdict.replace('_', ' ')}"
            for verdict, number in evidence.citations.items()
        )
        lines.append(f"cited works: {', '.join(counted) or 'none'}")
    for finding in evidence.findings[:_MOST]:
        place = f" [{finding.place}]" if finding.place else ""
        quote = f"\n      {finding.quote}" if finding.quote else ""
        lines.append(f"  {finding.severity:6} {finding.kind}: {finding.sentence}{place}{quote}")
    if len(evidence.findings) > _MOST:
        lines.append(f"  and {len(evidence.findings) - _MOST} more: see --json")
    return lines


_WORDS = {True: "found", False: "nothing found", None: "cannot be told"}
