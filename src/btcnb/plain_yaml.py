"""YAML for parameters, sizes and grids: the numbers of YAML 1.2, names that are text and stand once, no aliases.

1e-3 is a number; 010, 1:30, yes and 2020-01-01 are text. As names, 0.1 and 0.10 are two. Aliases are refused, because a
few lines of them can stand for more values than memory holds.
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
        found: dict[Any, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(f"the name in line {line} is no text")
            if key.value in found:
                raise yaml.YAMLError(f"{key.value!r} stands twice, the second time in line {line}")
            found[key.value] = self.construct_object(value, deep=True)
        return found


for _tag, _pattern in {
    "bool": r"true|True|false|False",
    "null": r"null|~",
    "int": r"[-+]?(0|[1-9](_?\d)*)",
    "float": r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?|[-+]?\.inf|\.nan",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), None)


def read_yaml(text: str) -> Any:
    """The content of `text`, or a `yaml.YAMLError`."""
    try:
        return yaml.load(text, _Loader)
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
        # a tag that its text does not fit (!!bool maybe), a number of too many digits, brackets too deep
        raise yaml.YAMLError(f"a value cannot be read ({type(error).__name__})") from None
