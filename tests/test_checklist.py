"""The checklist judge: honest work passes, empty and invented work does not, nothing crashes."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import floor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.checklist import CHECKS, CheckResult, run_checks, score
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.stages import STAGES

RUBRIC = rubric("checklist")

TASK = """# Call for work on noisy labels

Labels collected from crowds are often wrong. We look for classifiers that stay accurate when labels
are corrupted, and for honest accounts of when filtering corrupted labels harms a classifier.
Participants may use any classifier and any digits collection. Filtering has to be compared with
training on all labels, and the corrupted share has to be varied by the participants.
"""


def prose(words: int, seed: str) -> str:
    """Sentences without meaning that do not repeat themselves."""
    pool = ["".join(letters) for letters in product("bdfgklm", "aeiou", "nrstv")]
    pick = random.Random(seed)
    return "\n".join(" ".join(pick.choices(pool, k=12)) + "." for _ in range(words // 12 + 1))


METHODS: dict[str, dict[str, Any]] = {
    "majority": {"mean": 0.10213, "std": 0.00471, "per_seed": [0.0981, 0.1012, 0.1071]},
    "filter": {"mean": 0.91377, "std": 0.01268, "per_seed": [0.9021, 0.9117, 0.9275]},
    "no folds": {"mean": 0.87542, "std": 0.02134, "per_seed": [0.8511, 0.8842, 0.8910]},
}
CLAIMS = [
    {
        "text": f"{statistic} of {method}",
        "value": round(values[statistic], 3),
        "source": f"results/metrics.json#/methods/{method}/{statistic}",
    }
    for method, values in METHODS.items()
    for statistic in ("mean", "std")
]
TABLE = "| method | accuracy |\n|---|---|\n" + "\n".join(
    f"| {method} | {values['mean']:.3f} ± {values['std']:.3f} |"
    for method, values in METHODS.items()
)
RESULTS = f"""We ran seeds 0, 1 and 2 each. Majority is the baseline; the ablation has no folds.

{TABLE}

![Accuracy of all methods](scores.svg)

The figure shows the accuracy: filtering reaches 91.4%, without folds 0.875.
"""
LIMITS = """Only one data set of digits was tried, and its corrupted labels were planted by us.
The filter cannot tell rare examples from wrong ones, which may not matter here but elsewhere."""

DOCUMENTS = {
    "idea.md": f"""# Filtering corrupted labels by folds

## Motivation
A classifier that was trained on corrupted labels loses accuracy. {prose(40, "a")}

## Main idea
We drop labels that 5 folds of a classifier dispute, and compare with training on all (the baseline)
on the data sets MNIST and UCI digits. We measure accuracy and expect a gain of 2 points.
{prose(40, "b")}
""",
    "proposal.md": f"""# Filtering corrupted labels by folds

## Introduction
A classifier that was trained on corrupted labels loses accuracy. {prose(120, "c")}

## Method
Folds dispute labels of the digits data, where $d > 0.5$ decides. {prose(120, "d")}

## Evaluation
We compare accuracy with training on all labels, over 5 seeds, with the standard deviation, and with
an ablation on UCI digits. We measure filtering on 1797 images. {prose(40, "e")}

## Expected outcomes
We expect a gain of 2 points. {prose(40, "f")}

## Risks
{LIMITS}
""",
    "results/results.md": f"""# Results of filtering corrupted labels

## Set-up
A classifier was trained on UCI digits with corrupted labels. {prose(60, "g")}

## Results
{RESULTS}

## Discussion
{prose(60, "h")}

## Limitations
{LIMITS}
""",
    "results/paper.md": "# Filtering corrupted labels by folds\n\n"
    + "\n\n".join(
        f"## {section}\n{text}\n{prose(70, section)}"
        for section, text in {
            "Abstract": "Filtering corrupted labels helps a classifier of UCI digits.",
            "Introduction": "Participants of crowds give wrong labels.",
            "Related Work": "Folds are old.",
            "Method": "Folds dispute labels.",
            "Experiment Setup": "We use 1797 images.",
            "Results": RESULTS,
            "Analysis": LIMITS,
            "Conclusion": "It helps.",
            "References": "None that exist.",
        }.items()
    ),
}


def write(workspace: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return workspace


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A workspace with an honest submission of every stage."""
    files: dict[str, str | bytes] = {
        "task.md": TASK,
        "related_work.md": "Folds are old.",
        "code/run.py": "json.dump(run_seeds(), open('results/metrics.json', 'w'))\n",
        "results/metrics.json": json.dumps({"seeds": [0, 1, 2], "methods": METHODS}),
        "results/claims.json": json.dumps(CLAIMS),
        "results/log.txt": "".join(
            f"{method} seed {seed} accuracy {value:.4f}\n"
            for method, values in METHODS.items()
            for seed, value in enumerate(values["per_seed"])
        ),
        "results/scores.svg": "<svg xmlns='http://www.w3.org/2000/svg'><line x1='0' x2='9'/></svg>",
        **DOCUMENTS,
    }
    return write(tmp_path / "good", files)


