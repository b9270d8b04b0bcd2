"""A Sphinx extension: everything is a link. Chapters, claims and words of the glossary lead where prose mentions them.

The transform works on finished pages, so it reaches prose, notebooks, their Markdown outputs and generated pages alike,
and nobody has to think of it while writing. Code, mathematics, headings and existing links are left alone. References
by number to a figure or table that this edition leaves out become words without a number.

    mentions("see chapters 02 and 09, claim C060", …)      # 02, 09 and C060, with what each link would cover
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_design.dropdown import dropdown_title

from btcnb.paper.claims import claims

BOARD = "notebooks/18_scoreboard"
"""The page with a row for each claim; `board_html` gives the row of C060 the anchor `claim-C060`."""
GLOSSARY = "book/glossary"
BY_HAND = "btcnb_terms_by_hand"
"""Setting: words of the glossary that are linked only where the text says so."""
ONCE = "btcnb_terms_once"
"""Setting: everyday words, linked once a page; others are linked once a section."""
LEFT_OUT = "btcnb_left_out"
"""Setting: names of figures and tables that could not be made in this build; `btcnb build` sets it."""
LONGEST_TITLE = 300

_EQUATION = re.compile(r",? our eq-[\w-]+| See eq-[\w-]+\.")  # numbers of equations are not known yet
_CHAPTER = re.compile(r"notebooks/(\d\d)_\w+")
_NO_LINK = (
    nodes.reference,
    nodes.subtitle,
    nodes.rubric,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.comment,
    nodes.citation,
    nodes.label,
    addnodes.toctree,
    addnodes.download_reference,
    addnodes.desc_signature,
    dropdown_title,  # it is a button
)
_NO_TERM = (nodes.term, nodes.table, nodes.caption, nodes.strong, addnodes.desc)
_NO_TERM_CLASSES = {"chapter-card", "rerun", "provenance", "sd-card-title", "tag_remove-input"}
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


@dataclass(frozen=True)
class Targets:
    """What can be linked: chapters by number, claims and terms by name; each with (page, anchor, words on hovering)."""

    chapters: dict[str, tuple[str, str, str]]
    claims: dict[str, tuple[str, str, str]]
    terms: dict[str, tuple[str, str, str]]
    words: Terms
    everyday: frozenset[str] = frozenset()  # entries that are linked once a page

    def of(self, mention: Mention) -> tuple[str, str, str]:
        return {"chapter": self.chapters, "claim": self.claims, "term": self.terms}[mention.kind][mention.key]


def targets(env: BuildEnvironment, by_hand: Collection[str], once: Collection[str]) -> Targets:
    """What the pages of this build offer; a book without a scoreboard or a glossary links what it has."""
    pages = {found[1]: page for page in env.found_docs if (found := _CHAPTER.fullmatch(page))}
    chapters = {number: (page, "", env.titles[page].astext()) for number, page in pages.items() if page in env.titles}
    listed = claims() if BOARD in env.found_docs else ()
    judged = {claim.id: (BOARD, f"claim-{claim.id}", claim.claim) for claim in listed}
    told = _definitions(env) if GLOSSARY in env.found_docs else {}
    objects: dict[tuple[str, str], tuple[str, str]] = env.get_domain("std").data["objects"]
    terms = {
        name: (page, anchor, told.get(anchor, "")) for (kind, name), (page, anchor) in objects.items() if kind == "term"
    }
    # two spellings of one entry have one definition: mentioning either counts for both
    entries = {name: told.get(anchor, anchor) for name, (_, anchor, _) in terms.items()}
    everyday = frozenset(entries[name] for name in once if name in entries)
    return Targets(chapters, judged, terms, Terms(entries, by_hand), everyday)


def _definitions(env: BuildEnvironment) -> dict[str, str]:
    """Anchor -> definition, of every word of the glossary."""
    found: dict[str, str] = {}
    for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        definition = " ".join(part.astext() for part in item.findall(nodes.definition))
        words = _EQUATION.sub("", " ".join(definition.split()))[:LONGEST_TITLE]
        found |= {str(anchor): words for term in item.findall(nodes.term) for anchor in term["ids"]}
    return found


class LinkMentions(SphinxPostTransform):
    """Runs when all other references are resolved, so that whatever is a link already can be told."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        offered = _offered(self.app)
        seen: dict[int, set[str]] = {}
        on_page: set[str] = set()
        for text in list(self.document.findall(nodes.Text)):
            above = list(_above(text))
            here = seen.setdefault(_section(above), set())
            here |= (on_page & offered.everyday) | _defined_here(above, offered)
            if any(isinstance(node, nodes.reference) for node in above):
                here |= _written_by_hand(above, offered)
            if any(isinstance(node, _NO_LINK) or _is_heading(node) for node in above) or _inside_html_link(text):
                continue
            found = mentions(text, offered.chapters, offered.claims)
            if _takes_terms(above):
                found = sorted([*found, *offered.words.first(text, here, found)], key=lambda mention: mention.start)
            on_page |= here
            found = [mention for mention in found if not self._leads_here(offered.of(mention))]
            if found:
                text.parent.replace(text, list(self._linked(text, found, offered)))

    def _leads_here(self, target: tuple[str, str, str]) -> bool:
        return target[0] == self.env.docname and not target[1]

    def _linked(self, text: nodes.Text, found: list[Mention], offered: Targets) -> Iterator[nodes.Node]:
        end = 0
        for mention in found:
            if text[end : mention.start]:
                yield nodes.Text(text[end : mention.start])
            yield self._link(text[mention.start : mention.end], mention, offered.of(mention))
            end = mention.end
        if text[end:]:
            yield nodes.Text(text[end:])

    def _link(self, words: str, mention: Mention, target: tuple[str, str, str]) -> nodes.reference:
        page, anchor, title = target
        address = "" if page == self.env.docname else self.app.builder.get_relative_uri(self.env.docname, page)
        made = nodes.reference("", words, internal=True, refuri=f"{address}#{anchor}" if anchor else address)
        made["classes"] += ["mention", f"mention-{mention.kind}"]
        if title:
            made["reftitle"] = title
        return made


