#!/usr/bin/python3
"""What people say about frames, in chromium: by mouse, by touch and by keyboard. Run by judged.rs, which then looks at the
files. The failed frame 1 of the camera left is recorded, and so are frames before it.

usage: verdicts.py URL TOKEN FOLDER
"""

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.keys import Keys

from chromium import TOKEN, URL, ask, contrasts, driver, find, js, picture, screen, text, wait


def button(dialog, name):
    found = [of for of in driver.find_elements("css selector", f"#{dialog} .buttons button") if of.is_displayed() and of.text == name]
    return found[0] if found else None


def press(dialog, name):
    wait(f"the button {name}", lambda: button(dialog, name) is not None)
    button(dialog, name).click()


def said(dialog):
    return text(f"#{dialog} .said")


def corners(dialog):
    """Left, top, right and bottom of the shown picture in the window, which lies in the middle of its element."""
    return driver.execute_script(f"""
        const image = document.querySelector('#{dialog} [data-picture]'), box = image.getBoundingClientRect();
        const scale = Math.min(box.width / image.naturalWidth, box.height / image.naturalHeight);
        const [width, height] = [image.naturalWidth * scale, image.naturalHeight * scale];
        const [x, y] = [box.x + (box.width - width) / 2, box.y + (box.height - height) / 2];
        return [x, y, x + width, y + height];
    """)


def drag(dialog, start, end, kind="mouse"):
    """Drags between two places, as shares of the picture."""
    left, top, right, bottom = corners(dialog)
    at = lambda share: (round(left + share[0] * (right - left)), round(top + share[1] * (bottom - top)))
    actions = ActionBuilder(driver, mouse=PointerInput(kind, kind))
    pointer = actions.pointer_action
    pointer.move_to_location(*at(start))
    pointer.pointer_down()
    pointer.move_to_location(*at(((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)))
    pointer.move_to_location(*at(end))
    pointer.pointer_up()
    actions.perform()


def log_in():
    screen(1280, 1000)
    driver.get(URL)
    wait("a card", lambda: js("document.querySelectorAll('.card').length === 2"))
    wait("its failed frame", lambda: js("!!document.querySelector('#camera-left .thumbnails button')"))
    find("#camera-left .thumbnails button").click()
    wait("its defects", lambda: js("document.querySelectorAll('#failure tbody tr').length > 0"))
    assert button("failure", "False alarm") is None, "who may not write says nothing"
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    find("#log-in").click()
    find("#token").send_keys(TOKEN + Keys.ENTER)
    wait("the right to write", lambda: not js("document.querySelector('#camera-left .commands').hidden"))


def false_alarm():
    find("#camera-left .thumbnails button").click()
    press("failure", "False alarm")
    wait("what was said", lambda: "False alarm: this frame counts as a good one. (page 127.0.0.1" in said("failure"))
    assert button("failure", "False alarm") is None and button("failure", "Take back") is not None
    contrasts()
    picture("false-alarm")
    assert js("document.activeElement.textContent") == "Missed here", "the focus stays with the buttons"
    press("failure", "Take back")
    wait("nothing", lambda: said("failure") == "")
    press("failure", "False alarm")
    wait("it again", lambda: "False alarm" in said("failure"))
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait("the end of the dialog", lambda: not js("document.getElementById('failure').open"))


def missed_by_mouse():
    find("#camera-left .recordings").click()
    wait("the newest", lambda: "Failed frame: " in text("#recordings .muted"))
    assert "False alarm" in said("recordings"), said("recordings")
    find("#recordings nav button:last-child").click()
    wait("an older one", lambda: "Frame before or after a failed one: 2," in text("#recordings .muted"))
    wait("its picture", lambda: js("document.querySelector('#recordings img').naturalWidth > 0"))
    assert button("recordings", "False alarm") is None, "it did not fail"
    press("recordings", "Missed here")
    drag("recordings", (0.25, 0.25), (0.5, 0.75))
    wait("the rectangle", lambda: "Rectangle at 12, 8: 12 × 16 px" in text("#recordings .marked + p"))
    contrasts()
    picture("missed")
    press("recordings", "Mark this place")
    wait("what was said", lambda: "Missed: 1 place marked. This frame counts as a failed one." in said("recordings"))
    assert js("document.querySelectorAll('#recordings .marks rect.was').length") == 1


def missed_by_keyboard():
    body = driver.switch_to.active_element
    body.send_keys(Keys.ARROW_RIGHT)
    wait("an older one", lambda: "failed one: 1," in text("#recordings .muted"))
    wait("its picture", lambda: button("recordings", "Missed here") is not None)
    for _ in range(12):
        if js("document.activeElement.textContent === 'Missed here'"):
            break
        ActionChains(driver).send_keys(Keys.TAB).perform()
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    wait("the rectangle", lambda: "Rectangle at 22, 14: 4 × 4 px" in text("#recordings .marked + p"))
    # A picture of 48 px has steps of one.
    ActionChains(driver).send_keys(Keys.ARROW_LEFT * 3 + Keys.ARROW_DOWN).perform()
    ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT * 2 + Keys.ARROW_UP).key_up(Keys.SHIFT).perform()
    wait("it moved", lambda: "Rectangle at 19, 15: 6 × 3 px" in text("#recordings .marked + p"))
    ActionChains(driver).send_keys(Keys.ARROW_LEFT * 60).perform()
    wait("it stays in the frame", lambda: "Rectangle at 0, 15: 6 × 3 px" in text("#recordings .marked + p"))
    ActionChains(driver).send_keys(Keys.ESCAPE).perform()
    wait("it is gone", lambda: button("recordings", "Mark this place") is None)
    assert js("document.getElementById('recordings').open"), "Escape ends the drawing, not the dialog"
    assert said("recordings") == ""
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    wait("the rectangle", lambda: "Rectangle at 22, 14" in text("#recordings .marked + p"))
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    wait("what was said", lambda: "counts as a failed one" in said("recordings"))


def missed_by_touch_on_a_phone():
    screen(390, 844)
    find("#recordings nav button:last-child").click()
    wait("the oldest", lambda: "failed one: 0," in text("#recordings .muted"))
    press("recordings", "Missed here")
    drag("recordings", (0.5, 0.5), (1.03, 1.03), "touch")
    wait("the rectangle", lambda: "Rectangle at 24, 16: 24 × 16 px" in text("#recordings .marked + p"))
    picture("missed-phone")
    press("recordings", "Mark this place")
    wait("what was said", lambda: "counts as a failed one" in said("recordings"))
    find("#recordings nav button:last-child").click()
    wait("there is no older one", lambda: js("document.querySelector('#recordings nav button:last-child').disabled"))
    ActionChains(driver).send_keys(Keys.ESCAPE).perform()
    wait("the end", lambda: not js("document.getElementById('recordings').open"))


try:
    log_in()
    false_alarm()
    missed_by_mouse()
    missed_by_keyboard()
    missed_by_touch_on_a_phone()
    violations = js("window.violations")
    assert not violations, violations
    ask("done")
finally:
    driver.quit()
