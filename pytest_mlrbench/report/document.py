"""The JSON report: a run, its summary and its cases in one document with a schema."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.report.summary import StageSummary, summarise
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.record import RunRecord
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.suites.tasks import share
from pytest_mlrbench.values import Record


class Report(Record):
    """Everything measured in a run, in all its sessions; cases are sorted by name."""

    schema_version: int = 1
    run: RunRecord
    #: What part of the suite, and of its benchmark, the cases are, in words.
    share: str
    summary: tuple[StageSummary, ...]
    cases: tuple[CaseResult, ...]
    #: Names of selected cases without a result; they count as not measured.
    not_run: tuple[str, ...]

    @classmethod
    def of(cls, folder: RunFolder) -> Report:
        """Read the report from a run folder.

        :raises InputError: it is none, or was written by another version.
        """
        run = read_model(folder.path / "run.json", RunRecord)
        if run is None:
            raise InputError(f"{folder.path} is not a run folder this version can read.")
        selection = folder.selection()
        # A run that was resumed with other judges and then killed holds results by two rubrics.
        thresholds = [Threshold.parse(text) for text in run.thresholds]
        results = {
            name: _under(thresholds, result)
            for name, result in folder.results().items()
            if result.key.get("rubric") in (None, run.rubrics.get(result.stage))
        }
        return cls(
            run=run,
            share=share(
                len({name.rsplit("/", 2)[1] for name in selection}),
                run.suite.tasks,
                run.suite.benchmark,
            ),
            summary=tuple(summarise(selection, results)),
            cases=tuple(results[name] for name in sorted(results)),
            not_run=tuple(sorted(set(selection) - set(results))),
        )


def _under(thresholds: Sequence[Threshold], result: CaseResult) -> CaseResult:
    """A case of an earlier session is judged by the thresholds of the newest, as all others are."""
    applied = [str(t) for t in thresholds if t.applies(result.stage, tuple(result.scores))]
    if result.overall is None or applied == [check.threshold for check in result.thresholds]:
        return result
    return result.judged_by(thresholds, tuple(result.scores))
