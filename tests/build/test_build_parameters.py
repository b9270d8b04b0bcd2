"""Parameters: read from the chapter, settled from four layers, refused before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from minibook import MiniBook

from btcnb.book.parameters import read_parameters
from btcnb.build.cli import Preset
from btcnb.build.notebooks import load_chapters
from btcnb.build.presets import Setting, read_options, read_preset, resolve
from btcnb.build.project import Project
from btcnb.errors import ParameterError

KNOWN = {
    "03_graph": read_parameters("03_graph", "seed: int = 1  # the seed\nshare: float = 0.5  # a share (0, 1)\n"),
    "08_training": read_parameters("08_training", "seed: int = 2\nepochs: int = 10  # passes [1, 1000]\n"),
}
ALL = list(KNOWN)


def test_a_line_of_the_cell_is_a_parameter() -> None:
    parameters = read_parameters("x", 'rule: str = "a"  # which rule: any\nplain = 3\n')
    rule = parameters["rule"]
    assert (rule.annotation, rule.default, rule.meaning) == ("str", "a", "which rule: any")
    assert parameters["plain"].annotation == "int"


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("twice: int = 2 * seed", "only literals"),
        ("import os", "only assignments"),
        ("epochs: int = 'many'", "'many' is of the wrong type: `epochs` is int"),
        ("epochs: int = 0  # passes [1, 10]", r"the default of `epochs` is not allowed: 0 is out of range"),
        ("label: str = 'a'  # name [1, 10]", r"\[1, 10\] is no range for str"),
        ("share: float = 1  # share [2, 1]", r"\[2, 1\] is no range for float"),
        ("size: str = 'huge'  # size {tiny | quick}", "must be one of tiny, quick"),
        ("epochs: Tensor = 3", "not supported"),
        ("epochs: int = ", "not Python"),
        ("label: str = 'a = b'", "papermill cannot read the parameter `label`: write it in one line"),
        ("label: str = 'a # b'  # name", "papermill cannot read the parameter `label`"),
    ],
)
def test_a_parameters_cell_that_breaks_the_rules(cell: str, complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        read_parameters("08_training", cell)


def test_later_layers_win_and_one_chapter_wins_over_all() -> None:
    preset = [Setting("preset", "08_training", "seed", 5), Setting("preset", None, "seed", 4)]
    assert resolve(KNOWN, ALL, [preset])["08_training"]["seed"] == 5
    values = resolve(KNOWN, ALL, [preset, read_options(["seed=6", "08.epochs=50"])])
    assert values == {"03_graph": {"seed": 6, "share": 0.5}, "08_training": {"seed": 6, "epochs": 50}}


def test_options_reach_the_selected_chapters_only() -> None:
    values = resolve(KNOWN, ["03_graph"], [read_options(["seed=9"])])
    assert (values["03_graph"]["seed"], values["08_training"]["seed"]) == (9, 2)


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("epoch=3", r"no selected chapter knows the parameter `epoch` \(did you mean `epochs`\?\);"),
        ("zzz=3", "no selected chapter knows the parameter `zzz`; `btcnb chapters` lists them all"),
        ("epochs=many", r"-p epochs=many: 'many' is of the wrong type: `epochs` \(passes\) is int\."),
        ("epochs=true", "wrong type"),
        ("epochs=010", "wrong type"),
        ("epochs=0", r"-p epochs=0: 0 is out of range: `epochs` \(passes\) must lie in \[1, 1000\]\."),
        ("share=.inf", r"must lie in \(0, 1\)"),
        (
            "03_graph.epochs=3",
            r"chapter 03_graph does not know the parameter `epochs`; its parameters are seed, share\.",
        ),
        ("03_graph.sede=3", r"does not know the parameter `sede` \(did you mean `seed`\?\)"),
        ("99_none.epochs=3", "there is no chapter `99_none`"),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence(option: str, complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint) as caught:
        resolve(KNOWN, ALL, [read_options([option])])
    assert "\n" not in str(caught.value)


def test_a_name_known_elsewhere_only_is_refused_under_a_selection() -> None:
    with pytest.raises(ParameterError, match="chapter 03_graph does not know the parameter `epochs`"):
        resolve(KNOWN, ["03_graph"], [read_options(["epochs=3"])])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-p", "epoch=3"], "no selected chapter knows the parameter `epoch`"),
        (["-p", "epochs"], "write -p name=value"),
        (["-p", "epochs=-1"], "`epochs` (passes over the data) must lie in [0, inf)"),
        (["-p", "label=http://bob:secret@host", "-p", "x=1"], "no selected chapter knows the parameter `x`"),
        (["-p", "seed=http://bob:secret@host"], "'http://host' is of the wrong type"),
        (["--only", ""], "There is no chapter ``"),
        (["--only", "07"], "There is no chapter `07`; the chapters are 01_first, 02_second"),
        (["--params", "nowhere.yml"], "nowhere.yml: cannot be read"),
        (["--jobs", "0"], "at least one"),
        (["-p", f"{'e' * 100_000}=1"], "no selected chapter knows the parameter `eee"),
        (["-p", f"epochs=http://{'b' * 90}:secret@host"], "'http://host' is of the wrong type"),
    ],
)
def test_a_bad_request_is_refused_before_anything_runs(
    book: MiniBook, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert book.execute(*arguments) == 2
    told = capsys.readouterr().err
    assert complaint in told and "secret" not in told and len(told) < 1000
    assert not (book.root / "_build").exists()


@pytest.mark.parametrize(
    ("presets", "complaint"),
    [
        ("quick: {chapters: {epoch: 3}}", "size quick in sizes.yml: no selected chapter knows the parameter `epoch`"),
        ("quick: {chapters: {epochs: 010}}", "'010' is of the wrong type"),
        ("quick: {chapters: {epochs: -1}}", "out of range"),
        ("quick: {chapters: {09_ninth: {epochs: 1}}}", "there is no chapter `09_ninth`"),
        ("quick: {chapters: [1, 2]}", "expected a mapping"),
        ("quick: [1, 2]", "expected a mapping"),
        ("standard: {}", "has no size `quick`"),
        ("quick: {", "is not valid YAML"),
    ],
)
def test_a_bad_preset_is_refused(
    book: MiniBook, capsys: pytest.CaptureFixture[str], presets: str, complaint: str
) -> None:
    book.write("src/btcnb/sizes.yml", presets)
    assert book.execute() == 2
    assert complaint in capsys.readouterr().err


def test_presets_files_and_options_reach_the_notebooks(book: MiniBook, tmp_path: Path) -> None:
    params = tmp_path / "mine.yml"
    params.write_text("label: Möser\n02_second: {share: 0.3}\n", encoding="utf-8")
    options = ["--preset", "standard", "--only", "2", "--params", str(params), "-p", "share=.25"]
    assert book.execute(*options) == 0
    assert "2.0 0.25 Möser" in book.printed("02_second", "standard")
    stamp = book.stamp("02_second", "standard")
    assert stamp["parameters"] == {"seed": 11, "epochs": 4, "share": 0.25, "label": "Möser"}
    assert stamp["changed"] == ["seed", "epochs", "share", "label"]
    assert not book.made("notebooks/01_first.ipynb", "standard").exists()


def test_the_list_of_chapters(book: MiniBook) -> None:
    command = [sys.executable, "-m", "btcnb.build.cli", "--root", str(book.root), "chapters", "--only", "02"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "02_second  The second chapter" in shown
    assert ["epochs", "int", "2", "[0,", "inf)", "passes", "over", "the", "data"] in map(str.split, shown.splitlines())
    assert "01_first" not in shown


@pytest.mark.parametrize("preset", get_args(Preset))
def test_a_preset_names_only_what_chapters_know(preset: str) -> None:
    project = Project(Path(__file__).resolve().parents[2])
    known = {chapter.name: chapter.parameters for chapter in load_chapters(project)}
    values = resolve(known, list(known), [read_preset(project.presets, preset)])
    assert {entry["size"] for entry in values.values() if "size" in entry} == {preset}
