"""A PDF of an HTML file, printed by whatever Chromium the machine has."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from btcnb.build.errors import BuildError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 1800
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-pdf-header-footer",
    "--virtual-time-budget=600000",  # of the page's own clock: mathematics is set before the page is printed
)


def find_browser() -> str:
    """The path of a Chromium; `BuildError` where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise BuildError("There is no Chromium on this machine to print with: install it, or print the HTML file.")
    return found


def print_pdf(page: Path, target: Path) -> None:
    """Print the HTML file `page` into `target`; no request leaves the machine."""
    browser = find_browser()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "book.pdf")
        options = [*_OPTIONS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}"]
        try:
            done = subprocess.run(
                [browser, *options, page.resolve().as_uri()], capture_output=True, timeout=_PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"{browser} has not printed {page.name} within {_PATIENCE // 60} minutes.") from None
        if done.returncode or not made.is_file():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise BuildError(f"{browser} could not print {page.name}: {last[0][:300]}")
        shutil.move(made, target)
