"""Print the changelog's section of a version; refuse a version that the files do not agree on.

python tools/release_notes.py v0.2.0
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def named_versions(root: Path) -> dict[str, str]:
    """The version that each file names."""
    init = (root / "src" / "btcnb" / "__init__.py").read_text()
    citation = (root / "CITATION.cff").read_text()
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"],
        "src/btcnb/__init__.py": re.findall(r'^__version__ = "(.+)"$', init, re.M)[0],
        "CITATION.cff": re.findall(r'^version: "?([^"\n]+)"?$', citation, re.M)[0],
    }


def section(changelog: str, version: str) -> str:
    """The text under `## [version] - date`, without its heading; empty if there is none."""
    found = re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## \[|\Z)", changelog, re.M | re.S)
    return found[1].strip() if found else ""


def main() -> None:
    version = sys.argv[1].removeprefix("v")
    for name, said in named_versions(ROOT).items():
        if said != version:
            sys.exit(f"release_notes: {name} says {said}, not {version}.")
    notes = section((ROOT / "CHANGELOG.md").read_text(), version)
    if not notes:
        sys.exit(f"release_notes: CHANGELOG.md has no section '## [{version}] - DATE'.")
    print(notes)


if __name__ == "__main__":
    main()
