#!/usr/bin/python3
"""The station's page in chromium: what people see and do. Run by browser.rs, which answers the
lines that this program prints: `plant`, `lose`, `return`, `end` and others.

usage: browser.py URL TOKEN FOLDER
"""

import json
import time

from selenium.webdriver.common.keys import Keys

from chromium import (
    TOKEN,
    URL,
    ask,
    contrasts,
    driver,
    find,
    hide,
    js,
    moves,
    open_streams,
    picture,
    screen,
    text,
    verdict,
    wait,
)


def loads():
    screen(1440, 900)
    driver.get(URL)
    wait("two cards", lambda: js("document.querySelectorAll('.card').length === 2"))
    wait("a verdict", lambda: verdict("left") == "pass" and verdict("right") == "pass")
    assert text("#summary") == "2 cameras running", text("#summary")
    assert text("#camera-left .verdict strong") == "Pass"
    assert text("#camera-left .verdict p > span") == "No defects", text("#camera-left .verdict")
    assert text("#camera-right .verdict p > span") == "No defects · learning, 7 of 24 frames", text("#camera-right .verdict")
    alignment = "turned by 0.13°, scale 1.0125, shift 3.3, −1.5 px, largest local shift 0.8 px, misfit 2.3, score 0.96"
    wait("the alignment", lambda: alignment in text("#camera-left .figures"))
    assert "Alignment" not in find("#camera-right .figures").text, "a camera without an alignment shows one"
    parts = "at 12.05, 8.03 mm, −33.3°, score 0.97"
    wait("the parts", lambda: parts in text("#camera-right .figures") and "1 part" in text("#camera-right .figures"))
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
    wait("the repeat on the roll map", lambda: js("document.querySelectorAll('#camera-left .repeat rect').length") == 6)
    words = "Repeat: 6 times, every 0.628 m, 25 % from the left, from 1.20 m to 4.34 m"
    assert text("#camera-left .repeat-text") == words, text("#camera-left .repeat-text")
    wait("the announcement", lambda: "left: Pass" in text("#announcements"), 10)
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


def failed_frame_of_another_camera_stays_away():
    ask("plant right")
    wait("a failed frame of right", lambda: js("!!document.querySelector('#camera-right .thumbnails button')"))
    js("void (window.hanging = 'api/cameras/left/failures/')")
    js("document.querySelector('#camera-left .thumbnails button').click()")
    wait("the request hangs", lambda: js("!!window.release"))
    assert js("document.querySelectorAll('#failure tbody tr').length") == 0, "the defects before are still there"
    js("document.querySelector('#failure [data-close]').click()")
    js("void (window.hanging = null)")
    js("document.querySelector('#camera-right .thumbnails button').click()")
    wait("its defects", lambda: js("document.querySelectorAll('#failure tbody tr').length === 3"))
    before = text("#failure [data-text]")
    driver.execute_script(
        """
        window.changed = [];
        window.changes = new MutationObserver((all) => changed.push(...all));
        changes.observe(document.getElementById("failure"), { childList: true, subtree: true });
        """
    )
    js("window.release()")
    time.sleep(1)
    assert js("window.changed.length") == 0, "the late answer of left fills the dialog of right"
    assert text("#failure [data-text]") == before and "right" in text("#failure-title")
    js("window.changes.disconnect()")
    js("document.querySelector('#failure [data-close]').click()")


def restarted_station_counts_failed_frames_anew():
    label = "document.querySelector('#camera-left .thumbnails button').title"
    before = js(label)
    ask("forget")
    ask("plant")
    wait("the thumbnail of the new frame 1", lambda: js(label) != before)
    assert js("document.querySelectorAll('#camera-left .thumbnails li').length") == 1


def is_whole(camera):
    """Whether the box of a live picture shows all of it, and is itself on the screen."""
    return driver.execute_script(
        """
        const box = document.querySelector(`#camera-${arguments[0]} .live`).getBoundingClientRect();
        const picture = document.querySelector(`#camera-${arguments[0]} .live img`).getBoundingClientRect();
        const isInside = ["top", "left"].every((side) => picture[side] >= box[side] - 1) && ["bottom", "right"].every((side) => picture[side] <= box[side] + 1);
        return isInside && box.height > 100 && box.bottom <= innerHeight;
        """,
        camera,
    )


def alone_with_endless_picture():
    find("#camera-left h2 a").click()
    wait("the other card goes", lambda: js("document.getElementById('camera-right').hidden"))
    wait("the endless picture", lambda: "/live/left?" in js("document.querySelector('#camera-left .live img').src"))
    moves("left")
    for width, height in [(390, 844), (1600, 1000), (1440, 900)]:
        screen(width, height)
        wait(f"the whole picture on {width}x{height}", lambda: is_whole("left"), 3)
    picture("alone")
    find(".skip").send_keys(Keys.ENTER)
    assert js("document.activeElement.id") == "cameras", "the link leads to the cameras"
    assert js("location.hash") == "#left", "the camera stays alone"
    assert js("document.getElementById('camera-right').hidden")
    ask("blind")
    wait("the placeholder", lambda: text("#camera-left .placeholder") == "No picture comes from the station", 20)
    assert js("document.querySelector('#camera-left .live img').hidden"), "an old picture passes for the line"
    ask("see")
    moves("left")
    find("#all").click()
    wait("the other card", lambda: not js("document.getElementById('camera-right').hidden"))
    moves("right")


