"""Every value of every parameter, settled before anything runs: defaults, preset, parameter file, command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from btcnb.book.parameters import Parameter, nearest, unknown
from btcnb.build.project import UsageError, read_mapping
from btcnb.errors import ParameterError, clipped

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
    where = f"size {preset} in {path.name}"
    return _settings(where, _mapping(where, sizes[preset]).get("chapters"))


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
            try:
                for chapter in _targets(setting, known, selected if setting.typed else known):
                    parameter = known[chapter][setting.name]
                    settle = parameter.parse if setting.typed else parameter.check
                    values[chapter][setting.name] = settle(setting.value)
            except ParameterError as error:
                problems.append(f"{setting.where}: {error}")
    if problems:
        raise ParameterError("\n".join(problems))
    return values


def _targets(setting: Setting, known: Known, reach: Iterable[str]) -> list[str]:
    """The chapters that a setting is meant for and that know its parameter: one at least."""
    chapters = list(reach)
    if setting.chapter is not None:
        chapters = [chapter for chapter in chapters if setting.chapter in (chapter, chapter.split("_")[0])]
        if not chapters:
            raise ParameterError(f"there is no chapter `{clipped(setting.chapter)}` among those selected.")
    found = [chapter for chapter in chapters if setting.name in known[chapter]]
    if not found and len(chapters) == 1:
        raise ParameterError(unknown(setting.name, chapters[0], known[chapters[0]]))
    if not found:
        close = nearest(setting.name, {name for chapter in chapters for name in known[chapter]})
        hint = f" (did you mean `{close}`?)" if close else ""
        name = clipped(setting.name)
        raise ParameterError(
            f"no selected chapter knows the parameter `{name}`{hint}; `btcnb chapters` lists them all."
        )
    return found


def _settings(where: str, mapping: Any) -> list[Setting]:
    settings = []
    for key, value in _mapping(where, mapping).items():
        if str(key)[:2].isdigit():  # a chapter, NN_name
            settings += [Setting(where, str(key), str(name), entry) for name, entry in _mapping(where, value).items()]
        else:
            settings.append(Setting(where, None, str(key), value))
    return settings


def _mapping(where: str, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict | None):
        raise UsageError(f"{where}: expected a mapping of parameters to values, found {clipped(repr(value))}.")
    return value or {}
