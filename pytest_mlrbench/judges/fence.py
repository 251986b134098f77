"""Text under review made harmless: what it can do to a reader's software, it does here in the open.

No words of an author are taken away. What a person would not see, or what a model's software might
take for a command of its own, is written in another way that both can see:

=============================================  ============================================
in the file                                    in the prompt
=============================================  ============================================
invisible, control and bidi characters         ``⟨U+200B⟩``, ``⟨ESC⟩``, ``⟨40 invisible …⟩``
a text in Unicode's tag characters             ``⟨tag characters: the text⟩``
``<!-- an HTML comment -->``                   ``⟨HTML comment: … ⟩``
``<|im_start|>``, ``[INST]``, ``<s>``, …       the same with a ``¦`` in it
``Human:``, ``System:``, … beginning a line    ``Human¦:``
our own fence and our sign for a cut           the same with a ``¦`` in it
long stretches of encoded data (base64)        ``[… 40,000 characters of data …]``
colours and moves of a terminal                ``⟨ESC⟩``
a lone carriage return                         a new line
=============================================  ============================================

Ordinary Markdown, code, LaTeX and every script stay as they are. Emoji and scripts that need
joiners keep them: one joiner, and one variation selector, between characters that are not ASCII.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

#: Letters of a file's name that are shown.
LONGEST_NAME = 160

_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
_FORMAT = "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
_FILLERS = "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
_HIGH = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_INVISIBLE = re.compile(f"[{_CONTROL}{_FORMAT}{_FILLERS}{_HIGH}]+")
#: Colours and moves of a terminal: many in a log, and nothing in them.
_TERMINAL = re.compile(r"\x1b\[[0-9;:?]{0,32}[@-~]")
#: What emoji and some scripts cannot be written without.
_JOINING = re.compile("[\ufe0e\ufe0f]?[\u200c\u200d]?")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
#: More of them in a row are only counted.
_NAMED = 3

# What comes before is looked at as well, or a long text would be searched from each of its letters.
_DATA = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{1000,}={0,2}")
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_MARKUP = (
    *("s", "bos", "eos", "unk", "pad", "mask", "sep", "cls", "im_start", "im_end", "endoftext"),
    *("start_of_turn", "end_of_turn", "start_of_image", "end_of_image", r"ctrl\d+"),
    *("system", "user", "human", "assistant", "think", "thinking", "tool_call", "tool_response"),
    *("function_calls", "function_results", r"antml:\w+"),
)
_BRACKETS = "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|IMG|BOS|EOS"
#: What models are trained to take for a boundary or a speaker; a bar in it, and it is mere text.
_TOKENS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"<[|\uff5c]([^\s<>|\uff5c]{1,64})[|\uff5c]>"), r"<¦\1¦>"),
    (re.compile(rf"\[(/?(?:{_BRACKETS}))\]"), r"[¦\1]"),
    (re.compile(r"<<(/?SYS)>>"), r"<<¦\1>>"),
    (re.compile(rf"<(/?(?:{'|'.join(_MARKUP)}))>", re.IGNORECASE), r"<¦\1>"),
    (
        re.compile(
            r"^([ \t]*(?:#{1,6}[ \t]+)?(?:Human|HUMAN|Assistant|ASSISTANT|System|SYSTEM|User|USER)"
            r"|[ \t]*#{1,6}[ \t]+(?:Instruction|Response|Input))(?=\s*:)",
            re.MULTILINE,
        ),
        r"\1¦",
    ),
)
_OURS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(mlr)[\W_]{1,3}(material)", re.IGNORECASE), r"\1¦\2"),
    (re.compile(r"\[…(?=\s{0,3}[\d,.]+ (?:of [\d,.]+ )?characters)"), "[¦…"),
)


@dataclass(frozen=True)
class Neutral:
    """A text that is safe to show, and how often what had to be changed.

    :param changes: kind of change, in words → how often.
    """

    text: str
    changes: Counter[str] = field(default_factory=Counter)

    @property
    def notice(self) -> str:
        """The changes in words; empty if there were none."""
        return ", ".join(f"{kind}: {number:,}" for kind, number in self.changes.items())


def neutralise(text: str) -> Neutral:
    """Return *text* as a judge may see it; what is done to it stands at the head of this module."""
    changes: Counter[str] = Counter()

    def visible(found: re.Match[str]) -> str:
        if _joins(text, found):
            return found[0]
        changes["invisible characters made visible"] += len(found[0])
        return _visible(found[0])

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text, number = _TERMINAL.subn("⟨ESC⟩", text)
    changes["colours and moves of a terminal left out"] += number
    text = _INVISIBLE.sub(visible, text)
    text, number = _DATA.subn(
        lambda found: f"[… {len(found[0]):,} characters of data were cut here …]",
        _replace(text, _OURS, changes, "signs of ours broken"),
    )
    changes["stretches of encoded data left out"] += number
    text, number = _COMMENT.subn(_shown_comment, text)
    changes["HTML comments made visible"] += number
    text = _replace(text, _TOKENS, changes, "control sequences of chat models broken")
    return Neutral(text, +changes)


def neutral_name(name: str) -> str:
    """Return a file's name, which its author chose as well, on one line and not too long."""
    text = neutralise(name.replace("\r", "\n").replace("\n", "\x85")).text
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def _replace(
    text: str,
    patterns: Iterable[tuple[re.Pattern[str], str]],
    changes: Counter[str],
    kind: str,
) -> str:
    for pattern, by in patterns:
        text, number = pattern.subn(by, text)
        changes[kind] += number
    return text


def _joins(text: str, found: re.Match[str]) -> bool:
    """Whether these few characters only join what is around them, as in an emoji."""
    if not _JOINING.fullmatch(found[0]) or found.start() == 0:
        return False
    after = text[found.end() : found.end() + 1]
    if text[found.start() - 1].isascii():
        return after == "\u20e3"  # 1️⃣
    return after > "\x7f" or found[0][-1] in "\ufe0e\ufe0f"


def _shown_comment(found: re.Match[str]) -> str:
    return f"⟨HTML comment:{found[1].replace('<!--', '<¦!--')}⟩"


def _visible(run: str) -> str:
    if _TAGS.fullmatch(run):
        said = "".join(
            chr(ord(c) - 0xE0000) if 0x20 <= ord(c) - 0xE0000 < 0x7F else "" for c in run
        )
        return f"⟨tag characters: {said}⟩"
    if len(run) > _NAMED:
        return f"⟨{len(run)} invisible characters⟩"
    return "".join("⟨ESC⟩" if c == "\x1b" else f"⟨U+{ord(c):04X}⟩" for c in run)


@dataclass(frozen=True)
class Fence:
    """The lines around each block of material.

    :param nonce: what no author can write, as it depends on every letter of theirs.
    :param blocks: how many there are.
    """

    nonce: str
    blocks: int

    @classmethod
    def around(cls, parts: Iterable[str | bytes], blocks: int, judge: str) -> Fence:
        """Return the fence for *parts*, all of the material, before one judge."""
        sha = hashlib.sha256(judge.encode())
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            sha.update(b"\0%d\0" % len(data) + data)
        return cls(sha.hexdigest()[:16], blocks)

    def begin(self, number: int) -> str:
        """Return the line before block *number*, which counts from 1."""
        return f"<<<mlr-material {self.nonce} begin {number}/{self.blocks}>>>"

    def end(self, number: int) -> str:
        """Return the line behind block *number*."""
        return f"<<<mlr-material {self.nonce} end {number}/{self.blocks}>>>"