Results = dict[str, tuple[CheckResult, ...]]


def check(stage: str, workspace: Path) -> Results:
    return run_checks(stage, workspace, RUBRIC)


def failed(results: Results) -> set[str]:
    return {check.name for found in results.values() for check in found if not check.passed}


def overall(results: Results) -> int:
    every = [check.passed for found in results.values() for check in found]
    return score(sum(every), len(every))


def document(stage: str) -> str:
    return STAGES[stage].required[0]


# The rubric and the registry


def test_every_check_is_asked_for_and_exists() -> None:
    asked = {name for dimension in RUBRIC.dimensions for name in dimension.checks}
    assert asked == set(CHECKS)


def test_the_rubric_scores_every_stage_in_several_dimensions() -> None:
    assert RUBRIC.stages == tuple(STAGES)
    assert all(len(RUBRIC.names(stage)) >= 3 for stage in STAGES)


def test_a_rubric_that_is_not_for_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lists no checks"):
        run_checks("idea", tmp_path, rubric("idea"))
    with pytest.raises(InputError, match="does not score the stage 'paper'"):
        run_checks("paper", tmp_path, rubric("idea"))
    dimension = RUBRIC.dimensions[0].model_copy(update={"checks": {"beauty": "It is pretty."}})
    with pytest.raises(InputError, match="checks that do not exist: beauty; checks are"):
        run_checks("idea", tmp_path, RUBRIC.model_copy(update={"dimensions": (dimension,)}))


# Scores


