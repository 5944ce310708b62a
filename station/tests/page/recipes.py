#!/usr/bin/python3
"""Recipes on the station's page in chromium. Run by recipes.rs, which answers the lines `break`, `mend` and `connect`.

usage: recipes.py URL TOKEN FOLDER
"""

from selenium.webdriver.common.keys import Keys

from chromium import TOKEN, URL, ask, contrasts, driver, find, js, picture, screen, text, wait


def is_hidden(name):
    return js("!document.getElementById(arguments[0]).getClientRects().length", name)


def shows_recipe_and_changes():
    screen(1440, 900)
    driver.get(URL)
    wait("the recipe", lambda: text("#recipe") == "cloth")
    assert is_hidden("recipe-choice") and is_hidden("recipe-switch"), "to switch needs the token"
    find("#changes summary").send_keys(Keys.ENTER)
    wait("the changes", lambda: js("document.getElementById('changes').open"))
    row = "#changes tbody tr"
    cells = js("[...document.querySelectorAll(`${arguments[0]} td`)].map((of) => of.textContent)", row)
    assert cells[1:4] == ["start", "Switch", ""] and cells[4].startswith("cloth, ") and cells[5:] == ["57 ms", "ok"], cells
    contrasts()


def shows_the_plc():
    wait("the PLC", lambda: text("#plc") == "PLC: not connected, no camera enabled")
    ask("connect")
    wait("its connection", lambda: text("#plc") == "PLC: 1 connection, no camera enabled")


def switches_by_keyboard():
    find("#log-in").click()
    find("#token").send_keys(TOKEN + Keys.ENTER)
    wait("the choice", lambda: not is_hidden("recipe-choice"))
    options = "[...document.querySelectorAll('#recipe-choice option')].map((of) => [of.value, of.disabled, of.textContent])"
    assert js(options) == [["broken", True, "broken (1 mistake)"], ["label", False, "label"]], js(options)
    assert js("document.getElementById('recipe-choice').value") == "label", "a broken recipe is chosen"
    find("#recipe-switch").send_keys(Keys.ENTER)
    wait("the question", lambda: js("document.getElementById('confirm').open"))
    assert "label" in text("#confirm-title")
    picture("recipe-confirm")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait("cancelled", lambda: not js("document.getElementById('confirm').open"))
    assert text("#recipe") == "cloth" and text("#recipe-answer") == "", "Enter cancels"
    find("#recipe-switch").send_keys(Keys.ENTER)
    find("#confirm [value=yes]").send_keys(Keys.ENTER)
    wait("the answer", lambda: text("#recipe-answer") == "Switched in 57 ms")
    wait("the recipe", lambda: text("#recipe") == "label")
    newest = "#changes tbody tr:first-child"
    wait("the change", lambda: "page 127.0.0.1" in text(newest) and "label" in text(newest))
    picture("recipe")


def refusal_is_told():
    find("#recipe-switch").click()
    find("#confirm [value=yes]").click()
    wait("the refusal", lambda: "all cameras are as before" in text("#recipe-answer"))
    assert text("#recipe") == "label"
    contrasts()


def goes_back():
    find("#versions summary").send_keys(Keys.ENTER)
    wait("the versions", lambda: text("#versions-answer") == "label was not saved over yet.")
    assert js("document.getElementById('versions-of').value") == "label", "the recipe in force comes first"
    ask("save")
    find("#versions summary").click()
    find("#versions summary").click()
    wait("the version", lambda: "threshold = 15" in text("#versions li"))
    lines = js("[...document.querySelectorAll('#versions .added, #versions .removed')].map((of) => of.textContent.trim())")
    assert [line[0] for line in lines] == ["-", "+"] and "9" in lines[0] and "15" in lines[1], lines
    picture("recipe-versions")
    contrasts()
    find("#versions li button").send_keys(Keys.ENTER)
    wait("the question", lambda: js("document.getElementById('confirm').open"))
    find("#confirm [value=yes]").send_keys(Keys.ENTER)
    wait("the answer", lambda: text("#versions-answer") == "label is what it was. The cameras use it since now.")
    wait("both versions", lambda: js("document.querySelectorAll('#versions li').length") == 2)
    find("#versions summary").click()


def problem_is_told_on_every_screen():
    ask("break")
    wait("the banner", lambda: not is_hidden("recipe-problem") and text("#recipe-problem").startswith("No camera runs"))
    screen(360, 740)
    wait("the phone", lambda: js("innerWidth") == 360)
    assert js("document.documentElement.scrollWidth") <= 360, "the phone scrolls sideways"
    picture("recipe-phone")
    screen(1440, 900, dark=True)
    contrasts()
    picture("recipe-dark")
    ask("mend")
    wait("no banner", lambda: is_hidden("recipe-problem"))
    screen(1920, 1080)
    driver.get(URL + "/?wall")
    wait("the recipe", lambda: text("#recipe") == "label")
    assert is_hidden("recipe-choice") and is_hidden("changes")
    assert js("document.documentElement.scrollHeight") <= 1080, "the wall screen scrolls"
    picture("recipe-wall")
    assert js("window.violations") == [], js("window.violations")


try:
    shows_recipe_and_changes()
    shows_the_plc()
    switches_by_keyboard()
    refusal_is_told()
    goes_back()
    problem_is_told_on_every_screen()
    ask("done")
except BaseException:
    picture("wrong")
    raise
finally:
    driver.quit()
