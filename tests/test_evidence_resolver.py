"""Looking up citations: a catalogue's word is taken, a fault is never taken for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from github_server import Server, answers, hang, serving, set_environment, truncate

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.evidence.papers import resolver
from pytest_mlrbench.evidence.papers.asking import Patience
from pytest_mlrbench.evidence.papers.catalogue_cache import Cache
from pytest_mlrbench.evidence.papers.references import Entry
from pytest_mlrbench.evidence.papers.resolver import Answer

if find_spec("httpx") is None:
    pytest.skip("httpx is not installed", allow_module_level=True)

TODAY = date(2026, 6, 15)
QUICK = Patience(attempts=3, first=0.001, longest=0.002, answer=0.5, pace=0.0)
ATTENTION = "Attention Is All You Need"


def work(title: str = ATTENTION, arxiv: str = "", doi: str = "") -> Entry:
    return Entry("", "Ada Ker", title, 2017, arxiv, doi, 1, title)


def feed(**titles: str) -> bytes:
    works = "".join(
        f"<entry>\n<id>http://arxiv.org/abs/{name.replace('_', '.')}v7</id>"
        f"<title>{title}</title><author><name>A</name></author></entry>"
        for name, title in titles.items()
    )
    return f'<?xml version="1.0"?><feed xmlns="x"><title>q</title>{works}</feed>'.encode()


def crossref(title: str) -> bytes:
    return json.dumps({"message": {"items": [{"title": [title], "DOI": "10.1/x"}]}}).encode()


NOTHING = b'{"message": {"items": []}}'


def openalex(*titles: str) -> bytes:
    return json.dumps({"results": [{"display_name": title} for title in titles]}).encode()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """The three catalogues: what is asked for → the answer."""

    def name(path: str) -> str:
        url = urlsplit(path)
        asked = parse_qs(url.query)
        return next(
            (asked[key][0] for key in ("id_list", "search") if key in asked),
            f"{url.path.split('/')[1]} {asked.get('filter', [''])[0]}",
        )

    server = Server()
    set_environment(monkeypatch, server, tmp_path / "cache")
    with serving(server, name) as server:
        for catalogue in ("ARXIV", "CROSSREF", "OPENALEX"):
            monkeypatch.setenv(f"MLR_{catalogue}_URL", f"{server.url}/{catalogue.lower()}")
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "answers")


def ask(cache: Cache, *entries: Entry, patience: Patience = QUICK) -> list[Answer]:
    return resolver.resolve(entries, TODAY, cache=cache, patience=patience)


def verdicts(cache: Cache, *entries: Entry) -> list[tuple[str, str | None]]:
    return [(answer.verdict, answer.by) for answer in ask(cache, *entries)]


# What catalogues say


def test_identifiers_are_asked_for_together(world: Server, cache: Cache) -> None:
    world.content["1706.03762,1412.6980,2301.00009"] = feed(
        **{"1706_03762": "Attention is\n  all you &amp; need", "1412_6980": "Adam: A Method"}
    )
    assert verdicts(
        cache,
        work(arxiv="1706.03762"),
        work("A Study of Cats", arxiv="1412.6980"),
        work(arxiv="2301.00009"),
    ) == [("exists", "arxiv"), ("title_differs", "arxiv"), ("not_found", "arxiv")]
    assert len(world.asked) == 1


def test_a_doi_is_asked_of_one_catalogue_and_then_the_other(world: Server, cache: Cache) -> None:
    world.content["crossref doi:10.1000/a(1)"] = crossref("Attention <i>Is</i> All You Need!")
    world.content["crossref doi:10.5281/data"] = NOTHING
    world.content["openalex doi:10.5281/data"] = openalex("Attention: all")
    world.content["crossref doi:10.1000/none"] = NOTHING
    world.content["openalex doi:10.1000/none"] = openalex()
    assert verdicts(
        cache, work(doi="10.1000/a(1)"), work(doi="10.5281/data"), work(doi="10.1000/none")
    ) == [("exists", "crossref"), ("exists", "openalex"), ("not_found", "openalex")]


def test_a_title_alone_exists_if_a_work_has_it(world: Server, cache: Cache) -> None:
    world.content["attention is all you need"] = openalex("Cats", "Attention is all you need.")
    world.content["a study of nothing at all"] = openalex("A Study of Cats and of Dogs")
    found = ask(cache, work(), work("A Study of “Nothing” at All"), work("?"))
    assert [it.verdict for it in found] == ["exists", "not_found", "not_asked"]
    assert found[0].title == "Attention is all you need."


def test_what_nobody_can_have_is_not_asked_for(world: Server, cache: Cache) -> None:
    answers_ = ask(cache, work(arxiv="2313.00001"), work(arxiv="2405.xxxxx"))
    assert [it.verdict for it in answers_] == ["not_asked"] * 2
    assert world.asked == []
    world.content["2401.12345"] = feed()
    arxiv = work(doi="10.48550/arXiv.2401.12345")
    assert verdicts(cache, arxiv) == [("not_found", "arxiv")]


# Faults


@pytest.mark.parametrize(
    ("fault", "words", "tries"),
    [
        (answers(429, Retry_After="0"), "allows no more requests", 3),
        (answers(429, Retry_After="7200"), "allows no more requests until", 1),
        (answers(500), "answers 500", 3),
        (answers(403), "answers 403", 1),
        (answers(404, b"Not here"), "is no such catalogue", 1),
        (answers(200, b"<html>Sign in</html>"), "is no answer", 3),
        (answers(200, b'{"message": []}'), "is no answer", 3),
        (answers(200, b'{"results": [7], "message": {"items": 7}}'), "is no answer", 3),
        (answers(200, b"[" * 200_000), "is no answer", 3),
        (answers(200, b'<feed><!DOCTYPE a [<!ENTITY b "c">]></feed>'), "is no answer", 3),
        (answers(200, b"\xff" * 5_000_000), "is no answer", 3),
        (truncate, "broke off", 3),
        (hang, "was silent", 3),
    ],
)
@pytest.mark.parametrize("entry", [work(arxiv="1706.03762"), work(doi="10.1000/a"), work()])
def test_a_fault_is_no_answer(
    world: Server, cache: Cache, fault: object, words: str, tries: int, entry: Entry
) -> None:
    world.content |= {"1706.03762": feed(), "crossref doi:10.1000/a": NOTHING}
    world.content["attention is all you need"] = openalex()
    world.always["*"] = fault  # type: ignore[assignment]
    (answer,) = ask(cache, entry)
    assert answer.verdict == "not_asked"
    assert words in (answer.why or "")
    assert len(world.asked) == tries


def test_a_fault_that_passes_is_waited_for(world: Server, cache: Cache) -> None:
    world.content["1706.03762"] = feed(**{"1706_03762": ATTENTION})
    world.once["1706.03762"] = [answers(429, Retry_After="0"), answers(503)]
    assert verdicts(cache, work(arxiv="1706.03762")) == [("exists", "arxiv")]
    assert len(world.asked) == 3


def test_a_catalogue_that_is_down_is_left_alone_and_others_are_asked(
    world: Server, cache: Cache
) -> None:
    world.content["attention is all you need"] = openalex(ATTENTION)
    for number in range(30):
        world.always[f"crossref doi:10.1000/{number}"] = answers(500)
    found = ask(cache, work(), *(work(doi=f"10.1000/{number}") for number in range(30)))
    assert [it.verdict for it in found] == ["exists"] + ["not_asked"] * 30
    # Those in flight when it was found to be down.
    assert len(world.asked) <= 1 + 3 * QUICK.attempts


def test_no_server_at_all_is_no_answer(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLR_ARXIV_URL", "http://127.0.0.1:9")
    (answer,) = ask(cache, work(arxiv="1706.03762"))
    assert answer.verdict == "not_asked"
    assert "cannot be reached" in (answer.why or "")


def test_all_of_it_ends_in_time(world: Server, cache: Cache) -> None:
    world.delay = 0.3
    slow = Patience(attempts=1, answer=2, total=0.5, pace=0.0)
    found = ask(cache, *(work(doi=f"10.1000/{number}") for number in range(30)), patience=slow)
    assert {it.verdict for it in found} == {"not_asked"}
    assert "within 0.5 s" in (found[-1].why or "")


# Manners


def test_pauses_are_kept_and_few_requests_are_open_at_once(world: Server, cache: Cache) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    ids = [f"2301.{number:05}" for number in range(1, 82)]
    for start in (0, 40, 80):
        world.content[",".join(ids[start : start + 40])] = feed()
    found = ask(cache, *(work(arxiv=it) for it in ids), patience=Patience(sleep=sleep))
    assert [it.verdict for it in found] == ["not_found"] * 81
    assert world.most == 1
    assert len(world.asked) == 3
    assert 8 < sum(slept) - slept[0] + 3 < 10


# The cache


def test_an_answer_is_asked_for_once(world: Server, cache: Cache, tmp_path: Path) -> None:
    world.content["attention is all you need"] = openalex(ATTENTION)
    entries = (work(), work(), work(doi="10.1000/none"))
    world.content |= {"crossref doi:10.1000/none": NOTHING}
    world.content |= {"openalex doi:10.1000/none": openalex()}
    expected = [("exists", "openalex"), ("exists", "openalex"), ("not_found", "openalex")]
    assert verdicts(cache, *entries) == expected
    asked = len(world.asked)
    assert asked == 3
    assert verdicts(cache, *entries) == expected
    assert len(world.asked) == asked
    assert not list(tmp_path.rglob("*.part"))


def test_a_fault_is_not_kept(world: Server, cache: Cache) -> None:
    world.always["*"] = answers(500)
    assert verdicts(cache, work()) == [("not_asked", None)]
    world.always.clear()
    world.content["attention is all you need"] = openalex(ATTENTION)
    assert verdicts(cache, work()) == [("exists", "openalex")]


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 90_000, b'{"titles": 7}', b"\xff\xfe"])
def test_a_spoilt_cache_is_asked_again(
    world: Server, cache: Cache, tmp_path: Path, content: bytes
) -> None:
    world.content["attention is all you need"] = openalex(ATTENTION)
    assert verdicts(cache, work()) == [("exists", "openalex")]
    (kept,) = tmp_path.joinpath("answers").rglob("*.json")
    kept.write_bytes(content)
    assert verdicts(cache, work()) == [("exists", "openalex")]
    assert len(world.asked) == 2


def test_what_was_not_found_long_ago_is_asked_again(
    world: Server, cache: Cache, tmp_path: Path
) -> None:
    world.content["attention is all you need"] = openalex()
    assert verdicts(cache, work()) == [("not_found", "openalex")]
    (kept,) = tmp_path.joinpath("answers").rglob("*.json")
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"time": 0}))
    world.content["attention is all you need"] = openalex(ATTENTION)
    assert verdicts(cache, work()) == [("exists", "openalex")]


def test_a_cache_that_cannot_be_written_changes_nothing(world: Server, tmp_path: Path) -> None:
    tmp_path.joinpath("file").write_text("")
    world.content["attention is all you need"] = openalex(ATTENTION)
    assert verdicts(Cache(tmp_path / "file"), work()) == [("exists", "openalex")]


def test_an_address_that_is_none_is_said_before_anything_is_asked(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLR_ARXIV_URL", "export.arxiv.org")
    with pytest.raises(InputError, match="MLR_ARXIV_URL must be an address"):
        ask(cache, work())
