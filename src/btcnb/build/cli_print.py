"""The command `btcnb print`: the rendered book as one file to print, and as a PDF."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btcnb.build.print_edition import Part
    from btcnb.build.project import Project


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from btcnb.sizes import PRESETS

    command = commands.add_parser(
        "print", help="make one HTML file of the rendered book, to print or to carry, and a PDF of it",
        description="Make one self-contained HTML file of the rendered book (`btcnb build` comes first), and with "
        "--pdf a PDF of it, printed by the Chromium of this machine. Nothing is loaded from anywhere.",
    )  # fmt: skip
    command.add_argument("--preset", choices=PRESETS, default="quick", help="whose pages (quick)")
    command.add_argument(
        "--edition", choices=("full", "student"), default="full", help="student: without the solutions (full)"
    )
    command.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="CHAPTER", help="chapters by number or name (all)"
    )
    command.add_argument("--code", action="store_true", help="print the code that is folded on the pages, too")
    command.add_argument("--pdf", action="store_true", help="print a PDF beside the HTML file")
    command.add_argument("--out", type=Path, metavar="FILE", help="the HTML file (_build/PRESET/print/book.html)")
    command.set_defaults(run=_print)


def _print(project: Project, options: argparse.Namespace) -> int:
    from btcnb.build.errors import BuildError
    from btcnb.build.print_edition import print_edition
    from btcnb.build.project import read_mapping, write_atomically

    output = project.output(options.preset)
    folder = output.html(options.edition)
    if not (folder / "index.html").is_file():
        raise BuildError(f"The book is not built at preset {options.preset}: run `btcnb build` first.")
    title = str(read_mapping(project.config, project.config.name).get("title", "The book"))
    page = options.out or output.folder / "print" / "book.html"
    write_atomically(page, print_edition(folder, parts(project, options.only), title, options.code))
    print(f"One file: {project.relative(page.resolve())}")
    if options.pdf:
        from btcnb.build.print_pdf import print_pdf

        target = page.with_suffix(".pdf")
        print_pdf(page, target)
        print(f"Printed: {project.relative(target.resolve())}")
    return 0


def parts(project: Project, only: list[str]) -> list[Part]:
    """The book's parts in the order of `_toc.yml`; with `only`, those chapters alone."""
    from btcnb.build.chapters import load_chapters, select, toc_documents
    from btcnb.build.print_edition import Part
    from btcnb.build.project import read_mapping

    toc = read_mapping(project.toc, project.toc.name)
    listed = toc_documents(project)
    if only:
        listed = [f"notebooks/{chapter.name}" for chapter in select(load_chapters(project), only)]

    def part(caption: str, node: Any) -> Part:
        return Part(caption, tuple(document for document in _documents(node) if document in listed))

    found = [part("", {"file": toc.get("root")}), part("", toc.get("chapters", []))]
    found += [part(str(entry.get("caption", "")), entry) for entry in toc.get("parts", [])]
    return [entry for entry in found if entry.documents]


def _documents(node: Any) -> list[str]:
    if isinstance(node, list):
        return [document for entry in node for document in _documents(entry)]
    if not isinstance(node, dict):
        return []
    own = [str(node["file"]).removesuffix(".md").removesuffix(".ipynb")] if node.get("file") else []
    return own + _documents(node.get("chapters", [])) + _documents(node.get("sections", []))
