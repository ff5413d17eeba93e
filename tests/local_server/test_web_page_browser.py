"""The page in a real Chromium, headless: what people do, and what must never happen to them."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from kbert.local_server.server import LocalServer, ServerOptions
from kbert.serving.export.export import export
from tests.local_server.conftest import FREE
from tests.local_server.page_browser import Page
from tests.local_server.page_models import ROBOT, Finder, Namer, Sorter, Talker

pytest.importorskip("selenium.webdriver", reason='pip install ".[test]"')

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

# Replies to questions wait, after they have come, until `release` is called.
HOLD = """
const real = window.fetch, held = [];
window.fetch = async (...given) => {
  const reply = await real(...given);
  if (!given[0].endsWith(":predict")) return reply;
  window.held = held.length + 1;
  return new Promise((go) => held.push(() => go(reply)));
};
window.release = () => { window.fetch = real; held.forEach((go) => go()); };
"""
# The list of models becomes what a function makes of it.
RELIST = """
const real = window.fetch;
window.fetch = async (...given) => {
  const reply = await real(...given);
  if (given[0] !== "/web/models") return reply;
  const { models } = await reply.json();
  return new Response(JSON.stringify({ models: (%s)(models) }));
};
"""
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of models whose answers are known."""
    base = tmp_path_factory.mktemp("page")
    for model in (Finder(), Namer(), Sorter(), Talker()):
        export(model, base, max_batch_size=0)
    with LocalServer(base, ServerOptions(**{**FREE, "grpc_port": -1}, web=True)) as server:
        yield server.rest_url


def test_an_answer_is_marked_where_it_stands(page: Page):
    page.choose("finder")
    # Beyond 16 bits, joined, right to left: places count code points.
    context = f"\U0001f52d\U0001f469\u200d\U0001f680 שלום {ROBOT} \U0001f30a {HOSTILE}"
    page.fill(question="who?", context=context)
    page.ask()
    assert page.texts("#answer mark") == [ROBOT]
    assert page.one("#answer .passage").get_attribute("textContent") == context
    assert page.one("#answer .passage").get_attribute("dir") == "auto"
    assert page.one(".headline").text == ROBOT
    assert page.texts(".bars .name") == [ROBOT, "nobody"]
    assert page.texts(".bars .value") == ["75.0 %", "25.0 %"]


def test_no_answer(page: Page):
    page.choose("finder")
    page.fill(question="who?", context="nothing")
    page.ask()
    assert page.one(".headline").text == "The text holds no answer."
    assert not page.all("#answer mark")


def test_names_have_colours_and_kinds(page: Page):
    page.choose("namer")
    page.fill(text=f"\U0001f3bb Ada met \U0001f3b6 Bob. {HOSTILE}")
    page.ask()
    marks = page.all("#answer mark")
    assert [mark.get_attribute("textContent") for mark in marks] == ["AdaPER", "BobLOC"]
    colours = {mark.value_of_css_property("background-color") for mark in marks}
    assert len(colours) == 2
    assert page.texts(".list tbody tr:first-child td") == ["Ada", "PER", "90.0 %"]


def test_classes_have_bars(page: Page):
    page.choose("sorter")
    page.fill(text="any")
    page.ask()
    assert page.texts(".bars .name") == ["<b>good</b>", "bad"]
    widths = [bar.get_attribute("style") for bar in page.all(".bar i")]
    assert widths == ["width: 75%;", "width: 25%;"]


def test_translations_have_a_heat_map(page: Page):
    page.choose("talker")
    page.fill(text="a b")
    page.ask()
    assert page.one(".headline").text == "b a"
    assert page.texts(".heat tbody th") == ["b", "-a", "(end)"]
    assert page.texts(".heat thead th") == ["a", "b", "(end)"]
    cells = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
             for row in page.all(".heat tbody tr")]
    assert cells == [["25", "75", ""], ["75", "25", ""], ["", "", "100"]]


def test_nothing_that_users_write_becomes_html(page: Page):
    for model, boxes in (("sorter", ["text"]), ("finder", ["question", "context"])):
        page.choose(model)
        page.fill(**{name: HOSTILE for name in boxes})
        page.ask()
    assert page.driver.title != "taken" and not page.all("img")
    assert len(page.all("script")) == 1
    told = [one["message"] for one in page.driver.get_log("browser")]
    assert not [words for words in told if "Content Security Policy" in words]


def test_the_call_is_exact(page: Page):
    page.choose("sorter")
    page.fill(text="it's \"quoted\" \\ $HOME `x`\nfilm \U0001f600")
    command = page.one("#call").text
    if not shutil.which("curl"):
        pytest.skip("curl is missing")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["outputs"]["label"] == ["<b>good</b>"]
    told = json.loads(command.split(" -d '", 1)[1][:-1].replace("'\\''", "'"))
    assert told["inputs"]["text"] == ["it's \"quoted\" \\ $HOME `x`\nfilm \U0001f600"]


