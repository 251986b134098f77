"""Reviews: which answers of a judge are taken, and that any other makes a case not measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import make_review
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.judges.review import UNUSABLE, Answer, Review, parse_answer, read_json
from pytest_mlrbench.run.folder import read_model, write_json
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.stages import STAGES

ABSENT = Ellipsis  # its name, unlike that of an object(), is the same in every worker
LONE_SURROGATE = "\ud83d"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
scores = st.integers(1, 10)


def parse(raw: Any, stage: str) -> Answer:
    return parse_answer(raw, rubric(stage), stage)


def spell(dimension: str) -> str:
    return dimension.title().replace("_", "")


def published(stage: str, score: int = 7) -> dict[str, Any]:
    """A complete review of *stage* in the spelling of the published ones."""
    raw: dict[str, Any] = {}
    if stage == "experiment":
        raw["Hallucination"] = {"has_hallucination": True, "details": "Table 2 was never run."}
    for name in rubric(stage).names(stage):
        raw[spell(name)] = {"score": score, "justification": f"about {name}"}
    overall = "Overall" if stage == "end_to_end" else "OverallAssessment"
    raw[overall] = {"score": score, "strengths": ["short"], "weaknesses": ["old", "slow"]}
    if stage == "end_to_end":
        raw["Confidence"] = 4
    return raw


def own(stage: str, score: int = 7) -> dict[str, Any]:
    """The same in our own spelling."""
    names = {"OverallAssessment": "overall"}
    return {names.get(key, key.lower()): value for key, value in published(stage, score).items()}


def changed(raw: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """*raw* with the value at ``key.key`` replaced, or left out if it is ABSENT."""
    first, _, rest = path.partition(".")
    new = changed(raw[first], rest, value) if rest else value
    kept = {key: old for key, old in raw.items() if key != first}
    return kept if new is ABSENT else kept | {first: new}


def fault_of(act: Callable[[], object]) -> SystemFault | None:
    """The fault *act* ends with, if it ends with one; any other exception is the test's failure."""
    try:
        act()
    except SystemFault as fault:
        return fault
    return None


def read(folder: Path, content: bytes) -> Any:
    path = folder / "review.json"
    path.write_bytes(content)
    return read_json(path)


# What is taken


@pytest.mark.parametrize("stage", STAGES)
def test_the_published_spelling_and_ours_are_the_same_answer(stage: str) -> None:
    assert parse(published(stage), stage) == parse(own(stage), stage)


@pytest.mark.parametrize("stage", STAGES)
def test_every_dimension_is_taken_with_its_words(stage: str) -> None:
    answer = parse(published(stage, 8), stage)
    assert tuple(answer.dimensions) == rubric(stage).names(stage)
    assert {scored.score for scored in answer.dimensions.values()} == {8}
    assert answer.dimensions["clarity" if stage != "experiment" else "novelty"].justification
    assert answer.overall.score == 8
    assert answer.overall.strengths == ("short",)
    assert answer.overall.weaknesses == ("old", "slow")
    assert answer.ignored == ()


def test_confidence_is_a_bare_number() -> None:
    assert parse(published("end_to_end"), "end_to_end").confidence == 4


def test_confidence_is_taken_where_it_is_asked_for_only() -> None:
    answer = parse(published("idea") | {"Confidence": 4}, "idea")
    assert answer.confidence is None
    assert answer.ignored == ("confidence",)


def test_hallucination_is_a_flag_with_details() -> None:
    answer = parse(published("experiment"), "experiment")
    assert answer.hallucination is True
    assert answer.hallucination_details == "Table 2 was never run."


def test_the_overall_score_may_be_justified() -> None:
    raw = changed(published("idea"), "OverallAssessment.justification", "all in all")
    assert parse(raw, "idea").overall.justification == "all in all"


@pytest.mark.parametrize("key", ["scale", "score_explanation", "score_range"])
def test_a_stray_key_in_a_dimension_changes_nothing(key: str) -> None:
    raw = changed(published("idea"), f"Novelty.{key}", "1-10")
    assert parse(raw, "idea") == parse(published("idea"), "idea")


def test_a_key_the_rubric_does_not_know_is_named_and_not_used() -> None:
    extra = {"Originality": {"score": 1, "justification": ""}, "AFinalRemark": "none"}
    answer = parse(published("idea") | extra, "idea")
    assert answer.ignored == ("afinal_remark", "originality")
    assert answer.dimensions == parse(published("idea"), "idea").dimensions


