"""A real Chromium, headless, and what a person sees and does in it."""

import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

CSS = "css selector"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The driver of a browser; the tests are skipped without one."""
    webdriver = pytest.importorskip("selenium.webdriver", reason='pip install ".[test]"')
    if not CHROMIUM or not DRIVER:
        pytest.skip("apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, url: str):
    """The page of the module's server, `url`."""
    browser.get_log("browser")  # what was told of the tests before
    browser.get(url)
    page = Page(browser)
    page.wait(lambda: page.all("#model option"))
    return page


class Page:
    """What a person sees and does."""

    def __init__(self, driver):
        self.driver = driver

    def all(self, selector):
        return self.driver.find_elements(CSS, selector)

    def one(self, selector):
        return self.driver.find_element(CSS, selector)

    def texts(self, selector):
        return [one.text for one in self.all(selector)]

    def wait(self, condition):
        end = time.monotonic() + 60
        while not (found := condition()):
            assert time.monotonic() < end, "the page does not come to this"
            time.sleep(0.02)
        return found

    def choose(self, model):
        self.one(f"#model option[value={model!r}]").click()

    def fill(self, **values):
        for name, value in values.items():
            box = self.one(f"#field-{name}")
            # The driver's keyboard knows no characters beyond 16 bits.
            self.driver.execute_script(
                "arguments[0].value = arguments[1];"
                "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
                box,
                value,
            )

    def ask(self):
        self.one("#send").click()
        self.wait(lambda: not self.one("#send").get_attribute("aria-busy"))