@given(st.integers(1, 60).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_scores_round_half_up_and_rise_with_every_check(counts: tuple[int, int]) -> None:
    passed, total = counts
    assert score(passed, total) == 1 + floor(Fraction(9 * passed, total) + Fraction(1, 2))
    assert score(0, total) == 1
    assert score(total, total) == 10
    assert passed == 0 or score(passed - 1, total) <= score(passed, total)


@pytest.mark.parametrize("stage", STAGES)
def test_honest_work_passes_every_check(good: Path, stage: str) -> None:
    results = check(stage, good)
    assert list(results) == list(RUBRIC.names(stage))
    assert failed(results) == set()
    assert check(stage, good) == results


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("content", [None, "", " \n\t\n"], ids=["absent", "empty", "blank"])
def test_nothing_scores_one(good: Path, stage: str, content: str | None) -> None:
    (good / document(stage)).unlink()
    if content is not None:
        write(good, {document(stage): content})
    results = check(stage, good)
    assert not any(check.passed for found in results.values() for check in found)
    assert overall(results) == 1


PLACEHOLDER = "# A fine title\n" + "\n".join(
    f"## {heading}\nTODO {'lorem ipsum dolor sit amet ' * 20}"
    for heading in ("Motivation", "Introduction", "Method", "Evaluation", "Outcomes", "Results")
)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("text", [TASK, TASK * 20, PLACEHOLDER], ids=["task", "padded", "todo"])
def test_copies_and_placeholders_score_low(good: Path, stage: str, text: str) -> None:
    """Only the document counts here: all else is as honest work leaves it."""
    write(good, {document(stage): text})
    results = check(stage, good)
    assert "finished" in failed(results)
    assert overall(results) <= 4


def invent(workspace: Path, stage: str) -> None:
    """Print other numbers than were measured, everything else being in order."""
    path = workspace / document(stage)
    text = path.read_text()
    for values in METHODS.values():
        for name in ("mean", "std"):
            text = text.replace(f"{values[name]:.3f}", f"{values[name] / 2 + 0.031:.3f}")
    path.write_text(text.replace("91.4%", "97.77%"))


@pytest.mark.parametrize("stage", ["experiment", "paper", "end_to_end"])
def test_invented_numbers_cost_far_more_than_their_own_check(good: Path, stage: str) -> None:
    invent(good, stage)
    results = check(stage, good)
    assert not any(check.passed for check in (*results["numbers"], *results["baseline"]))
    assert overall(results) <= 7


def test_a_report_without_any_run_behind_it_is_below_the_usual_threshold(good: Path) -> None:
    for name in ("metrics.json", "claims.json", "log.txt"):
        (good / "results" / name).unlink()
    assert overall(check("experiment", good)) < 6


# One defect at a time


def rewrite(name: str, old: str, new: str) -> Callable[[Path], object]:
    def apply(workspace: Path) -> None:
        text = (workspace / name).read_text()
        assert old in text
        (workspace / name).write_text(text.replace(old, new))

    return apply


def remove(name: str) -> Callable[[Path], object]:
    return lambda workspace: (workspace / name).unlink()


def put(name: str, content: str | bytes) -> Callable[[Path], object]:
    return lambda workspace: write(workspace, {name: content})


def claim(**changes: Any) -> Callable[[Path], object]:
    return put("results/claims.json", json.dumps([{**CLAIMS[0], **changes}, *CLAIMS[1:]]))


REPORT = "results/results.md"
UNPROVEN = {"claims_resolve", "claims_hold"}
NUMBER_CHECKS = {
    *("results_table", "tables_half_recorded", "tables_recorded", "prose_agrees"),
    *("variants_compared", "baseline_compared", "ablation_compared", "spread_given"),
}
CLAIM_CHECKS = UNPROVEN | {"claims_printed", "claims_cover"}
UNRUN = {"log_agrees", "data_kept", "seeds_recorded"} | CLAIM_CHECKS | NUMBER_CHECKS
DEFECTS = {
    "not UTF-8": (put(REPORT, DOCUMENTS[REPORT].encode() + b"\xff"), {"length"}),
    "unfinished": (rewrite(REPORT, "## Disc", "TODO\n## Disc"), {"finished"}),
    "padding": (
        rewrite(REPORT, "## Disc", "one two three four.\n" * 200 + "## Disc"),
        {"varied"},
    ),
    "no title": (rewrite(REPORT, "# Results of filtering corrupted labels\n", ""), {"title"}),
    "a section is missing": (rewrite(REPORT, "## Discussion", ""), {"sections_complete"}),
    "no log": (remove("results/log.txt"), {"expected_files", "log_agrees"}),
    "another log": (put("results/log.txt", "accuracy 0.4242\n" * 9), {"log_agrees"}),
    "no program": (remove("code/run.py"), UNRUN | {"code_kept"}),
    "no program writes it": (put("code/run.py", "print(1)\n"), UNRUN),
    "no images": (rewrite(REPORT, "![", "["), {"figures_real", "figures_discussed"}),
    "no image": (put("results/scores.svg", "not an image"), {"figures_real"}),
    "image from the net": (rewrite(REPORT, "(scores", "(https://x.org/scores"), {"figures_real"}),
    "wrong claim": (claim(value=0.104), {"claims_hold"}),
    "claim without number": (claim(source="results/metrics.json#/methods"), UNPROVEN),
    "claim proves itself": (claim(source="results/./claims.json#/0/value"), UNPROVEN),
    "claim leaves": (claim(source="../outside.json#/a"), UNPROVEN),
    "claim of NaN": (claim(value=float("nan")), {"claims_resolve"}),
    "no claims": (put("results/claims.json", "[]"), CLAIM_CHECKS),
    "one run": (rewrite(REPORT, "seeds 0, 1 and 2", "seed 42"), {"repeats_stated"}),
    "no limits": (rewrite(REPORT, LIMITS, ""), {"limits_stated", "limits_explained"}),
}


@pytest.mark.parametrize(("apply", "expected"), DEFECTS.values(), ids=DEFECTS)
def test_each_defect_is_named(
    good: Path, apply: Callable[[Path], object], expected: set[str]
) -> None:
    write(good.parent, {"outside.json": '{"a": 0.102}'})
    apply(good)
    assert failed(check("experiment", good)) == expected


def test_claims_may_name_cells_lists_and_shares(good: Path) -> None:
    write(good, {"code/save.sh": "python run.py > $out/r.csv\n"})
    write(good, {"code/all.jl": 'write("$(name).json", found)\n'})
    write(good, {"results/r.csv": "seed,top 1\n0,0.9021\n1,0.9117\n"})
    write(good, {"results/r.json": '[[0.25], {"a/b": 7}]'})
    claims = [
        {"text": "second run, 91.2%", "value": 91.2, "source": "r.csv#row=2,column=top%201"},
        {"text": "first run", "value": 0.9021, "source": "r.csv#row=1,column=top 1"},
        {"text": "in a list", "value": 0.25, "source": "r.json#/0/0"},
        {"text": "an escaped key", "value": 7, "source": "r.json#/1/a~1b"},
        {"text": "an integer", "value": 2, "source": "metrics.json#/seeds/2"},
    ]
    listed = [{**claim, "source": f"results/{claim['source']}"} for claim in claims]
    write(good, {"results/claims.json": json.dumps(listed)})
    assert not {"claims_resolve", "claims_hold"} & failed(check("experiment", good))


@pytest.mark.parametrize(
    "heading",
    ["## 1. {}", "**{}**", "**{}:** ", "{}:", "**2. {}**", "3. **{}**:", "4. {}", "###### {} ##"],
)
def test_headings_of_many_kinds_are_found(good: Path, heading: str) -> None:
    text = DOCUMENTS["idea.md"]
    for name in ("Motivation", "Main idea"):
        text = text.replace(f"## {name}", heading.format(name))
    write(good, {"idea.md": text})
    assert failed(check("idea", good)) == set()


# What counts as recorded, and as writing


def pairs(**tables: tuple[str, str]) -> str:
    return "| method | accuracy |\n|---|---|\n" + "\n".join(
        f"| {method} | {mean} ± {spread} |" for method, (mean, spread) in tables.items()
    )


def test_a_spread_counts_beside_its_own_mean_only(good: Path) -> None:
    """Each number is recorded somewhere; together they are nowhere."""
    swapped = pairs(majority=("0.102", "0.021"), filter=("0.914", "0.005"), x=("0.875", "0.013"))
    rewrite(REPORT, TABLE, swapped)(good)
    assert failed(check("experiment", good)) >= NUMBER_CHECKS - {"prose_agrees"}
    rewrite(REPORT, swapped, TABLE.replace("0.102 ± 0.005", "10.2% ± 0.5%"))(good)
    assert not NUMBER_CHECKS & failed(check("experiment", good))


RUNS = [0.25, 0.5, 0.75]
RECORDS = {
    "list of runs": json.dumps({"a": RUNS}),
    "object of runs": json.dumps({"a": {f"seed {n}": run for n, run in enumerate(RUNS)}}),
    "row": json.dumps([{"name": "a", "acc": 0.5, "acc_std": 0.25}]),
    "short list": json.dumps({"a": [0.5, 0.25]}),
    "siblings": json.dumps({"mean": {"a": 0.5, "b": 1}, "std": {"a": 0.25, "b": 2}}),
    "column": json.dumps([{"name": n, "acc": run} for run in RUNS for n in ("a", "b")]),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_mean_and_its_spread_may_be_recorded_in_many_ways(good: Path, record: str) -> None:
    write(good, {"results/metrics.json": record})
    rewrite(REPORT, TABLE, pairs(a=("0.50", "0.25"), b=("0.50", "0.25")))(good)
    assert "tables_recorded" not in failed(check("experiment", good))


def test_a_paper_that_repeats_its_inputs_counts_for_what_it_adds(good: Path) -> None:
    """Quoting is fine: here a third of the paper stands in the proposal."""
    assert failed(check("paper", good)) == set()
    paper = DOCUMENTS["results/paper.md"]
    write(good, {"proposal.md": paper[: len(paper) // 3]})
    assert failed(check("paper", good)) == set()
    write(good, {"proposal.md": paper})
    assert {"length", "own_words", "sections_begun", "results_table"} <= failed(
        check("paper", good)
    )


EARLY = {"results_awaited", "evaluation_planned", "outcome_expected"}
SAID = {
    "In a pilot the filter reached an accuracy of 0.97.": EARLY,
    "Filtering gained 4.1 ± 0.3 points.": EARLY,
    "Preliminary results show 30% fewer errors.": EARLY,
    "Filtering improved the accuracy to 91.4% on UCI digits.": set(),  # recorded, see `good`
    "Doe et al. (2020) reached an accuracy of 0.97 by filtering.": set(),
    "The idea holds if the accuracy of 0.97 is reached.": set(),
    "With reduced noise, say 10%, nothing is lost.": set(),
    "We use $\\gamma = 0.9$ as others found useful.": set(),
}


@pytest.mark.parametrize("stage", ["idea", "proposal"])
@pytest.mark.parametrize(("sentence", "expected"), SAID.items(), ids=range(len(SAID)))
def test_a_plan_has_no_results_yet(
    good: Path, stage: str, sentence: str, expected: set[str]
) -> None:
    rewrite(document(stage), "## M", f"{sentence}\n\n## M")(good)
    assert failed(check(stage, good)) == expected


# Hostile input

HOSTILE = {
    "binary": bytes(range(256)) * 40,
    "invalid UTF-8": b"# T\xff\xfe\n" * 100,
    "deep JSON": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "NaN": b"[NaN, Infinity, -Infinity, 1e999]",
    "huge int": b"[" + b"9" * 10_000 + b"]",
    "half characters": b'[{"text": "\\ud800", "value": 1, "source": "\\ud800#/a\\u0000"}]' * 3,
    "wrong types": b'[1, null, [], {"text": 1, "value": "x", "source": {}}, {"value": true}]',
    "escape codes": b'[{"text": "\x1b[2J", "value": 1, "source": "a\x07#/"}]',
    "object": b'{"seed": {"seed_1": null}, "runs": "x"}',
    "links": b"![" * 20_000
    + b"![](../../etc/passwd) ![](/etc/passwd) ![](%00) ![]("
    + b"a" * 9_000,
    "tables": b"| a | b |\n|---|---|\n" + b"|" * 20_000 + b"\n| x | 1.5 ".ljust(9_000, b"|"),
    "headings": b"# a\n## Method\n" * 5_000,
    "numbers": b"1,000," * 20_000 + b"x 1.2.3.4 " * 2_000,
    "one line": b"word " * 50_000,
    "spaces": b"a" + b" " * 100_000 + b"b",
    "fences": b"```\n" * 1_001,
    "wide CSV": b"seed," + b'"' * 200_000,
}
READ = [
    "task.md",
    *DOCUMENTS,
    "results/claims.json",
    "results/metrics.json",
    "results/log.txt",
    "results/runs.csv",
    "results/runs.jsonl",
    "results/scores.svg",
]


def survive(workspace: Path) -> None:
    for stage in STAGES:
        scored = check(stage, workspace)
        assert set(scored) == set(rubric("checklist").names(stage))
        assert 1 <= overall(scored) <= 10
        for found in scored.values():
            assert found
            for result in found:
                assert result.detail.isprintable()
                result.detail.encode("utf-8")


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_content_never_crashes(good: Path, content: bytes) -> None:
    for name in READ:
        write(good, {name: content})
    survive(good)


@pytest.mark.parametrize("name", READ)
def test_files_that_are_no_files_never_crash(good: Path, name: str) -> None:
    path = good / name
    path.unlink(missing_ok=True)
    path.mkdir()
    survive(good)
    path.rmdir()
    path.symlink_to(path)
    survive(good)
    path.unlink()
    os.mkfifo(path)
    survive(good)


@pytest.mark.parametrize("stage", STAGES)
def test_links_out_of_the_workspace_count_as_absent(good: Path, stage: str) -> None:
    for name in (document(stage), "results/scores.svg", "results/metrics.json", "results/log.txt"):
        outside = good.parent / Path(name).name
        (good / name).rename(outside)
        (good / name).symlink_to(outside)
    results = check(stage, good)
    assert overall(results) == 1
    (good / document(stage)).unlink()
    (good.parent / Path(document(stage)).name).rename(good / document(stage))
    if stage in ("experiment", "end_to_end"):
        names = {"figures_real", "data_kept", "log_agrees", "claims_resolve"}
        assert names <= failed(check(stage, good))


def test_a_linked_folder_counts_as_absent(good: Path) -> None:
    (good / "results").rename(good.parent / "elsewhere")
    (good / "results").symlink_to(good.parent / "elsewhere")
    assert overall(check("experiment", good)) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["text", "value", "source", "seed"]), inner, max_size=4)
    ),
    max_leaves=12,
)
MARKDOWN = st.lists(
    st.sampled_from(
        ["# ", "**", "|", "|---|---|", "\n", "![](", ")", "0.5", "%", "Title:", "```", "±"]
    )
    | st.text(max_size=8),
    max_size=60,
).map("".join)


@settings(max_examples=40, deadline=None)
@given(text=MARKDOWN, claims=JSON, metrics=JSON)
def test_arbitrary_files_never_crash(text: str, claims: Any, metrics: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, str | bytes] = {
            name: text.encode("utf-8", "surrogatepass") for name in (*DOCUMENTS, "task.md")
        }
        files["results/claims.json"] = json.dumps(claims)
        files["results/metrics.json"] = json.dumps(metrics)
        survive(write(Path(folder), files))


# Published outputs


def published() -> list[Any]:
    data = os.environ.get("MLRBENCH_DATA")
    if not data:
        why = "MLRBENCH_DATA does not name a folder with mlrbench/experiments/<agent>/<task>/"
        return [pytest.param(None, marks=pytest.mark.skip(reason=why), id="none")]
    folder = Path(data, "mlrbench")
    runs = sorted([*folder.glob("experiments/*/*/"), *folder.glob("end2end/*/*/")])
    return [pytest.param(run, id=f"{run.parent.name}-{run.name}") for run in runs]


@pytest.mark.parametrize("run", published())
def test_published_outputs_can_be_checked(run: Path) -> None:
    survive(run)