@pytest.mark.parametrize("value", [None, 3, ["a"], {"a": "b"}])
def test_words_of_another_type_are_no_words(value: object) -> None:
    raw = changed(published("idea"), "Clarity.justification", value)
    assert parse(raw, "idea").dimensions["clarity"].justification == ""


@given(st.sampled_from(list(STAGES)), st.data())
def test_any_complete_answer_in_range_is_taken(stage: str, data: st.DataObject) -> None:
    raw = published(stage)
    expected = {}
    for name in rubric(stage).names(stage):
        expected[name] = raw[spell(name)]["score"] = data.draw(scores)
        raw[spell(name)]["justification"] = data.draw(st.text())
    answer = parse(raw, stage)
    assert {name: scored.score for name, scored in answer.dimensions.items()} == expected


@given(scores, st.text())
def test_a_stored_review_is_read_back_the_same(score: int, text: str) -> None:
    raw = changed(published("idea", score), "Clarity.justification", text)
    review = make_review(answer=parse(raw, "idea"))
    assert Review.model_validate_json(review.model_dump_json()) == review


def test_half_a_character_in_a_judges_words_does_not_make_the_review_unwritable(
    tmp_path: Path,
) -> None:
    r"""A model's answer cut inside an emoji holds ``\ud83d``: valid JSON, no valid text."""
    raw = changed(published("idea"), "Clarity.justification", f"well done {LONE_SURROGATE}")
    answer = parse(read(tmp_path, json.dumps(raw).encode()), "idea")
    write_json(tmp_path / "stored.json", make_review(answer=answer))
    stored = read_model(tmp_path / "stored.json", Review)
    assert stored is not None
    assert stored.answer.dimensions["clarity"].justification.startswith("well done")


# What is refused


NO_SCORES = [11, 0, -3, "8", 8.5, 8.0, True, False, None, [8], {}, 1e400, 10**30]


@pytest.mark.parametrize("place", ["Clarity.score", "OverallAssessment.score"])
@pytest.mark.parametrize("value", [*NO_SCORES, ABSENT], ids=repr)
def test_a_score_is_a_whole_number_from_1_to_10(place: str, value: object) -> None:
    with pytest.raises(SystemFault, match="must be a whole number from 1 to 10"):
        parse(changed(published("idea"), place, value), "idea")


@pytest.mark.parametrize("value", [*NO_SCORES, 6, ABSENT, {"score": 4}], ids=repr)
def test_confidence_is_a_whole_number_from_1_to_5(value: object) -> None:
    with pytest.raises(SystemFault, match="confidence must be a whole number from 1 to 5"):
        parse(changed(published("end_to_end"), "Confidence", value), "end_to_end")


@pytest.mark.parametrize("value", [ABSENT, None, 0, 1, "false", "no"], ids=repr)
def test_the_hallucination_flag_is_true_or_false(value: object) -> None:
    with pytest.raises(SystemFault, match="must be true or false"):
        parse(
            changed(published("experiment"), "Hallucination.has_hallucination", value), "experiment"
        )


@pytest.mark.parametrize(
    ("stage", "key", "name"),
    [
        ("idea", "Significance", "significance"),
        ("proposal", "Soundness", "soundness"),
        ("experiment", "Insightfulness", "insightfulness"),
        ("experiment", "Hallucination", "hallucination"),
        ("paper", "OverallAssessment", "overall"),
        ("end_to_end", "Overall", "overall"),
    ],
)
def test_no_part_may_be_missing(stage: str, key: str, name: str) -> None:
    with pytest.raises(SystemFault, match=f"^{name} is missing"):
        parse(changed(published(stage), key, ABSENT), stage)


@pytest.mark.parametrize("key", ["Clarity", "OverallAssessment"])
@pytest.mark.parametrize("value", [8, "8", None, [], [{"score": 8}], True], ids=repr)
def test_a_part_is_an_object(key: str, value: object) -> None:
    with pytest.raises(SystemFault, match="must be an object"):
        parse(changed(published("idea"), key, value), "idea")


