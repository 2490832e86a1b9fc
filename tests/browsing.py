"""Open pages in a real browser, and check them with axe-core.

This needs Debian's chromium with chromium-driver, and java. Without them the tests are skipped; if
RFX_TEST_BROWSER is "must", they fail.
"""

import importlib.util
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

WIDE, PHONE = (1280, 900), (360, 740)


def needed(*programs, modules=()):
    """Skip if a program or module is missing; fail if RFX_TEST_BROWSER is "must"."""
    missing = [name for name in programs if shutil.which(name) is None]
    missing += [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        words = (
            f"not installed: {', '.join(missing)} (Debian: apt-get install chromium chromium-driver"
            " default-jre-headless)"
        )
        (pytest.fail if os.environ.get("RFX_TEST_BROWSER") == "must" else pytest.skip)(words)


@contextmanager
def chromium():
    """A headless browser that is closed at the end of the block."""
    needed("chromium", "chromedriver", modules=("selenium", "axe_core_python"))
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(120)
    try:
        yield driver
    finally:
        driver.quit()


def open_page(browser, page, size=WIDE, dark=False, script=True):
    """The browser with this file open in a window of this size."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
    )
    # during a transition a colour has neither the old nor the new contrast
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
    browser.get(page.as_uri())
    return browser


def violations(browser):
    """(rule, first elements) of each axe-core rule that the open page violates."""
    import axe_core_python

    browser.execute_script(Path(axe_core_python.__file__).with_name("axe.min.js").read_text())
    ask = (
        "const tell = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(tell,"
        " error => tell(String(error)))"
    )
    found = browser.execute_async_script(ask)
    assert len(found["passes"]) > 10, "the rules were applied"
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found["violations"]
    ]
