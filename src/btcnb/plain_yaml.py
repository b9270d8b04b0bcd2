"""YAML with the numbers of YAML 1.2, without aliases and, in grids, without repeated names.

1e-3 is a number; 010, 1:30, yes and 2020-01-01 are text. Aliases are refused, because a few lines of them can stand for
more values than memory holds.
"""

from __future__ import annotations

import re
from typing import Any

import yaml


class PlainLoader(yaml.SafeLoader):
    """YAML 1.1 without aliases."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken: write the value out")
        return super().compose_node(parent, index)


class _Numbers(PlainLoader):
    """The numbers and truth values of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


for _tag, _pattern in {
    "bool": r"true|True|false|False",
    "null": r"null|~",
    "int": r"[-+]?(0|[1-9](_?\d)*)",
    "float": r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?|[-+]?\.inf|\.nan",
}.items():
    _Numbers.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), None)


class _Names(_Numbers):
    """Keys are text as written: 0.1 and 0.10 are two names. A repeated key is refused."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(f"the name in line {line} is no text")
            if key.value in found:
                raise yaml.YAMLError(f"{key.value!r} stands twice, the second time in line {line}")
            found[key.value] = self.construct_object(value, deep=True)
        return found


def read_yaml(text: str, loader: Any = None) -> Any:
    """The content of `text`, with the numbers of YAML 1.2 or as `loader` reads it; else a `yaml.YAMLError`."""
    try:
        return yaml.load(text, loader or _Numbers)
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
        # a tag that its text does not fit (!!bool maybe), a number of too many digits, brackets too deep
        raise yaml.YAMLError(f"a value cannot be read ({type(error).__name__})") from None


def read_names(text: str) -> Any:
    """The same where names are text and unique: grids of runs."""
    return read_yaml(text, _Names)
