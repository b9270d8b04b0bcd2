"""Every preset can be resolved: no parameter that no chapter knows, no value of the wrong type."""

from pathlib import Path

import pytest

from btcnb.build.notebooks import load_chapters
from btcnb.build.presets import read_preset, resolve
from btcnb.build.project import Project

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
def test_a_preset_names_only_what_chapters_know(preset: str) -> None:
    project = Project(ROOT)
    chapters = load_chapters(project)
    known = {chapter.name: chapter.parameters for chapter in chapters}
    values = resolve(known, [chapter.name for chapter in chapters], [read_preset(project.presets, preset)])
    sizes = {entry["size"] for entry in values.values() if "size" in entry}
    assert sizes == {preset}
