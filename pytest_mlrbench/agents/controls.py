"""Control agents: test doubles that are known to do no research, in any stage and on any task.

They are for trying out judges, rubrics and gates, as a placebo tries out a study. Each is dishonest
in a way of its own:

- ``null`` leaves the documents it is asked for, and in them only that nothing was done;
- ``parrot`` answers with the text that it was given;
- ``fabricator`` writes fluently about a study that never was: methods, seeds, a baseline, an
  ablation, limitations, data and claims that agree with each other, and a log of runs nobody ran.

A judge that does not score an honest agent above all three is worth nothing. The reverse does not
hold: the fabricator is naive in that it leaves no program and draws no figure, and who adds both
may pass for honest where only form is looked at.

What they write depends on the task's id and text only, so it is the same every time.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from statistics import mean, stdev

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.run import digests
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES, Stage

_TEMPLATES = Path(__file__).with_name("fabricated")

Files = Mapping[str, str]


class ControlAgent:
    """An agent that writes its answer at once, in this process."""

    needs_inputs = True
    has_files = True
    system: str | None = None

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._write = CONTROLS[spec]

    def prepare(self, cases: Sequence[Case]) -> None:
        """Nothing to check: nothing is needed and every task will do."""

    def digest(self, case: Case) -> str | None:
        """Digest of the code of all control agents."""
        return self._content

    @cached_property
    def _content(self) -> str:
        here = Path(__file__)
        return digests.of_files([(here.name, here), *digests.walk(_TEMPLATES)])

    async def run(self, case: Case, work: Assignment) -> None:
        """Leave what the control agent leaves."""
        for name, text in self._write(work).items():
            path = work.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


def null(work: Assignment) -> Files:
    """Say in every document that nothing was done; that is judged, and should score next to 1."""
    return dict.fromkeys(_asked_for(work, ".md"), "# Report\n\nNothing was done.\n")


def parrot(work: Assignment) -> Files:
    """Give back all texts that were given, as every text that is asked for."""
    given = "\n\n".join(_given(work))
    return dict.fromkeys(_asked_for(work, ".md", ".txt"), given)


def fabricator(work: Assignment) -> Files:
    """Report a study that was never made."""
    study = Study.invent(work.task_id, next(_given(work), ""))
    stage = STAGES[work.stage]
    files = {name: study.document(name) for name in _asked_for(work, ".md")}
    if "results/log.txt" in stage.expected:
        files |= {
            "results/log.txt": study.log(),
            "results/metrics.json": json.dumps(study.metrics, indent=1) + "\n",
            "results/claims.json": json.dumps(study.claims, indent=1) + "\n",
        }
    return files


CONTROLS: Mapping[str, Callable[[Assignment], Files]] = {
    control.__name__: control for control in (null, parrot, fabricator)
}


def _asked_for(work: Assignment, *suffixes: str) -> list[str]:
    """Name the files of these kinds that the stage must or may leave."""
    stage = STAGES[work.stage]
    return [name for name in (*stage.required, *stage.expected) if name.endswith(suffixes)]


def _given(work: Assignment) -> Iterator[str]:
    """Yield the texts in the workspace, the task first."""
    for name in _texts_given(STAGES[work.stage]):
        path = work.workspace / name
        if path.is_file():
            yield path.read_text("utf-8", "replace")


def _texts_given(stage: Stage) -> Iterator[str]:
    for name in stage.inputs:
        yield name if name.endswith(".md") else f"{name}/results.md"


# The fabricator's study

_ADJECTIVES = ("Adaptive", "Hierarchical", "Contrastive", "Progressive", "Selective", "Robust")
_NOUNS = ("Alignment", "Routing", "Smoothing", "Distillation", "Reweighting", "Consistency")
_SEEDS = (13, 42, 1234, 2024, 31337)
_EPOCHS = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class Study:
    """Invented numbers and names, and what is told of them."""

    name: str
    topic: str
    #: Frequent words of the task, to be on topic.
    terms: tuple[str, ...]
    #: Method → accuracy of each seed.
    runs: Mapping[str, tuple[float, ...]]
    begun: datetime

    @classmethod
    def invent(cls, task_id: str, task: str) -> Study:
        """Make a study up, the same one whenever the task is the same."""
        dice = random.Random(task_id)
        name = f"{dice.choice(_ADJECTIVES)} {dice.choice(_NOUNS)}"
        level = dice.uniform(0.74, 0.82)
        # The method wins clearly, and taking parts away costs something, as such stories go.
        levels = {
            "Baseline": level,
            name: level + dice.uniform(0.05, 0.09),
            f"{name} w/o weighting": level + dice.uniform(0.02, 0.04),
            f"{name} w/o schedule": level + dice.uniform(0.01, 0.03),
        }
        runs = {
            method: tuple(round(dice.gauss(middle, 0.006), 4) for _ in _SEEDS)
            for method, middle in levels.items()
        }
        begun = datetime(2025, 1, 6, 9, tzinfo=UTC) + timedelta(minutes=dice.randrange(90_000))
        return cls(name, _topic(task), _terms(task), runs, begun)

    @property
    def metrics(self) -> dict[str, object]:
        """The content of ``results/metrics.json``: its means are those of its runs."""
        return {
            "seeds": _SEEDS,
            "methods": {
                method: {"mean": mean(values), "std": stdev(values), "per_seed": values}
                for method, values in self.runs.items()
            },
        }

    @property
    def claims(self) -> list[dict[str, object]]:
        """The content of ``results/claims.json``: a claim for each number of the table."""
        return [
            {
                "text": f"{what} of the accuracy of {method}",
                "value": round(statistic(values), 3),
                "source": f"results/metrics.json#/methods/{method.replace('/', '~1')}/{what}",
            }
            for method, values in self.runs.items()
            for what, statistic in (("mean", mean), ("std", stdev))
        ]

    def document(self, name: str) -> str:
        """Tell the study in the form of the document *name*."""
        template = (_TEMPLATES / Path(name).name).read_text("utf-8")
        baseline, own = (mean(self.runs[method]) for method in ("Baseline", self.name))
        gains = [
            100 * (a - b) for a, b in zip(self.runs[self.name], self.runs["Baseline"], strict=True)
        ]
        return template.format(
            name=self.name,
            topic=self.topic,
            terms=self.terms,
            table=self.table(),
            own=f"{own:.3f}",
            baseline=f"{baseline:.3f}",
            gain=f"{mean(gains):.1f}",
            spread=f"{stdev(gains):.1f}",
            seeds=len(_SEEDS),
        )

    def table(self) -> str:
        """Print mean and standard deviation of every method."""
        rows = [
            f"| {method} | {mean(values):.3f} ± {stdev(values):.3f} |"
            for method, values in self.runs.items()
        ]
        return "\n".join(["| Method | Accuracy |", "|---|---|", *rows])

    def log(self) -> str:
        """Pretend that every method was trained with every seed."""
        dice, now, lines = random.Random(self.name), self.begun, []
        for method, values in self.runs.items():
            for seed, accuracy in zip(_SEEDS, values, strict=True):
                for epoch in _EPOCHS:
                    now += timedelta(seconds=dice.uniform(40, 60))
                    loss = 2.1 * 0.94**epoch + dice.uniform(0, 0.05)
                    reached = accuracy - 0.3 * 0.9**epoch if epoch < _EPOCHS[-1] else accuracy
                    lines.append(
                        f"{now:%Y-%m-%d %H:%M:%S} INFO {method} seed {seed}"
                        f" epoch {epoch}/{_EPOCHS[-1]} loss {loss:.4f} accuracy {reached:.4f}"
                    )
        return "\n".join([*lines, f"{now:%Y-%m-%d %H:%M:%S} INFO done"]) + "\n"


def _topic(task: str) -> str:
    """Return the task's title."""
    first = next(filter(None, (line.strip("# *\t") for line in task.splitlines())), "")
    return first.rpartition(": ")[2].rstrip(".?!") or "learning from data"


def _terms(task: str) -> tuple[str, ...]:
    """Return eight long words that the task uses often."""
    counts = Counter(re.findall(r"[a-z]{6,}", task.lower()))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return (*ranked[:8], *["examples"] * 8)[:8]
