"""A real Chromium for tests of the page, and what every page has to keep to.

`open_page` fails the test when the page writes an error to the console, when a script of it fails,
and when anything is asked of another origin than the page's own.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOST = "ERR_CONNECTION|ERR_INCOMPLETE"  # what Chromium calls a server that went away
# A tab takes a second and a half of processor time to open, another page in it half a second.
TABS: "WeakKeyDictionary[Browser, Page]" = WeakKeyDictionary()
# How many pixels of a canvas are drawn on.
INK = """(canvas) => {
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let drawn = 0;
    for (let i = 3; i < data.length; i += 4) drawn += data[i] > 0;
    return drawn;
}"""
SCREENSHOTS = Path(__file__).parents[1] / "artifacts" / "screenshots"


def executable() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "these tests need Chromium: apt-get install chromium, or set CHROMIUM to its path"
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def open_page(
    browser: Browser,
    address: str,
    *,
    width: int = 1280,
    height: int = 900,
    scheme: str = "light",
    locale: str = "en-US",
    may_lose_server: bool = False,
    may_be_used: bool = True,
) -> Iterator[Page]:
    """The page, once it says that it is ready. It is in a tab that others have used before and will
    use again, if nothing but the address is asked for; a test that does more to the tab than the
    page can undo says so with `may_be_used`."""
    asked_for = (width, height, scheme, locale, may_be_used)
    is_kept = address.startswith("file:") and asked_for == (1280, 900, "light", "en-US", True)
    page = TABS.pop(browser, None) if is_kept else None
    if page is None:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, locale=locale
        )
        page = context.new_page()
        page.set_default_timeout(30_000)
    errors: list[str] = []
    asked: set[str] = set()
    listeners: dict[str, Callable[[Any], None]] = {
        "pageerror": lambda error: errors.append(str(error)),
        "console": lambda message: errors.extend([message.text] * (message.type == "error")),
        "request": lambda request: asked.add(origin(request.url)),
    }
    for event, listener in listeners.items():
        page.on(event, listener)  # type: ignore[call-overload]
    try:
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        yield page
        if may_lose_server:
            errors = [error for error in errors if not re.search(LOST, error)]
        assert errors == []
        assert asked <= {origin(address)}
        if is_kept and browser not in TABS:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
            leave(page)
            TABS[browser] = page
    finally:
        if TABS.get(browser) is not page:
            page.context.close()


def leave(page: Page) -> None:
    """Make the tab as good as new."""
    page.evaluate("try { localStorage.clear(); sessionStorage.clear(); } catch {}")
    page.context.clear_cookies()
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("about:blank")


def origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def keep_screenshot(page: Page, name: str) -> None:
    """The whole page as a picture, to be looked at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    size = page.viewport_size or {"width": 1280, "height": 900}
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": size["width"], "height": min(height, 8000)})
    settle(page)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
    page.set_viewport_size(size)


def keep_screenshots(page: Page, name: str) -> None:
    """The page on a screen and on a phone, in light and dark. It must not be wider than those."""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (int(paper[4:].split(",")[0]) < 128) == (scheme == "dark")
            keep_screenshot(page, f"{name}-{width}-{scheme}")


def settle(page: Page) -> None:
    """Let the page draw what it has been asked to."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 70)))")


def hover(page: Page, chart: str, iteration: float) -> str:
    """Point at an iteration of a chart; what the page says about it. The chart may have moved
    while the pointer did, so that is tried again."""
    said = ""
    for _ in range(5):
        box = stage(page, chart)
        x = page.evaluate(f"charts.{chart}.pixel({iteration})")
        page.mouse.move(box["x"] + x, box["y"] + box["height"] / 2)
        said = page.locator(f"#chart-{chart} .tip").inner_text()
        if said:
            break
    return said


def drag(page: Page, chart: str, first: float, last: float) -> None:
    box = stage(page, chart)
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + page.evaluate(f"charts.{chart}.pixel({first})"), y)
    page.mouse.down()
    page.mouse.move(box["x"] + page.evaluate(f"charts.{chart}.pixel({last})"), y, steps=4)
    page.mouse.up()
    settle(page)


def stage(page: Page, chart: str) -> dict[str, float]:
    place = page.locator(f"#chart-{chart} canvas")
    place.scroll_into_view_if_needed()
    settle(page)
    box = place.bounding_box()
    assert box is not None
    return dict(box)


def ink(page: Page, chart: str) -> int:
    """How many pixels of a chart are drawn on."""
    page.locator(f"#chart-{chart}").scroll_into_view_if_needed()
    for _ in range(100):  # a busy machine takes longer than `settle`
        settle(page)
        if not page.evaluate(f"charts.{chart}.isDue"):
            break
    return page.evaluate(f"({INK})(charts.{chart}.canvas)")
