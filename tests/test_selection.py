"""Selection: from stages, patterns, limits and samples to cases with names of their own."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_suite, one_sentence, read_suite
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.suites.choice import Choice, apportion, select_tasks
from pytest_mlrbench.suites.select import make_cases, parse_stages
from pytest_mlrbench.suites.stages import STAGES

FRUIT = make_suite("apple", "banana", "cherry", "date", "elder", "fig", name="fruit")

# Ids made of what could be taken for a repeat.
tricky_ids = st.from_regex(r"[ar2](-?[ar2.]){0,4}", fullmatch=True)


def chosen(
    *patterns: str, limit: int | None = None, sample: int | None = None, seed: int = 0
) -> list[str]:
    choice = Choice(tasks=patterns, limit=limit, sample=sample, seed=seed)
    return [task.id for task in select_tasks(FRUIT, choice)]


WORKSHOPS = make_suite("iclr2023_dg", "iclr2023_nf", "iclr2025_wsl", "iclr2025_bi_align")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("iclr2024_dg", "iclr2023_dg"),
        ("iclr2025_wls", "iclr2025_wsl"),
        ("ICLR2025_WSL", "iclr2025_wsl"),
        ("iclr2025_bi-align", "iclr2025_bi_align"),
    ],
)
def test_a_slip_is_told_the_task_that_was_meant(typed: str, meant: str) -> None:
    with one_sentence(f"matches {typed!r}. Did you mean {meant}? `mlrbench tasks list"):
        select_tasks(WORKSHOPS, Choice(tasks=(typed,)))


def test_tasks_that_share_a_conference_only_are_not_said_to_be_meant() -> None:
    with one_sentence("matches 'iclr2023_zzz'. `mlrbench tasks list --suite "):
        select_tasks(WORKSHOPS, Choice(tasks=("iclr2023_zzz",)))


# Stages


@given(st.permutations(list(STAGES)), st.integers(1, len(STAGES)))
def test_stages_are_in_the_order_of_research(names: list[str], number: int) -> None:
    picked = names[:number]
    expected = tuple(stage for stage in STAGES if stage in picked)
    assert parse_stages(",".join(picked)) == expected


@pytest.mark.parametrize("text", ["all", "idea,all", "all, paper", " all "])
def test_all_is_every_stage(text: str) -> None:
    assert parse_stages(text) == ("idea", "proposal", "experiment", "paper", "end_to_end")


@pytest.mark.parametrize("text", ["idea", " idea ,", "idea,idea", ",idea"])
def test_spaces_and_repetitions_do_not_matter(text: str) -> None:
    assert parse_stages(text) == ("idea",)


@pytest.mark.parametrize(
    ("text", "unknown", "meant"),
    [
        ("experiments", "experiments", "experiment"),
        ("idea,papers", "papers", "paper"),
        ("all,ide", "ide", "idea"),
        ("end-to-end", "end-to-end", "end_to_end"),
        ("IDEA ,proposl", "IDEA", "all"),
    ],
)
def test_an_unknown_stage_is_told_the_stages_and_the_closest(
    text: str, unknown: str, meant: str
) -> None:
    with one_sentence(f"no stage {unknown!r}", "idea, proposal, experiment, paper", meant):
        parse_stages(text)


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_no_stage_is_refused(text: str) -> None:
    with one_sentence("names no stage"):
        parse_stages(text)


# Tasks


def test_without_a_pattern_all_tasks_are_chosen() -> None:
    assert chosen() == ["apple", "banana", "cherry", "date", "elder", "fig"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["cherry"], ["cherry"]),
        (["fig", "apple"], ["apple", "fig"]),
        (["*e*"], ["apple", "cherry", "date", "elder"]),
        (["?????"], ["apple", "elder"]),
        (["[bf]*"], ["banana", "fig"]),
        (["date", "d*", "date"], ["date"]),
    ],
)
def test_ids_and_globs_keep_the_order_of_the_suite(
    patterns: list[str], expected: list[str]
) -> None:
    assert chosen(*patterns) == expected


def test_a_pattern_that_matches_nothing_is_told_what_is_close() -> None:
    with one_sentence("suite 'fruit'", "'aple'", "Did you mean apple?", "--suite fruit"):
        chosen("apple", "aple")


@pytest.mark.parametrize("pattern", ["", "Apple", "zzz", "apple ", "*/apple"])
def test_a_pattern_matches_whole_ids_in_their_case(pattern: str) -> None:
    with one_sentence(repr(pattern)):
        chosen(pattern)


@pytest.mark.parametrize(("limit", "number"), [(1, 1), (3, 3), (6, 6), (99, 6)])
def test_a_limit_keeps_the_first(limit: int, number: int) -> None:
    assert chosen(limit=limit) == chosen()[:number]


@given(st.integers(1, 6), st.integers())
def test_a_sample_is_of_its_size_in_the_order_of_the_suite_and_repeatable(
    sample: int, seed: int
) -> None:
    drawn = chosen(sample=sample, seed=seed)
    assert len(drawn) == sample
    assert drawn == [task for task in chosen() if task in drawn]
    assert drawn == chosen(sample=sample, seed=seed)


def test_other_seeds_draw_other_tasks() -> None:
    draws = {tuple(chosen(sample=3, seed=seed)) for seed in range(50)}
    assert len(draws) > 10
    assert {task for draw in draws for task in draw} == set(chosen())


def test_a_seed_draws_the_same_tasks_on_every_machine_and_day() -> None:
    assert chosen(sample=3, seed=0) == ["apple", "date", "fig"]
    assert chosen(sample=3, seed=7) == ["banana", "cherry", "date"]


def test_a_sample_is_drawn_from_what_the_patterns_leave() -> None:
    for seed in range(20):
        assert set(chosen("*e*", sample=2, seed=seed)) <= {"apple", "cherry", "date", "elder"}


def test_a_limit_cuts_the_sample() -> None:
    assert chosen(limit=2, sample=4, seed=3) == chosen(sample=4, seed=3)[:2]


def test_a_sample_larger_than_what_is_there_is_refused() -> None:
    with one_sentence("--mlr-sample 5", "the 4 tasks"):
        chosen("*e*", sample=5)


@pytest.mark.parametrize("number", [0, -1])
def test_a_sample_or_limit_below_1_is_refused(number: int) -> None:
    with one_sentence("--mlr-sample", str(number)):
        chosen(sample=number)
    with one_sentence("--mlr-limit", str(number)):
        chosen(limit=number)


# Cases


def test_repeats_of_a_task_are_beside_each_other_and_stages_apart() -> None:
    cases = make_cases(FRUIT, ("idea", "paper"), FRUIT.tasks[:2], repeats=2)
    assert [case.name for case in cases] == [
        "fruit/idea/apple/r1",
        "fruit/idea/apple/r2",
        "fruit/idea/banana/r1",
        "fruit/idea/banana/r2",
        "fruit/paper/apple/r1",
        "fruit/paper/apple/r2",
        "fruit/paper/banana/r1",
        "fruit/paper/banana/r2",
    ]


def test_the_first_repeat_has_the_plain_test_id() -> None:
    cases = make_cases(FRUIT, ("idea",), FRUIT.tasks[:1], repeats=3)
    assert [case.test_id for case in cases] == ["apple", "apple-r2", "apple-r3"]


@pytest.mark.parametrize("repeats", [0, -2])
def test_fewer_than_one_repeat_is_refused(repeats: int) -> None:
    with one_sentence("--mlr-repeats", str(repeats)):
        make_cases(FRUIT, ("idea",), FRUIT.tasks, repeats)


@given(st.lists(tricky_ids, min_size=1, max_size=6), st.integers(1, 4))
def test_names_and_test_ids_are_unique_for_every_suite_that_loads(
    ids: list[str], repeats: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            suite = read_suite(
                Path(folder), "name: tricky", "id,title\n" + "".join(f"{i},T\n" for i in ids)
            )
        except InputError:
            assume(False)
    cases = make_cases(suite, tuple(STAGES), suite.tasks, repeats)
    assert len({case.name.lower() for case in cases}) == len(cases)
    assert len({(case.stage, case.test_id.lower()) for case in cases}) == len(cases)
    assert len(cases) == len(STAGES) * len(ids) * repeats


# By what is known of a task

KINDS = {"apple": "pome", "banana": "berry", "cherry": "stone", "date": "stone", "elder": "berry"}
TWINS = {"apple": "apple", "elder": "apple", "cherry": "cherry", "date": "cherry"}
KNOWN = replace(
    FRUIT,
    tasks=tuple(
        replace(
            task,
            category=KINDS.get(task.id, ""),
            year="2023" if task.id < "d" else "2024",
            near_duplicates=TWINS.get(task.id, ""),
        )
        for task in FRUIT.tasks
    ),
)


def known(**choice: Any) -> list[str]:
    return [task.id for task in select_tasks(KNOWN, Choice(**choice))]


def test_tasks_are_chosen_by_category_and_year() -> None:
    assert known(category=("berry", "stone")) == ["banana", "cherry", "date", "elder"]
    assert known(category=("stone",), year=("2024",)) == ["date"]


def test_what_no_task_has_is_told_what_there_is() -> None:
    with one_sentence("category 'nut'", "there is berry, pome, stone"):
        known(category=("nut",))
    with one_sentence("conference 'icml'", "there is none"):
        known(conference=("icml",))


def test_filters_that_leave_nothing_are_refused() -> None:
    with one_sentence("no task of suite 'fruit' is left"):
        known(category=("pome",), year=("2024",))


def test_of_near_duplicates_the_first_chosen_stays() -> None:
    assert known(distinct=True) == ["apple", "banana", "cherry", "fig"]
    assert known(distinct=True, year=("2024",)) == ["date", "elder", "fig"]


def test_a_stratified_limit_keeps_the_shares() -> None:
    assert known(limit=3, stratify="year") == ["apple", "banana", "date"]
    assert known(limit=2, stratify="category") == ["banana", "cherry"]


def test_a_stratified_sample_is_the_same_for_the_same_seed() -> None:
    draws = {tuple(known(sample=4, stratify="year", seed=seed)) for seed in range(30)}
    assert len(draws) > 1
    for draw in draws:
        assert sum(task < "d" for task in draw) == 2
    assert known(sample=4, stratify="year", seed=7) == known(sample=4, stratify="year", seed=7)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"stratify": "colour", "limit": 1}, "'colour' is none of category, conference, year"),
        ({"stratify": "category"}, "needs --mlr-sample or --mlr-limit"),
        ({"stratify": "conference", "limit": 1}, "no task of 'fruit' has a conference"),
    ],
)
def test_a_stratum_that_makes_no_sense_is_refused(choice: dict[str, Any], words: str) -> None:
    with one_sentence(words):
        known(**choice)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.data())
def test_shares_are_proportional_and_complete(sizes: list[int], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, sum(sizes)))
    shares = apportion(sizes, number)
    assert sum(shares) == number
    for size, share in zip(sizes, shares, strict=True):
        assert 0 <= share <= size
        assert abs(share - size * number / sum(sizes)) < 1
