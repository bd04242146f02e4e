"""The page in a real browser: pasted, dropped and drawn graphs, on a phone, in the dark."""

import csv
import json
import time

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from browser import open_browser
from lookhops.sources.loading import load

STRANGE = "F[U](F)(F)(F)(F)F"


@pytest.fixture(scope="module")
def browser():
    found = open_browser()
    found.execute_cdp_cmd("Network.enable", {})
    yield found
    found.quit()


def size(browser, width, height=900):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(browser, scheme="light"):
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture
def page(browser, address):
    size(browser, 1280)
    prefer(browser)
    browser.get(address)
    until(browser, lambda: browser.find_element(By.ID, "ask").is_displayed())
    browser.get_log("browser")
    return browser


def until(browser, true, seconds=300):
    return WebDriverWait(browser, seconds, 0.05).until(lambda _: true())


def one(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector)


def cards(page, count, drawn=True):
    """The cards when there are so many, each with its picture."""
    shown = "#results:not([hidden]) .card"
    until(page, lambda: len(page.find_elements(By.CSS_SELECTOR, shown)) == count)
    every = "return [...document.querySelectorAll('.picture')].every(p => p.querySelector('svg'))"
    until(page, lambda: not drawn or page.execute_script(every))
    return page.find_elements(By.CSS_SELECTOR, shown)


def paste(page, text):
    page.execute_script("document.getElementById('text').value = arguments[0]", text)
    one(page, "#go").click()


def error(page):
    until(page, lambda: one(page, "#error").is_displayed())
    return one(page, "#error").text


def drop(page, name, content):
    """A file that falls onto the page."""
    page.execute_script(
        "const held = new DataTransfer();"
        "held.items.add(new File([new Uint8Array(arguments[1])], arguments[0]));"
        "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: held, bubbles: true}))",
        name,
        list(content),
    )


def test_pasted_smiles_with_answer_uncertainty_picture_and_warning(page):
    paste(page, f"CCO ethanol\nC1CC broken\n{STRANGE} <b>strange</b>\n")
    ethanol, broken, strange = cards(page, 3)
    assert ethanol.find_element(By.CSS_SELECTOR, "h3").text == "ethanol"
    said = ethanol.text
    assert any(name in said for name in ("low", "medium", "high"))
    assert "90 % set: " in said.replace("\u00a0", " ")
    assert "of the models agree" in said
    assert "unlike" not in said
    rows = ethanol.find_elements(By.CSS_SELECTOR, ".neighbours tbody tr")
    assert len(rows) == 3
    assert all(row.text.split()[-2] in ("low", "medium", "high") for row in rows)
    assert ethanol.find_element(By.CSS_SELECTOR, ".because").text
    assert "skipped" in broken.text
    assert strange.find_element(By.CSS_SELECTOR, "h3").text == "<b>strange</b>"
    assert "unlike the training set" in strange.text
    assert "do not rely on the answer" in strange.text
    assert "2 graphs answered; 1 row skipped; 1 unlike" in one(page, "#count").text
    assert "1 of 3 molecules" in one(page, "#notes").text
    assert page.get_log("browser") == []


def test_no_request_leaves_the_machine(page, address):
    paste(page, "CCO\n")
    cards(page, 1)
    one(page, "#tab-draw").click()
    until(page, lambda: page.execute_script("return !!document.querySelector('#sketcher > div')"))
    asked = page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert any("openchemlib" in url for url in asked)
    assert all(url.startswith((address, "data:", "blob:")) for url in asked)
    blocked = page.execute_async_script(
        "fetch('https://example.org/').then(() => arguments[0](false), () => arguments[0](true))"
    )
    assert blocked
    assert "Content Security Policy" in str(page.get_log("browser"))


