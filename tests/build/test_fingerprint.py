"""A package is parsed once while its files stay as they are, and again when one of them changes."""

from pathlib import Path

from btcnb.build.fingerprint import package_today


def test_an_edit_is_seen_and_nothing_else_is_parsed_again(tmp_path: Path) -> None:
    root = tmp_path / "toy"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "work.py").write_text("def work():\n    return 1\n")
    first = package_today(root)
    digest = first.of_symbol("toy.work", "work").digest
    assert package_today(root) is first
    (root / "work.py").write_text("def work():\n    return 2\n")
    assert package_today(root).of_symbol("toy.work", "work").digest != digest
    assert first.of_symbol("toy.work", "work").digest == digest
