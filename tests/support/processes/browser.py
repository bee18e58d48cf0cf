"""A real Chromium for tests of pages (mark: browser), and what a page does that it must not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-dev-shm-usage"
).split()


@contextmanager
def chromium() -> Iterator[Browser]:
    """It; the test fails on a machine without one, as it cannot tell anything there."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail(f"no Chromium on the PATH ({', '.join(NAMES)}): install it (Debian: apt-get install chromium)", pytrace=False)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@dataclass
class Witness:
    """What a page did that it must not do."""

    problems: list[str] = field(default_factory=list)

    def watch(self, page: Page, own: str) -> None:
        page.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("download", lambda download: self.problems.append(f"download: {download.url}"))
        page.on("popup", lambda popup: self.problems.append("a window"))

        def answer(route: Any) -> None:
            if route.request.url == own:
                route.continue_()
            else:
                self.problems.append(f"request: {route.request.url}")
                route.abort()

        page.route("**/*", answer)


def opened(browser: Browser, file: Path, witness: Witness, **options: Any) -> Page:
    page = browser.new_page(**options)
    witness.watch(page, file.as_uri())
    page.goto(file.as_uri(), wait_until="load")
    return page
