#!/usr/bin/env python3
"""Makes a picture of a result's report: `scripts/screenshot_report.py FOLDER [PICTURE]`, docs/images/report.png by default.

What it does: opens FOLDER/report.html in headless Chromium, light or dark, at a width, and writes what it shows as PNG.
What it does not do: make the report (optimize does). Exit code 2 with one line where there is no Chromium or no report.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
SECONDS = 60


def find_browser() -> str | None:
    """The first Chromium on the search path."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def screenshot(browser: str, page: Path, picture: Path, size: tuple[int, int], scheme: str = "light") -> None:
    """Write `picture`, `size` pixels wide and high. Raises SubprocessError where there is none.

    The page is laid out in a frame: a browser's window does not become narrower than 500 px, a frame does.
    """
    width, height = size
    with tempfile.TemporaryDirectory(prefix="kernelwright-picture-") as own:
        text = page.read_text(encoding="utf-8").replace("color-scheme: light dark", f"color-scheme: {scheme}")
        text = text.replace("(prefers-color-scheme: dark)", "all" if scheme == "dark" else "not all")
        shown = Path(own) / "report.html"
        shown.write_text(text, encoding="utf-8")
        frame = Path(own) / "frame.html"
        style = f"position:absolute;left:0;top:0;border:0;width:{width}px;height:{height}px"
        frame.write_text(
            f'<body style="margin:0"><iframe src="report.html" scrolling="no" style="{style}"></iframe>', encoding="utf-8"
        )
        command = [
            browser,
            *QUIET,
            f"--user-data-dir={own}/profile",
            f"--screenshot={picture}",
            f"--window-size={width},{height}",
        ]
        subprocess.run([*command, frame.as_uri()], check=True, capture_output=True, timeout=SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    default = Path(__file__).resolve().parent.parent / "docs" / "images" / "report.png"
    parser.add_argument("picture", type=Path, nargs="?", default=default)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=1500)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    page, browser = given.folder / "report.html", find_browser()
    if not page.is_file() or browser is None:
        sys.stderr.write(
            f"there is no {page}\n" if browser else "no Chromium was found; install it, e.g. apt-get install chromium\n"
        )
        return 2
    given.picture.parent.mkdir(parents=True, exist_ok=True)
    screenshot(browser, page, given.picture.absolute(), (given.width, given.height), "dark" if given.dark else "light")
    return 0


if __name__ == "__main__":
    sys.exit(main())
