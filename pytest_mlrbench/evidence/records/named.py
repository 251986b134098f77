"""Numbers by the words of their addresses: those a table cell may well be about."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache

from pytest_mlrbench.evidence.records.pools import Pool
from pytest_mlrbench.evidence.records.values import Numbers

#: In a larger file a name says little: there are thousands of numbers under it.
_LARGEST_FILE = 2_000
_MOST_NUMBERS = 20_000
#: Where more numbers have a name, it says little: the whole run is looked through anyway.
_MOST_NAMED = 500
#: Words of a row's or column's name that are looked at.
_MOST_WORDS = 8
#: Letters that a word and its short form share at least: ``acc``, ``accuracy``.
_SHORT_FORM = 3
#: Letters of a short form that leaves some out in between: ``avg``, ``std``.
_LONGEST_SHORT = 4
_WORD = re.compile(r"[a-z]{1,40}[0-9]{0,9}|[0-9]{1,9}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Words of every second name.
_SAID_OF_ALL = frozenset({"the", "of", "and", "for", "with", "in", "to", "a", "on", "at", "by"})


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a name or address, in lower case; humps begin words, as in *valLoss*."""
    found = _WORD.findall(_HUMP.sub(" ", text[:300]).lower())
    return tuple(dict.fromkeys(word for word in found if word not in _SAID_OF_ALL))


class Index:
    """The numbers of small files, by words of file name, key and label."""

    def __init__(self, files: Iterable[Numbers]) -> None:
        self._values: list[float] = []
        self._at: list[tuple[Numbers, int]] = []
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for file in files:
            if len(file.values) <= min(_LARGEST_FILE, _MOST_NUMBERS - len(self._at)):
                self._add(file)
        self._by_letter: dict[str, list[str]] = defaultdict(list)
        for word in self._by_word:
            if len(word) >= _SHORT_FORM:
                self._by_letter[word[0]].append(word)
        self._of_name = lru_cache(maxsize=128)(self._find)
        #: Names of row and column → numbers with every word of both, with most words of both, with
        #: most of one of them; null where there are none, or too many.
        self.pools = lru_cache(maxsize=1024)(self._pools)

    def _add(self, file: Numbers) -> None:
        of_file = words(file.name)
        for index, value in enumerate(file.values):
            number = len(self._at)
            self._values.append(value)
            self._at.append((file, index))
            for word in (*of_file, *words(file.keys[index]), *words(file.labels[index])):
                self._by_word[word].add(number)

    def _pools(self, row: str, column: str) -> tuple[Pool | None, ...]:
        (all_of_one, most_of_one), (all_of_two, most_of_two) = map(self._of_name, (row, column))
        either = [found for found in (most_of_one, most_of_two) if len(found) <= _MOST_NAMED]
        sets = all_of_one & all_of_two, most_of_one & most_of_two, frozenset().union(*either)
        return tuple(map(self._pool, sets))

    def _pool(self, numbers: frozenset[int]) -> Pool | None:
        if not 0 < len(numbers) <= _MOST_NAMED:
            return None
        chosen = sorted(numbers)

        def place(index: int) -> str:
            file, at = self._at[chosen[index]]
            return file.place(at)

        return Pool([self._values[number] for number in chosen], place)

    def _find(self, name: str) -> tuple[frozenset[int], frozenset[int]]:
        """Return the numbers beside which every word of *name* stands, and most of them."""
        wanted = words(name)[:_MOST_WORDS]
        seen: Counter[int] = Counter()
        for word in wanted:
            seen.update(self._with(word))
        least = (len(wanted) + 1) // 2
        every = frozenset(number for number, count in seen.items() if count == len(wanted))
        return every, frozenset(number for number, count in seen.items() if count >= least)

    def _with(self, word: str) -> set[int]:
        found = set(self._by_word.get(word, ()))
        for other in self._by_letter[word[0]] if len(word) >= _SHORT_FORM else ():
            if _is_short_form(word, other):
                found |= self._by_word[other]
        return found


def _is_short_form(one: str, two: str) -> bool:
    """Whether one of two words with the same first letter is the other's short form: *avg*."""
    short, long = sorted((one, two), key=len)
    if long.startswith(short):
        return True
    letters = iter(long)
    return len(short) <= _LONGEST_SHORT and all(c in letters for c in short)
