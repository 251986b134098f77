"""``mlrbench agreement``: do judges agree, with each other and with people?"""

from __future__ import annotations

import csv
import json
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_result, make_run, one_sentence
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from pytest_mlrbench.cli import main
from pytest_mlrbench.published import Published
from pytest_mlrbench.report.agreement import measures
from pytest_mlrbench.report.agreement.intervals import LEAST_TASKS
from pytest_mlrbench.report.agreement.judges import Dimension, among
from pytest_mlrbench.report.agreement.people import People, with_people
from pytest_mlrbench.report.agreement.ratings import Rating, Work, read_judges, read_ratings
from pytest_mlrbench.suites.rubrics import rubric

Capture = pytest.CaptureFixture[str]

DATA = os.environ.get("MLRBENCH_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="MLRBENCH_DATA does not name the ratings")
HUMAN = Path(DATA or "", "mlrbench", "human_eval")


def command(capsys: Capture, *args: object) -> tuple[int, str]:
    code = main(["agreement", *map(str, args)])
    out, err = capsys.readouterr()
    return code, out + err


def work(task: str, stage: str = "idea", agent: str = "a", **scores: int) -> Work:
    """What judges, by name, have given overall."""
    given = {judge: {"overall": score} for judge, score in scores.items()}
    return Work(f"{stage}/{task}/{agent}", stage, stage, task, agent, given)


def rating(reviewer: str, task: str, score: float, system: str = "a") -> Rating:
    return Rating(reviewer, task, system, {"overall": score})


def table(folder: Path, *lines: str) -> Path:
    path = folder / "ratings.csv"
    path.write_text("\n".join(["reviewer_id,model_name,workshop_name,Overall", *lines]), "utf-8")
    return path


def array(values: object) -> Any:
    return np.array(values, float)


# The measures are those that are known by these names

scores = st.integers(1, 10)
pairs = st.lists(st.tuples(scores, scores), min_size=3, max_size=40)
#: Pairs in which both vary: for others there is no number.
varying = pairs.filter(lambda found: all(len(set(side)) > 1 for side in zip(*found, strict=True)))


def sides(found: list[tuple[int, int]]) -> tuple[Any, Any]:
    a, b = zip(*found, strict=True)
    return array(a), array(b)


@given(varying)
def test_kappa_and_the_rank_correlation_are_those_of_the_libraries(
    found: list[tuple[int, int]],
) -> None:
    a, b = sides(found)
    labels = list(range(1, 11))
    kappa = cohen_kappa_score(a.astype(int), b.astype(int), weights="quadratic", labels=labels)
    assert measures.weighted_kappa(a, b).value == pytest.approx(kappa)
    ranks = measures.spearman(a, b, ["one"] * len(a))
    assert ranks.value == pytest.approx(spearmanr(a, b).statistic)


@given(varying)
def test_agreement_is_symmetric_and_bounded(found: list[tuple[int, int]]) -> None:
    a, b = sides(found)
    for measure in (measures.weighted_kappa, measures.icc, measures.pearson):
        value = measure(a, b).value
        assert value == pytest.approx(measure(b, a).value)
        assert value is not None
        # Of few works, ICC may be less than -1.
        least = -len(a) / (len(a) - 2) if measure is measures.icc else -1
        assert least - 1e-9 <= value <= 1 + 1e-9
    one = ["one"] * len(a)
    assert measures.spearman(a, b, one).value == pytest.approx(measures.spearman(b, a, one).value)
    same = measures.decisions(a, b, 6)
    assert same == measures.decisions(b, a, 6)
    assert same.interval
    assert 0 <= same.interval.low <= same.same / same.n <= same.interval.high <= 1


@given(varying)
def test_a_judge_agrees_with_itself_entirely(found: list[tuple[int, int]]) -> None:
    a, _ = sides(found)
    for measure in (measures.weighted_kappa, measures.icc, measures.pearson):
        assert measure(a, a).value == pytest.approx(1)
    by_name = dict(zip(map(str, range(len(a))), a.tolist(), strict=True))
    assert measures.alpha([by_name, by_name]).value == pytest.approx(1)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(scores, scores), min_size=24, max_size=40), st.randoms())
