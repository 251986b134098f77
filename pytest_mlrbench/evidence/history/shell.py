"""A shell command as the simple commands it is made of. Nothing is executed.

What cannot be known (``$x`` of a loop, ``$(date)``) is a ``*`` in a word, as in a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Characters of a command that are read; how deep commands may stand in one another.
_LONGEST, _DEEPEST = 400_000, 8


@dataclass(slots=True)
class Step:
    """One simple command, or one bracket of a subshell (``words`` is then ``["("]``).

    :param words: without quotes.
    :param writes: files that its standard output goes to; *appends* tells of those that grow.
    :param reads: files that its standard input comes from.
    :param stdin: text that is its standard input: a here-document or here-string.
    :param is_piped: whether its input is the output of the step before.
    :param is_aside: whether it runs in the background.
    :param is_masked: whether the exit code of the whole may be another's.
    """

    words: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    appends: set[str] = field(default_factory=set)
    reads: list[str] = field(default_factory=list)
    stdin: str | None = None
    is_piped: bool = False
    is_aside: bool = False
    is_masked: bool = False


_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_REDIRECT = re.compile(r"(?P<fd>\d|&)?(?P<sign><<<|<<-?|>>|>\||>&|<&|&>>|&>|<>|<|>)")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[;&|()\n]")
_PLAIN = re.compile(r"[^ \t\r\n\"'\\;&|<>()`$]+")
_SINGLE = re.compile(r"'([^']*)(?:'|\Z)")
_IN_DOUBLE = re.compile(r"[^\"\\`$]+")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|\{[^}\n]{0,200}\}|[@#?$!*-])")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_BRACES = re.compile(r"\{[^{}\s]{0,500},[^{}\s]{0,500}\}")


def steps(text: str) -> list[Step]:
    """Return the simple commands of *text* in their order; of what is cut off, what is there."""
    return list(_Reader(text[:_LONGEST], {}, 0).read())


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, text: str, variables: dict[str, str], depth: int) -> None:
        self._text = text
        self._place = 0
        self._variables = variables
        self._depth = depth
        self._waiting: list[tuple[str, bool, Step]] = []
        #: Steps of ``$(…)`` inside of words.
        self._inner: list[Step] = []

    def read(self) -> Iterator[Step]:
        step = Step()
        while self._place < len(self._text):
            if blank := _BLANK.match(self._text, self._place):
                self._place = blank.end()
            elif self._text[self._place] == "#":
                end = self._text.find("\n", self._place)
                self._place = len(self._text) if end < 0 else end
            elif redirect := _REDIRECT.match(self._text, self._place):
                self._place = redirect.end()
                self._redirected(redirect, step)
            elif operator := _OPERATOR.match(self._text, self._place):
                self._place = operator.end()
                step.is_aside = operator[0] == "&"
                step.is_masked = operator[0] not in ("&&", ")", "\n")
                if operator[0] == "\n":
                    self._documents()
                    # Only the last line of several decides how all of it ends.
                    step.is_masked = bool(self._text[self._place :].strip())
                yield from self._closed(step)
                if operator[0] in ("(", ")"):
                    yield Step([operator[0]])
                step = Step(is_piped=operator[0] in ("|", "|&"))
            else:
                step.words.append(self._word())
        self._documents()
        yield from self._closed(step)

    def _closed(self, step: Step) -> Iterator[Step]:
        """Yield *step* without its assignments, after the commands in its words."""
        yield from self._inner
        self._inner = []
        while step.words and (given := _ASSIGNED.fullmatch(step.words[0])):
            self._variables[given["name"]] = given["value"][:4096]
            step.words.pop(0)
        if step.words[:1] == ["export"] and len(step.words) > 1:
            for given in filter(None, map(_ASSIGNED.fullmatch, step.words[1:])):
                self._variables[given["name"]] = given["value"][:4096]
        if step.words or step.writes:
            yield step

    def _redirected(self, redirect: re.Match[str], step: Step) -> None:
        sign, fd = redirect["sign"], redirect["fd"]
        if blank := _BLANK.match(self._text, self._place):
            self._place = blank.end()
        start = self._place
        word = self._word()
        if sign.startswith("<<") and sign != "<<<":
            is_raw = self._text[start : self._place] != word
            self._waiting.append((word, is_raw, step))
        elif sign == "<<<":
            step.stdin = word + "\n"
        elif sign == "<":
            step.reads.append(word)
        elif ">" in sign and fd != "2" and word != "/dev/null":
            if sign == ">&" and (word.isdigit() or word == "-"):
                return  # another file descriptor
            step.writes.append(word)
            if sign.endswith(">>"):
                step.appends.add(word)

    def _documents(self) -> None:
        """Read the here-documents that begin on the line that has just ended."""
        for end, is_raw, step in self._waiting:
            lines = []
            while self._place < len(self._text):
                stop = self._text.find("\n", self._place)
                stop = len(self._text) if stop < 0 else stop
                line = self._text[self._place : stop]
                self._place = stop + 1
                if line.strip("\t\r ") == end:
                    break
                lines.append(line)
            body = "".join(line + "\n" for line in lines)
            step.stdin = body if is_raw else _VARIABLE.sub(self._value, body)
        self._waiting = []

    def _value(self, variable: re.Match[str]) -> str:
        return self._variables.get(variable[1] or variable[2] or "", "*")

    def _word(self) -> str:
        """Read one word. It is empty, and takes one sign, where there is none."""
        pieces: list[str] = []
        while self._place < len(self._text):
            if plain := _PLAIN.match(self._text, self._place):
                self._place = plain.end()
                pieces.append(_BRACES.sub("*", plain[0]))
            elif single := _SINGLE.match(self._text, self._place):
                self._place = single.end()
                pieces.append(single[1])
            elif self._text[self._place] == '"':
                self._place += 1
                pieces.append(self._double())
            elif self._text[self._place] == "\\":
                pieces.append(self._text[self._place + 1 : self._place + 2].replace("\n", ""))
                self._place += 2
            elif self._text[self._place] in "$`":
                pieces.append(self._dollar())
            else:
                break
        return "".join(pieces)

    def _double(self) -> str:
        pieces: list[str] = []
        while self._place < len(self._text) and self._text[self._place] != '"':
            if plain := _IN_DOUBLE.match(self._text, self._place):
                self._place = plain.end()
                pieces.append(plain[0])
            elif self._text[self._place] == "\\":
                sign = self._text[self._place + 1 : self._place + 2]
                pieces.append(sign if sign in '"\\$`' else "" if sign == "\n" else "\\" + sign)
                self._place += 2
            else:
                pieces.append(self._dollar())
        self._place += 1
        return "".join(pieces)

    def _dollar(self) -> str:
        """Read what is put in by the shell: a variable's value, or a command's output."""
        start = self._place
        if self._text.startswith("$'", start):
            self._place += 1
            return ""
        if self._text.startswith("$(", start):
            self._place = _closing(self._text, start + 1)
            inner = self._text[start + 2 : self._place - 1]
        elif self._text[start] == "`":
            end = self._text.find("`", start + 1)
            self._place = len(self._text) if end < 0 else end + 1
            inner = self._text[start + 1 : self._place - 1]
        elif variable := _VARIABLE.match(self._text, start):
            self._place = variable.end()
            return self._value(variable)
        else:
            self._place += 1
            return "$"
        if self._depth < _DEEPEST:
            self._inner += _Reader(inner, self._variables, self._depth + 1).read()
        return "*"


def _closing(text: str, start: int) -> int:
    """Return the place after the bracket that closes the one at *start*."""
    depth = 0
    for found in re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|[()]", re.DOTALL).finditer(text, start):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)
