"""Chromium, and what the steps of browser.py look at. Its arguments are those of browser.py."""

import sys
import time

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

URL, TOKEN, FOLDER = sys.argv[1:4]
SECONDS = 15


def ask(what):
    print(what, flush=True)


def wait(what, condition, seconds=SECONDS):
    start = time.monotonic()
    while True:
        try:
            value = condition()
        except StaleElementReferenceException:
            value = None
        if value:
            return value, time.monotonic() - start
        assert time.monotonic() - start < seconds, f"{what}: not after {seconds} s"
        time.sleep(0.02)


def start():
    options = Options()
    for argument in [
        "--headless=new",
        "--no-sandbox",  # refused to root otherwise
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-proxy-server",
        f"--user-data-dir={FOLDER}/profile",
    ]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_script_timeout(10)
    # What the browser's own first page asks for does not count.
    driver.get("about:blank")
    driver.get_log("performance")
    # Kept for the page's whole life, from its first line.
    listener = """
        window.violations = [];
        document.addEventListener("securitypolicyviolation", (event) => violations.push(event.blockedURI || event.violatedDirective));
        window.addEventListener("error", (event) => violations.push(String(event.message)));
        window.addEventListener("unhandledrejection", (event) => violations.push(String(event.reason)));
        // A stream can fall silent, as when the station loses its power.
        window.streams = [];
        window.EventSource = class extends EventSource {
            constructor(...all) { super(...all); streams.push(this); }
            addEventListener(type, hear) { super.addEventListener(type, (event) => { if (!this.isSilent) hear(event); }); }
        };
        // A request can hang: those whose address contains `hanging`, until they are given up or released.
        window.asked = [];
        const ask = fetch;
        window.fetch = async (path, options) => {
            asked.push({ path, hasLimit: options?.signal instanceof AbortSignal });
            if (window.hanging && path.includes(hanging)) {
                await new Promise((go, stop) => {
                    window.release = go;
                    options?.signal?.addEventListener("abort", () => stop(options.signal.reason));
                });
                return ask(path);
            }
            return ask(path, options);
        };
    """
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": listener})
    return driver


driver = start()


def js(text, *arguments):
    return driver.execute_script(f"return {text}", *arguments)


def screen(width, height, dark=False):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def picture(name):
    driver.save_screenshot(f"{FOLDER}/{name}.png")


def find(selector):
    return driver.find_element(By.CSS_SELECTOR, selector)


def text(selector):
    return js("document.querySelector(arguments[0])?.textContent ?? ''", selector)


def pixels(camera):
    """The live picture as it is on the screen now."""
    return driver.execute_script(
        """
        const image = document.querySelector(`#camera-${arguments[0]} .live img`);
        if (image.hidden || !image.naturalWidth) return null;
        const canvas = document.createElement("canvas");
        canvas.width = image.naturalWidth;
        canvas.height = image.naturalHeight;
        canvas.getContext("2d").drawImage(image, 0, 0);
        return canvas.toDataURL();
        """,
        camera,
    )


def moves(camera):
    first, _ = wait(f"a picture of {camera}", lambda: pixels(camera))
    wait(f"another picture of {camera}", lambda: pixels(camera) not in (None, first))


def hide(is_hidden):
    driver.execute_script(
        """
        Object.defineProperty(document, "hidden", { value: arguments[0], configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
        """,
        is_hidden,
    )


def open_streams():
    return js("streams.filter((stream) => stream.readyState !== EventSource.CLOSED).length")


def verdict(camera):
    return js("document.querySelector(`#camera-${arguments[0]} .verdict`)?.dataset.verdict", camera)


# Contrast of a text with what is behind it, as WCAG 2 defines it.
CONTRAST = """
    const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
        const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!text || !element.getClientRects().length || element.matches("text, button:disabled, .placeholder *, .unseen, noscript *")) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push(`${element.tagName} ${element.className} "${element.textContent}": ${ratio.toFixed(2)}`);
    }
    return found;
"""


def contrasts():
    found = driver.execute_script(CONTRAST)
    assert not found, found
