"""The page in a real browser: it is drawn, it moves, it can be read in the dark and on a phone."""

import base64

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait


def size(browser, width, height=900):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture
def opened(browser, page):
    size(browser, 1280)
    prefer(browser, "light")
    browser.get(page.as_uri())
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    browser.get_log("browser")
    return browser


def draw_all(browser):
    browser.execute_script("document.querySelectorAll('.chart').forEach(drawChart)")
    done = "return [...document.querySelectorAll('.chart')].every(c => c.querySelector('svg'))"
    WebDriverWait(browser, 20).until(lambda b: b.execute_script(done))


def text_colour(browser):
    return browser.execute_script(
        "return getComputedStyle(document.querySelector('.chart .xtick text')).fill"
    )


def background(browser):
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


def test_no_errors_and_charts_appear_when_they_come_into_view(opened):
    first = opened.find_element(By.CSS_SELECTOR, ".chart")
    last = opened.find_elements(By.CSS_SELECTOR, ".chart")[-1]
    WebDriverWait(opened, 20).until(lambda b: first.find_elements(By.CSS_SELECTOR, "svg"))
    assert not last.find_elements(By.CSS_SELECTOR, "svg")
    opened.execute_script("arguments[0].scrollIntoView()", last)
    WebDriverWait(opened, 20).until(lambda b: last.find_elements(By.CSS_SELECTOR, "svg"))
    draw_all(opened)
    assert opened.get_log("browser") == []


def test_markup_in_names_is_text(opened):
    draw_all(opened)
    assert opened.execute_script("return window.evil") is None
    assert opened.find_element(By.CSS_SELECTOR, ".card h3").text.startswith("<script>window.evil")
    ticks = [tick.text for tick in opened.find_elements(By.CSS_SELECTOR, ".ytick text")]
    assert any(tick.startswith("</script>") for tick in ticks)
    assert not opened.execute_script("return document.querySelector('.chart script, .chart b')")


def test_a_slider_changes_its_picture_and_says_so(opened):
    cards = opened.find_elements(By.CSS_SELECTOR, ".gallery .card")
    # Pooling keeps all nodes of the smallest graphs.
    other, *_, card = sorted(cards, key=lambda one: len(one.find_elements(By.TAG_NAME, "circle")))
    slider = card.find_element(By.CSS_SELECTOR, "input")
    said = card.find_element(By.CSS_SELECTOR, "output")
    assert said.text.startswith("whole graph:")
    assert not card.find_elements(By.CSS_SELECTOR, ".gone")
    opened.execute_script("arguments[0].scrollIntoView()", card)
    opened.execute_script("arguments[0].focus()", slider)
    slider.send_keys(Keys.ARROW_RIGHT)
    assert slider.get_attribute("value") == "1"
    assert said.text.startswith("layer 1:")
    gone = card.find_elements(By.CSS_SELECTOR, ".gone")
    assert gone
    WebDriverWait(opened, 5).until(lambda b: float(gone[0].value_of_css_property("opacity")) < 0.5)
    shades = {
        disc.value_of_css_property("fill-opacity")
        for disc in card.find_elements(By.CSS_SELECTOR, ".score")
    }
    assert len(shades) > 1
    slider.send_keys(Keys.ARROW_RIGHT)
    assert said.text.startswith("layer 2:")
    assert len(card.find_elements(By.CSS_SELECTOR, ".gone")) >= len(gone)
    assert not other.find_elements(By.CSS_SELECTOR, ".gone")


def test_one_slider_moves_all_cards_and_filters_choose_among_them(opened):
    master = opened.find_element(By.CSS_SELECTOR, ".master input")
    opened.execute_script("arguments[0].focus()", master)
    master.send_keys(Keys.ARROW_RIGHT)
    cards = opened.find_elements(By.CSS_SELECTOR, ".gallery .card")
    assert {
        card.find_element(By.CSS_SELECTOR, "input").get_attribute("value") for card in cards
    } == {"1"}
    button = opened.find_element(By.CSS_SELECTOR, "button[data-group=wrong]")
    opened.execute_script("arguments[0].focus()", button)
    button.send_keys(Keys.ENTER)
    shown = [card for card in cards if card.is_displayed()]
    assert 0 < len(shown) < len(cards)
    assert {card.get_attribute("data-group") for card in shown} == {"wrong"}
    assert f"{len(shown)} of {len(cards)}" in opened.find_element(By.CSS_SELECTOR, ".shown p").text
    chosen = opened.find_element(By.CSS_SELECTOR, ".controls select")
    chosen.find_elements(By.CSS_SELECTOR, "option")[1].click()
    assert {card.get_attribute("data-class") for card in cards if card.is_displayed()} <= {"c0"}


