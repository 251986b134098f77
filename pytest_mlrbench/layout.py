"""The published layout: how the MLR-Bench repository stores outputs and reviews.

Two spellings are read: the repository's own (``agent_results/experiments_and_writeups/claude``,
``agent_results/end2end_claude``) and a shortened one (``experiments/claude``, ``end2end/claude``).
Names of systems and judges change between stages; the table of published systems joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pytest_mlrbench.published import Published
from pytest_mlrbench.run import digests

#: How the stored names of AI Scientist V2 begin; its reviews lie beside its papers.
SCIENTIST = "ai_scientist_v2"


class PublishedLayout:
    """A folder in the published layout."""

    def __init__(self, root: Path) -> None:
        results = root / "agent_results"
        self._ideas = [root / "ideas_and_proposals", results / "ideas_and_proposals"]
        self._runs = [root / "experiments", results / "experiments_and_writeups"]
        self._end2end = [*root.glob("end2end/*"), *results.glob("end2end_*")]
        self._reviews = root / "agent_reviews"
        self._scientist = root / "ai_scientist_v2_papers"

    @property
    def recognised(self) -> bool:
        """Whether any of the known folders is there."""
        known = [*self._ideas, *self._runs, *self._end2end, self._reviews]
        return any(path.is_dir() for path in known)

    # Outputs

    def submission(self, system: str, stage: str, task: str) -> Mapping[str, Path]:
        """Return path in a workspace → stored file; empty where the system has no output."""
        raw = raw_name(system, stage)
        if stage in ("idea", "proposal"):
            found = _first(folder / task / stage / f"{stage}_{raw}.md" for folder in self._ideas)
            return {f"{stage}.md": found} if found else {}
        if stage == "paper":
            paper = _first(
                path
                for folder in self._runs
                for path in folder.glob(f"*/{task}/results/paper_{raw}.md")
            )
            if paper is None:
                return {}
            run = _run_files(paper.parents[1])
            papers = {name for name in run if Path(name).match("results/paper_*.md")}
            kept = {name: path for name, path in run.items() if name not in papers}
            return kept | {"results/paper.md": paper}
        folders = (
            [folder / raw / task for folder in self._runs]
            if stage == "experiment"
            else [f / task for f in self._end2end if f.name in (raw, f"end2end_{raw}")]
        )
        found = _first(folders)
        return _run_files(found) if found else {}

    def systems(self) -> tuple[str, ...]:
        """Return the names of the systems with output here, as stored."""
        names: set[str] = set()
        for folder in self._ideas:
            for stage in ("idea", "proposal"):
                names |= {p.stem.removeprefix(f"{stage}_") for p in folder.glob(f"*/{stage}/*.md")}
        for folder in self._runs:
            names |= {path.name for path in folder.glob("*") if path.is_dir()}
        names |= {path.name.removeprefix("end2end_") for path in self._end2end if path.is_dir()}
        return tuple(sorted(names))

    # Reviews

    def review(self, judge: str, system: str, stage: str, task: str) -> Path | None:
        """Return the file with *judge*'s review (its stored name), if there is one."""
        raw = raw_name(system, stage)
        if stage in ("idea", "proposal"):
            folder = self._reviews / f"idea_proposal_reviews_{judge}" / task
            return _first([folder / stage / f"{stage}_{raw}.json"])
        folder = self._reviews / f"subset_reviews_{judge}" / task
        return _first(
            {
                "experiment": [folder / "experiments" / f"{raw}.json"],
                "paper": [folder / "paper" / f"{raw}.json"],
                "end_to_end": [folder / f"review_{raw}.json"]
                if not raw.startswith(SCIENTIST)
                else sorted(self._scientist.glob(f"*/{task}/review_{judge}.json")),
            }[stage]
        )

    def judges(self, stage: str) -> tuple[str, ...]:
        """Return the stored names of the judges that reviewed *stage*."""
        prefix = "idea_proposal_reviews_" if stage in ("idea", "proposal") else "subset_reviews_"
        names = {path.name.removeprefix(prefix) for path in self._reviews.glob(f"{prefix}*")}
        if stage == "end_to_end":
            files = {path.stem for path in self._scientist.glob("*/*/review_*.json")}
            names |= {
                name.removeprefix("review_")
                for name in files
                if not name.startswith("review_hallucination_")
            }
        return tuple(sorted(names))


def raw_name(system: str, stage: str) -> str:
    """Return the name *system* is stored under in *stage*; a name not in the table is its own."""
    known = Published.load().systems.get(system)
    return known.raw.get(stage, system) if known else system


def _first(paths: Iterable[Path]) -> Path | None:
    return next((path for path in paths if path.exists()), None)


def _run_files(folder: Path) -> dict[str, Path]:
    return dict(_visible(digests.walk(folder)))


def _visible(files: Iterator[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """Leave out reviews that lie beside a run: a judge must not read another judge's answer."""
    return ((name, path) for name, path in files if not name.startswith("review_"))
