"""Buttons above a page lead to what people edit, and to the notebook that Binder and Colab can open."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from btcnb.book.sphinx_pages import lead_to_text
from btcnb.build.project import Repository, read_repository

ROOT = Path(__file__).resolve().parents[2]
EDIT = "https://github.com/a/b/edit/main/"


def _after(page: str, file: str) -> list[str]:
    buttons = [
        {"label": "source-repository-button", "url": "https://github.com/a/b"},
        {"label": "source-edit-button", "url": EDIT + file},
    ]
    launch = {"label": "launch-buttons", "buttons": [{"label": "launch-binder", "url": "https://mybinder.org"}]}
    groups = [{"label": "source-buttons", "buttons": buttons}, launch, {"label": "other"}]
    context: dict[str, Any] = {"header_buttons": groups}
    lead_to_text(None, page, "page.html", context, None)
    return [button["url"] for group in context["header_buttons"] for button in group.get("buttons", [])]


def test_a_chapter_is_edited_as_text() -> None:
    edited = ["https://github.com/a/b", f"{EDIT}notebooks/01_a.md"]
    assert _after("notebooks/01_a", "notebooks/01_a.ipynb") == [*edited, "https://mybinder.org"]


def test_other_pages_are_edited_as_text_and_cannot_be_opened_elsewhere() -> None:
    assert _after("book/intro", "book/intro.md") == ["https://github.com/a/b", f"{EDIT}book/intro.md"]
    assert _after("book/status", "book/status.ipynb") == ["https://github.com/a/b", f"{EDIT}book/status.md"]


def test_the_repository_is_named_in_one_place() -> None:
    address = read_repository(ROOT / "_config.yml")
    assert address is not None
    assert re.fullmatch(r"https://github\.com/[\w-]+/[\w-]+", address.url)  # Colab knows no other
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "book").glob("*.md"), *(ROOT / "notebooks").glob("*.md")]
    assert [path.name for path in sources if address.url in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("repository: {url: https://github.com/a/b/, branch: old}", Repository("https://github.com/a/b", "old")),
        ("repository: {url: https://github.com/a/b}", Repository("https://github.com/a/b", "main")),
        ("repository: {url: ''}", None),
        ("title: x", None),
    ],
)
def test_reading_the_address(tmp_path: Path, text: str, found: Repository | None) -> None:
    (tmp_path / "_config.yml").write_text(text)
    assert read_repository(tmp_path / "_config.yml") == found
    assert read_repository(tmp_path / "nothing.yml") is None


def test_binder_finds_an_environment_that_installs_the_package() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert not (ROOT / ".binder").exists() and not (ROOT / "binder").exists(), "they would hide environment.yml"
    assert any("--editable ." in entry for entry in pip)
    python = next(entry for entry in environment["dependencies"] if str(entry).startswith("python"))
    assert re.fullmatch(r"python\s*=+\s*3\.1[1-3]", python), "Binder takes a version that is named, not a range"
