"""Where the repository is: `repository:` in `_config.yml`, the only place that says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from btcnb.build.errors import UsageError
from btcnb.build.project import read_mapping
from btcnb.plain_yaml import PlainLoader


@dataclass(frozen=True)
class Repository:
    """`url` is the address that a browser opens, without a slash at its end; `branch` is what buttons lead to."""

    url: str
    branch: str = "main"

    @property
    def files(self) -> str:
        """What a path in the repository is put behind, with a slash."""
        return f"{self.url}/blob/{self.branch}"

    @property
    def pip(self) -> str:
        """What pip calls it."""
        return f"git+{self.url}@{self.branch}"


def read_repository(config: Path) -> Repository | None:
    """What `_config.yml` says; None where it names no repository, or where there is no such file."""
    if not config.is_file():
        return None
    section = read_mapping(config, config.name, PlainLoader).get("repository") or {}
    if not isinstance(section, dict) or not all(isinstance(section.get(key, ""), str) for key in ("url", "branch")):
        raise UsageError(f"{config.name}: repository: expected `url` and `branch`, found {section!r:.80}.")
    url = section.get("url", "").rstrip("/")
    return Repository(url, section.get("branch") or "main") if url else None
