"""What ``results/claims.json`` says is checked at the address that it gives, exactly."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from files import lay
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlrbench.evidence.base import Claim
from pytest_mlrbench.evidence.records.addressed import Addressed, check
from pytest_mlrbench.evidence.records.claims_file import Entry

METRICS = json.dumps(
    {
        "ours": {"accuracy": 0.87314, "a/b": 0.5, "text": "0.75", "runs": [0.86, 0.88]},
        "latency": 0.01523,
        "lost": None,
    }
)
TABLE = "method,accuracy,a/b\nours,0.87314,1\nbase,0.81236,2\nours/2,0.7,n/a\n"
REPORT = "# Results\n\nThe accuracy is 87.3% (base: 0.812).\n"


def checked(folder: Path, claims: object, *printed: Claim, **files: str) -> Addressed:
    text = claims if isinstance(claims, str) else json.dumps(claims)
    lay(
        folder,
        {
            "results/metrics.json": METRICS,
            "results/table.csv": TABLE,
            "results/lines.jsonl": '{"acc": 0.1}\n{"acc": 0.2}\n',
            "results/results.md": REPORT,
            "results/claims.json": text,
            **{name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()},
        },
    )
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return check(found, printed)


def kinds(found: Addressed) -> list[str]:
    return [finding.kind for finding in found.findings if finding.kind != "claim_not_printed"]


def at(source: str, value: object, folder: Path) -> list[str]:
    return kinds(checked(folder, [{"text": "a number", "value": value, "source": source}]))


# How it may be written


@pytest.mark.parametrize(
    "claims",
    [
        [{"text": "accuracy", "value": 0.873, "source": "results/metrics.json#/ours/accuracy"}],
        [{"text": "accuracy", "value": "87.3 %", "source": "results/metrics.json#/ours/accuracy"}],
        {"claims": [{"text": "87.3%", "source": "results/metrics.json#/ours/accuracy", "seed": 1}]},
        {"87.3%": "results/metrics.json#/ours/accuracy"},
        [{"text": "0.873 ± 0.01", "source": "results/metrics.json#/ours/accuracy"}],
    ],
)
def test_every_form_of_the_list_is_understood(claims: object, tmp_path: Path) -> None:
    found = checked(tmp_path, claims)
    assert found.findings == []
    assert (found.listed, found.held) == (1, ["results/metrics.json#/ours/accuracy"])


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("results/metrics.json#/ours/a~1b", 0.5),
        ("results/metrics.json#/ours/text", 0.75),
        ("./results/metrics.json#/ours/runs/1", 0.88),
        ("metrics.json#/ours/accuracy", 0.873),
        ("results/metrics.json#ours/accuracy", 0.873),
        ("results/metrics%2Ejson#/ours/a%7E1b", 0.5),
        ("results/lines.jsonl#/1/acc", 0.2),
        ("results/lines.jsonl#row=2,column=acc", 0.2),
        ("results/table.csv#ours/accuracy", 0.873),
        ("results/table.csv#2/accuracy", 0.812),
        ("results/table.csv#row=2,column=accuracy", 0.812),
        ("results/table.csv#/1/accuracy", 0.812),
        ("results/table.csv#base/a/b", 2),
        ("results/table.csv#ours/2/accuracy", 0.7),
        ("results/table.csv#row=1,column=a%2Fb", 1),
    ],
)
def test_an_address_is_a_pointer_or_a_row_and_a_column(
    source: str, value: float, tmp_path: Path
) -> None:
    assert at(source, value, tmp_path) == []
    assert at(source, value * 1.05, tmp_path) == ["claim_mismatch"]


def test_yaml_is_looked_up_too(tmp_path: Path) -> None:
    claims = {"0.5": "results/m.yaml#/ours/7"}
    assert kinds(checked(tmp_path, claims, results__m_dot_yaml="ours:\n  7: 0.5\n")) == []


@pytest.mark.parametrize(
    ("printed", "holds"),
    [
        ("0.87", True),
        ("0.873", True),
        ("0.8731", True),
        ("0.87314", True),
        ("0.8730", False),
        ("0.872", False),
        ("0.9", True),
        ("87%", True),
        ("87.31", True),
        ("87.32%", False),
    ],
)
def test_the_number_there_rounds_to_the_printed_one(
    printed: str, holds: bool, tmp_path: Path
) -> None:
    found = at("results/metrics.json#/ours/accuracy", printed, tmp_path)
    assert found == ([] if holds else ["claim_mismatch"])


def test_a_number_is_as_exact_as_it_is_written_in_the_list(tmp_path: Path) -> None:
    entry = '[{"text": "a", "value": 0.8730, "source": "results/metrics.json#/ours/accuracy"}]'
    assert kinds(checked(tmp_path, entry)) == ["claim_mismatch"]


def test_milliseconds_may_be_seconds_in_the_file(tmp_path: Path) -> None:
    assert at("results/metrics.json#/latency", "15.2 ms", tmp_path) == []
    assert at("results/metrics.json#/latency", "15.2", tmp_path) == ["claim_mismatch"]


# What is wrong


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("results/absent.json#/a", "names a file that is not there"),
        ("../outside.json#/a", "names a file that is not there"),
        ("results/metrics.json", "names no place in the file"),
        ("results/metrics.json#/ours/f1", "names a place that the file does not have"),
        ("results/metrics.json#/ours", "holds an object, no number"),
        ("results/metrics.json#/lost", "holds nothing, no number"),
        ("results/table.csv#ours/2/a/b", "holds 'n/a', no number"),
        ("results/table.csv#ours", "names a place that the file does not have"),
        ("results/table.csv#9/accuracy", "names a place that the file does not have"),
        ("results/results.md#/a", "leads into a file without addresses, unlike JSON or CSV"),
        ("results/claims.json#/0/value", "is the list of claims itself, which proves nothing"),
        ("results/bad.json#/a", "leads into a file that is no JSON"),
    ],
)
def test_an_address_that_leads_nowhere_is_said_to(source: str, why: str, tmp_path: Path) -> None:
    claims = [{"text": "a", "value": 0.873, "source": source}]
    [finding] = checked(tmp_path, claims, results__bad_dot_json='{"a": 0.8').findings
    assert (finding.kind, finding.severity) == ("claim_unresolved", "strong")
    assert finding.sentence == (
        f"results/claims.json gives a source for 0.873, but {source} {why}."
    )
    assert (finding.place, finding.quote, finding.means) == (
        "results/claims.json#/0",
        "0.873",
        None,
    )


def test_a_number_that_its_source_contradicts_is_quoted_beside_it(tmp_path: Path) -> None:
    claims = {"claims": [{"text": "91.2%", "source": "results/table.csv#ours/accuracy"}]}
    [finding] = checked(tmp_path, claims).findings
    assert (finding.kind, finding.severity, finding.means) == ("claim_mismatch", "strong", None)
    assert finding.sentence == (
        "results/claims.json says 91.2%, but results/table.csv#ours/accuracy holds 0.87314."
    )
    assert finding.place == "results/claims.json#/claims/0"


def test_where_most_numbers_contradict_their_sources_they_were_not_taken_from_there(
    tmp_path: Path,
) -> None:
    source = "results/metrics.json#/ours/accuracy"
    wrong = [{"text": "a", "value": value, "source": source} for value in (0.91, 0.92, 0.93)]
    right = [{"text": "a", "value": 0.873, "source": source}] * 4
    paper = [entry | {"document": "results/paper.md"} for entry in wrong]
    assert {one.means for one in checked(tmp_path, wrong).findings} == {"fabricated"}
    assert {one.means for one in checked(tmp_path, paper).findings} == {"paper_untraced"}
    assert {one.means for one in checked(tmp_path, wrong + right).findings} == {None}


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ("{nothing", "results/claims.json is no JSON, so no number is looked up by it."),
        ("7", "results/claims.json is no list of claims, so no number is looked up by it."),
        ("[" * 100_000, "results/claims.json is no JSON, so no number is looked up by it."),
        (" " * 4_000_001, "results/claims.json is too long to be read, so no number is .*"),
        ([{"text": "0.5"}], "An entry of .*claims.json cannot be used: source: Field required."),
        (["0.5"], "An entry of results/claims.json cannot be used: Input should be .*"),
        (
            [{"text": "ours after 5 epochs: 0.873", "source": "metrics.json#/ours/accuracy"}],
            "An entry of results/claims.json has no number, or several of them and no value.",
        ),
        (
            [{"text": "nan", "value": "NaN", "source": "results/metrics.json#/ours/accuracy"}],
            "An entry of results/claims.json has no number, or several of them and no value.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said_in_a_sentence_and_decides_nothing(
    claims: object, sentence: str, tmp_path: Path
) -> None:
    [finding] = checked(tmp_path, claims).findings
    assert (finding.kind, finding.severity, finding.means) == ("claims_unreadable", "hint", None)
    assert re.fullmatch(sentence, finding.sentence)


def test_without_a_list_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert check({}, []) == Addressed()


def test_a_file_that_is_too_long_is_no_fault_of_the_address(tmp_path: Path) -> None:
    long = "[" + "0.5," * 2_000_001 + "1]"
    found = checked(tmp_path, {"0.5": "results/long.json#/7"}, results__long_dot_json=long)
    assert [(one.kind, one.severity) for one in found.findings] == [("claim_unresolved", "hint")]


# What the documents print


def test_an_entry_that_holds_vouches_for_the_number_in_the_document(tmp_path: Path) -> None:
    def printed(text: str, value: float, document: str = "results/results.md") -> Claim:
        return Claim(document, 3, text, value, 0.05, percent=text.endswith("%"))

    same, other = printed("87.3%", 87.3), printed("0.812", 0.812)
    elsewhere = printed("87.3%", 87.3, "results/paper.md")
    source = "results/metrics.json#/ours/accuracy"
    claims = [{"text": "a", "value": 0.873, "source": source, "document": "results.md"}]
    assert checked(tmp_path, claims, same, other, elsewhere).places == {same: source}
    exact = [{"text": "a", "value": 0.87314, "source": source}]
    assert checked(tmp_path, exact, same, elsewhere).places == {same: source, elsewhere: source}


def test_a_number_that_no_document_prints_any_more_is_told(tmp_path: Path) -> None:
    claims = {
        "87.3%": "results/metrics.json#/ours/accuracy",
        "0.88": "results/metrics.json#/ours/runs/1",
    }
    [finding] = checked(tmp_path, claims).findings
    assert (finding.kind, finding.severity) == ("claim_not_printed", "hint")
    assert finding.sentence == (
        "No document prints 1 of the 2 numbers whose source in results/claims.json is right: "
        "0.88 (results/metrics.json#/ours/runs/1)."
    )


# How good it is


@pytest.mark.parametrize("place", ["in the list too", "in the document alone"])
def test_a_number_changed_by_2_to_20_percent_is_found(place: str, tmp_path: Path) -> None:
    dice = random.Random(6)
    found = total = unseen = 0
    for _ in range(400):
        value = dice.choice((1, 100)) * dice.uniform(0.02, 1)
        decimals = dice.randint(1, 4)
        before = f"{value:.{decimals}f}"
        after = f"{value * (1 + dice.choice((-1, 1)) * dice.uniform(0.02, 0.2)):.{decimals}f}"
        if after == before:
            unseen += 1  # the change is smaller than what is printed
            continue
        total += 1
        listed = after if place == "in the list too" else before
        claims = [{"text": "it", "value": listed, "source": "results/one.json#/it"}]
        lay(
            tmp_path,
            {
                "results/one.json": json.dumps({"it": value}),
                "results/results.md": f"| method | score |\n|---|---|\n| ours | {after} |\n",
                "results/claims.json": json.dumps(claims),
            },
        )
        files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*.*")}
        found += bool(check(files, ()).findings)
    assert total > 300
    assert unseen < 60
    assert found >= 0.95 * total


@settings(max_examples=200, deadline=None)
@given(st.floats(min_value=-1e6, max_value=1e6), st.integers(0, 6), st.booleans())
def test_a_number_that_is_printed_as_it_is_is_never_found_wrong(
    tmp_path_factory: pytest.TempPathFactory, value: float, decimals: int, percent: bool
) -> None:
    printed = f"{100 * value:.{decimals}f}%" if percent else f"{value:.{decimals}f}"
    folder = tmp_path_factory.getbasetemp() / "exact"
    lay(
        folder,
        {
            "results/one.json": json.dumps({"it": value}),
            "results/claims.json": json.dumps({printed: "results/one.json#/it"}),
        },
    )
    files = {f"results/{name}": folder / "results" / name for name in ("one.json", "claims.json")}
    assert kinds(check(files, ())) == []


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
    st.text(max_size=40),
)  # fmt: skip
def test_no_list_and_no_address_raises(
    tmp_path_factory: pytest.TempPathFactory, content: object, place: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    entries = [{"text": "0.5", "source": f"results/table.csv#{place}"}]
    for text in (
        json.dumps(content),
        json.dumps(entries),
        json.dumps({"0.5": f"metrics.json#{place}"}),
    ):
        checked(folder, text)


def test_the_list_has_a_schema() -> None:
    schema = Entry.model_json_schema()
    assert schema["required"] == ["text", "source"]
