"""A Sphinx extension that finishes the pages once they are written.

Every drawn figure is there twice, for the light page and for the dark one: the style sheet shows the picture of class
`in-light` or the one of class `in-dark` (the theme's own pair of classes hides the caption as well). Pictures that an
interactive figure carries inside its HTML become files too: the pages stay small. What theme and Sphinx forget to tell
a screen reader is told. And signs come from one font only: the theme loads them three times, two megabytes a page.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path
from typing import Any

from btcnb.book.inks import DARK, LIGHT, fit, is_figure

_IMAGE = re.compile(r'<img\b[^>]*?\bsrc="(?P<src>[^"]+)"[^>]*>')
_CARRIED = "data:image/svg+xml;base64,"
_WIDTH = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"', re.S)
_HEIGHT = re.compile(r'<svg\b[^>]*?\bheight="([\d.]+)pt"', re.S)
_ARROW = re.compile(r'<summary>(<span class="toctree-toggle")')
_SIGNATURE = re.compile(r'<dl>\s*((?:<dd><em class="sig-param".*?</dd>\s*)+)</dl>', re.S)
_SHARED = re.compile(r'(<(?:section|div)\b[^>]*?) id="(?:exercise|solution|proof)-content"')
_SIGNS = re.compile(
    r'\s*(?:<script src="[^"]*/fontawesome/[^"]*\.js[^"]*"></script>'
    r'|<link rel="preload" as="font"[^>]*/fontawesome/[^>]*>)'
)
_CLASSES = {"light": "in-light", "dark": "in-dark dark-light"}  # the theme dims what is not of class dark-light
_POINT = 4 / 3  # pixels


def finish(page: Path, images: Path) -> None:
    """Finish the HTML file `page`; pictures go into `images`, a folder beside the first page."""
    text = page.read_text(encoding="utf-8")
    new = light(accessible(two_schemes(text, page, images)))
    if new != text:
        page.write_text(new, encoding="utf-8")


def two_schemes(text: str, page: Path, images: Path) -> str:
    """`text`, the content of `page`, with two pictures for each figure, light and dark, written into `images`."""
    up = "../" * (len(page.relative_to(images.parent).parts) - 1)
    return _IMAGE.sub(lambda found: _both(found, page, images, up), text)


def accessible(text: str) -> str:
    """A page with names for what has none, and without roles that do not hold.

    The arrow that unfolds a chapter's sections in the menu is a picture only. A list of references calls itself a list,
    but its entries are no list items; nor are the lines of a long signature definitions. Every exercise, solution and
    proof names its content alike, and a name is one's own.
    """
    text = _SIGNATURE.sub(_lines, text)
    text = _ARROW.sub(r'<summary aria-label="sections of this chapter">\1', text)
    text = _SHARED.sub(r"\1", text)
    return text.replace('<div role="list" class="citation-list">', '<div class="citation-list">')


def light(text: str) -> str:
    """A page that fetches the font of signs when it shows one, and neither the same as a script nor the logos' font."""
    return _SIGNS.sub("", text).replace('class="fab fa-github"', 'class="fas fa-code-branch"')


def _lines(found: re.Match[str]) -> str:
    lines = found[1].replace("<dd>", '<div class="sig-line">').replace("</dd>", "</div>")
    return f"<div>{lines}</div>"


def _both(found: re.Match[str], page: Path, images: Path, up: str) -> str:
    svg = _drawing(html.unescape(found["src"]), page)
    if svg is None:
        return found[0]
    stem = hashlib.sha256(svg.encode()).hexdigest()[:20]
    images.mkdir(exist_ok=True)
    tags = []
    for name, scheme in (("light", LIGHT), ("dark", DARK)):
        target = images / f"{stem}-{name}.svg"
        if not target.exists():
            target.write_text(fit(svg, scheme), encoding="utf-8")
        tags.append(_tag(found[0].replace(found["src"], f"{up}{images.name}/{target.name}"), name, svg))
    return "".join(tags)


def _drawing(source: str, page: Path) -> str | None:
    """The text of the figure that `source` names, None for any other picture."""
    if source.startswith(_CARRIED):
        svg = base64.b64decode(source.removeprefix(_CARRIED)).decode()
    elif source.endswith(".svg") and "_images/" in source:
        svg = (page.parent / source).read_text(encoding="utf-8")
    else:
        return None
    return svg if is_figure(svg) else None


def _tag(tag: str, scheme: str, svg: str) -> str:
    """The tag with the scheme's class, and the size, so that a page does not jump while its pictures come."""
    given = re.search(r'\bclass="([^"]*)"', tag)
    classes = " ".join(filter(None, [given[1] if given else "", _CLASSES[scheme]]))
    tag = re.sub(r'\s*\bclass="[^"]*"', "", tag)
    width, height = _WIDTH.search(svg), _HEIGHT.search(svg)
    size = ""
    if width and height and " width=" not in tag:
        size = f' width="{float(width[1]) * _POINT:.0f}" height="{float(height[1]) * _POINT:.0f}"'
    lazy = ' loading="lazy"' if scheme == "dark" else ""
    return tag.replace("<img", f'<img class="{classes}"{size}{lazy}', 1)


def _finish(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    for page in sorted(folder.rglob("*.html")):
        if page.relative_to(folder).parts[0] not in {"_static", "_sources"}:
            finish(page, folder / "_images")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
