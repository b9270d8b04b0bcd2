"""Grids: what they expand to, when two runs are the same, and every way of getting one wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from btcnb.data import Source
from btcnb.errors import DataError
from btcnb.experiments import recipe
from btcnb.experiments.measures import MEASURES
from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep import read_grid
from btcnb.experiments.sweep.grid import grid_rows
from btcnb.experiments.sweep.records import MEASURED_AS, measured_as, run_id, run_of


def grid(folder: Path, text: str) -> Path:
    path = folder / "ablation.yaml"
    path.write_text(text, encoding="utf-8")
    return path


WHOLE = """
name: ablation
words: what matters
measure: scores
size: tiny
seeds: 2
base: {epochs: 4, disorder: 0.5}
rows:
  gat: {}
  louvain: {method: louvain}
  directed 64: {symmetrise: false, landmarks: 64, epochs: 9}
  ward: {linkage: ward, cluster.alpha: 2.0, alpha: 0.25, learning_rate: 1e-3}
  common input: {supervision: [common_input]}
"""


def test_rows_times_seeds_seed_by_seed(tmp_path: Path) -> None:
    found = read_grid(grid(tmp_path, WHOLE))
    assert (found.name, found.words) == ("ablation", "what matters")
    assert found.rows == ("gat", "louvain", "directed 64", "ward", "common input")
    assert [(job.row, job.seed) for job in found.jobs[4:7]] == [("common input", 1), ("gat", 2), ("louvain", 2)]


def test_every_row_is_the_recipe_that_one_would_write(tmp_path: Path) -> None:
    gat, louvain, directed, ward, common = read_grid(grid(tmp_path, WHOLE), seeds=[3]).jobs
    source = Source(size="tiny", seed=3, disorder=0.5)
    assert gat == Job("gat", 3, recipe(source, 3, epochs=4))
    assert louvain == Job("louvain", 3, recipe(source, 3, epochs=4), method="louvain")
    assert directed.recipe == recipe(source, 3, epochs=9, symmetrise=False, landmarks=64)
    assert ward.recipe.train == recipe(source, 3, epochs=4, alpha=0.25, learning_rate=1e-3).train
    assert (ward.recipe.cluster.method, ward.recipe.cluster.alpha) == ("ward", 2.0)
    assert common.recipe.supervision == ("common_input",)


def test_seeds_are_a_number_or_a_list(tmp_path: Path) -> None:
    path = grid(tmp_path, "size: tiny\nseeds: [4, 2]\nrows: {a: {}}")
    assert [job.seed for job in read_grid(path).jobs] == [4, 2]
    assert [job.seed for job in read_grid(path, seeds=3).jobs] == [1, 2, 3]
    assert {job.recipe.source.seed for job in read_grid(path, seeds=[5]).jobs} == {5}
    assert {job.recipe.train.seed for job in read_grid(path, seeds=[5]).jobs} == {5}


def test_rows_are_called_what_stands_there(tmp_path: Path) -> None:
    text = "size: tiny\nseeds: 1\nrows: {0.1: {alpha: 0.1}, 0.10: {alpha: 0.11}, no: {alpha: 0.2}, 010: {alpha: 1.0}}"
    assert read_grid(grid(tmp_path, text)).rows == ("0.1", "0.10", "no", "010")


def test_some_rows_only(tmp_path: Path) -> None:
    found = read_grid(grid(tmp_path, WHOLE))
    assert found.only(["ward", "gat"]).rows == ("gat", "ward")
    with pytest.raises(DataError, match="there is no row 'wart'; did you mean 'ward'"):
        found.only(["wart"])


def test_a_product_has_a_row_for_every_combination(tmp_path: Path) -> None:
    text = """
size: tiny
seeds: 1
rows: {alone: {epochs: 1}}
product:
  encoder: {gat: {}, untrained: {method: untrained}}
  disorder: {1: {}, 0.5: {disorder: 0.5}}
