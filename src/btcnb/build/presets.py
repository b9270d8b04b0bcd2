"""Every value of every parameter, settled before anything runs: defaults, preset, parameter file, command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from btcnb.build.errors import UsageError
from btcnb.build.parameters import Parameter, known_parameters
from btcnb.build.types import MismatchError, convert, parse
from btcnb.errors import ParameterError

PRESETS = ("quick", "standard", "paper")
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
    """The settings of one preset in `notebooks/presets.yml`."""
    presets = _read_mapping(path) if path.exists() else {name: {} for name in PRESETS}
    if preset not in presets:
        raise UsageError(f"{path.name} has no preset `{preset}`; it has {', '.join(map(str, presets))}.")
    return _settings(f"preset {preset} in {path.name}", presets[preset])


def read_file(path: Path) -> list[Setting]:
    """The settings of a `--params` file, laid out like one preset."""
    return _settings(str(path), _read_mapping(path))


def read_options(options: Iterable[str]) -> list[Setting]:
    """The settings of `-p name=value` and `-p chapter.name=value`."""
    settings = []
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-p {option}: write -p name=value, or -p chapter.name=value.")
        chapter, _, name = name.strip().rpartition(".")
        settings.append(Setting(f"-p {option}", chapter or None, name, value.strip(), typed=True))
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
        raise ParameterError("\n".join([*problems, "Known parameters:", known_parameters(known)]))
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
    raise ParameterError(f"{setting.where}: there is no chapter `{setting.chapter}`.")


def _value(setting: Setting, chapter: str, parameter: Parameter) -> Any:
    try:
        return parse(parameter.type, setting.value) if setting.typed else convert(parameter.type, setting.value)
    except MismatchError:
        raise ParameterError(
            f"{setting.where}: {setting.value!r} is of the wrong type: `{parameter.name}` of chapter {chapter} is "
            f"{parameter.annotation}."
        ) from None


def _unknown(setting: Setting, known: Known, reach: Known) -> str:
    names = sorted({name for entries in reach.values() for name in entries})
    close = difflib.get_close_matches(setting.name, names, n=1)
    hint = f" (did you mean `{close[0]}`?)" if close else ""
    whom = f"chapter {setting.chapter} does not know" if setting.chapter else "no chapter knows"
    if setting.chapter is None and any(setting.name in entries for entries in known.values()):
        whom = "no selected chapter knows"
    return f"{setting.where}: {whom} the parameter `{setting.name}`{hint}."


def _settings(where: str, mapping: Any) -> list[Setting]:
    if mapping is None:
        return []
    if not isinstance(mapping, dict):
        raise UsageError(f"{where}: expected a mapping of parameters to values, found {mapping!r}.")
    settings = []
    for key, value in mapping.items():
        if str(key)[:2].isdigit():  # a chapter, NN_name
            if not isinstance(value, dict):
                raise UsageError(f"{where}: {key}: expected a mapping of parameters to values, found {value!r}.")
            settings += [Setting(where, str(key), str(name), entry) for name, entry in value.items()]
        else:
            settings.append(Setting(where, None, str(key), value))
    return settings


def _read_mapping(path: Path) -> dict[Any, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: is not valid YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected a mapping, found {type(content).__name__}.")
    return content
