"""The built site in a real browser: checks that need one."""

from __future__ import annotations

import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest

import pyspark_kafka
from tests.documents import ROOT
from tests.slowness import bound_s

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SITE: Final = ROOT / "site" / pyspark_kafka.__version__
BROWSER: Final = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER: Final = shutil.which("chromedriver")
DESKTOP: Final = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
PHONE: Final = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
SECONDS: Final = bound_s(10)

pytestmark = [
    pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built: make site"),
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="Chromium or chromedriver is missing"),
]


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        pass


@pytest.fixture(scope="module")
def url():
    """Serve the site on a loopback port, and return its address."""
    handler = partial(QuietHandler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # The pages are our own: root, as in containers, has no sandbox.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    chrome: Chrome = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        yield chrome
    finally:
        chrome.quit()


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pages_fit_the_screen(browser, url, screen):
    """No page is wider than the screen, and none has an error in the browser's console."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    wide = []
    for page in sorted(SITE.rglob("*.html")):
        browser.get(f"{url}/{page.relative_to(SITE)}")
        if browser.execute_script("return document.documentElement.scrollWidth > innerWidth"):
            wide.append(page.name)
    assert wide == []
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [entry for entry in errors if "favicon.ico" not in entry["message"]] == []


@pytest.mark.parametrize(("screen", "share"), [(DESKTOP, 0.35), (PHONE, 0.95)])
def test_the_meaning_of_an_option_has_room(browser, url, screen, share):
    """The meaning is the widest column and, on a phone, below the others: no table is scrolled."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(f"{url}/reference/options.html")
    shares = browser.execute_script(
        "return [...document.querySelectorAll('tbody tr:first-child td:nth-child(5)')].map(cell =>"
        "  cell.clientWidth / cell.closest('.table-wrapper').scrollWidth)"
    )
    assert len(shares) == 4
    assert min(shares) >= share


def test_the_search_finds_an_option(browser, url):
    """A word in the search box leads to the pages that have it."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESKTOP)
    browser.get(f"{url}/index.html")
    browser.find_element(By.CSS_SELECTOR, "input.sidebar-search").send_keys("startingOffsets\n")
    page = '#search-results ul.search a[href^="reference/options.html"]'
    WebDriverWait(browser, SECONDS).until(lambda _: browser.find_elements(By.CSS_SELECTOR, page))


def test_the_theme_can_be_switched(browser, url):
    """The button shows the page light and dark."""
    from selenium.webdriver.common.by import By

    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESKTOP)
    browser.get(f"{url}/index.html")
    backgrounds = set()
    for _ in range(3):
        browser.find_element(By.CSS_SELECTOR, ".content-icon-container .theme-toggle").click()
        theme = browser.find_element(By.TAG_NAME, "body").get_attribute("data-theme")
        color = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        backgrounds.add((theme, color))
    colors = dict(backgrounds)
    assert {"light", "dark"} <= set(colors)
    assert colors["light"] != colors["dark"]
