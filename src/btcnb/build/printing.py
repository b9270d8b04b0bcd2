"""The print edition: the rendered book as one HTML file, which needs nothing else, and a PDF of it.

Pages follow the table of contents. Every anchor gets its page's name in front, so that no two clash and links between
pages become links inside the file. Pictures and MathJax are carried inside. What has no use on paper (sliders, filters,
buttons) is removed.
"""

from __future__ import annotations

import html
import posixpath
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from btcnb.build.notebooks import documents_below, load_chapters, select
from btcnb.build.project import BuildError, Edition, Project, read_config, read_mapping, write_atomically
from btcnb.build.slides import data_uri

STYLE = Path(__file__).parents[1] / "book" / "print.css"
_MATHJAX = "_static/mathjax/tex-svg-full.js"
_OFF_TAGS = frozenset({"script", "style", "noscript", "form", "button", "select"})
_OFF_CLASSES = frozenset({"headerlink", "in-dark", "controls", "toctree-wrapper", "tableofcontents-wrapper"})
_NAMING = ("id", "name", "for", "aria-labelledby", "aria-describedby", "aria-controls")
_SETTINGS = re.compile(r"<script>(window\.MathJax = .*?)</script>", re.S)
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
_LISTING = re.compile(r"(<pre\b[^>]*>)(.*?)(</pre>)", re.S)
_LEADING = re.compile(r"<a\b|\sid=")
_KEPT = re.compile(r"\ue000(\d+)\ue001")  # of the private use area: no page holds such letters
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 1800
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-pdf-header-footer",
    "--virtual-time-budget=600000",  # of the page's own clock: mathematics is set before the page is printed
)


@dataclass(frozen=True)
class Part:
    """A part of the book: its caption ("" for the pages before the first part) and its documents."""

    caption: str
    documents: tuple[str, ...]


def print_edition(
    project: Project,
    preset: str = "quick",
    edition: Edition = "full",
    only: Sequence[str] = (),
    code: bool = False,
    out: Path | None = None,
) -> Path:
    """Write the one file of an edition that is rendered, and return its path; `only` names chapters.

    code: show the code that is folded on the pages
    Raises `BuildError` where the book, or one of its pages, is not rendered.
    """
    output = project.output(preset)
    folder = output.html(edition)
    if not (folder / "index.html").is_file():
        raise BuildError(f"The book is not built at preset {preset}: run `btcnb build` first.")
    title = str(read_config(project.config).get("title", "The book"))
    page = out or output.folder / "print" / "book.html"
    write_atomically(page, one_file(folder, parts(project, only), title, code))
    return page


def parts(project: Project, only: Sequence[str] = ()) -> list[Part]:
    """The book's parts in the order of `_toc.yml`; with `only`, those chapters alone."""
    toc = read_mapping(project.toc, project.toc.name)
    found = [Part("", tuple(documents_below({"root": toc.get("root"), "chapters": toc.get("chapters", [])})))]
    found += [Part(str(each.get("caption", "")), tuple(documents_below(each))) for each in toc.get("parts", [])]
    if only:
        wanted = {chapter.document for chapter in select(load_chapters(project), only)}
        found = [Part(part.caption, tuple(name for name in part.documents if name in wanted)) for part in found]
    return [part for part in found if part.documents]


def one_file(folder: Path, parts: Sequence[Part], title: str, code: bool = False) -> str:
    """One HTML file of the pages below `folder` that `parts` name; `BuildError` for a page that is not there."""
    documents = [document for part in parts for document in part.documents]
    listings: list[str] = []
    sheets = {document: _sheet(folder, document, documents, code, listings) for document in documents}
    body = [f'<header class="title-page"><h1>{html.escape(title)}</h1></header>', _contents(parts, sheets)]
    for part in parts:
        if part.caption:
            body.append(f'<h1 class="part">{html.escape(part.caption)}</h1>')
        body += [str(sheets[document]) for document in part.documents]
    return _file(folder, title, _KEPT.sub(lambda kept: listings[int(kept[1])], "\n".join(body)))


def anchor(document: str, name: str = "") -> str:
    """What an anchor of a page is called in the one file; without `name`, the page's beginning."""
    own = re.sub(r"\W+", "-", document)
    return f"{own}--{name}" if name else own


def _sheet(folder: Path, document: str, documents: Sequence[str], code: bool, listings: list[str]) -> Tag:
    path = folder / f"{document}.html"
    if not path.is_file():
        raise BuildError(f"The book has no page {document}; build it with `btcnb build` first.")
    article = BeautifulSoup(_without_listings(_article(path), listings), "html.parser").find("article")
    if not isinstance(article, Tag):
        raise BuildError(f"{path} is no page of the book; build it again with `btcnb build`.")
    _unfold(article, code)
    for part in article.find_all(_is_off):
        part.decompose()
    _name_once(article)
    for part in article.find_all(True):
        for attribute in _NAMING:
            if value := part.attrs.get(attribute):
                part[attribute] = " ".join(anchor(document, name) for name in str(value).split())
    for link in article.find_all("a", href=True):
        _relink(link, document, documents)
    for image in article.find_all("img", src=True):
        _carry(image, path.parent)
    article["id"] = anchor(document)
    article["class"] = "chapter" if document.startswith("notebooks/") else "around"
    return article


