"""The reference says what the code says: every public name, with the signature that Python itself reports."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import yaml

import btcnb
from btcnb.book.sphinx_buttons import GENERATED as NO_FILE
from btcnb.build.api_pages import PAGES, ROOMS, api_pages
from btcnb.build.api_source import public_entries
from btcnb.build.assemble import GENERATED
from btcnb.build.errors import BuildError

PACKAGE = Path(btcnb.__file__).parent
ROOT = PACKAGE.parents[1]

INIT = '''"""A room.

Text of the room, see `Thing`."""
from toy.room.deep import LIMIT, Thing, work
__all__ = ["LIMIT", "Thing", "work"]
'''
DEEP = '''
from dataclasses import dataclass, field

LIMIT = 3
"""Most of it."""

@dataclass(frozen=True)
class Thing:
    """A thing."""

    name: str  # what it is called
    size: int = LIMIT
    """how large, <b>"""
    parts: list[int] = field(default_factory=list)
    _hidden: int = 0

    @property
    def half(self) -> float:
        """Half of it."""

    @classmethod
    def made(cls, of: str) -> "Thing": ...

    def _private(self) -> None: ...

def work(x: int, *, how: str = "well", **rest: int) -> "Thing":
    """Work on `x`; gives a `Thing`.

    x: where to start,
        and where to end
    how:
        "well"   as one should
        "badly"  not so

        work(3)
    """
'''


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    room = tmp_path / "toy" / "room"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text(INIT)
    (room / "deep.py").write_text(DEEP)
    return tmp_path / "toy"


def test_names_are_followed_to_where_they_are_made(toy: Path) -> None:
    limit, thing, work = public_entries(toy, "room")
    assert (limit.kind, limit.signature, limit.doc, limit.path) == ("data", " = 3", "Most of it.", "room/deep.py")
    assert (work.kind, work.signature) == ("function", "(x: int, *, how: str='well', **rest: int) -> Thing")
    assert (thing.kind, thing.signature) == ("class", "(name: str, size: int = LIMIT, parts: list[int] = list)")
    assert [(m.kind, m.name, m.signature, m.doc) for m in thing.members] == [
        ("attribute", "name", ": str", "what it is called"),
        ("attribute", "size", ": int = LIMIT", "how large, <b>"),
        ("attribute", "parts", ": list[int] = list", ""),
        ("property", "half", ": float", "Half of it."),
        ("classmethod", "made", "(of: str) -> Thing", ""),
    ]


def test_a_public_name_that_nothing_makes_is_an_error(toy: Path) -> None:
    (toy / "room" / "__init__.py").write_text('__all__ = ["ghost"]')
    with pytest.raises(BuildError, match=r"ghost is public, but nothing in src/toy/room/__init__\.py makes it"):
        public_entries(toy, "room")


def test_a_page_of_the_reference(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("btcnb.build.api_pages.ROOMS", {"room": "a toy"})
    pages = api_pages(toy, "https://x/blob/main")
    assert list(pages) == ["book/api", "book/api_room"]
    page = pages["book/api_room"]
    for line in (
        ":::::{py:data} LIMIT\n:value: 3\n",
        "Text of the room, see {py:obj}`Thing <btcnb.room.Thing>`.",
        "Work on `x`; gives a {py:obj}`Thing <btcnb.room.Thing>`.",
        '- `x`: where to start,\n  and where to end\n- `how`:\n  - `"well"` as one should\n  - `"badly"` not so\n',
        "    work(3)",
        "how large, &lt;b&gt;",
        "[src/btcnb/room/deep.py](https://x/blob/main/src/btcnb/room/deep.py)",
    ):
        assert line in page
    assert "_private" not in page and "_hidden" not in page


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_agrees_with_python(room: str) -> None:
    module = importlib.import_module(f"btcnb.{room}")
    entries = public_entries(PACKAGE, room)
    assert sorted(entry.name for entry in entries) == sorted(module.__all__)
    for entry in entries:
        value = getattr(module, entry.name)
        assert (PACKAGE / entry.path).is_file()
        assert entry.kind == "data" or entry.doc == (inspect.getdoc(value) or "").strip()
        if entry.kind == "function":
            found = re.sub(r"\s", "", entry.signature.rpartition(" -> ")[0] or entry.signature)
            for name in inspect.signature(value).parameters:
                assert re.search(rf"[(,*]{name}[:=,)]", found), f"{entry.name}: {name}"


def test_every_room_has_its_page_in_the_table_of_contents() -> None:
    entries = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"][-1]["chapters"]
    listed = next(entry for entry in entries if entry["file"] == PAGES[0])
    assert [listed["file"], *(section["file"] for section in listed["sections"])] == list(PAGES)


def test_pages_without_a_file_have_nothing_to_edit() -> None:
    pages = [name.removesuffix(".md") for name in GENERATED]
    assert all(NO_FILE.fullmatch(page) for page in pages)
    assert not any(NO_FILE.fullmatch(f"book/{path.stem}") for path in (ROOT / "book").glob("*.md"))
