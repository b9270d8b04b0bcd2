"""A Sphinx extension that finishes pages: figures for light and dark pages, accessible parts, buttons, nothing remote.

Every drawn figure is there twice, for the light page and for the dark one: the style sheet shows the picture of class
`in-light` or the one of class `in-dark` (the theme's own pair of classes hides the caption as well). Only colours
differ. The white plate behind a figure goes. On the dark page greys are turned over, so that black lines become pale
and what was white takes the colour of the page; hues stay, lightened where they would drown. Letters keep a contrast of
at least 4.5 to the page, as WCAG 2 asks of text; lines and areas of 3. White letters stand on coloured discs and boxes
and stay white; so does everything inside a group whose name begins with `KEPT`.

Pictures that an interactive figure carries inside its HTML become files too: the pages stay small. What theme and
Sphinx forget to tell a screen reader is told. Signs come from one font only: the theme loads them three times, two
megabytes a page. Jupyter Book always loads sphinx-thebe, which writes the address of a remote script into every page;
the book has no live kernel, so its listeners are taken off.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from btcnb.book.figures import KEPT

SVG = "http://www.w3.org/2000/svg"
Colour = tuple[int, int, int]
_HEX = re.compile(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![0-9a-fA-F])")
_FILL = re.compile(r"(?<![\w-])fill\s*:")
_PLAIN = 26
"""Channels that differ by no more make a grey."""

for _prefix, _space in (("", SVG), ("xlink", "http://www.w3.org/1999/xlink")):
    ET.register_namespace(_prefix, _space)
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


# Colours


@dataclass(frozen=True)
class Page:
    """The colour of a page and of its ink; on a `dark` page the greys of a drawing are turned over."""

    paper: Colour
    ink: Colour
    dark: bool


LIGHT = Page((255, 255, 255), (0, 0, 0), dark=False)
DARK = Page((0x12, 0x12, 0x12), (0xF2, 0xF2, 0xF2), dark=True)
TEXT, LINES = 4.5, 3.0


def fit(svg: str, page: Page) -> str:
    """A figure that matplotlib has drawn on white, without its plate, in colours for `page`."""
    root = ET.fromstring(svg)
    _drop_plate(root)
    _walk(root, page, letters=False)
    root.set("fill", _hex(page.ink))  # black areas and letters carry no colour of their own
    return ET.tostring(root, encoding="unicode")


def is_figure(svg: str) -> bool:
    """Whether matplotlib has drawn it."""
    return '<g id="figure_1">' in svg


def contrast(one: Colour, other: Colour) -> float:
    """WCAG 2's ratio of two colours, from 1 (equal) to 21 (black and white)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def fitted(colour: Colour, page: Page, letters: bool) -> Colour:
    """What becomes of one colour on `page`."""
    if letters and min(colour) > 240:
        return colour
    grey = max(colour) - min(colour) <= _PLAIN
    if page.dark and grey:
        share = 1 - sum(colour) / 765
        colour = _mixed(page.paper, page.ink, share)
    if letters:
        return _legible(colour, page, TEXT)
    return _legible(colour, page, LINES) if page.dark and not grey else colour


def _legible(colour: Colour, page: Page, least: float) -> Colour:
    """`colour`, mixed with as little of the page's ink as it takes."""
    steps = (_mixed(colour, page.ink, step / 20) for step in range(21))
    return next((mixed for mixed in steps if contrast(mixed, page.paper) >= least), page.ink)


def _walk(element: ET.Element, page: Page, letters: bool) -> None:
    name = element.get("id", "")
    if name.startswith(KEPT):
        if not _FILL.search(element.get("style", "")):
            element.set("fill", "#000000")
        return
    letters = (letters or name.startswith("text_")) and not name.startswith("patch_")  # a box around letters is none
    for attribute in ("style", "fill", "stroke"):
        if attribute in element.attrib:
            element.set(attribute, _HEX.sub(lambda found: _again(found[1], page, letters), element.attrib[attribute]))
    for child in element:
        _walk(child, page, letters)


def _again(digits: str, page: Page, letters: bool) -> str:
    pairs = [digits[i : i + 2] for i in (0, 2, 4)] if len(digits) == 6 else [2 * digit for digit in digits]
    red, green, blue = (int(pair, 16) for pair in pairs)
    return _hex(fitted((red, green, blue), page, letters))


def _drop_plate(root: ET.Element) -> None:
    figure = root.find(f".//{{{SVG}}}g[@id='figure_1']")
    plate = None if figure is None else figure.find(f"{{{SVG}}}g[@id='patch_1']")
    if figure is not None and plate is not None:
        figure.remove(plate)


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


# Pages


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


def finish_all(app: Any, error: Exception | None) -> None:
    """Finish every page of a build that went well; see Sphinx's `build-finished`."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    for page in sorted(folder.rglob("*.html")):
        if page.relative_to(folder).parts[0] not in {"_static", "_sources"}:
            finish(page, folder / "_images")


def lead_to_text(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Buttons of a page: chapters are edited as .md, and opened elsewhere as .ipynb; see Sphinx's `html-page-context`.

    The repository holds an .ipynb of chapters only, so other pages have nothing to open in Binder or Colab.
    """
    groups = context.get("header_buttons", [])
    if not page.startswith("notebooks/"):
        groups[:] = [group for group in groups if group.get("label") != "launch-buttons"]
    for group in groups:
        for button in group.get("buttons", []):
            if button.get("label") in {"source-edit-button", "source-file-button"}:
                button["url"] = re.sub(r"\.ipynb(?=$|\?)", ".md", button["url"])


def _without_thebe(app: Any) -> None:
    for listeners in app.events.listeners.values():
        listeners[:] = [item for item in listeners if not item.handler.__module__.startswith("sphinx_thebe")]


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", _without_thebe, priority=0)
    app.connect("html-page-context", lead_to_text, priority=900)  # after the theme has made its buttons
    app.connect("build-finished", finish_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
