"""The reference: autodoc takes signatures and docstrings from the code, and this extension makes them reStructuredText.

Docstrings are plain text: `name: meaning` describes an argument, indented lines go on with it, a paragraph that is
indented as a whole is code, and backticks mark code. Docstrings in NumPy's style are left to napoleon.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.pycode import ModuleAnalyzer

_ARGUMENTS = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*):(?:\s+(?P<text>\S.*))?$")
_NUMPY = re.compile(r"^-{3,}\s*$", re.MULTILINE)
_KEPT = re.compile(r"(?<!`)`(?P<code>[^`\n]+)`(?!`)|(?<![\w*])\*(?![\s*])[^*\n]+(?<!\s)\*(?!\w)")
_MARKUP = re.compile(r"[\\*`|]|_(?!\w)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"#\s*(.+)$")


def to_rst(doc: str) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    made: list[str] = []
    item = code = False  # whether indented lines go on with an argument, or with a block of code
    for line in doc.splitlines():
        text = line.strip()
        if not text:
            made.append("")
            item = False
        elif line.startswith(" ") and item:
            made.append(f"  {_inline(text)}")
        elif line.startswith(" "):
            made += [line] if code else ["", "::", "", line]
            code = True
            continue
        elif found := _ARGUMENTS.fullmatch(line):
            names = ", ".join(f"``{name}``" for name in found["names"].split(", "))
            made += [*[""] * (not item), f"- {names}: {_inline(found['text'] or '')}".rstrip()]
            item = True
        else:
            made += [*[""] * (item or code), _inline(text)]
            item = False
        code = code and not text
    return made


def _inline(text: str) -> str:
    """Code in backticks becomes code, or a link where it is a name of the package; emphasis stays; the rest is text."""
    made, end = [], 0
    for found in _KEPT.finditer(text):
        made.append(_MARKUP.sub(r"\\\g<0>", text[end : found.start()]))
        code = found["code"]
        if code is None:
            made.append(found[0])
        else:
            before, after = (r"\ " if _touches(text, place) else "" for place in (found.start() - 1, found.end()))
            made.append(f"{before}:py:obj:`{code}`{after}" if _NAME.fullmatch(code) else f"{before}``{code}``{after}")
        end = found.end()
    return "".join(made) + _MARKUP.sub(r"\\\g<0>", text[end:])


def _touches(text: str, place: int) -> bool:
    """Whether a letter stands beside a piece of code, which reStructuredText does not allow without an escape."""
    return 0 <= place < len(text) and text[place].isalnum()


def field_comments(kind: type) -> Iterator[str]:
    """Fields of a class that have a comment beside them, as items; autodoc shows docstrings only."""
    try:
        lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
        body = ast.parse("\n".join(lines)).body[0].body  # type: ignore[attr-defined]
    except (OSError, TypeError, SyntaxError):
        return
    for node in body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.target.id[0] == "_":
            continue
        if found := _COMMENT.search(lines[(node.end_lineno or 1) - 1], node.end_col_offset or 0):
            yield f"- ``{node.target.id}``: {_inline(found[1].strip())}"


def constant_doc(module: str, name: str) -> str:
    """The string below a constant, in the module that defines it; autodoc looks into the importing module only."""
    home = ModuleAnalyzer.for_module(module)
    found = home.find_attr_docs().get(("", name))
    if found:
        return "\n".join(found)
    for node in ast.parse(home.code).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return constant_doc(node.module, alias.name)
    return ""


def _is_shown(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Public constants are shown, with or without a docstring that autodoc finds."""
    return False if what == "module" and name.isupper() else None


def _docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    if what == "data":
        lines[:] = constant_doc(*name.rsplit(".", 1)).splitlines()
    doc = "\n".join(lines)
    if _NUMPY.search(doc):
        return
    lines[:] = to_rst(doc)
    fields = list(field_comments(value)) if what in {"class", "exception"} else []
    lines += ["", *fields, ""]


def source_file(module: str, name: str) -> str:
    """The file, from the project's root, that defines a name of a module; empty where that is unknown."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    try:
        path = Path(inspect.getsourcefile(inspect.unwrap(value)) or "")
    except TypeError:  # a constant
        return ""
    inside = [folder for folder in path.parents if folder.name == "src"]
    return path.relative_to(inside[-1].parent).as_posix() if inside else ""


def _address(config: Any) -> Any:
    """What `sphinx.ext.linkcode` calls: the address of the file behind a name, in the repository of `_config.yml`."""
    options = config.html_theme_options
    url, branch = options.get("repository_url", ""), options.get("repository_branch") or "main"

    def resolve(domain: str, info: dict[str, str]) -> str | None:
        file = source_file(info.get("module", ""), info.get("fullname", "")) if domain == "py" else ""
        return f"{url}/blob/{branch}/{file}" if file and url else None

    return resolve


def _configure(app: Any, config: Any) -> None:
    config.linkcode_resolve = _address(config)


def setup(app: Any) -> dict[str, bool]:
    for extension in ("sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.linkcode"):
        app.setup_extension(extension)
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    app.connect("autodoc-skip-member", _is_shown)
    app.connect("config-inited", _configure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
