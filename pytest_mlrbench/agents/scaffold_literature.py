"""The literature review: the model says what to search for, the catalogue answers, it reviews."""

from __future__ import annotations

import json
from typing import Any

from pytest_mlrbench.addresses import of_variable, without_secrets
from pytest_mlrbench.agents import scaffold_citations as citations
from pytest_mlrbench.agents import scaffold_openalex as openalex
from pytest_mlrbench.agents.scaffold_author import Author
from pytest_mlrbench.agents.scaffold_works import Work

#: The searches there are, beside none at all.
SEARCHES = ("openalex",)

#: What stands where no search was asked for.
NOT_SEARCHED = "# Related Work\n\nNo literature search was made."
_MOST_QUERIES = 6
_QUERIES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 3,
            "maxItems": _MOST_QUERIES,
        }
    },
    "required": ["queries"],
    "additionalProperties": False,
}


async def related_work(author: Author, search: str) -> None:
    """Write ``related_work.md``.

    :param search: one of ``SEARCHES``; empty for none, which the text then says.
    """
    if not search:
        author.log.say("related_work: no literature search was chosen")
        author.write("related_work.md", NOT_SEARCHED)
        return
    task, idea = author.read("task.md"), author.read("idea.md")
    asked = await author.filled("queries", _QUERIES, _queries, task=task, idea=idea)
    queries = _queries(json.loads(asked))
    works = citations.keyed(await _works(author, queries))
    if not works:
        author.log.say("related_work: nothing was found")
        author.write("related_work.md", _nothing_found(queries))
        return
    review = await author.written(
        "related_work", "related_work", task=task, idea=idea, works=citations.for_model(works)
    )
    text, cited, removed = citations.checked(review, works)
    for citation in removed:
        author.log.say(f"related_work: removed {citation!r}, which is none of the works found")
    how = f"Found in OpenAlex with the queries {_listed(queries)}."
    author.write("related_work.md", f"{text}\n\n{citations.references(cited, works)}\n\n{how}")


async def _works(author: Author, queries: list[str]) -> list[Work]:
    """What the catalogue has; in a case that is gone on with, what it had the first time."""
    key = author.key([of_variable(*openalex.ADDRESS, without_secrets), queries])
    record = author.steps.find("works", key)
    if record is not None and record.text is not None:
        author.log.say("literature: the works found in an earlier try")
        return [Work.model_validate(entry) for entry in json.loads(record.text)]
    works = await openalex.search(queries, author.log.say)
    text = json.dumps([work.model_dump(mode="json") for work in works])
    author.steps.keep_text("works", key, text, ())
    return list(works)


def _queries(document: Any) -> list[str]:
    """The queries of the model's answer, as plain words.

    :raises ValueError: there are none.
    """
    try:
        wanted = [openalex.clean_query(query) for query in document["queries"]]
    except (TypeError, KeyError, AttributeError):
        raise ValueError("it holds no queries") from None
    if not (found := list(dict.fromkeys(filter(None, wanted)))[:_MOST_QUERIES]):
        raise ValueError("no query has a word")
    return found


def _nothing_found(queries: list[str]) -> str:
    return (
        "# Related Work\n\nA literature search was made, and it found nothing: OpenAlex has no"
        f" works for the queries {_listed(queries)}. No work is cited for that reason."
    )


def _listed(queries: list[str]) -> str:
    return ", ".join(f"“{query}”" for query in queries)