def test_errors_are_told_in_words(page: Page):
    page.choose("sorter")
    page.fill(text="fail")
    page.ask()
    error = page.one("#error")
    assert error.is_displayed() and error.get_attribute("role") == "alert"
    assert error.text.startswith("The server refused (400):")
    page.fill(text="well")
    page.ask()
    assert not page.one("#error").is_displayed() and page.texts(".headline") == ["<b>good</b>"]


@pytest.mark.parametrize("text", ["well", "fail"])
def test_a_reply_that_comes_when_another_model_is_chosen_is_dropped(page: Page, text: str):
    page.choose("sorter")
    page.fill(text=text)
    page.driver.execute_script(HOLD)
    page.one("#send").click()
    page.wait(lambda: page.driver.execute_script("return window.held"))
    assert page.one("#send").get_attribute("aria-busy") == "true"
    page.choose("finder")
    before = page.one("#answer").get_attribute("innerHTML")
    assert not page.one("#send").get_attribute("aria-busy")
    page.driver.execute_script("release()")
    time.sleep(0.5)
    assert page.one("#answer").get_attribute("innerHTML") == before
    assert page.one("#timing").text == "" and not page.one("#error").is_displayed()
    page.fill(question="who?", context=ROBOT)
    page.ask()
    assert page.one(".headline").text == ROBOT


def test_the_second_part_of_an_answer_is_of_the_same_model(page: Page):
    """A translation's alignment is not asked of the model that was chosen since."""
    page.choose("talker")
    page.driver.execute_script(HOLD)
    page.one("#send").click()
    page.wait(lambda: page.driver.execute_script("return window.held"))
    page.choose("sorter")
    page.driver.execute_script("performance.clearResourceTimings(); release()")
    time.sleep(0.5)
    asked = "return performance.getEntriesByType('resource').map((one) => one.name)"
    assert not [url for url in page.driver.execute_script(asked) if url.endswith(":predict")]


def test_the_form_follows_a_model_that_has_gone(page: Page):
    page.choose("sorter")
    page.fill(text="fail")
    relist = RELIST % "(all) => all.filter((one) => one.key !== 'sorter')"
    page.driver.execute_script(relist)
    page.one("#send").click()
    page.wait(lambda: len(page.all("#model option")) == 3)
    page.wait(lambda: page.all("#field-context"))
    assert page.one("#model").get_attribute("value") == "finder"
    assert page.one("#error").text.startswith("The server refused (400):")


def test_one_version_answers_all_of_a_question(page: Page):
    page.choose("talker")
    page.fill(text="a b")
    asked = """
    const list = await (await fetch("/web/models")).json(), real = window.fetch;
    window.asked = [];
    window.fetch = (...given) => {
      window.asked.push(given[0]);
      return real(...given);
    };
    for (const one of list.models) one.version = 9;  // which the server has not
    const held = window.fetch;
    window.fetch = async () => new Response(JSON.stringify(list));
    window.dispatchEvent(new Event("focus"));
    window.fetch = held;
    """
    page.driver.execute_script(asked)
    page.wait(lambda: "version 9" in page.one("#model").text)
    page.ask()
    page.wait(lambda: page.all(".headline"))
    assert page.one("#timing").text.endswith(" by version 1.")
    urls = [one for one in page.driver.execute_script("return window.asked") if "predict" in one]
    assert [one.rpartition("talker")[2] for one in urls] == [
        *("/versions/9:predict", "/versions/1:predict", "/versions/1:predict")
    ]


def test_the_form_follows_a_version_with_other_inputs(page: Page):
    page.choose("sorter")
    relist = RELIST % (
        "(all) => all.map((one) => { if (one.key === 'sorter') "
        "one.signatures[one.signature].inputs[0].name = 'words'; return one; })"
    )
    page.driver.execute_script(relist)
    page.driver.execute_script("window.dispatchEvent(new Event('focus'))")
    page.wait(lambda: page.all("#field-words"))
    assert page.one("#model").get_attribute("value") == "sorter"


def test_the_keyboard_is_enough(page: Page):
    page.choose("sorter")
    box = page.one("#field-text")
    box.clear()
    box.send_keys("typed", Keys.CONTROL, Keys.ENTER)
    page.wait(lambda: page.all(".headline"))
    assert page.one("label[for='field-text']").text == "Text"
    page.driver.execute_script("document.querySelector('.skip').focus()")
    seen = []
    for _ in range(4):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(page.driver.switch_to.active_element.get_attribute("id"))
    assert seen[:3] == ["model", "field-text", "send"]


def test_examples_ask_at_once(page: Page):
    page.choose("finder")
    button = page.all("#examples button")[0]
    button.click()
    page.wait(lambda: page.all(".headline"))
    assert page.one("#field-question").get_attribute("value") == button.text


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(page: Page, width: int):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for model in ("finder", "talker"):
            page.choose(model)
            page.fill(**({"text": "a b"} if model == "talker" else {"context": "x" * 500}))
            page.ask()
            wide = page.driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