def test_no_number_and_no_interval_depends_on_the_order(
    found: list[tuple[int, int]], shuffling: random.Random
) -> None:
    works = [work(f"t{i % 12}", agent=f"a{i}", anna=a, bob=b) for i, (a, b) in enumerate(found)]
    ratings = [rating(f"r{i % 3}", w.task, 1 + i % 10, w.agent) for i, w in enumerate(works)]
    mixed, rated = [*works], [*ratings]
    shuffling.shuffle(mixed)
    shuffling.shuffle(rated)
    assert among(mixed) == among(works)
    assert with_people(mixed, rated, 6) == with_people(works, ratings, 6)


def test_icc_is_that_of_shrout_and_fleiss() -> None:
    """Six targets by four judges: table 2 of the paper of 1979, whose ICC(2,1) is .29."""
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    assert measures.icc_agreement(array(table)) == pytest.approx(0.29, abs=0.005)


def test_alpha_is_that_of_krippendorff() -> None:
    """His example of four observers and twelve units with gaps: ordinal alpha .815."""
    gap = None
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
    found = measures.alpha(
        [{f"u{i}": v for i, v in enumerate(row) if v is not None} for row in observers]
    )
    assert found.value == pytest.approx(0.815, abs=0.0005)
    assert found.n == 11  # one unit has one value only


# What cannot be computed is said, and is no 0


def test_a_list_without_variance_agrees_with_nothing() -> None:
    a, b = array([8, 8, 8, 8]), array([3, 5, 7, 9])
    for figure in (
        measures.weighted_kappa(a, b),
        measures.icc(a, b),
        measures.pearson(a, b),
        measures.spearman(a, b, list("abcd")),
        measures.alpha([{"x": 8, "y": 8, "z": 8}] * 2),
    ):
        assert (figure.value, figure.why) == (None, "no variance")


def test_two_works_are_too_few() -> None:
    a, b = array([3, 8]), array([4, 9])
    for figure in (measures.weighted_kappa(a, b), measures.spearman(a, b, ["a", "b"])):
        assert (figure.value, figure.n, figure.why) == (None, 2, "n < 3")
    assert measures.alpha([]).value is None
    assert measures.rank_sum([], [1.0]).p is None
    assert measures.decisions(array([]), array([]), 6).interval is None


def test_an_interval_needs_tasks_and_not_only_cases() -> None:
    a = array([1, 2, 3, 4] * 10)
    few = measures.spearman(a, a[::-1], [f"t{i % 4}" for i in range(40)])
    assert few.value is not None
    assert few.interval is None
    assert few.why == f"4 of the {LEAST_TASKS} tasks that an interval needs"
    many = measures.mean_difference(a, a[::-1], [f"t{i % 20}" for i in range(40)])
    assert many.interval
    assert many.interval.method == "BCa bootstrap over 20 tasks, 1999 resamples"


def test_scores_of_one_task_are_no_independent_observations() -> None:
    """The same number of scores, of fewer tasks that differ: the interval is wider."""
    a = array([1 + i % 10 for i in range(100)])
    b = array([5] * 100)
    of_many = measures.mean_difference(a, b, [f"t{i}" for i in range(100)]).interval
    of_few = measures.mean_difference(a, b, [f"t{i % 10}" for i in range(100)]).interval
    assert of_many
    assert of_few
    assert of_few.high - of_few.low > 2 * (of_many.high - of_many.low)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [10, 50])
def test_intervals_hold_the_truth_nearly_as_often_as_they_say(tasks: int) -> None:
    """Three works to a task, which has half of the variance; 95 % are said, 90 to 94 held."""
    rng, n, each = np.random.default_rng(1), 300, 3

    def drawn(tasks: int, each: int) -> tuple[Any, Any]:
        size = tasks * each
        normal = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], tasks + size)
        a, b = ((normal[:tasks].repeat(each, axis=0) + normal[tasks:]) / 2**0.5).T
        return np.clip(np.round(5.5 + 1.5 * a), 1, 10), np.clip(np.round(6 + 1.2 * b), 1, 10)

    a, b = drawn(40_000, 1)
    true = {measures.spearman: spearmanr(a, b).statistic, measures.mean_difference: np.mean(a - b)}
    held = dict.fromkeys(true, 0)
    for _ in range(n):
        a, b = drawn(tasks, each)
        for measure, value in true.items():
            interval = measure(a, b, [f"t{i // each}" for i in range(tasks * each)]).interval
            assert interval
            held[measure] += interval.low <= value <= interval.high
    assert all(0.87 * n <= count <= 0.98 * n for count in held.values()), held