def _article(path: Path) -> str:
    """The text of a page from where its article begins to where it ends: menus are not worth parsing."""
    text = path.read_text(encoding="utf-8")
    return text[max(text.find("<article"), 0) : text.rfind("</article>") + len("</article>")]


def _without_listings(text: str, listings: list[str]) -> str:
    """The text with a mark in the place of each listing's words, which are added to `listings`.

    Most elements of a page are coloured words of code, and nothing happens to them: parsing them takes the longest.
    """

    def keep(found: re.Match[str]) -> str:
        if _LEADING.search(found[2]):  # links and anchors get other names
            return found[0]
        listings.append(found[2])
        return f"{found[1]}\ue000{len(listings) - 1}\ue001{found[3]}"

    return _LISTING.sub(keep, text)


def _is_off(part: Tag) -> bool:
    """Whether one can do nothing with it on paper, or does not see it."""
    kinds = part.get("class") or ()
    return (
        part.name in _OFF_TAGS or not _OFF_CLASSES.isdisjoint(kinds) or ("frame" in kinds and part.has_attr("hidden"))
    )


def _name_once(article: Tag) -> None:
    """Exercises and proofs all carry the same name inside a page: the first keeps it."""
    seen: set[str] = set()
    for part in article.find_all(id=True):
        if str(part["id"]) in seen:
            del part["id"]
        else:
            seen.add(str(part["id"]))


def _unfold(article: Tag, code: bool) -> None:
    """Nothing can be unfolded on paper: boxes stand open, and folded code is there or not."""
    for fold in article.find_all("details"):
        of_code = fold.find(class_="cell_input") is not None
        if of_code and not code:
            fold.decompose()
            continue
        fold["open"] = ""
        if of_code and (summary := fold.find("summary")) is not None:
            summary.extract()


def _relink(link: Tag, document: str, documents: Sequence[str]) -> None:
    """Links inside the book lead to anchors of the file; a file that is not printed is named, not linked."""
    address = str(link["href"])
    if _ELSEWHERE.match(address):
        return
    parts = urlsplit(address)
    here = posixpath.dirname(document)
    page = posixpath.normpath(posixpath.join(here, unquote(parts.path))) if parts.path else f"{document}.html"
    target = page.removesuffix(".html")
    if not page.endswith(".html") or target not in documents:
        link.unwrap()
        return
    link["href"] = f"#{anchor(target, unquote(parts.fragment))}"


def _carry(image: Tag, folder: Path) -> None:
    source = unquote(str(image["src"]))
    if not source.startswith("data:"):
        image["src"] = data_uri(folder / source)
        image.attrs.pop("loading", None)


def _contents(parts: Sequence[Part], sheets: dict[str, Tag]) -> str:
    lines = []
    for part in parts:
        entries = "".join(
            f'<li><a href="#{anchor(document)}">{html.escape(_heading(sheets[document]) or document)}</a></li>'
            for document in part.documents
        )
        lines.append(f"<h3>{html.escape(part.caption)}</h3>" * bool(part.caption) + f"<ul>{entries}</ul>")
    return f'<nav class="contents" aria-label="contents"><h2>Contents</h2>{"".join(lines)}</nav>'


def _heading(article: Tag) -> str:
    found = article.find("h1")
    return " ".join(found.get_text().split()) if found is not None else ""


def _file(folder: Path, title: str, body: str) -> str:
    styles = [folder / "_static" / "pygments.css", STYLE]
    css = "\n".join(path.read_text(encoding="utf-8") for path in styles if path.is_file())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{css}</style>
{_mathjax(folder)}
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _mathjax(folder: Path) -> str:
    """The book's settings of MathJax, and MathJax itself in the form that carries its letters."""
    script = folder / _MATHJAX
    if not script.is_file():
        return ""
    pages = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("notebooks/*.html")))
    found = next(filter(None, map(_SETTINGS.search, pages)), None)
    settings = found[1] if found else 'window.MathJax = {"options": {"processHtmlClass": "math"}}'
    text = script.read_text(encoding="utf-8").replace("</script", "<\\/script")
    calm = "window.MathJax.options.enableMenu = false; window.MathJax.svg = {fontCache: 'global'};"
    return f"<script>{settings};{calm}</script>\n<script>{text}</script>"


def find_browser() -> str:
    """The path of a Chromium; `BuildError` where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise BuildError("There is no Chromium on this machine to print with: install it, or print the HTML file.")
    return found


def print_pdf(page: Path, target: Path) -> None:
    """Print the HTML file `page` into `target`; no request leaves the machine."""
    browser = find_browser()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "book.pdf")
        options = [*_OPTIONS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}"]
        try:
            done = subprocess.run(
                [browser, *options, page.resolve().as_uri()], capture_output=True, timeout=_PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"{browser} has not printed {page.name} within {_PATIENCE // 60} minutes.") from None
        if done.returncode or not made.is_file():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise BuildError(f"{browser} could not print {page.name}: {last[0][:300]}")
        shutil.move(made, target)
