"""What the user typed: command line options and ini keys, read once into :class:`Options`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlrbench.evidence.options import EvidenceOptions
from pytest_mlrbench.option_table import BOTH, LISTS, NUMBERS, REPEATABLE, WORDS
from pytest_mlrbench.option_values import above, checkout, one_of, rubrics_in, seconds, under

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.options import SandboxOptions
    from pytest_mlrbench.suites.choice import Choice


#: Options that take no value.
FLAGS = frozenset(
    {"--mlr-estimate", "--mlr-no-preflight", *(f"--mlr-{n}" for n, k, _ in BOTH if k == "bool")}
)


@dataclass(frozen=True)
class LiveOptions:
    """What was said of models that are asked while the run goes on, and of their price."""

    model: tuple[str, ...] = ()
    preflight: bool = True
    max_cost: float | None = None
    max_tokens: int | None = None
    record: Path | None = None
    replay: Path | None = None


@dataclass(frozen=True)
class Options:
    """The options of one run, with the folders that relative paths in them are relative to."""

    stage: str
    suite: str
    tasks_dir: Path | None
    choice: Choice
    repeats: int
    agent: str
    agent_version: str
    coder: str
    search: str
    judge: tuple[str, ...]
    threshold: tuple[str, ...]
    out: Path
    timeout: float | None
    rubrics: Path | None
    hallucination: bool
    concurrency: int | None
    live: LiveOptions
    evidence: EvidenceOptions
    sandbox: SandboxOptions
    estimate: bool
    resume: str
    rerun: str
    json: Path | None
    #: Option → the folder it was written in (the ini file's, or where pytest was started).
    bases: dict[str, Path]
    #: Names of those that were neither typed nor written.
    unsaid: frozenset[str]


def add_options(parser: pytest.Parser) -> None:
    """Register the options and ini keys."""
    group = parser.getgroup("mlrbench", "MLR-Bench: research agents as tests")
    # These turn plain `pytest` into a run that costs money or writes reports: command line only.
    group.addoption(
        "--mlr-stage",
        metavar="STAGES",
        help="run the benchmark: idea, proposal, experiment, paper, end_to_end, several, or all",
    )
    group.addoption(
        "--mlr-resume",
        metavar="RUN",
        nargs="?",
        const="last",
        help="go on with the last run, or with the run of that id: finished cases are reused",
    )
    group.addoption(
        "--mlr-rerun",
        choices=("errors", "failed"),
        help="with --mlr-resume: run cases again that were not measured, or also those that failed",
    )
    group.addoption("--mlr-json", metavar="FILE", help="write the results as JSON")
    group.addoption(
        "--mlr-estimate",
        action="store_true",
        help="print the calls, tokens and money the run would take, and end",
    )
    group.addoption(
        "--mlr-no-preflight",
        action="store_true",
        help="do not ask every model a small question before the first case",
    )
    group.addoption("--mlr-record", metavar="DIR", help="keep every call to a model in DIR")
    group.addoption(
        "--mlr-replay-calls", metavar="DIR", help="answer calls to models from DIR, and ask nobody"
    )
    for name, kind, text in BOTH:
        ini = "mlr_" + name.replace("-", "_")
        extra: dict[str, Any] = {"type": NUMBERS[kind]} if kind in NUMBERS else {}
        if name in REPEATABLE:
            extra = {"action": "append"}
        if kind == "bool":
            extra = {"action": "store_true", "default": None}
        else:
            extra["metavar"] = "N" if kind in NUMBERS else name.upper().replace("-", "_")
        group.addoption(f"--mlr-{name}", help=f"{text}; ini: {ini}", **extra)
        parser.addini(ini, text, type=kind, default=None)  # type: ignore[arg-type]


def read_options(config: pytest.Config) -> Options:
    """Return what the user asked for; the command line wins over the ini file.

    :raises pytest.UsageError: a value that is not of its type.
    """
    from pytest_mlrbench.suites.choice import Choice

    start = config.invocation_params.dir
    values, bases = _given(config)
    json_file = config.getoption("mlr_json")
    return Options(
        stage=config.getoption("mlr_stage"),
        suite=values["suite"] or "mini",
        tasks_dir=checkout(bases["tasks-dir"], values["tasks_dir"]),
        choice=Choice(
            **{name: values[name] for name in WORDS},
            distinct=bool(values["distinct"]),
            limit=values["limit"],
            sample=values["sample"],
            seed=values["seed"] or 0,
            stratify=values["stratify"] or "",
        ),
        repeats=1 if values["repeats"] is None else values["repeats"],
        agent=(values["agent"] or "reference").strip(),
        agent_version=values["agent_version"] or "",
        coder=(values["coder"] or "").strip(),
        search=(values["search"] or "").strip(),
        judge=tuple(values["judge"]) or ("checklist",),
        threshold=tuple(values["threshold"]),
        out=bases["out"] / values["out"] if values["out"] else config.rootpath / ".mlrbench/runs",
        timeout=seconds(values["timeout"]) if values["timeout"] else None,
        rubrics=rubrics_in(bases["rubrics"], values["rubrics"]),
        hallucination=bool(values["hallucination"]),
        concurrency=above(0, "concurrency", values["concurrency"]),
        live=LiveOptions(
            model=tuple(values["model"]),
            preflight=not config.getoption("mlr_no_preflight"),
            max_cost=above(0, "max-cost", values["max_cost"]),
            max_tokens=above(0, "max-tokens", values["max_tokens"]),
            record=under(start, config.getoption("mlr_record")),
            replay=under(start, config.getoption("mlr_replay_calls")),
        ),
        evidence=EvidenceOptions(
            checkpoints=one_of(("on", "off"), "checkpoints", values["checkpoints"]) == "on",
            stops=one_of(("all", "evidence"), "crossing", values["crossing"]) == "evidence",
            is_shown=bool(values["judge_sees_evidence"]),
            replays=bool(values["replay"]),
            asks=bool(values["resolve"]),
        ),
        sandbox=_sandbox(values, bases, config),
        estimate=config.getoption("mlr_estimate"),
        resume=config.getoption("mlr_resume") or "",
        rerun=config.getoption("mlr_rerun") or "",
        json=under(start, json_file),
        bases=bases,
        unsaid=frozenset(name for name, value in values.items() if not value),
    )


def _sandbox(
    values: dict[str, Any], bases: dict[str, Path], config: pytest.Config
) -> SandboxOptions:
    from pytest_mlrbench.sandbox.options import SandboxOptions, data_folders

    return SandboxOptions(
        kind=values["sandbox"] or "auto",
        image=values["image"] or "",
        gpus=values["gpus"],
        network=values["network"] or "",
        data=data_folders(values["data"], bases["data"]),
        allow_host=values["allow_host"],
        limits=tuple(values["limits"]),
        agent_max_cost=above(0, "agent-max-cost", values["agent_max_cost"]),
        typed=frozenset(name for name in values if config.getoption(f"mlr_{name}") is not None),
    )


def _given(config: pytest.Config) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return what was typed or written, and the folders that paths in it are relative to."""
    start = config.invocation_params.dir
    ini_folder = config.inipath.parent if config.inipath else config.rootpath
    values: dict[str, Any] = {}
    bases: dict[str, Path] = {}
    for name, kind, _ in BOTH:
        key = f"mlr_{name.replace('-', '_')}"
        given = config.getoption(key)
        bases[name] = start
        # As from --mlr-agent=$AGENT where the variable is not set.
        if isinstance(given, str) and not given.strip():
            raise pytest.UsageError(f"--mlr-{name} is empty: give it a value, or leave it out.")
        if given is None:
            given = _from_ini(config, key, kind)
            bases[name] = ini_folder if given else start
        if name in LISTS:
            given = [given] if isinstance(given, str) else list(given or [])
        values[key.removeprefix("mlr_")] = given
    for name in (*WORDS, "allow_host"):
        words = [word.strip() for text in values[name] for word in text.split(",")]
        if name == "tasks":  # an id has no spaces, a category may
            words = " ".join(words).split()
        values[name] = tuple(filter(None, words))
    return values, bases


def _from_ini(config: pytest.Config, key: str, kind: str) -> Any:
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:
        what = "must be a whole number" if kind == "int" else "cannot be read"
        raise pytest.UsageError(f"{key} in {config.inipath} {what}: {error}.") from None
