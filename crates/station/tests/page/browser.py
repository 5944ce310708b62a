#!/usr/bin/python3
"""The station's page in chromium: what people see and do. Run by browser.rs, which answers the
lines that this program prints: `plant`, `lose`, `return`, `end`.

usage: browser.py URL TOKEN FOLDER
"""

import json
import sys
import time

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

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
        if (!text || !element.getClientRects().length || element.matches("text, button:disabled, .note *, .unseen, noscript *")) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push(`${element.tagName} ${element.className} "${element.textContent}": ${ratio.toFixed(2)}`);
    }
    return found;
"""


def contrasts():
    found = driver.execute_script(CONTRAST)
    assert not found, found


def loads():
    screen(1440, 900)
    driver.get(URL)
    wait("two cards", lambda: js("document.querySelectorAll('.card').length === 2"))
    wait("a verdict", lambda: verdict("left") == "pass" and verdict("right") == "pass")
    assert text("#summary") == "2 cameras running", text("#summary")
    assert text("#camera-left .verdict strong") == "Pass"
    moves("left")
    moves("right")
    wait("the histogram", lambda: js("!!document.querySelector('#camera-left .level')"))
    contrasts()


def planted_failure_appears():
    start = time.monotonic()
    ask("plant")
    wait("the verdict", lambda: verdict("left") == "fail", 2)
    print(f"a browser shows a verdict {time.monotonic() - start:.3f} s after it was asked for")
    contrasts()
    wait("its thumbnail", lambda: js("document.querySelector('#camera-left .thumbnails img')?.naturalWidth > 0"))
    wait("pass again", lambda: verdict("left") == "pass")
    assert text("#camera-left .plot svg g title"), "the hour's plot has a bar"
    wait("the news", lambda: "left: Pass" in text("#news"), 10)
    picture("overview")


def dialog_by_keyboard():
    body = find("body")
    for _ in range(60):
        body.send_keys(Keys.TAB)
        if js("document.activeElement.matches('#camera-left .thumbnails button')"):
            break
    else:
        raise AssertionError("Tab never comes to the thumbnail")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait("the dialog", lambda: js("document.getElementById('failure').open"))
    wait("its picture", lambda: js("document.querySelector('#failure img').naturalWidth > 0"))
    wait("its defects", lambda: js("document.querySelectorAll('#failure tbody tr').length === 3"))
    # A class with markup in its name is text.
    assert "<img src=x onerror=alert(1)>" in text("#failure tbody"), text("#failure tbody")
    contrasts()
    picture("failure")
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait("the end of the dialog", lambda: not js("document.getElementById('failure').open"))
    assert js("document.activeElement.matches('#camera-left .thumbnails button')"), "the focus comes back"


def alone_with_endless_picture():
    find("#camera-left h2 a").click()
    wait("the other card goes", lambda: js("document.getElementById('camera-right').hidden"))
    wait("the endless picture", lambda: "/live/left?" in js("document.querySelector('#camera-left .live img').src"))
    moves("left")
    picture("alone")
    find("#all").click()
    wait("the other card", lambda: not js("document.getElementById('camera-right').hidden"))
    moves("right")


def lost_camera_says_what_to_do():
    ask("lose")
    wait("the state", lambda: text("#camera-right .status") == "Camera lost")
    assert verdict("right") == "missing", "a lost camera has no verdict"
    assert "Check the camera's power" in text("#camera-right .note")
    assert text("#summary") == "1 of 2 cameras running", text("#summary")
    contrasts()
    picture("lost")
    ask("return")
    wait("the state", lambda: text("#camera-right .status") == "Running")
    moves("right")


def phone_wall_dark():
    screen(360, 740)
    time.sleep(0.5)
    assert js("document.documentElement.scrollWidth") <= 360, "the phone scrolls sideways"
    picture("phone")
    screen(1440, 900, dark=True)
    assert js("getComputedStyle(document.body).backgroundColor") == "rgb(15, 19, 22)"
    contrasts()
    picture("dark")
    screen(1920, 1080)
    driver.get(URL + "/?wall")
    wait("a verdict", lambda: verdict("left") == "pass")
    moves("left")
    assert js("document.documentElement.scrollHeight") <= 1080, "the wall screen scrolls"
    letters = js("parseFloat(getComputedStyle(document.querySelector('.verdict strong')).fontSize)")
    assert letters >= 40, f"the verdict has {letters} px"
    contrasts()
    picture("wall")
    screen(1440, 900)
    driver.get(URL)
    wait("a verdict", lambda: verdict("left") == "pass")


def no_error_and_no_other_host():
    violations = js("window.violations")
    assert violations == [], violations
    errors = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert errors == [], errors
    asked = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert len(asked) > 20, asked
    foreign = [url for url in asked if not url.startswith((URL, "data:"))]
    assert foreign == [], foreign
    # The checks above see what they look for.
    driver.execute_script(
        """
        const script = document.createElement("script");
        script.textContent = "window.isRun = true";
        const image = document.createElement("img");
        image.src = "http://127.0.0.2/other.png";
        document.body.append(script, image);
        """
    )
    wait("the policy's refusals", lambda: len(js("window.violations")) == 2, 5)
    assert not js("window.isRun")
    assert any(entry["level"] == "SEVERE" for entry in driver.get_log("browser"))


def log_in_and_command():
    assert js("document.querySelector('#camera-left .commands').hidden"), "commands need the token"
    find("#log-in").click()
    find("#token").send_keys("a-wrong-token-of-someone" + Keys.ENTER)
    wait("the refusal", lambda: "wrong" in text("#login .error"))
    contrasts()
    find("#token").send_keys(TOKEN + Keys.ENTER)
    wait("the commands", lambda: not js("document.querySelector('#camera-left .commands').hidden"))
    assert TOKEN not in driver.page_source
    assert TOKEN not in json.dumps(driver.get_cookies())
    assert js("document.cookie") == "", "scripts cannot read the cookie"
    find("#camera-left .commands button").click()
    wait("the question", lambda: js("document.getElementById('confirm').open"))
    picture("confirm")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait("cancelled", lambda: not js("document.getElementById('confirm').open"))
    assert text("#camera-left .answer") == "", "Enter cancels"
    find("#camera-left .commands button").click()
    find("#confirm [value=yes]").click()
    wait("the answer", lambda: text("#camera-left .answer") == "The next 16 frames become the white reference.")
    find("#camera-left .commands button:nth-child(2)").click()
    find("#confirm [value=yes]").click()
    wait("the refusal", lambda: text("#camera-left .answer").startswith("The light is off"))


def ended_station_is_told():
    ask("end")
    wait("the banner", lambda: "does not answer" in text("#old") and not js("document.getElementById('old').hidden"))
    assert verdict("left") == "missing", "old results are no verdict"
    contrasts()
    picture("ended")


try:
    loads()
    planted_failure_appears()
    dialog_by_keyboard()
    alone_with_endless_picture()
    lost_camera_says_what_to_do()
    phone_wall_dark()
    no_error_and_no_other_host()
    log_in_and_command()
    ended_station_is_told()
    ask("done")
except BaseException:
    picture("wrong")
    raise
finally:
    driver.quit()
