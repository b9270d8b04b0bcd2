"""Where a text speaks of chapters, claims and words of the glossary: plain strings in, positions out.

mentions("see chapters 02 and 09, claim C060")      # 02, 09 and C060, with what each link would cover
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["chapter", "claim", "term"]

_CHAPTERS = re.compile(
    r"\b[Cc]hapter(?P<plural>s?)\s+(?P<first>\d\d)(?!\d)(?P<more>(?:(?:,?\s+(?:and|or|to)\s+|,\s+|–)\d\d(?!\d))*)"
)
_NUMBER = re.compile(r"\d\d")
_CLAIM = re.compile(r"(?<![\w-])C\d{3}(?![\w-])")
_SHORT = re.compile(r"\s*\((?P<inside>[^()]*)\)\s*$")


@dataclass(frozen=True)
class Mention:
    """`text[start:end]` speaks of the chapter (number), claim (id) or term (as the glossary writes it) `key`."""

    start: int
    end: int
    kind: Kind
    key: str


def mentions(text: str, chapters: Collection[str], claims: Collection[str]) -> list[Mention]:
    """Every mention of a chapter or a claim that exists, in order. `chapters 02 and 09` are two."""
    found = [mention for mention in _chapters(text) if mention.key in chapters]
    found += [Mention(*hit.span(), "claim", hit[0]) for hit in _CLAIM.finditer(text) if hit[0] in claims]
    return sorted(found, key=lambda mention: mention.start)


def _chapters(text: str) -> Iterator[Mention]:
    """The first link covers the word `chapter` too; only the plural goes on to further numbers."""
    for hit in _CHAPTERS.finditer(text):
        yield Mention(hit.start(), hit.end("first"), "chapter", hit["first"])
        if hit["plural"]:
            for more in _NUMBER.finditer(text, hit.start("more"), hit.end("more")):
                yield Mention(*more.span(), "chapter", more[0])


@dataclass
class Terms:
    """The words of the glossary, and how each may stand in a sentence.

    `entries` maps each spelling to the entry that it leads to. A word in `by_hand` means other things too (a cut, to
    cut): it is linked where the text says {term}, nowhere else.
    """

    entries: Mapping[str, str]
    by_hand: Collection[str] = ()
    _spellings: dict[str, str] = field(init=False, repr=False)
    _pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._spellings = {
            spelling: term for term in self.entries if term not in self.by_hand for spelling in spellings(term)
        }
        longest = sorted(self._spellings, key=len, reverse=True)
        words = "|".join(r"\s+".join(map(re.escape, word.split())) for word in longest) or r"(?!)"
        self._pattern = re.compile(rf"(?<![\w-])(?P<word>{words})(?![\w-])")

    def first(self, text: str, seen: set[str], taken: Iterable[Mention] = ()) -> list[Mention]:
        """Terms that `seen` (entries, added to here) does not hold yet; nothing that overlaps what is `taken`."""
        spans = [(mention.start, mention.end) for mention in taken]
        found = []
        for hit in self._pattern.finditer(text):
            term = self._spellings[" ".join(hit["word"].split())]
            entry = self.entries[term]
            if entry in seen or any(hit.start() < end and start < hit.end() for start, end in spans):
                continue
            seen.add(entry)
            found.append(Mention(*hit.span(), "term", term))
        return found


def spellings(term: str) -> set[str]:
    """A term and its plural, each with a small and a capital first letter; what stands in brackets is left out.

    An abbreviation in brackets is a spelling of its own: `adjusted mutual information (AMI)`.
    """
    short = _SHORT.search(term)
    words = [term[: short.start()] if short else term]
    if short and short["inside"].isupper():
        words.append(short["inside"])
    words += [_plural(word) for word in words]
    return {first + word[1:] for word in words for first in (word[0], word[0].upper())}


def _plural(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word + ("es" if re.search(r"(s|x|ch|sh)$", word) else "s")
