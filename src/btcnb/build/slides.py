"""A rendered chapter as slides, one HTML file with everything in it: `btcnb slides 13`.

Sections, figures, tables, boxes and short code become slides; prose goes into the notes. The page is the source, so
numbers, references and captions are those of the book. A chapter steers its slides by tags of its cells: `slide-skip`
leaves a cell out, `slide-code` shows its code although it is folded or long.
"""

from __future__ import annotations

import base64
import html
import importlib.util
import json
import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bs4 import BeautifulSoup, Tag

from btcnb.build.notebooks import load_chapters, select
from btcnb.build.project import Project, UsageError, read_config, write_atomically
from btcnb.errors import clipped

TEMPLATE = Path(__file__).resolve().parents[1] / "book" / "slides.html"
_IMAGE = re.compile(r'(<img\b[^>]*\bsrc=")([^"]+)(")')
_MATHS = re.compile(r"\\\(|\\\[")
MOST_BULLETS = 5
BESIDE = 1  # bullets that a figure, a table or code leaves room for
LONGEST_BULLET = 220
LONGEST_CODE = 16  # lines that can be read from the last row
LEFT_OUT = {"References", "What’s next", "What's next", "Provenance"}
_LIVE = "data-live"  # marks cells whose output is moved by a script
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\\*(])")


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
    return data_uri(path)


def data_uri(path: Path) -> str:
    """A file as an address that holds it."""
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _mathjax(config: Path) -> str:
    """MathJax, the whole of it, from the package that serves the book too; as SVG it needs no fonts."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise UsageError("sphinx-mathjax-offline is not installed; install requirements.lock again.")
    script = (Path(spec.origin).parent / "static" / "mathjax" / "tex-svg.js").read_text(encoding="utf-8")
    settings: Any = read_config(config)
    for key in ("sphinx", "config", "mathjax3_config", "tex", "macros"):
        settings = settings.get(key) or {}
    tex = {"inlineMath": [["\\(", "\\)"]], "displayMath": [["\\[", "\\]"]], "macros": settings}
    options = {"enableMenu": False, "enableAssistiveMml": False}
    told = json.dumps({"tex": tex, "svg": {"fontCache": "local"}, "options": options})
    safe = script.replace("</script", "<\\/script")
    return f"<script>MathJax = {told};</script>\n<script>{safe}</script>"


@dataclass
class Slide:
    """`body` and `notes` are HTML, `bullets` plain text (mathematics in \\(…\\))."""

    title: str
    bullets: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (self.bullets or self.body)


def deck(page: str) -> list[Slide]:
    """The slides of a rendered page, given as HTML."""
    article = BeautifulSoup(page, "html.parser").find("article")
    if not isinstance(article, Tag):
        return []
    _clean(article)
    top = article.find("section")
    if not isinstance(top, Tag):
        return []
    maker = _Maker(_text(top.find("h1")))
    maker.opening(top)
    for section in top.find_all("section", recursive=False):
        if (title := _text(section.find(["h2", "h3"]))) not in LEFT_OUT:
            maker.exercises(section, title) if title == "Exercises" else maker.section(section, title)
    return [slide for slide in maker.slides if not slide.empty or slide is maker.slides[0]]


class _Maker:
    def __init__(self, title: str) -> None:
        self.slides = [Slide(title)]

    @property
    def now(self) -> Slide:
        return self.slides[-1]

    def opening(self, top: Tag) -> None:
        """The title with the chapter's promise, then what one will learn."""
        first = top.find("p", recursive=False)
        if isinstance(first, Tag):
            self.now.body.append(f'<p class="promise">{first.decode_contents()}</p>')
        card = top.select_one(".chapter-card ul")
        if card is not None:
            self.slides.append(Slide("What you will learn", [_text(item) for item in card.find_all("li")]))

    def section(self, section: Tag, title: str) -> None:
        self.slides.append(Slide(title))
        for child in _children(section):
            if child.name == "section":
                self.section(child, _text(child.find(["h2", "h3", "h4"])) or title)
            elif child.name not in {"h2", "h3", "h4"}:
                self.element(child, title)

    def exercises(self, section: Tag, title: str) -> None:
        """Titles and goals only; solutions never."""
        self.slides.append(Slide(title))
        for exercise in section.select("div.exercise"):
            name, first = (
                _text(exercise.select_one(".admonition-title")),
                _text(exercise.select_one(":scope section p")),
            )
            self.now.bullets.append(f"{name}: {first}")

    def element(self, child: Tag, title: str) -> None:
        if _has(child, "cell"):
            self.cell(child, title)
        elif child.name == "p":
            self.prose(child)
        elif child.name in {"ul", "ol"}:
            self.now.notes.append(str(child))
            self.add_bullets([_text(item) for item in child.find_all("li", recursive=False)])
        elif _has(child, "math"):
            self.now.body.append(str(child))
        else:
            for found in _visuals(child):
                self.visual(found, title)

    def prose(self, paragraph: Tag) -> None:
        """All of it into the notes; its first sentence onto the slide, as long as there is room."""
        self.now.notes.append(f"<p>{paragraph.decode_contents()}</p>")
        self.add_bullets([_SENTENCE.split(_text(paragraph), maxsplit=1)[0]])

    def add_bullets(self, texts: list[str]) -> None:
        room = max((BESIDE if self.now.body else MOST_BULLETS) - len(self.now.bullets), 0)
        self.now.bullets += [text.rstrip(":") for text in texts if text and len(text) <= LONGEST_BULLET][:room]

    def cell(self, cell: Tag, title: str) -> None:
        if _has(cell, "tag_slide-skip"):
            return
        shown = cell.select_one("div.cell_input pre")
        folded = _has(cell, "tag_hide-input") or cell.find("details") is not None
        wanted = _has(cell, "tag_slide-code") or (not folded and _lines(shown) <= LONGEST_CODE)
        if shown is not None and wanted:
            self.visual(shown, title)
            for output in cell.select("div.cell_output > .output pre"):
                self.now.body.append(f'<pre class="output">{output.decode_contents()}</pre>')
        if cell.get(_LIVE):
            self.now.body.append('<p class="live">An interactive figure stands here: open it in the book.</p>')
            return
        for found in _visuals(cell.select_one("div.cell_output")):
            self.visual(found, title)

    def visual(self, found: Tag, title: str) -> None:
        """On a slide of its own, or below the opening words of its section."""
        if self.now.body or self.now.title != title or len(self.now.bullets) > BESIDE:
            self.slides.append(Slide(title))
        self.now.body.append(str(found))