# Judges among themselves


def by_judges(**given: list[int]) -> Dimension:
    works = [
        work(f"t{i}", **dict(zip(given, those, strict=True)))
        for i, those in enumerate(zip(*given.values(), strict=True))
    ]
    (dimension,) = among(works)
    return dimension


def test_a_judge_that_gives_8_to_nearly_everything_is_named() -> None:
    found = by_judges(anna=[8] * 18 + [7, 9], bob=[2, 4, 6, 8] * 5)
    anna, bob = found.judges
    assert (anna.usual_score, anna.usual, anna.n, anna.discriminates) == (8, 18, 20, False)
    assert (anna.ceiling, bob.ceiling) == (1, 0)
    assert bob.discriminates
    assert found.pairs[0].same == 4 + 1 - 1


def test_of_few_cases_nobody_is_said_not_to_discriminate() -> None:
    assert by_judges(anna=[8] * 9, bob=[8] * 9).judges[0].discriminates


def test_works_that_only_one_of_them_scored_are_in_no_pair() -> None:
    works = [work(f"t{i}", anna=i, bob=i + 1) for i in range(1, 6)] + [work("t9", anna=3)]
    (found,) = among(works)
    assert [judge.n for judge in found.judges] == [6, 5]
    assert (found.works, found.pairs[0].n, found.alpha.n) == (6, 5, 5)
    assert found.pairs[0].difference.value == -1


def test_a_run_folder_says_how_its_judges_agree(tmp_path: Path, capsys: Capture) -> None:
    results = [make_result(f"task{i}", judges={"anna": 3 + i % 4, "bob": 8}) for i in range(12)]
    folder = make_run(tmp_path / "runs" / "one", *results)
    code, said = command(capsys, "--judges", folder.path, "--json", tmp_path / "out" / "a.json")
    assert code == 0
    assert "idea: 12 cases" in said
    assert "WARNING: bob does not discriminate" in said
    assert "overall (8 to 12 of 12)" in said
    assert "-: no variance: " in said
    found = json.loads((tmp_path / "out" / "a.json").read_text("utf-8"))
    assert {entry["dimension"] for entry in found["among"]} == {
        "overall",
        *rubric("idea").names("idea"),
    }
    pair = found["among"][0]["pairs"][0]
    assert (pair["n"], pair["kappa"]["value"], pair["kappa"]["why"]) == (12, None, "no variance")


def test_one_judge_alone_is_told_so(capsys: Capture, tmp_path: Path) -> None:
    _, said = command(capsys, "--judges", make_run(tmp_path, make_result()).path)
    assert "There is one judge" in said


# Judges and people


def people(works: list[Work], ratings: list[Rating]) -> People:
    return with_people(works, ratings, 6.0)


def test_kappa_is_of_single_judges_since_a_panel_has_half_points() -> None:
    works = [work(f"t{i}", anna=i, bob=11 - i) for i in range(1, 11)]
    found = people(works, [rating("r1", f"t{i}", i) for i in range(1, 11)])
    panel, anna, bob = (beside.dimensions[0] for beside in found.beside)
    assert [beside.judges for beside in found.beside] == [("anna", "bob"), ("anna",), ("bob",)]
    assert panel.kappa is None
    assert panel.spearman.value is None  # the panel gives 5.5 to everything
    assert anna.kappa
    assert anna.kappa.value == pytest.approx(1)
    assert (anna.decisions.same, anna.decisions.n) == (10, 10)
    assert bob.decisions.same == 0
    assert anna.bias.value == 0