def test_both_themes(opened):
    draw_all(opened)
    light = background(opened), text_colour(opened)
    button = opened.find_element(By.ID, "theme")
    button.click()
    WebDriverWait(opened, 10).until(lambda b: text_colour(b) != light[1])
    dark = background(opened), text_colour(opened)
    assert dark[0] != light[0]
    opened.refresh()  # the choice is remembered
    draw_all(opened)
    assert (background(opened), text_colour(opened)) == dark
    opened.execute_script("localStorage.clear()")
    prefer(opened, "dark")
    opened.refresh()  # the system's choice is followed
    draw_all(opened)
    assert (background(opened), text_colour(opened)) == dark
    prefer(opened, "light")
    WebDriverWait(opened, 10).until(lambda b: text_colour(b) == light[1])
    assert opened.get_log("browser") == []


@pytest.mark.parametrize("width", [320, 390, 800])
def test_narrow_screens_do_not_scroll_sideways(opened, width):
    size(opened, width)
    opened.refresh()
    draw_all(opened)
    wide, inner = opened.execute_script(
        "return [document.scrollingElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= inner <= width


def test_the_keyboard_reaches_everything(opened):
    opened.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert opened.switch_to.active_element.get_attribute("class") == "skip"
    wanted = {"theme", "master", "layer", "skip", "summary"}
    met = set()
    for _ in range(200):
        here = opened.switch_to.active_element
        inside = "return arguments[0].closest('label')?.className || arguments[0].id"
        met |= {opened.execute_script(inside, here), here.get_attribute("class"), here.tag_name}
        if wanted <= met:
            break
        here.send_keys(Keys.TAB)
    assert wanted <= met


def test_everything_has_a_text_alternative(opened):
    charts = opened.find_elements(By.CSS_SELECTOR, "figure")
    for figure in charts:
        chart = figure.find_element(By.CSS_SELECTOR, ".chart")
        assert chart.get_attribute("role") == "img"
        assert len(chart.get_attribute("aria-label")) > 20
        assert figure.find_element(By.CSS_SELECTOR, "details table tbody tr")
        assert figure.find_element(By.CSS_SELECTOR, "figcaption").text
    for picture in opened.find_elements(By.CSS_SELECTOR, ".card > svg"):
        assert picture.get_attribute("role") == "img"
        assert picture.get_attribute("aria-label")
    fields = opened.find_elements(By.CSS_SELECTOR, "input, select")
    assert all(opened.execute_script("return arguments[0].labels.length", f) for f in fields)


def test_a_dark_page_prints_dark_on_light_with_every_chart(opened):
    draw_all(opened)
    light = text_colour(opened)
    opened.find_element(By.ID, "theme").click()
    WebDriverWait(opened, 10).until(lambda b: text_colour(b) != light)
    opened.execute_script("dispatchEvent(new Event('beforeprint'))")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    WebDriverWait(opened, 10).until(lambda b: text_colour(b) == light)
    assert background(opened) == "rgb(255, 255, 255)"
    assert not opened.find_element(By.CSS_SELECTOR, "nav").is_displayed()
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    opened.execute_script("dispatchEvent(new Event('afterprint'))")
    WebDriverWait(opened, 10).until(lambda b: text_colour(b) != light)
    paper = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") > 1


def test_without_javascript_numbers_and_pictures_are_there(browser, page):
    size(browser, 1280)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert browser.find_element(By.CSS_SELECTOR, "main > noscript p").is_displayed()
        charts = browser.find_elements(By.CSS_SELECTOR, ".chart")
        assert charts
        assert not any(chart.is_displayed() for chart in charts)
        assert browser.find_element(By.CSS_SELECTOR, ".card svg").is_displayed()
        folded = browser.find_element(By.CSS_SELECTOR, "figure details")
        folded.find_element(By.CSS_SELECTOR, "summary").click()
        assert folded.find_element(By.CSS_SELECTOR, "table").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