def _visuals(part: Tag | None) -> Iterator[Tag]:
    """The outermost figures, tables and boxes below `part`, itself included; solutions and live widgets apart."""
    if part is None or _has(part, "solution") or _has(part, "rerun") or _has(part, "exercise"):
        return
    box = _has(part, "admonition") and not _has(part, "dropdown")
    if part.name in {"figure", "table"} or (box and part.name == "div"):
        yield part
        return
    for child in _children(part):
        yield from _visuals(child)


def _clean(article: Tag) -> None:
    """Take off what means nothing on a slide: scripts, anchors, links, ids, sizes in pixels."""
    for cell in article.select("div.cell"):
        if cell.select_one("div.cell_output :is(script, .btcnb-interactive)") is not None:
            cell[_LIVE] = "yes"
    for part in article.select("script, style, iframe, a.headerlink, button"):
        part.decompose()
    for image in article.find_all("img"):
        image.attrs = {key: image[key] for key in ("src", "alt") if key in image.attrs}
    for link in article.find_all("a"):
        link.unwrap()
    for part in article.find_all(True):
        for key in ("id", "style", "title"):
            part.attrs.pop(key, None)


def _children(part: Tag) -> list[Tag]:
    return [child for child in part.children if isinstance(child, Tag)]


def _has(part: Tag, name: str) -> bool:
    return name in (part.get("class") or [])


def _lines(shown: Tag | None) -> int:
    return len(shown.get_text().strip().splitlines()) if shown is not None else 0


def _text(part: Tag | None) -> str:
    return " ".join(part.get_text().split()) if isinstance(part, Tag) else ""


def slide_html(slide: Slide, number: int, total: int) -> str:
    """One slide as a section; its notes come last."""
    level = 1 if number == 1 else 2
    bullets = "".join(f"<li>{html.escape(text)}</li>" for text in slide.bullets)
    listed = f"<ul>{bullets}</ul>" if bullets else ""
    notes = "".join(slide.notes)
    label = html.escape(f"Slide {number} of {total}: {slide.title}", quote=True)
    return (
        f'<section class="slide" role="group" aria-roledescription="slide" aria-label="{label}" tabindex="-1">'
        f"<h{level}>{html.escape(slide.title)}</h{level}>\n{listed}{''.join(slide.body)}\n"
        + (f'<aside class="notes" aria-label="Speaker notes">{notes}</aside>' if notes else "")
        + "</section>"
    )
