"""`btcnb slides 13`: one HTML file with everything in it, made from the rendered page of a chapter."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
import mimetypes
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from btcnb.book.text import clipped
from btcnb.build.chapters import load_chapters, select
from btcnb.build.deck import deck, slide_html
from btcnb.build.errors import UsageError
from btcnb.build.project import Project, read_mapping, write_atomically
from btcnb.plain_yaml import PlainLoader

TEMPLATE = Path(__file__).resolve().parents[1] / "book" / "slides.html"
_IMAGE = re.compile(r'(<img\b[^>]*\bsrc=")([^"]+)(")')
_MATHS = re.compile(r"\\\(|\\\[")


def make_slides(project: Project, chapter: str, preset: str = "quick", target: Path | None = None) -> Path:
    """Write the deck of a chapter, named by number or name, and return where; the book must be rendered already.

    Nothing is executed. The file needs neither the network nor any other file.
    """
    [found] = select(load_chapters(project), [chapter])
    output = project.output(preset)
    page = output.html("full") / "notebooks" / f"{found.name}.html"
    if not page.is_file():
        build = f"btcnb build --preset {preset}"
        raise UsageError(f"{project.relative(page)} does not exist; `{build}` executes and renders the book first.")
    target = target or output.folder / "slides" / f"{found.name}.html"
    write_atomically(target, deck_file(page, project.config))
    return target


def publish_slides(project: Project, source: Path, pages: Path) -> None:
    """Put a deck beside the pages, in `slides/`, for every chapter with `btcnb: {slides: true}` in its front matter."""
    for path in sorted((source / "notebooks").glob("*.ipynb")):
        told = json.loads(path.read_bytes())["metadata"].get("btcnb") or {}
        if told.get("slides") is True:
            page = pages / "notebooks" / f"{path.stem}.html"
            write_atomically(pages / "slides" / page.name, deck_file(page, project.config))


def deck_file(page: Path, config: Path) -> str:
    """The whole file: slides of a rendered page, its pictures, and MathJax where there is mathematics."""
    slides = deck(page.read_text(encoding="utf-8"))
    if not slides:
        raise UsageError(f"{page} is no rendered chapter; render the book again.")
    sections = [slide_html(slide, number, len(slides)) for number, slide in enumerate(slides, 1)]
    body = _IMAGE.sub(lambda image: image[1] + _embedded(page.parent, image[2]) + image[3], "\n".join(sections))
    text = TEMPLATE.read_text(encoding="utf-8")
    for key, value in {
        "TITLE": html.escape(clipped(slides[0].title, 200)),
        "MATHS": _mathjax(config) if _MATHS.search(body) else "",
        "SLIDES": body,
    }.items():
        text = text.replace(f"<!--{key}-->", value)
    return text


def _embedded(folder: Path, source: str) -> str:
    """A picture of the book as a data URI; one from elsewhere stays out, for the deck works offline."""
    if source.startswith("data:"):
        return source
    path = folder / unquote(source.partition("?")[0])
    if not path.is_file():
        raise UsageError(f"the picture {source} of the page does not exist; render the book again.")
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _mathjax(config: Path) -> str:
    """MathJax, the whole of it, from the package that serves the book too; as SVG it needs no fonts."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise UsageError("sphinx-mathjax-offline is not installed; install requirements.lock again.")
    script = (Path(spec.origin).parent / "static" / "mathjax" / "tex-svg.js").read_text(encoding="utf-8")
    settings: Any = read_mapping(config, config.name, PlainLoader)
    for key in ("sphinx", "config", "mathjax3_config", "tex", "macros"):
        settings = settings.get(key) or {}
    tex = {"inlineMath": [["\\(", "\\)"]], "displayMath": [["\\[", "\\]"]], "macros": settings}
    options = {"enableMenu": False, "enableAssistiveMml": False}
    told = json.dumps({"tex": tex, "svg": {"fontCache": "local"}, "options": options})
    safe = script.replace("</script", "<\\/script")
    return f"<script>MathJax = {told};</script>\n<script>{safe}</script>"