@pytest.mark.parametrize("kind", ["csv", "sdf", "graphs", "jsonl"])
def test_dropped_files(page, kind, tmp_path):
    if kind in ("graphs", "jsonl"):
        Select(one(page, "#model")).select_by_visible_text("tasks")
        assert not one(page, "#tab-draw").is_displayed()
    if kind == "csv":
        content = b"id,smiles\na,CCO\nb,CCN\n"
    elif kind == "sdf":
        from rdkit import Chem

        blocks = (Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in ("CCO", "CCN"))
        content = "".join(f"{block}$$$$\n" for block in blocks).encode()
    elif kind == "graphs":
        load("hops-1", size=60)[:2].save(tmp_path / "x.graphs")
        content = (tmp_path / "x.graphs").read_bytes()
    else:
        nodes = [{"id": 1, "kind": "red"}, {"id": 2, "kind": "blue"}]
        line = json.dumps({"nodes": nodes, "edges": [{"source": 1, "target": 2}]})
        content = f"{line}\n{line}\n".encode()
    drop(page, f"my {kind}.{kind}", content)
    assert len(cards(page, 2)) == 2
    assert one(page, "#count").text.startswith("2 graphs answered")
    assert page.get_log("browser") == []


def test_a_chosen_file_with_many_rows_and_its_table(page, tmp_path):
    source = tmp_path / "many.csv"
    rows = [f"m{number},{'C' * (1 + number % 12)}O" for number in range(400)]
    source.write_text("\n".join(["id,smiles", *rows]) + "\n")
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    one(page, "#tab-file").click()
    one(page, "#file").send_keys(str(source))
    cards(page, 12, drawn=False)
    one(page, "#more").click()
    cards(page, 24, drawn=False)
    one(page, "#download").click()
    table = tmp_path / "many-answers.csv"
    until(page, lambda: table.exists() and table.read_text().count("\n") == 401)
    with table.open() as lines:
        found = list(csv.DictReader(lines))
    assert [row["id"] for row in found] == [f"m{number}" for number in range(400)]
    assert {row["predicted"] for row in found} <= {"low", "medium", "high"}


def test_a_drawn_molecule(page):
    one(page, "#tab-draw").click()
    one(page, "#go").click()
    assert error(page) == "Draw a molecule first."
    until(page, lambda: page.execute_script("return !!document.querySelector('#sketcher > div')"))
    ActionChains(page).move_to_element(one(page, "#sketcher")).click().perform()
    until(page, lambda: one(page, "#drawn").text == "CC")
    one(page, "#go").click()
    [drawn] = cards(page, 1)
    assert drawn.find_element(By.CSS_SELECTOR, "h3").text == "drawn"
    assert page.get_log("browser") == []


def test_a_molecule_drawn_with_a_finger_in_the_dark(page):
    size(page, 390)
    prefer(page, "dark")
    page.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    one(page, "#tab-draw").click()
    until(page, lambda: page.execute_script("return !!document.querySelector('#sketcher > div')"))
    where = "return document.querySelector('#sketcher').getBoundingClientRect().toJSON()"
    editor = page.execute_script(where)
    for right, down in ((33, 200), (200, 160)):  # the button of benzene, then the sheet
        at = {"x": editor["x"] + right, "y": editor["y"] + down}
        touch = {"type": "touchStart", "touchPoints": [at]}
        page.execute_cdp_cmd("Input.dispatchTouchEvent", touch)
        page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    until(page, lambda: one(page, "#drawn").text == "c1ccccc1")
    sheet = "return getComputedStyle(document.querySelector('#sketcher > div')).filter"
    assert "invert" in page.execute_script(sheet)
    one(page, "#go").click()
    assert len(cards(page, 1)) == 1


def test_answers_name_the_model_that_gave_them(page):
    paste(page, "CCO\n")
    cards(page, 1)
    Select(one(page, "#model")).select_by_visible_text("numbers")
    assert one(page, "#title").text == "Ask numbers"
    assert one(page, "#results-title").text == "Answers of molecules"