def _offered(app: Any) -> Targets:
    """Collected once a build: every page has been read by then."""
    if not hasattr(app, "btcnb_targets"):
        app.btcnb_targets = targets(app.env, app.config[BY_HAND], app.config[ONCE])
    found: Targets = app.btcnb_targets
    return found


def _above(node: nodes.Node) -> Iterator[nodes.Element]:
    while node.parent is not None:
        node = node.parent
        yield node


def _section(above: list[nodes.Element]) -> int:
    """What a term is linked once in: a section of the second level, or an entry of a definition list."""
    sections = [node for node in above if isinstance(node, nodes.section)]
    entry = next((node for node in above if isinstance(node, nodes.definition_list_item)), None)
    return id(entry if entry is not None else sections[-2:][0] if sections else above[-1])


def _defined_here(above: list[nodes.Element], offered: Targets) -> set[str]:
    """The entry of the glossary that the text stands in: it needs no link to itself."""
    item = next((node for node in above if isinstance(node, nodes.definition_list_item)), None)
    anchors = {anchor for term in item.findall(nodes.term) for anchor in term["ids"]} if item is not None else set()
    return {offered.words.entries[name] for name, (_, anchor, _) in offered.terms.items() if anchor in anchors}


def _is_heading(node: nodes.Element) -> bool:
    """The title of a table is its caption, which may link like other captions."""
    return isinstance(node, nodes.title) and not isinstance(node.parent, nodes.table)


def _takes_terms(above: list[nodes.Element]) -> bool:
    plain = not any(isinstance(node, _NO_TERM) for node in above)
    return plain and not any(_NO_TERM_CLASSES & set(node.get("classes", ())) for node in above)


def _written_by_hand(above: list[nodes.Element], offered: Targets) -> set[str]:
    """The entry of a {term} in the text, which also gets its words on hovering."""
    link = next(node for node in above if isinstance(node, nodes.reference))
    anchor = str(link.get("refuri", "")).rpartition("#")[2] or str(link.get("refid", ""))
    if not any("std-term" in node.get("classes", ()) for node in above):
        return set()
    names = [name for name, (_, found, _) in offered.terms.items() if found == anchor]
    if names and offered.terms[names[0]][2]:
        link["reftitle"] = offered.terms[names[0]][2]
        link["classes"] += ["mention", "mention-term"]
    return {offered.words.entries[name] for name in names}


def _inside_html_link(text: nodes.Text) -> bool:
    """Whether an `<a>` that the page wrote as HTML is open where the text stands."""
    before = text.parent.children[: text.parent.index(text)]
    html = "".join(node.astext() for node in before if isinstance(node, nodes.raw))
    return len(re.findall(r"<a\b", html)) > html.count("</a>")


class NumberedReferences(StandardDomain):
    """Sphinx's own domain, which does not read a whole page for every number.

    For each {numref} Sphinx loads the page of its target from the disk again, a tenth of a second for a chapter. A page
    mostly refers to its own figures and tables, so the last few pages are remembered: a quarter of the time that
    rendering this book took. What is resolved, and to what, is the same.
    """

    def resolve_xref(self, env: Any, fromdocname: str, builder: Any, typ: str, *rest: Any) -> nodes.Element | None:
        seen: Any = _Remembering.of(env) if typ == "numref" else env
        return super().resolve_xref(seen, fromdocname, builder, typ, *rest)


class _Remembering:
    """An environment whose pages, as they were read, are loaded once; only to be looked at."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.get_doctree = lru_cache(4)(env.get_doctree)  # a chapter with its pictures can take tens of megabytes

    @classmethod
    def of(cls, env: Any) -> _Remembering:
        """Kept with the builder, not with the environment, which is written to the disk."""
        builder = env.app.builder
        if not hasattr(builder, "btcnb_pages"):
            builder.btcnb_pages = cls(env)
        found: _Remembering = builder.btcnb_pages
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


def left_out(app: Any, env: Any, node: nodes.Element, content: nodes.Node) -> nodes.Node | None:
    """What stands for a reference to a figure or table that is left out; see Sphinx's `missing-reference`."""
    if node.get("reftype") != "numref" or node["reftarget"] not in app.config[LEFT_OUT]:
        return None
    kind = "table" if str(node["reftarget"]).startswith("tbl-") else "figure"
    return nodes.inline("", f"a {kind} that this edition leaves out")


def setup(app: Any) -> dict[str, bool]:
    for setting in (BY_HAND, ONCE):
        app.add_config_value(setting, [], "env", [list])
    app.add_config_value(LEFT_OUT, [], "html", [list])
    app.add_domain(NumberedReferences, override=True)
    app.add_post_transform(LinkMentions)
    app.connect("missing-reference", left_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
