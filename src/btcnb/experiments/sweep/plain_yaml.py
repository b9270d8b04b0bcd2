"""YAML as grids use it: names are text, numbers are read as anyone would, and nothing is said twice.

1e-3 is a number; 010, 1:30, yes and 2020-01-01 are text. Aliases are refused: a few lines of them stand for more values
than memory holds.
"""

from __future__ import annotations

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken: write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Keys are the text that stands there: 0.1 and 0.10 are two names. A key that stands twice is refused."""
        found: dict[Any, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(f"the name in line {line} is no text")
            if key.value in found:
                raise yaml.YAMLError(f"{key.value!r} stands twice, the second time in line {line}")
            found[key.value] = self.construct_object(value, deep=True)
        return found


for _tag, _pattern, _first in (
    ("bool", r"true|True|false|False", "tTfF"),
    ("null", r"null|~|", "n~"),
    ("int", r"[-+]?(0|[1-9](_?\d)*)", "-+0123456789"),
    ("float", r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(str(loader.construct_scalar(node)))


_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def read_plain(text: str) -> Any:
    """What the text says; else a `yaml.YAMLError`."""
    try:
        return yaml.load(text, _Loader)
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
        # a tag that its text does not fit (!!bool maybe), a number of too many digits, brackets too deep
        raise yaml.YAMLError(f"a value cannot be read ({type(error).__name__})") from None
