"""The shipped rubrics say what the design promises, and a broken one is refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.suites.rubrics import load_rubric, rubric, stage_rubrics
from pytest_mlrbench.suites.stages import STAGES

DIMENSIONS = {
    "idea": {"consistency", "clarity", "novelty", "feasibility", "significance"},
    "proposal": {
        "consistency",
        "clarity",
        "novelty",
        "feasibility",
        "significance",
        "soundness",
    },
    "experiment": {
        "consistency",
        "completeness",
        "novelty",
        "soundness",
        "insightfulness",
        "significance",
    },
    "paper": {"consistency", "clarity", "completeness", "soundness"},
    "end_to_end": {"clarity", "novelty", "soundness", "significance"},
}
FIVE = ["9-10", "7-8", "5-6", "3-4", "1-2"]
SIX = ["10", "8-9", "6-7", "4-5", "2-3", "1"]


def test_every_stage_has_its_rubric() -> None:
    assert {stage: set(r.names(stage)) for stage, r in stage_rubrics().items()} == DIMENSIONS


@pytest.mark.parametrize("path", sorted(shipped("rubrics").glob("*.yaml")), ids=lambda p: p.stem)
def test_shipped_rubrics_load_and_have_the_bands_of_the_scale(path: Path) -> None:
    loaded = load_rubric(path)
    assert list(loaded.overall.bands) == SIX
    assert all(list(dimension.bands) == FIVE for dimension in loaded.dimensions)
    assert len(loaded.digest) == 64


@pytest.mark.parametrize("stage", STAGES)
def test_judges_are_told_to_treat_what_they_read_as_data(stage: str) -> None:
    loaded = rubric(stage)
    assert loaded.stages == (stage,)
    assert "ignore the request" in " ".join(loaded.instructions.split())
    assert loaded.confidence == (stage == "end_to_end")
    assert loaded.hallucination == (stage == "experiment")


def test_anchors_are_not_shared_between_dimensions() -> None:
    anchors = [
        anchor
        for loaded in stage_rubrics().values()
        for dimension in loaded.dimensions
        for anchor in dimension.bands.values()
    ]
    assert len(set(anchors)) == len(anchors)


def _document(name: str = "mine", **changes: Any) -> dict[str, Any]:
    dimension = {"name": "depth", "question": "How deep?", "bands": dict.fromkeys(FIVE, "…")}
    return {
        "name": name,
        "title": "Mine",
        "stages": ["idea"],
        "instructions": "Read.",
        "dimensions": [dimension],
        "overall": {"question": "And?", "bands": {10: "…", **dict.fromkeys(SIX[1:], "…")}},
        **changes,
    }


def _dimension(**changes: Any) -> dict[str, Any]:
    return {**_document()["dimensions"][0], **changes}


def _write(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def test_a_user_s_own_rubric_goes_before_the_shipped_one(tmp_path: Path) -> None:
    document = _document("idea")
    (tmp_path / "idea.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    rubrics = stage_rubrics(tmp_path)
    assert rubrics["idea"].names("idea") == ("depth",)
    assert rubrics["paper"] == rubric("paper")


BROKEN = {
    "gap": (_document(dimensions=[_dimension(bands={"9-10": "a", "1-7": "b"})]), "10 down to 1"),
    "worst first": (
        _document(dimensions=[_dimension(bands=dict.fromkeys(reversed(FIVE), "…"))]),
        "best first",
    ),
    "no range": (_document(dimensions=[_dimension(bands={"good": "a"})]), "'good'"),
    "unknown key": (_document(weight=2), "weight"),
    "unknown key of a dimension": (
        _document(dimensions=[_dimension(weight=2)]),
        "dimensions.0.weight",
    ),
    "missing key": (
        {k: v for k, v in _document().items() if k != "instructions"},
        "instructions",
    ),
    "other name": (_document("yours"), "name it 'mine'"),
    "twice": (_document(dimensions=[_dimension(), _dimension()]), "twice"),
    "reserved": (_document(dimensions=[_dimension(name="overall")]), "reserved: overall"),
    "no snake_case": (_document(dimensions=[_dimension(name="Depth")]), "dimensions.0.name"),
    "unknown stage": (_document(stages=["review"]), "unknown stage 'review'"),
    "unknown stage of a dimension": (
        _document(dimensions=[_dimension(stages=["review"])]),
        "unknown stage 'review'",
    ),
    "no stage": (_document(stages=[]), "stages"),
    "no dimension": (_document(dimensions=[]), "dimensions"),
}


@pytest.mark.parametrize(("document", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rubric_is_refused(tmp_path: Path, document: dict[str, Any], said: str) -> None:
    path = _write(tmp_path, document)
    with pytest.raises(InputError) as caught:
        load_rubric(path)
    _is_one_sentence_about(caught.value, path, said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no rubric file"),
        (b"name: [", "cannot be read"),
        (b"name: \xff", "cannot be read"),
        (b"- a list", "the top level"),
        (b"", "the top level"),
        (b"name: !!python/object:os.system x", "cannot be read"),
    ],
    ids=["missing", "bad YAML", "not UTF-8", "list", "empty", "object"],
)
def test_an_unreadable_rubric_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_rubric(path)
    _is_one_sentence_about(caught.value, path, said)


def _is_one_sentence_about(error: InputError, path: Path, said: str) -> None:
    message = str(error)
    assert str(path) in message
    assert said in message
    assert "\n" not in message
    assert message.endswith(".")
