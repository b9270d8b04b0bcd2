"""The reference: a page a room with every public name, made from signatures and docstrings as they are in the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from btcnb.book.inline import inline_myst
from btcnb.book.text import code
from btcnb.build.api_source import Entry, Member, module_doc, public_entries

ROOMS = {
    "data": "transactions, the simulator, readers, heuristics, CoinJoin detectors, the address graph",
    "theory": "Laplacians, the lemma, the theorem, homophily, low-pass checks",
    "learn": "encoders, sampling, losses, training, embeddings",
    "cluster": "linkage, cuts, refinement, scores; stands on its own",
    "experiments": "recipes, their stages, comparisons",
    "paper": "the paper's tables, claims and rules",
}
INDEX = "book/api"
PAGES = (INDEX, *(f"{INDEX}_{room}" for room in ROOMS))

_ARGUMENTS = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*):(?:\s+(?P<text>\S.*))?$")
_CHOICE = re.compile(r"(?P<word>\S.*?)\s{2,}(?P<text>\S.*)")
_CODE = re.compile(r"(?<!`)`(?P<code>[^`\n]+)`(?!`)")

Names = Mapping[str, str]


def api_pages(package: Path, address: str) -> dict[str, str]:
    """Page -> MyST: the index and one page for each room of `package` (the folder `src/btcnb`).

    address: where the repository shows its files, `https://…/blob/main`; empty: files are named, not linked
    """
    rooms = {room: public_entries(package, room) for room in ROOMS}
    pages = {
        f"{INDEX}_{room}": _room(package, room, entries, _linkable(rooms, room), address)
        for room, entries in rooms.items()
    }
    return {INDEX: _index(rooms), **pages}


def _linkable(rooms: Mapping[str, Iterable[Entry]], here: str) -> Names:
    """A name -> the full one that it means in the docstrings of `here`; plain words (`coarse`) mean that room's."""
    found: dict[str, str] = {}
    for room, entries in sorted(rooms.items(), key=lambda pair: pair[0] == here):
        telling = {entry.name for entry in entries if room == here or not entry.name.islower() or "_" in entry.name}
        found |= {name: f"btcnb.{room}.{name}" for name in telling}
    return found


def _index(rooms: Mapping[str, Iterable[Entry]]) -> str:
    lines = [
        "# Reference",
        "",
        "What can be imported from the package, room by room. These pages are made from the signatures and docstrings "
        "of the code each time the book is built. How rooms stand on one another is told in `CONTRIBUTING.md`.",
    ]
    for room, entries in rooms.items():
        links = ", ".join(f"{{py:obj}}`{entry.name} <btcnb.{room}.{entry.name}>`" for entry in entries)
        lines += ["", f"{{doc}}`btcnb.{room} </{INDEX}_{room}>`", f": {ROOMS[room]}", "", f"  {links}"]
    return "\n".join(lines) + "\n"


def _room(package: Path, room: str, entries: Iterable[Entry], names: Names, address: str) -> str:
    lines = [f"# btcnb.{room}", "", f"```{{py:module}} btcnb.{room}", "```", ""]
    lines += [*_prose(module_doc(package, room), names), ""]
    for entry in entries:
        lines += _described(entry, {**names, **_own(entry)}, address)
    return "\n".join(lines) + "\n"


def _own(entry: Entry) -> Names:
    """Inside its own description a name is no link, nor is that of an argument."""
    return dict.fromkeys([entry.name, *re.findall(r"\w+(?=[:=,)])", entry.signature)], "")


def _described(entry: Entry, names: Names, address: str) -> Iterator[str]:
    first, *options = _head(entry.kind, entry.signature)
    yield f":::::{{py:{entry.kind}}} {entry.name}{first}"  # Sphinx puts the module of the page before it
    yield from options
    yield ""
    yield from _prose(entry.doc, names)
    yield ""
    for member in entry.members:
        if member.doc or member.kind != "attribute":
            yield from _member(member, names)
    file = f"src/btcnb/{entry.path}"
    yield f"[{file}]({address}/{file})" if address else code(file)
    yield ":::::"
    yield ""


def _member(member: Member, names: Names) -> Iterator[str]:
    kind = "method" if member.kind in {"classmethod", "staticmethod"} else member.kind
    first, *options = _head(kind, member.signature)
    yield f"::::{{py:{kind}}} {member.name}{first}"
    if kind != member.kind:
        yield f":{member.kind}:"
    yield from options
    yield ":no-index:"
    yield ""
    yield from _prose(member.doc, names)
    yield "::::"
    yield ""


def _head(kind: str, signature: str) -> list[str]:
    """What goes behind the name, and what goes into options: values have their type and their default there."""
    if kind in {"function", "method", "class", "exception"}:
        return [signature]
    typed, _, value = signature.removeprefix(":").partition("=")
    pairs = (("type", typed.strip()), ("value", value.strip()))
    return ["", *(f":{option}: {text}" for option, text in pairs if text)]


def _prose(doc: str, names: Names) -> list[str]:
    """A docstring as Markdown: `name: meaning` becomes an item, what is indented below belongs to it.

    Paragraphs that are indented as a whole are code. Names of the package become links to their own descriptions.
    """
    made: list[str] = []
    item = False  # whether indented lines go on with an item
    for line in doc.splitlines():
        text = line.strip()
        if not text:
            made.append("")
            item = False
        elif line.startswith(" ") and item:
            made.append(f"  {_continued(text, made, names)}")
        elif line.startswith(" "):
            made.append(line)
        elif found := _ARGUMENTS.fullmatch(line):
            made += [*[""] * (not item), f"- {code(found['names'])}: {_linked(found['text'] or '', names)}".rstrip()]
            item = True
        else:
            made += [*[""] * item, _linked(text, names)]
            item = False
    return made


def _continued(text: str, made: list[str], names: Names) -> str:
    choice = _CHOICE.fullmatch(text)
    nested = made[-1].endswith(":") or made[-1].startswith("  -")
    return f"- {code(choice['word'])} {_linked(choice['text'], names)}" if choice and nested else _linked(text, names)


def _linked(text: str, names: Names) -> str:
    """Harmless Markdown; inline code that is a public name leads to it."""

    def link(found: re.Match[str]) -> str:
        full = names.get(found["code"])
        return f"{{py:obj}}`{found['code']} <{full}>`" if full else found[0]

    return _CODE.sub(link, inline_myst(text))