@pytest.mark.parametrize("raw", [[], [published("idea")], None, 8, "8", True], ids=lambda r: str(r))
def test_a_review_is_an_object(raw: object) -> None:
    with pytest.raises(SystemFault, match="must be a JSON object"):
        parse(raw, "idea")


def test_two_scores_for_one_dimension_are_no_answer() -> None:
    """Told apart by case only, neither is the one that was meant."""
    with pytest.raises(SystemFault, match="clarity"):
        parse(published("idea", 3) | {"clarity": {"score": 9}}, "idea")


@given(json_values)
def test_any_json_is_an_answer_or_a_fault(raw: Any) -> None:
    with pytest.raises(SystemFault) as caught:
        parse(raw, "idea")
    assert caught.value.cause == UNUSABLE


@given(st.sampled_from(list(STAGES)), st.data(), json_values)
def test_any_damage_to_one_part_is_an_answer_or_a_fault(
    stage: str, data: st.DataObject, value: Any
) -> None:
    raw = published(stage)
    places = [*raw, *(f"{key}.{inner}" for key in raw if key != "Confidence" for inner in raw[key])]
    damaged = changed(raw, data.draw(st.sampled_from(places)), value)
    fault = fault_of(lambda: parse(damaged, stage))
    assert fault is None or fault.cause == UNUSABLE


# What is no JSON to begin with


def deep(levels: int) -> bytes:
    return b'{"Clarity":' + b"[" * levels + b"]" * levels + b"}"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"Clarity": {"score": NaN}}', "NaN"),
        (b'{"Clarity": {"score": Infinity}}', "Infinity"),
        (b'{"Clarity": {"score": -Infinity}}', "-Infinity"),
        (b'{"Clarity": {"score": 8}, "Clarity": {"score": 9}}', "'Clarity' is there twice"),
        (b'{"Clarity": {"score": 8, "score": 9}}', "'score' is there twice"),
        ('{"a": "é"}'.encode("latin-1"), "not usable"),
        ('{"a": "é"}'.encode("utf-16"), "not usable"),
        (b'{"a": "\xed\xa0\xbd"}', "not usable"),
        (b'{"Clarity": {"score": 8}', "not usable"),
        (b'{"a": 1}\n{"b": 2}', "Extra data"),
        (b'```json\n{"a": 1}\n```', "not usable"),
        (b'{"a": "line\nbreak"}', "not usable"),
        (b"", "not usable"),
        (b"\0" * 8, "not usable"),
        (b'{"score": ' + b"9" * 5000 + b"}", "not usable"),
        (deep(100_000), "not usable"),
    ],
    ids=[
        "nan",
        "infinity",
        "-infinity",
        "key twice",
        "inner key twice",
        "latin-1",
        "utf-16",
        "encoded surrogate",
        "cut",
        "json lines",
        "fenced",
        "raw newline",
        "empty",
        "nul",
        "huge number",
        "deep",
    ],
)
def test_a_file_that_is_not_strict_json_is_a_fault(
    tmp_path: Path, content: bytes, why: str
) -> None:
    with pytest.raises(SystemFault, match=why) as caught:
        read(tmp_path, content)
    assert caught.value.cause == UNUSABLE
    assert "review.json" in caught.value.message


@pytest.mark.parametrize(
    "make",
    [lambda path: None, lambda path: path.mkdir()],
    ids=["absent", "a folder"],
)
def test_a_file_that_cannot_be_read_is_a_fault(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "review.json")
    with pytest.raises(SystemFault, match="not usable"):
        read_json(tmp_path / "review.json")


def test_nesting_is_a_fault_at_every_depth(tmp_path: Path) -> None:
    """Also where it can just be read, so that it is the message about it that is too deep."""
    for levels in range(850, 1000, 3):
        with pytest.raises(SystemFault):
            parse(read(tmp_path, deep(levels)), "idea")


@given(content=st.binary(max_size=40))
def test_any_bytes_are_json_or_a_fault(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    fault = fault_of(lambda: read(tmp_path_factory.getbasetemp(), content))
    assert fault is None or fault.cause == UNUSABLE


@given(value=json_values)
def test_json_is_read_as_python_reads_it_unless_it_holds_no_number(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    folder, text = tmp_path_factory.getbasetemp(), json.dumps(value)
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        assert fault_of(lambda: read(folder, text.encode())) is not None
    else:
        assert read(folder, text.encode()) == value