def test_pairs_of_people_are_of_papers_that_each_rated_once() -> None:
    works = [work(task, anna=5) for task in ("t1", "t2", "t3")]
    ratings = [
        *(rating("r1", "t1", 3), rating("r2", "t1", 7)),
        *(rating("r1", "t2", 3), rating("r1", "t2", 4), rating("r2", "t2", 9)),
        rating("r2", "t3", 5),
    ]
    found = people(works, ratings)
    differences = found.beside[0].dimensions[0].differences
    assert differences.n == (1, 6)
    assert differences.mean[0] == 4
    assert found.paired_papers == 1
    assert found.faults == (
        "reviewer r1 rated t2/a 2 times",
        "rated by one person only: t3/a",
        "there are as many ratings too many (1) as papers with one rating: some are likely under"
        " the wrong name",
    )


def test_what_was_rated_and_not_judged_is_left_out_and_named() -> None:
    found = people([work("t1", anna=5)], [rating("r", "t1", 3), rating("r", "t2", 3)])
    assert (found.papers, found.ratings) == (1, 1)
    assert "rated and not judged, left out: t2/a" in found.faults


def test_ratings_of_other_work_or_of_what_is_there_twice_are_refused() -> None:
    with one_sentence("t2/a", "t1/a"):
        people([work("t1", anna=5)], [rating("r", "t2", 3)])
    with one_sentence("--stage", "idea/t1/a"):
        people([work("t1", anna=5), work("t1", stage="paper", anna=5)], [rating("r", "t1", 3)])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,a,t,11", ("line 2", "Overall", "'11'")),
        ("1,a,t,good", ("line 2", "'good'")),
        ("1,a,t,nan", ("line 2", "'nan'")),
        ("1,a,t,5,6", ("line 2", "more cells")),
        (",a,t,5", ("line 2", "who rated")),
        ("1,a,t,", ("no ratings",)),
    ],
)
def test_a_table_that_is_none_is_told_by_its_line(
    tmp_path: Path, line: str, words: tuple[str, ...]
) -> None:
    with one_sentence(*words):
        read_ratings(table(tmp_path, line))


def test_a_table_without_its_columns_or_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with one_sentence("reviewer_id"):
        read_ratings(tmp_path / "other.csv")
    with one_sentence("cannot be read"):
        read_ratings(tmp_path / "absent.csv")


def test_unusable_words_are_one_sentence(capsys: Capture) -> None:
    for args, word in (
        (("--judges", "published", "--stage", "ideas"), "'ideas'"),
        (("--judges", "published", "x.xml"), "no other source"),
        (("--judges", "published", "--threshold", "60"), "--threshold 60"),
    ):
        code, said = command(capsys, *args)
        assert (code, word in said, said.count("\n")) == (2, True, 1)