"""
    found = read_grid(grid(tmp_path, text))
    assert found.rows == ("alone", "gat 1", "untrained 1", "gat 0.5", "untrained 0.5") == grid_rows(found.path)[1]
    last = found.jobs[-1]
    assert (last.method, last.recipe.source.disorder) == ("untrained", 0.5)


def test_a_measure_takes_arguments_and_its_records_keep_their_earlier_names(tmp_path: Path) -> None:
    text = "measure: flipped\nsize: tiny\nseeds: 1\nrows: {a: {arguments: {share: 0.2}}, b: {arguments: {share: 0.3}}}"
    twenty, thirty = read_grid(grid(tmp_path, text)).jobs
    assert twenty.arguments == (("share", 0.2),)
    assert (measured_as(twenty), measured_as(thirty)) == ("flipped_20", "flipped(share=0.3)")
    assert run_id(twenty) != run_id(thirty)
    assert all(name in MEASURES for name, _ in MEASURED_AS.values())


WRONG = {
    "rows: {a: {arguments: {depth: 3}}}": "rows.a.arguments: there is no argument 'depth'",
    "rows: {a: {arguments: 3}}": "rows.a.arguments: is 3;",
    "seedz: 3\nrows: {a: {}}": "there is no key 'seedz'; did you mean 'seeds'.",
    "rows: {a: {epoch: 3}}": "rows.a: there is no key 'epoch'; did you mean 'epochs'.",
    "base: {lerning_rate: 3}\nrows: {a: {}}": "base: there is no key 'lerning_rate'; did you mean 'learning_rate'.",
    "rows: {a: {seed: 3}}": "rows.a: a row has no seed of its own; write `seeds` at the top: every row runs with each.",
    "rows: {a: {cluster.method: ward, linkage: average}}": "'cluster.method' and 'linkage' set the same field",
    "rows: {}": "rows: there are none; name at least one row.",
    "": "rows: there are none; name at least one row.",
    "rows: [a]": "rows: is ['a']; write names and values, `name: value`.",
    "rows: {a: 3}": "rows.a: is 3;",
    "- rows": "grid: is ['rows'];",
    "rows: {a: {}, b: {epochs: 45}}\nsize: quick": "rows: 'a' and 'b' are the same run (seed 1); change or remove one",
    "rows: {a: {disorder: 1}, b: {disorder: 1.0}}": "'a' and 'b' are the same run",
    "rows: {a: {measure: score}}": "rows.a.measure: there is no measure 'score'; did you mean 'scores'.",
    "measure: beauty\nrows: {a: {}}": "there is no measure 'beauty'",
    "rows: {a: {method: luvain}}": "there is no method 'luvain'; did you mean 'louvain'.",
    "size: tinny\nrows: {a: {}}": "there is no size 'tinny'; did you mean 'tiny'.",
    "rows: {a: {epochs: -1}}": "rows.a: epochs is -1: input should be greater than or equal to 0; mend that",
    "rows: {a: {epochs: many}}": "rows.a: epochs is 'many': input should be a number",
    "rows: {a: {cut: gapp}}": "rows.a:",
    "rows: {a: {supervision: [nobody]}}": "rows.a:",
    "rows: {a: {size: [tiny]}}": "rows.a.size: there is no size",
    "rows: {a: {method: [louvain]}}": "rows.a.method: there is no method",
    "seeds: 0\nrows: {a: {}}": "seeds: is 0; write a number of 1 to 10,000, or a list of different whole numbers.",
    "seeds: [1, 1]\nrows: {a: {}}": "seeds: is [1, 1];",
    "seeds: [-1]\nrows: {a: {}}": "seeds: is [-1];",
    "seeds: true\nrows: {a: {}}": "seeds: is True;",
    "seeds: 99999999999\nrows: {a: {}}": "seeds: is 99999999999;",
    "name: ../away\nrows: {a: {}}": "name: '../away' names no file; use letters, digits, -, _ and .",
    "rows: {a: {}, a: {epochs: 1}}": "YAML: cannot be read ('a' stands twice, the second time in line 1)",
    "base: &all {epochs: 3}\nrows: {a: *all}": "YAML: cannot be read (aliases (*name) are not taken",
    "rows: {a: {": "YAML: cannot be read",
    "rows: {? [a] : {}}": "YAML: cannot be read (the name in line 1 is no text)",
    "rows: !!python/object:os.system {}": "YAML: cannot be read",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_in_one_sentence_with_file_field_and_remedy(tmp_path: Path, text: str) -> None:
    path = grid(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(WRONG[text])) as caught:
        read_grid(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing.yaml: file: cannot be read"):
        read_grid(tmp_path / "nothing.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"bytes.yaml: YAML: cannot be read"):
        read_grid(tmp_path / "bytes.yaml")


def job(row: str = "a", seed: int = 3, **changes: object) -> Job:
    return Job(row, seed, recipe(Source(size="tiny", seed=3), seed, **changes))


def test_a_run_is_what_it_computes() -> None:
    assert run_id(job("a")) == run_id(job("b")) == run_id(job(epochs=3))  # tiny's own number of epochs
    others = [job(epochs=4), replace(job(), method="louvain"), replace(job(), measure="refinement"), job(seed=4)]
    assert len({run_id(each) for each in [job(), *others]}) == 5


def test_a_record_is_of_its_run_also_when_recipes_get_new_fields() -> None:
    asked = job(alpha=0.3)
    record = {"measure": asked.measure, "method": asked.method, "row": "a", "DP": 0.5, **asked.recipe.flat()}
    assert run_of(record) == run_id(asked)
    older = {name: value for name, value in record.items() if name not in ("train.keep", "supervision")}
    assert run_of(older) == run_id(asked)
    assert run_of({**record, "cluster.memory_limit": None}) == run_id(asked)  # recipes had this field once
    assert run_of({**record, "train.keep": "last"}) != run_id(asked)
    assert run_of({**record, "train.gone": 1}) != run_id(asked)
