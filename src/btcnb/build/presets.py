"""Every value of every parameter, settled before anything runs: defaults, preset, parameter file, command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from btcnb.book.page import clipped
from btcnb.book.parameters import Parameter, nearest, unknown
from btcnb.build.project import UsageError, read_mapping
from btcnb.errors import ParameterError

Known = Mapping[str, Mapping[str, Parameter]]  # chapter -> parameter name -> parameter


@dataclass(frozen=True)
class Setting:
    """A value asked for: in one chapter, or (`chapter` is None) in every chapter that knows the parameter."""

    where: str  # what to name in an error: a file's preset, or the option
    chapter: str | None
    name: str
    value: Any
    typed: bool = False  # came as text from the command line


def read_preset(path: Path, preset: str) -> list[Setting]:
    """The settings of one preset: the section `chapters` of the size of that name in `sizes.yml`."""
    sizes = read_mapping(path)
    if preset not in sizes:
        raise UsageError(f"{path.name} has no size `{preset}`; it has {', '.join(map(str, sizes))}.")
    if not isinstance(sizes[preset], dict):
        raise UsageError(f"{path.name}: {preset}: expected a mapping, found {clipped(repr(sizes[preset]))}.")
    return _settings(f"size {preset} in {path.name}", sizes[preset].get("chapters"))


def read_file(path: Path) -> list[Setting]:
    """The settings of a `--params` file, laid out like the section `chapters` of a size."""
    return _settings(str(path), read_mapping(path))


def read_options(options: Iterable[str]) -> list[Setting]:
    """The settings of `-p name=value` and `-p chapter.name=value`."""
    settings = []
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-p {clipped(option)}: write -p name=value, or -p chapter.name=value.")
        chapter, _, name = name.strip().rpartition(".")
        settings.append(Setting(f"-p {clipped(option)}", chapter or None, name, value.strip(), typed=True))
    return settings


def resolve(known: Known, selected: Sequence[str], layers: Sequence[Sequence[Setting]]) -> dict[str, dict[str, Any]]:
    """The values of all parameters of all `known` chapters.

    Later layers win; within a layer what is said of one chapter wins over what is said of all. Settings typed on the
    command line touch the `selected` chapters only, and one of these must know the name. All complaints come at once.
    """
    values = {chapter: {name: entry.default for name, entry in entries.items()} for chapter, entries in known.items()}
    problems: list[str] = []
    for layer in layers:
        for setting in sorted(layer, key=lambda entry: entry.chapter is not None):
            reach = {name: known[name] for name in selected} if setting.typed else known
            try:
                for chapter, value in _apply(setting, known, reach):
                    values[chapter][setting.name] = value
            except ParameterError as error:
                problems.append(str(error))
    if problems:
        raise ParameterError("\n".join(problems))
    return values


def _apply(setting: Setting, known: Known, reach: Known) -> list[tuple[str, Any]]:
    if setting.chapter is not None:
        chapter = _chapter(setting, known)
        if chapter not in reach:
            raise ParameterError(f"{setting.where}: chapter {chapter} is not among those selected.")
        targets = [chapter] if setting.name in known[chapter] else []
    else:
        targets = [chapter for chapter, entries in reach.items() if setting.name in entries]
    if not targets:
        raise ParameterError(_unknown(setting, known, reach))
    return [(chapter, _value(setting, chapter, known[chapter][setting.name])) for chapter in targets]


def _chapter(setting: Setting, known: Known) -> str:
    for chapter in known:
        if setting.chapter in (chapter, chapter.split("_")[0]):
            return chapter
    raise ParameterError(f"{setting.where}: there is no chapter `{clipped(str(setting.chapter))}`.")


def _value(setting: Setting, chapter: str, parameter: Parameter) -> Any:
    try:
        return parameter.parse(setting.value) if setting.typed else parameter.check(setting.value)
    except ParameterError as error:
        raise ParameterError(f"{setting.where}: chapter {chapter}: {error}") from None


def _unknown(setting: Setting, known: Known, reach: Known) -> str:
    if setting.chapter is not None:
        chapter = _chapter(setting, known)
        return f"{setting.where}: {unknown(setting.name, chapter, known[chapter])}"
    if any(setting.name in entries for entries in known.values()):
        has = ", ".join(chapter for chapter, entries in known.items() if setting.name in entries)
        return f"{setting.where}: no selected chapter knows the parameter `{setting.name}`; {has} would."
    close = nearest(setting.name, {name for entries in reach.values() for name in entries})
    if close is None:
        name = clipped(setting.name)
        return f"{setting.where}: no chapter knows the parameter `{name}`; `btcnb chapters` lists them all."
    chapter = next(chapter for chapter, entries in reach.items() if close in entries)
    return (
        f"{setting.where}: no chapter knows the parameter `{setting.name}` (did you mean `{close}`?); those of "
        f"chapter {chapter} are {', '.join(reach[chapter])}."
    )


def _settings(where: str, mapping: Any) -> list[Setting]:
    if mapping is None:
        return []
    if not isinstance(mapping, dict):
        raise UsageError(f"{where}: expected a mapping of parameters to values, found {clipped(repr(mapping))}.")
    settings = []
    for key, value in mapping.items():
        if str(key)[:2].isdigit():  # a chapter, NN_name
            if not isinstance(value, dict):
                raise UsageError(
                    f"{where}: {key}: expected a mapping of parameters to values, found {clipped(repr(value))}."
                )
            settings += [Setting(where, str(key), str(name), entry) for name, entry in value.items()]
        else:
            settings.append(Setting(where, None, str(key), value))
    return settings
