"""Three catalogues of works: how each is asked, and which titles its answers hold."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Name = Literal["arxiv", "crossref", "openalex"]
#: What was asked for → the titles there are for it; of a work that is not known, none.
Titles = dict[str, tuple[str, ...]]

_ENTRY = re.compile(r"<entry\b[^>]{0,200}>(.{0,100000}?)</entry>", re.DOTALL)
_ID = re.compile(r"<id>\s{0,9}https?://arxiv\.org/abs/([^<\s]{1,60}?)(?:v\d{1,3})?\s{0,9}</id>")
_TITLE = re.compile(r"<title\b[^>]{0,200}>([^<]{1,2000})</title>")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A catalogue and its manners.

    :param address: environment variable with the address of a mirror, and the address otherwise.
    :param pause: seconds between two requests, as it asks of everybody.
    :param at_once: most requests at a time.
    :param together: most works that one request asks for.
    :param path: works that are asked for → path and parameters.
    :param read: the works and the text of the answer → their titles; raises ValueError, KeyError
        or TypeError for what is no answer.
    """

    name: Name
    address: tuple[str, str]
    pause: float
    at_once: int
    together: int
    path: Callable[[Sequence[str]], tuple[str, Mapping[str, str]]]
    read: Callable[[Sequence[str], str], Titles]


def _arxiv_path(ids: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    return "/api/query", {"id_list": ",".join(ids), "max_results": f"{len(ids)}"}


def _read_arxiv(ids: Sequence[str], text: str) -> Titles:
    # No feed has a document type; one that has might be made to grow.
    if "<feed" not in text[:2000] or "</feed>" not in text or "<!DOCTYPE" in text:
        raise ValueError("no feed")
    found: Titles = dict.fromkeys(ids, ())
    for entry in _ENTRY.findall(text):
        name, title = _ID.search(entry), _TITLE.search(entry)
        if name and title and name[1] in found:
            found[name[1]] = (_plain(title[1]),)
    return found


# DOIs are asked for by a filter: an empty list is an answer, while "404" may be anybody's.


def _crossref_path(dois: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    return "/works", {"filter": f"doi:{dois[0]}", "select": "DOI,title", "rows": "5"}


def _read_crossref(dois: Sequence[str], text: str) -> Titles:
    works = json.loads(text)["message"]["items"]
    return {dois[0]: _texts([title for work in works for title in work["title"]])}


def _openalex_path(wanted: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    asked = {"select": "id,display_name", "per_page": "5"}
    if re.match(r"10\.\d{4,9}/", wanted[0]):
        return "/works", asked | {"filter": f"doi:{wanted[0]}"}
    # Operators and quotation marks have a meaning of their own.
    plain = " ".join(re.findall(r"\w+(?:-\w+)*", wanted[0].lower()))[:200]
    return "/works", asked | {"search": plain}


def _read_openalex(wanted: Sequence[str], text: str) -> Titles:
    return {wanted[0]: _texts([work["display_name"] for work in json.loads(text)["results"]])}


def _texts(titles: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_plain(title) for title in titles[:10] if isinstance(title, str))


def _plain(title: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^<>]{1,200}>", "", title[:2000])).split())


CATALOGUES: Mapping[Name, Catalogue] = {
    "arxiv": Catalogue(
        name="arxiv",
        address=("MLR_ARXIV_URL", "https://export.arxiv.org"),
        pause=3.0,
        at_once=1,
        together=40,
        path=_arxiv_path,
        read=_read_arxiv,
    ),
    "crossref": Catalogue(
        name="crossref",
        address=("MLR_CROSSREF_URL", "https://api.crossref.org"),
        pause=0.1,
        at_once=3,
        together=1,
        path=_crossref_path,
        read=_read_crossref,
    ),
    "openalex": Catalogue(
        name="openalex",
        address=("MLR_OPENALEX_URL", "https://api.openalex.org"),
        pause=0.1,
        at_once=3,
        together=1,
        path=_openalex_path,
        read=_read_openalex,
    ),
}
