"""The examples of docstrings and of the README run, and docstrings have the sections of numpydoc."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import meanlink

README = Path(__file__).parents[1] / "README.md"
MODULES = sorted(module.name for module in pkgutil.iter_modules(meanlink.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    if name == "estimator":
        pytest.importorskip("sklearn")
    found = doctest.testmod(importlib.import_module(f"meanlink.{name}"))
    assert found.failed == 0


@pytest.mark.parametrize("name", sorted(name for name in meanlink.__all__ if name.islower()))
def test_public_functions_have_an_example_and_explain_their_parameters(name: str) -> None:
    """In a section of their own, or in the text of a function that is explained in a sentence."""
    text = inspect.getdoc(getattr(meanlink, name)) or ""
    assert re.search(r"^Examples\n-+$", text, re.MULTILINE), f"{name} has no example"
    section = re.search(r"^Parameters\n-+\n(.*?)(?:^\w+\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
    if section:
        named = re.findall(r"^(\w[\w, ]*) :", section[1], re.MULTILINE)
        assert [part for line in named for part in line.split(", ")] == list(
            inspect.signature(getattr(meanlink, name)).parameters
        )


def test_the_readme_runs_from_top_to_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    exec(blocks[0], names)
    assert -1.0 <= float(capsys.readouterr().out) <= 1.0
    pytest.importorskip("sklearn")
    exec(blocks[1], names)


def test_the_readme_names_what_there_is() -> None:
    for name in re.findall(r"`(\w+)\(", README.read_text(encoding="utf-8")):
        assert hasattr(meanlink, name) or name == "AgglomerativeClustering"