def lost_camera_says_what_to_do():
    ask("lose")
    wait("the state", lambda: text("#camera-right .status") == "Camera lost")
    assert verdict("right") == "missing", "a lost camera has no verdict"
    assert text("#camera-right .figures dd") == "–", "a lost camera has no frame rate"
    assert "over-exposed" not in text("#camera-right .alarms"), "its last frame's light alarm is over"
    assert "Check the camera's power" in text("#camera-right .placeholder")
    assert text("#summary") == "1 of 2 cameras running", text("#summary")
    contrasts()
    picture("lost")
    ask("return")
    wait("the state", lambda: text("#camera-right .status") == "Running")
    moves("right")


def hidden_page_keeps_no_verdict():
    hide(True)
    wait("no stream", lambda: open_streams() == 0)
    assert verdict("left") == "missing", "it would be shown, hours old, when the page is shown again"
    assert js("document.getElementById('old').hidden"), "nothing is wrong"
    # However often people change their mind, there is one stream.
    for is_hidden in [False, True, False, True, False]:
        hide(is_hidden)
    wait("a verdict", lambda: verdict("left") == "pass")
    time.sleep(4)
    assert open_streams() == 1, open_streams()
    moves("left")


def silent_station_is_asked_again():
    js("void (window.streams.at(-1).isSilent = true)")
    wait("the banner", lambda: "has not answered" in text("#old"), 10)
    assert "There is no verdict now" in text("#old"), text("#old")
    assert verdict("left") == verdict("right") == "missing"
    assert text("#camera-left .figures dd") == "–"
    assert text("#camera-left .status") == "No connection", "a green word"
    wait("a new stream", lambda: verdict("left") == "pass", 10)
    assert js("document.getElementById('old').hidden")
    assert text("#camera-left .status") == "Running"
    assert open_streams() == 1, open_streams()


def verdict_gets_old_and_no_request_hangs_for_ever():
    js("void (window.asked = [], window.hanging = '/history')")
    wait("a request that hangs", lambda: js("asked.some(({ path }) => path.includes('/history'))"), 12)
    ask("pause")
    age = lambda: text("#camera-left .verdict p > span")
    wait("the age", lambda: "No defects · 3 s ago" in age(), 6)
    assert not js("document.querySelector('#camera-left .verdict.aged')"), "it is not yet old"
    wait("the old verdict", lambda: js("!!document.querySelector('#camera-left .verdict.aged')"), 10)
    assert "10 s ago" in age(), age()
    assert verdict("left") == "pass" and text("#camera-left .verdict strong") == "Pass", "it stays"
    assert text("#camera-left .figures dd") == "–", "no frame comes"
    assert not js("document.querySelector('#camera-right .verdict.aged')"), "the other one is new"
    contrasts()
    picture("aged")
    screen(360, 740, dark=True)
    contrasts()
    assert js("document.documentElement.scrollWidth") <= 360, "the phone scrolls sideways"
    js("document.querySelector('#camera-left .verdict').scrollIntoView()")
    picture("aged-phone")
    screen(1440, 900)
    js("void (window.hanging = null)")
    count = js("asked.length")
    wait("requests go on", lambda: js("asked.slice(arguments[0]).some(({ path }) => path.includes('/history'))", count), 15)
    ask("go on")
    wait("a new verdict", lambda: age() == "No defects")
    unlimited = js("asked.filter(({ hasLimit }) => !hasLimit)")
    assert unlimited == [], unlimited


def what_is_not_kept_is_told():
    assert text("#camera-right .alarms") == "", text("#camera-right .alarms")
    ask("break")
    wait("the alarms", lambda: "broker" in text("#camera-right .alarms"))
    alarms = text("#camera-right .alarms")
    for sentence in [
        "Results are not published now",
        "Failed frames are not recorded now",
        "3 frames not recorded since the station started: the disk is too slow",
        "1 frame not recorded since the station started: the folder or the disk refused files",
    ]:
        assert sentence in alarms, alarms
    contrasts()
    picture("broken")
    screen(360, 740, dark=True)
    contrasts()
    js("document.querySelector('#camera-right .verdict').scrollIntoView()")
    picture("broken-phone")
    screen(1440, 900)
    ask("mend")


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
    assert is_whole("left") and is_whole("right")
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
    # The camera that was blind or paused had no picture to give.
    errors = [entry for entry in errors if "/live/left" not in entry["message"]]
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
    wait("the banner", lambda: "has not answered" in text("#old") and not js("document.getElementById('old').hidden"))
    assert verdict("left") == "missing", "old results are no verdict"
    contrasts()
    picture("ended")


try:
    loads()
    planted_failure_appears()
    dialog_by_keyboard()
    failed_frame_of_another_camera_stays_away()
    restarted_station_counts_failed_frames_anew()
    alone_with_endless_picture()
    lost_camera_says_what_to_do()
    hidden_page_keeps_no_verdict()
    silent_station_is_asked_again()
    verdict_gets_old_and_no_request_hangs_for_ever()
    what_is_not_kept_is_told()
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
