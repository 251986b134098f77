"""The shipped suites: in which stages their tasks have all they start from."""

from __future__ import annotations

from functools import partial

from pytest_mlrbench.doctor.probe import Probe, Seen

#: The suite of the embedded default; it ships whole.
DEFAULT = "mini"
SUITES = (DEFAULT, "mlrbench-10", "mlrbench")
_REINSTALL = "Install pytest-mlrbench again: it ships the suites."
_FETCH = "`mlrbench tasks fetch` gets what is missing"


def probes() -> list[Probe]:
    """Return one look for each shipped suite."""
    return [
        Probe(
            area="suites",
            name=name,
            look=partial(look, name),
            remedy=_REINSTALL,
            needed=name == DEFAULT,
        )
        for name in SUITES
    ]


def look(name: str) -> Seen:
    """Count the tasks of the suite *name* that have all inputs of a stage."""
    from pytest_mlrbench.suites.loading import load_suite
    from pytest_mlrbench.suites.stages import STAGES

    suite = load_suite(name)
    ready = {
        stage.name: sum(not suite.missing_inputs(task, stage) for task in suite.tasks)
        for stage in STAGES.values()
    }
    counts = ", ".join(f"{stage} {number}" for stage, number in ready.items())
    detail = f"tasks with all inputs, of {len(suite.tasks)}: {counts}"
    whole = [stage for stage, number in ready.items() if number == len(suite.tasks)]
    if name == DEFAULT and len(whole) < len(ready):
        return Seen("broken", detail, _REINSTALL)
    if not whole:
        return Seen("missing", detail, f"{_FETCH}; published and replayed results need no texts.")
    rest = "" if len(whole) == len(ready) else f"; {_FETCH}"
    stages = "all" if len(whole) == len(ready) else ",".join(whole)
    return Seen(
        "ok", detail, f"Every task can be run: --mlr-suite={name} --mlr-stage={stages}{rest}."
    )