def test_a_number_with_its_interval_beside_a_class(page):
    Select(one(page, "#model")).select_by_visible_text("numbers")
    assert "value: a number" in one(page, "#about").text
    paste(page, "CCO ethanol\n")
    [card] = cards(page, 1)
    assert "value" in card.text
    assert " to " in card.text
    before = one(page, ".picture").get_attribute("innerHTML")
    Select(one(page, "#target")).select_by_visible_text("value")
    until(page, lambda: one(page, ".picture").get_attribute("innerHTML") != before)


def test_what_is_wrong_is_said_and_the_next_question_is_answered(page):
    one(page, "#go").click()
    assert error(page) == "Paste something to ask about first."
    paste(page, "C1CC\n")
    assert "none of 1 molecule parses" in error(page)
    drop(page, "x.docx", b"?")
    until(page, lambda: "not a kind of file that holds graphs" in one(page, "#error").text)
    one(page, "#tab-text").click()
    one(page, "#example").click()
    cards(page, 4)
    assert not one(page, "#error").is_displayed()


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_nothing_scrolls_sideways(page, width):
    size(page, width)
    for tab in ("draw", "file", "text"):
        one(page, f"#tab-{tab}").click()
        assert page.execute_script("return document.scrollingElement.scrollWidth") <= width
    one(page, "#example").click()
    cards(page, 4)
    assert page.execute_script("return document.scrollingElement.scrollWidth") <= width
    buttons = page.find_elements(By.CSS_SELECTOR, "#go, .tabs button, #download")
    assert all(button.size["height"] >= 36 for button in buttons if button.is_displayed())


def test_in_the_dark(page):
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.execute_script(colour)
    prefer(page, "dark")
    dark = page.execute_script(colour)
    assert dark != light
    one(page, "#theme").click()
    assert page.execute_script(colour) == light
    page.refresh()  # the choice is remembered
    assert page.execute_script(colour) == light
    page.execute_script("localStorage.clear()")


def test_by_keyboard(page):
    one(page, "body").send_keys(Keys.TAB)
    assert page.switch_to.active_element.get_attribute("class") == "skip"

    def go_to(wanted):
        for _ in range(30):
            here = page.switch_to.active_element
            if here.get_attribute("id") == wanted:
                return here
            here.send_keys(Keys.TAB)
        raise AssertionError(f"{wanted} cannot be reached")

    go_to("tab-text").send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.get_attribute("id") == "tab-draw"
    page.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    go_to("text").send_keys("CCO ethanol", Keys.CONTROL, Keys.ENTER)
    cards(page, 1)
    until(page, lambda: page.switch_to.active_element.get_attribute("id") == "results-title")
    go_to("download")
    fields = page.find_elements(By.CSS_SELECTOR, "input, select, textarea")
    assert all(page.execute_script("return arguments[0].labels.length", one) for one in fields)


def test_a_token_is_asked_for(browser, address, molecule_model):
    """Pages of a service with a token: from its address, or typed."""
    from threading import Thread

    import uvicorn

    from lookhops.serve.app import address_of, bind, create_app

    bound = bind("127.0.0.1", 0)
    app = create_app([molecule_model], token="a-long-enough-secret", device="cpu")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    thread = Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    browser.get(address_of(bound))
    until(browser, lambda: one(browser, "#token").is_displayed())
    one(browser, "#token-text").send_keys("wrong", Keys.ENTER)
    assert "A token is needed" in error(browser)
    one(browser, "#token-text").clear()
    one(browser, "#token-text").send_keys("a-long-enough-secret", Keys.ENTER)
    until(browser, lambda: one(browser, "#ask").is_displayed())
    browser.execute_script("sessionStorage.clear()")
    browser.get(f"{address_of(bound)}/?again#token=a-long-enough-secret")
    until(browser, lambda: one(browser, "#ask").is_displayed())
    assert "secret" not in browser.current_url
    one(browser, "#openapi").send_keys(Keys.ENTER)  # the description is fetched with the token
    status = "return performance.getEntriesByName(arguments[0])[0]?.responseStatus"
    described = f"{address_of(bound)}/openapi.json"
    until(browser, lambda: browser.execute_script(status, described) == 200)
    server.should_exit = True
    thread.join(10)
