"""One figure, two pages to print it on: colours of an SVG drawing fitted to a light and to a dark page.

Nothing but colours changes. The white plate behind a figure goes. On the dark page greys are turned over, so that black
ink becomes pale and what was white takes the colour of the page; hues stay, lightened where they would drown. Letters
keep a contrast of at least 4.5 to the page, as WCAG 2 asks of text; lines and areas of 3. White letters stand on
coloured discs and boxes and stay white; so does everything inside a group whose name begins with `KEPT`.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

KEPT = "as-drawn"
"""How the name of a group begins that keeps its colours on both pages: letters on a heat map, say."""

SVG = "http://www.w3.org/2000/svg"
Colour = tuple[int, int, int]
_HEX = re.compile(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![0-9a-fA-F])")
_FILL = re.compile(r"(?<![\w-])fill\s*:")
_PLAIN = 26
"""Channels that differ by no more make a grey."""

for _prefix, _space in (("", SVG), ("xlink", "http://www.w3.org/1999/xlink")):
    ET.register_namespace(_prefix, _space)


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