def test_without_the_extra_it_says_what_to_install(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.startswith("pytest_mlrbench.report.agreement")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    code, said = command(capsys, "--judges", "published")
    assert code == 2
    assert said == (
        "mlrbench: mlrbench agreement needs krippendorff, which is not installed:"
        " `pip install 'pytest-mlrbench[stats]'`.\n"
    )


# The published scores


@pytest.mark.parametrize(
    ("stage", "spearman", "difference", "equal"),
    [
        ("idea", 0.20, -0.24, 0.63),
        ("proposal", 0.24, -0.06, 0.65),
        ("experiment", 0.02, 2.20, 0.15),
        ("paper", 0.71, 1.93, 0.17),
        ("end_to_end", 0.28, 2.15, 0.08),
    ],
)
def test_the_published_judges_agree_little_in_overall(
    stage: str, spearman: float, difference: float, equal: float
) -> None:
    only = [
        Work(w.name, w.stage, w.group, w.task, w.agent, overall(w.scores))
        for w in read_judges(["published"], stage)
    ]
    ((pair,),) = (found.pairs for found in among(only))
    assert pair.judges == ("claude-3-7-sonnet", "gemini-2-5-pro")
    assert pair.spearman.value == pytest.approx(spearman, abs=0.005)
    assert pair.difference.value == pytest.approx(difference, abs=0.005)
    assert pair.same / pair.n == pytest.approx(equal, abs=0.005)
    assert pair.spearman.interval


def overall(scores: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {judge: {"overall": given["overall"]} for judge, given in scores.items()}


def test_the_published_judge_that_gives_8_to_nearly_every_idea_is_named(capsys: Capture) -> None:
    _, said = command(capsys, "--judges", "published", "--stage", "idea")
    assert "WARNING: claude-3-7-sonnet does not discriminate" in said
    assert "overall (8 to 1043 of 1206)" in said


@pytest.fixture(scope="module")
def published() -> People:
    return with_people(read_judges(["published"]), read_ratings(HUMAN / "human_review.csv"), 6.0)


#: The comparison in MLR-Bench's notebook, which the paper's Figure 4 does not repeat exactly.
NOTEBOOK = {
    "novelty": (662.5, 0.569, 1.67, 1.87, 0.01, 0.01),
    "clarity": (525.5, 0.053, 1.29, 2.23, -0.06, -0.10),
    "soundness": (630.5, 0.373, 1.50, 1.82, -0.15, -0.18),
    "significance": (603.0, 0.241, 1.46, 1.82, -0.17, -0.24),
    "overall": (692.0, 0.783, 1.50, 1.65, -0.195, -0.18),
}


@needs_data
def test_the_published_comparison_with_people_is_reproduced(published: People) -> None:
    panel = published.beside[0]
    assert len(panel.judges) == 2
    for found in panel.dimensions:
        u, p, people_differ, judge_differs, pearson, spearman = NOTEBOOK[found.dimension]
        assert found.differences.n == (24, 60)
        assert found.differences.u == u
        assert found.differences.p == pytest.approx(p, abs=0.0005)
        assert found.differences.mean == pytest.approx((people_differ, judge_differs), abs=0.006)
        assert (found.papers, found.ratings) == (30, 60)
        assert found.pearson.value == pytest.approx(pearson, abs=0.005)
        assert found.spearman.value == pytest.approx(spearman, abs=0.005)
    assert {found.dimension for found in panel.dimensions} == set(NOTEBOOK)


@needs_data
def test_the_faults_of_the_published_ratings_are_named(published: People) -> None:
    assert (published.reviewers, published.ratings, published.paired_papers) == (8, 60, 24)
    assert published.faults[:4] == (
        "reviewer 1 rated iclr2025_scsl/o4-mini 2 times",
        "reviewer 5 rated iclr2025_buildingtrust/gemini 2 times",
        "reviewer 6 rated iclr2025_wsl/o4-mini 2 times",
        "rated by one person only: iclr2025_bi_align/claude, iclr2025_buildingtrust/o4-mini,"
        " iclr2025_dl4c/o4-mini",
    )
    assert "as many ratings too many (3)" in published.faults[4]


@needs_data
def test_people_and_judges_order_the_published_systems_otherwise(published: People) -> None:
    found = [(s.system, round(s.people_mean or 0, 2), s.judges_mean) for s in published.systems]
    assert found == [("gemini", 4.86, 3.75), ("claude", 3.53, 4.7), ("o4-mini", 3.15, 3.95)]


@needs_data
def test_the_published_means_of_both_judges_are_those_of_the_shipped_scores() -> None:
    """So that the shipped scores can stand for the file beside the ratings."""
    with (HUMAN / "llm_judge.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    for row in rows:
        given = Published.load().scores("end_to_end", row["model_name"], row["workshop_name"])
        for dimension in NOTEBOOK:
            mean = np.mean([scores[dimension] for _, scores in given.values()])
            assert mean == float(row[dimension.capitalize()])


@needs_data
def test_the_command_prints_what_was_published_and_what_it_does_not_show(
    capsys: Capture, tmp_path: Path
) -> None:
    args = ("--judges", "published", "--human", HUMAN / "human_review.csv")
    code, said = command(capsys, *args, "--json", tmp_path / "a.json")
    assert code == 0
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "novelty 1.67 (n=24) 1.87 (n=60) 662.5 0.569" in lines
    assert "overall 1.50 (n=24) 1.65 (n=60) 692.0 0.783" in lines
    assert "FAULT: reviewer 1 rated iclr2025_scsl/o4-mini 2 times" in said
    assert "A p above .05 shows no agreement" in said
    assert "WARNING: not shown to order papers as people do: novelty (0.01" in said
    found = json.loads((tmp_path / "a.json").read_text("utf-8"))["people"]
    assert found["beside"][0]["dimensions"][0]["differences"]["n"] == [24, 60]
