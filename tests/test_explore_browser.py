"""The page in a real browser: clicks, keys, links, pictures of it, and names that would like to be scripts."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from urllib.parse import quote

import numpy as np
import pytest

import sbnet as sb
from sbnet import explore
from sbnet.datasets import make_clinic
from sbnet.explore import answers
from sbnet.explore.page import document

EVIL = "</script><img src=x onerror=window.pwned=1><svg/onload=window.pwned=1>{{script}}"


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    with sync_api.sync_playwright() as playwright:
        if program is None and not os.path.exists(playwright.chromium.executable_path):
            pytest.skip("no Chromium is installed; `apt install chromium` or `playwright install chromium` brings one")
        one = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield one
        one.close()


def until(page, expression):
    """Wait for it; the page lets nobody evaluate a text, so the question is asked anew each time."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never: {expression}")


@pytest.fixture(scope="module")
def tab(browser):
    """A page for all tests, and what it complains of: whatever it logs, and whatever it asks of anyone."""
    page, complaints = browser.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
    return page, complaints


@pytest.fixture
def visit(tab, tmp_path):
    """Open the file of a network."""
    page, complaints = tab
    complaints.clear()

    def open_page(network, fragment="", *, wide=1200, scheme="light", **options):
        path = tmp_path / "page.html"
        path.write_text(explore.html(network, **options), encoding="utf-8")
        page.set_viewport_size({"width": wide, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{path.as_uri()}{fragment}")
        until(page, "answer !== null && questions !== null")
        return page

    open_page.complaints = complaints
    yield open_page
    assert complaints == []


@pytest.fixture(scope="module")
def clinic() -> sb.Network:
    effects = {
        ("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5,
        ("allergy", "sneezing"): 0.7, ("allergy", "itching"): 0.9,
    }  # fmt: skip
    net = sb.noisy_or(effects, leak=0.01, prior={"flu": 0.05, "cold": 0.1, "allergy": 0.08})
    notes = {"flu": sb.Note(about="influenza", group="causes"), "cold": sb.Note(group="causes")}
    notes |= {"allergy": sb.Note(group="causes"), "itching": sb.Note(about="of eyes or skin", group="findings")}
    return replace(net, notes=notes | {name: sb.Note(group="findings") for name in ("fever", "sneezing", "aches")})


def shown(page):
    """The ranking as a reader sees it: names and chances."""
    return page.eval_on_selector_all(
        "#ranking > li",
        "rows => rows.map(r => [r.querySelector('.title').firstChild.data, r.querySelector('b').textContent])",
    )


def percent(chance):
    return f"{100 * chance:.0f}\N{NO-BREAK SPACE}%"


def told(page):
    return page.evaluate("Object.fromEntries([...known].map(([i, s]) => [net.names[i], s]))")


def expected(network, evidence):
    exact = sb.exact_posterior(network, evidence)
    causes = [name for name in network.names if network.notes[name].group == "causes"]
    return sorted(causes, key=lambda name: -exact[name]), exact


# --- using it -------------------------------------------------------------------------------------------------------


def test_a_finding_is_searched_set_and_the_causes_are_ranked_anew(visit, clinic):
    page = visit(clinic)
    assert page.inner_text("#size") == "3 causes, 4 findings"
    assert [name for name, _ in shown(page)] == expected(clinic, {})[0]
    page.keyboard.press("/")
    page.keyboard.type("eyes")  # in the text about it
    assert page.locator("#results [data-unit]").count() == 1
    page.locator("#results .on").click()
    order, exact = expected(clinic, {"itching": 1})
    assert [name for name, _ in shown(page)] == order
    assert shown(page)[0] == ["allergy", percent(exact["allergy"])]
    assert page.inner_text("#status").startswith("Likeliest now: allergy\N{NO-BREAK SPACE}")
    assert page.inner_text("#kind") == "Exact: sums over all states."
    assert set(page.locator("#ranking .badge").all_inner_texts()) == {"exact"}
    assert page.url.endswith("#itching=yes")


def test_why_and_what_to_ask_next(visit, clinic):
    page = visit(clinic, evidence={"fever": 1, "sneezing": 0})
    page.wait_for_selector(".why td.nats")
    parts = "['th', '.nats', '.odds'].map(part => row.querySelector(part).textContent)"
    told = page.eval_on_selector_all(".why:not([hidden]) tr", f"rows => rows.map(row => {parts})")
    nats = {finding: nats + odds for finding, nats, odds in told}
    given = {"fever": 1, "sneezing": 0}
    prior, exact = (sb.exact_posterior(clinic, known)["flu"] for known in ({"sneezing": 0}, given))
    added = np.log(exact / (1 - exact)) - np.log(prior / (1 - prior))
    assert nats["fever: yes"] == f"+{added:.2f}{np.exp(added):.0f} times likelier"
    assert set(nats) == {"fever: yes", "sneezing: no"}
    asked = page.eval_on_selector_all("#ask .unit-name", "names => names.map(n => n.firstChild.data)")
    questions = sb.next_question(clinic, given)
    assert asked == [one.name for one in questions if one.information > 0][:6]
    drawn = page.eval_on_selector_all("#drawing .node", "nodes => nodes.map(node => node.getAttribute('aria-label'))")
    assert f"aches: {percent(questions[0].probability)}" in drawn  # the same chance in both places


def test_the_keyboard_does_everything(visit, clinic):
    page = visit(clinic)
    page.keyboard.press("/")
    page.keyboard.type("fever")
    page.keyboard.press("Enter")
    assert told(page) == {"fever": 1}
    page.keyboard.type("sneez")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    assert told(page) == {"fever": 1, "sneezing": 0}
    page.keyboard.press("ArrowDown")  # to the first of the findings that are known
    page.keyboard.press("u")
    assert told(page) == {"sneezing": 0}
    page.keyboard.press("Control+z")
    assert told(page) == {"fever": 1, "sneezing": 0}
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    assert page.locator("#results [data-unit]").count() == 0


def test_undo_and_reset(visit, clinic):
    page = visit(clinic, evidence={"fever": 1})
    assert page.is_disabled("#undo")
    page.evaluate("tell(place.get('aches'), 0)")
    page.click("#reset")
    assert told(page) == {}
    assert page.is_disabled("#reset")
    page.click("#undo")
    assert told(page) == {"fever": 1, "aches": 0}
    page.click("#undo")
    assert told(page) == {"fever": 1}
    assert page.is_disabled("#undo")


def test_a_link_holds_the_state(visit, clinic):
    page = visit(clinic, "#fever=yes&sneezing=no", evidence={"itching": 1})
    assert told(page) == {"fever": 1, "sneezing": 0}
    assert page.is_hidden("#strange")
    page.evaluate("location.hash = '#aches=yes'")
    until(page, "known.size === 1")
    assert told(page) == {"aches": 1}


def test_what_a_link_says_and_the_model_does_not_know_is_named(visit, clinic):
    link = "#fever=yes&no%20body%1b=yes&aches=maybe&%E0%A4%A=yes&fever=no&alone&sneezing=no"
    page = visit(clinic, link, evidence={"itching": 1})
    assert told(page) == {"fever": 1, "sneezing": 0}
    strange = r"“no body\x1b=yes”, “aches=maybe”, “%E0%A4%A=yes”, “fever=no”, “alone”"
    assert page.inner_text("#strange").startswith(f"This link also says {strange}. The model has no such finding,")
    page.click("#reset")
    assert page.is_hidden("#strange")
    page = visit(clinic, "?again#" + "&".join(f"nobody{i}=yes" for i in range(12)), evidence={"itching": 1})
    assert told(page) == {}  # a link goes first, even if nothing in it is known
    assert "“nobody9=yes” and 2 more" in page.inner_text("#strange")


def test_an_address_within_the_page_is_no_link_of_findings(visit, clinic):
    page = visit(clinic, "?#causes-title", evidence={"itching": 1})
    assert told(page) == {"itching": 1}
    page.locator(".skip").press("Enter")
    until(page, "location.hash === '#itching=yes'")
    assert told(page) == {"itching": 1}


def test_a_name_that_no_address_can_hold_is_not_dropped_in_silence(visit):
    net = sb.noisy_or({("a", "half \ud83d"): 0.5, ("a", "whole"): 0.5}, leak=0.1, prior=0.1)
    page = visit(net)
    page.evaluate("tell(place.get('whole'), 1); tell(place.get('half \\ud83d'), 1)")
    assert page.url.endswith("#whole=yes")
    assert page.evaluate("unlinked").startswith("No address can hold the name “half")


def test_a_cause_can_be_ruled_out(visit, clinic):
    page = visit(clinic, evidence={"fever": 1})
    page.locator(".why .choice .off").first.click()
    assert told(page)["flu"] == 0
    assert shown(page)[-1] == ["flu", "no"]


def test_the_drawing_shows_what_matters_and_not_everything(visit):
    net = make_clinic(60, 400, rng=2)
    page = visit(net, evidence={"finding 3": 1, "finding 8": 0})
    names = page.eval_on_selector_all("#drawing .node", "nodes => nodes.map(n => n.getAttribute('aria-label'))")
    assert len(names) <= 20
    assert "finding 3: yes" in names
    assert "finding 8: no" in names
    page.locator("#drawing .node.yes").focus()
    page.keyboard.press("Enter")
    assert told(page)["finding 3"] == 0


def test_a_narrow_drawing_has_as_many_variables_as_stand_beside_each_other(visit):
    """Lines that wrap hide edges behind boxes; so there are fewer causes and findings."""
    chain = ["cold", "wet", "ill", "in bed"]
    edges = dict.fromkeys(pairwise(chain), 0.6) | {("wet", f"finding {k}"): 0.5 for k in range(5)}
    net = sb.noisy_or(edges, leak=0.05, prior=0.1)
    place = "nodes => nodes.map(n => n.getAttribute('transform').split(' ')[1])"
    wide, narrow = (
        visit(net, wide=pixels, evidence={"in bed": 1}).eval_on_selector_all("#drawing .node", place)
        for pixels in (1280, 390)
    )
    assert (len(wide), len(narrow), len(set(narrow))) == (7, 5, 3)  # of nine, three lines


TOO_WIDE = """nodes => nodes.flatMap(node => {
  const box = node.querySelector('.box').getBoundingClientRect();
  return [...node.querySelectorAll('text')].filter(text => text.getBoundingClientRect().right > box.right)
    .map(text => text.textContent);
})"""


@pytest.mark.parametrize("wide", [390, 1280])
def test_words_in_the_drawing_stay_in_their_boxes_and_numbers_are_whole(visit, wide):
    states = {"hepatomegaly mm": ["WWWWWWWWWWWW", "a299_150_mmmm", "high"]}
    names = ["hepatomegaly mm", *(f"WWWWWWWWWW mmmm {k}" for k in range(4)), "last"]
    net = sb.from_edges(dict.fromkeys(pairwise(names)), states=states, tables={
        "hepatomegaly mm": [0.1, 0.8, 0.1], names[1]: [[0.5, 0.5]] * 3, **{n: [[0.5, 0.5]] * 2 for n in names[2:]},
    })  # fmt: skip
    page = visit(net, wide=wide)
    assert page.eval_on_selector_all("#drawing .node", TOO_WIDE) == []
    assert page.text_content("#drawing .node:first-of-type .value").endswith("… 80\N{NO-BREAK SPACE}%")


def test_the_drawing_has_the_findings_that_matter_and_not_the_last_ones(visit):
    effects = {("flu", "fever"): 0.9, ("flu", "aches"): 0.8}
    effects |= {("flu", f"vague {i}"): 0.02 for i in range(12)} | {("cold", f"vague {i}"): 0.02 for i in range(12)}
    net = sb.noisy_or(effects, leak=0.1, prior=0.05)
    findings = ["fever", "aches", *(f"vague {i}" for i in range(12))]
    page = visit(net, "#" + "&".join(f"{name.replace(' ', '%20')}=yes" for name in findings))
    until(page, "nats.size > 0")
    drawn = page.eval_on_selector_all("#drawing .node.yes", "nodes => nodes.map(n => n.getAttribute('aria-label'))")
    few = page.evaluate("fewKnown()")
    assert len(drawn) == few < len(findings)
    assert {"fever: yes", "aches: yes"} <= set(drawn)
    assert f"the {few} of 14 known findings that matter most" in page.inner_text("#drawing-note")


@pytest.mark.parametrize(("wide", "scheme"), [(320, "dark"), (375, "light"), (900, "dark"), (1400, "light")])
def test_nothing_is_wider_than_its_window_and_texts_can_be_read(visit, clinic, wide, scheme):
    page = visit(clinic, evidence={"fever": 1}, wide=wide, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
    ratios = page.evaluate(CONTRAST)
    assert min(ratios.values()) >= 4.5, ratios


@pytest.mark.parametrize("wide", [390, 1280])
def test_names_of_any_length_stay_inside(visit, wide):
    long = "x" * 300
    page = visit(sb.noisy_or({(f"c{long}", f"f{long}"): 0.5}, leak=0.1, prior=0.1), evidence={f"f{long}": 1}, wide=wide)
    page.wait_for_selector(".why td.nats")
    page.fill("#search", long + "y")
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
    for box in ("caption", "#status", "#matches", "#ranking .title"):
        assert page.eval_on_selector(box, "node => node.scrollWidth <= node.parentElement.clientWidth"), box


CONTRAST = """() => {
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = node => {
    const color = getComputedStyle(node).backgroundColor;
    return color.endsWith(", 0)") ? behind(node.parentElement) : color;
  };
  const texts = "h1, h2, h3, p, summary, .choice span, .unit-name, .tell, .cause b, .cause small, .why th, caption";
  const found = {};
  for (const node of document.querySelectorAll(texts)) {
    if (!node.offsetParent || !node.textContent) continue;
    const [a, b] = [getComputedStyle(node).color, behind(node)].map(light).sort((x, y) => y - x);
    found[`${node.tagName} ${node.className} ${node.textContent.slice(0, 20)}`] = (a + 0.05) / (b + 0.05);
  }
  return found;
}"""
"""Contrast of texts to what is behind them, as WCAG 2 has it."""


def test_a_screen_reader_hears_names_roles_and_what_changed(visit, clinic):
    page = visit(clinic, evidence={"fever": 1})
    tree = page.locator("body").aria_snapshot()
    flu = f"{100 * sb.exact_posterior(clinic, {'fever': 1})['flu']:.0f} %"
    for heard in (
        'heading "Which causes',
        'searchbox "Search a finding or a cause"',
        'group "fever"',
        'radio "yes" [checked]',
        'radio "unknown"',
        'list "Causes"',
        f'button "flu, influenza: {flu}, before 5.0 %" [expanded]',
        'status: "Likeliest now',
        'row "fever: yes',
    ):
        assert heard in tree, (heard, tree)
    named = "node => node.labels?.length || node.textContent || node.ariaLabel"
    assert page.eval_on_selector_all("input, button", f"all => all.every({named})")


def test_names_stay_names(visit):
    net = sb.noisy_or({(f"cause {EVIL}", f"finding {EVIL}"): 0.5}, leak=0.1, prior=0.1)
    note = sb.Note(about=EVIL, group=EVIL, source=EVIL, states=(f"no {EVIL}", f"yes {EVIL}"))
    page = visit(replace(net, notes=dict.fromkeys(net.names, note)), title=EVIL, evidence={f"finding {EVIL}": 1})
    page.fill("#search", "onerror")
    page.click("#browse summary")
    page.wait_for_selector(".why td.nats")
    assert page.inner_text("h1") == EVIL
    assert page.locator("img").count() == 0
    assert page.evaluate("window.pwned === undefined")
    assert page.locator("#known").get_by_text(f"finding {EVIL}").count() > 0


def test_characters_that_nobody_sees_are_shown_as_escapes(visit):
    name = "fe\x1b[31mver\u202e\x00\u200b"
    net = sb.noisy_or({("flu\x07", name): 0.5}, leak=0.1, prior=0.1)
    note = sb.Note(about="two\nlines\x1b]8;;", states=("no\x9b", "yes\u2066"))
    page = visit(replace(net, notes={name: note}), title="A \x1b title\u202e\xa0\u200d", evidence={name: 1})
    page.wait_for_selector(".why td.nats")
    assert page.locator("#known .unit-name").inner_text().split("\n") == [SEEN, r"two lines\x1b]8;;"]
    assert page.locator("#ranking .title").inner_text() == r"flu\x07"
    assert page.locator(".why th").inner_text() == SEEN + r": yes\u2066"
    assert page.inner_text("h1") == "A \\x1b title\\u202e\xa0\u200d"
    whole = page.evaluate(
        "document.documentElement.innerText + document.title + document.querySelector('#drawing').textContent"
    )
    assert not set(whole) & set("\x00\x07\x1b\x9b\u200b\u202e\u2066")
    assert told(page) == {SEEN: 1}
    page.reload()  # the link has the name itself
    until(page, "answer !== null && questions !== null")
    assert told(page) == {SEEN: 1}
    assert page.is_hidden("#strange")


SEEN = r"fe\x1b[31mver\u202e\x00\u200b"


def test_no_script_but_its_own_runs(visit, clinic):
    page = visit(clinic)
    page.evaluate(
        """() => {
          window.broken = [];
          addEventListener("securitypolicyviolation", event => broken.push(event.violatedDirective));
          const script = document.createElement("script");
          script.textContent = "window.pwned = 1";
          document.body.append(script);
        }"""
    )
    until(page, "broken.length > 0")
    assert page.evaluate("window.pwned === undefined")
    visit.complaints.clear()  # the browser's own, about that script


def test_a_notebook_frame_answers_too(browser, clinic):
    page, complaints = browser.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(explore.widget(clinic, evidence={"fever": 1})._repr_html_())
    frame = page.frame_locator("iframe")
    frame.locator("#ask li").first.wait_for()
    frame.locator("#known .off").click()
    frame.get_by_text("fever: no").first.wait_for()
    assert frame.locator("#status").inner_text().startswith("Likeliest now")
    page.close()
    assert complaints == []


def test_the_same_page_with_a_server(browser, clinic):
    pytest.importorskip("uvicorn")
    from sbnet.explore.server import Served, running

    answers.certificate(clinic, {"evidence": {"3": 1}})  # compiled before anyone waits for it
    answers.intervals(clinic, {"evidence": {"3": 1}, "units": [0]})
    served, complaints = Served(clinic, document(clinic, "Fever", {"fever": 1}, server=True), 0), []
    with running(served) as address:
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: r.url.startswith((address, "data:")) or complaints.append(r.url))
        page.goto(address)
        until(page, "questions !== null")
        assert page.evaluate("typeof Elimination") == "undefined"  # one path
        page.fill("#search", "sneez")
        page.keyboard.press("Enter")
        order, exact = expected(clinic, {"fever": 1, "sneezing": 1})
        until(page, f"document.querySelector('#ranking b').textContent === '{percent(exact[order[0]])}'")
        assert [name for name, _ in shown(page)] == order
        page.check("#certain")
        page.wait_for_selector("#ranking .whisker:not([hidden])")
        until(page, "document.querySelector('#bound').textContent.includes('guaranteed')")
        page.close()
    assert complaints == []


# --- states, reports, two cases ---------------------------------------------------------------------------------------


ODD = ["clear", "<b>\"rain\"</b> & 'more'", "snow \u2603=~1&2"]


@pytest.fixture(scope="module")
def weather() -> sb.Network:
    tables = {"sky": [0.6, 0.3, 0.1], "road": [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]]}
    states = {"sky": ODD, "road": ["dry", "wet", "ice"]}
    effects = {("sky", "road"): None, ("road", "slip"): [[1.0, 3.0]], ("wind", "slip"): 1.0}
    return sb.from_edges(effects, states=states, tables=tables, bias={"slip": -2.0})


def test_states_are_buttons_with_any_name_and_a_bar_each(visit, weather):
    page = visit(weather)
    page.fill("#search", "road")
    assert page.locator("#results .choice label").all_inner_texts() == ["dry", "wet", "ice", "?"]
    page.locator("#results .choice label").nth(2).click()
    assert told(page) == {"road": 2}
    exact = sb.exact_posterior(weather, {"road": "ice"})["sky"]
    lines = page.locator("#ranking > li[data-unit='0'] .state")
    assert lines.locator(".label").all_inner_texts() == ODD
    assert [text.split("→")[1].strip() for text in lines.locator(".numbers").all_inner_texts()] == [
        page.evaluate("p => percent(p)", p) for p in exact.values()
    ]
    page.evaluate("tell(0, 2)")
    assert told(page) == {"road": 2, "sky": 2}
    page.reload()  # the link has the names of the states themselves
    until(page, "answer !== null && questions !== null")
    assert told(page) == {"road": 2, "sky": 2}
    assert page.is_hidden("#strange")


def test_keys_set_states(visit, weather):
    page = visit(weather)
    page.keyboard.press("/")
    page.keyboard.type("road")
    page.keyboard.press("Enter")  # which of three states, is for the reader to say
    assert told(page) == {}
    page.keyboard.press("3")
    assert told(page) == {"road": 2}
    page.keyboard.press("4")  # there is none
    assert told(page) == {"road": 2}
    page.keyboard.press("u")
    assert told(page) == {}


def test_a_report_that_is_not_sure(visit, weather):
    page = visit(weather)
    page.fill("#search", "road")
    page.locator("#results .not-sure").click()
    for name, value in {"dry": "0.1", "wet": "1", "ice": "0.5"}.items():
        page.get_by_label(f"road: how well {name} fits").first.fill(value)
    exact = sb.exact_posterior(weather, {"road": [0.1, 1.0, 0.5]})
    until(page, f"Math.abs(answer.beliefs[0][1] - {exact['sky'][ODD[1]]}) < 1e-12")
    assert told(page) == {"road": [0.1, 1, 0.5]}
    assert page.url.endswith("#road=~0.1~1~0.5")
    page.reload()
    until(page, "answer !== null && questions !== null")
    assert told(page) == {"road": [0.1, 1, 0.5]}
    assert "Not sure: dry 0.1, wet 1, ice 0.5" in page.inner_text("#known")
    page.wait_for_selector(".why .odds, .why .folded")
    page.locator("#known .not-sure").click()
    for name in ("dry", "wet", "ice"):
        page.get_by_label(f"road: how well {name} fits").first.fill("0")
    assert page.get_by_text("At least one state has to fit.").first.is_visible()
    page.keyboard.press("Escape")
    assert page.locator(".sliders").count() == 0


def test_what_was_undone_is_done_again_and_the_empty_search_box_undoes_too(visit, clinic):
    page = visit(clinic)
    page.evaluate("tell(place.get('fever'), 1); tell(place.get('aches'), 0)")
    page.keyboard.press("/")
    page.keyboard.press("Control+z")
    assert told(page) == {"fever": 1}
    page.keyboard.press("Control+y")
    assert told(page) == {"fever": 1, "aches": 0}
    page.keyboard.type("xy")
    page.keyboard.press("Control+z")  # of the text, which is the browser's
    assert told(page) == {"fever": 1, "aches": 0}
    page.keyboard.press("Escape")
    page.click("#undo")
    page.click("#redo")
    assert told(page) == {"fever": 1, "aches": 0}
    page.click("#undo")
    page.evaluate("tell(place.get('sneezing'), 1)")
    assert page.is_disabled("#redo")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sneez", ["sneezing"]),
        ("SNEEZING", ["sneezing"]),
        ("sneeezing", ["sneezing"]),
        ("snezing", ["sneezing"]),
        ("senezing", ["sneezing"]),
        ("skin eyes", ["itching"]),
        ("fevér", ["fever"]),
        ("qwertz", []),
    ],
)
def test_the_search_forgives(visit, clinic, text, found):
    page = visit(clinic)
    page.fill("#search", text)
    names = page.eval_on_selector_all("#results .unit-name", "names => names.map(n => n.firstChild.data)")
    assert names == found


def test_accents_in_names_are_found_without_them(visit):
    page = visit(sb.noisy_or({("Ménière", "Übelkeit"): 0.5, ("Ménière", "gravé"): 0.5}, leak=0.1, prior=0.1))
    for text, name in {"meniere": "Ménière", "ubelkeit": "Übelkeit", "grave": "gravé"}.items():
        page.fill("#search", text)
        assert page.locator("#results .unit-name").all_inner_texts() == [name]


def test_two_cases_side_by_side(visit, clinic):
    page = visit(clinic, evidence={"fever": 1})
    page.click("#compare")
    page.evaluate("tell(place.get('sneezing'), 1)")
    until(page, "current() && answered.length === 2")
    (first, second) = (sb.exact_posterior(clinic, known) for known in ({"fever": 1}, {"fever": 1, "sneezing": 1}))
    row = page.locator("#ranking > li", has_text="cold").first
    assert row.locator("b").inner_text() == percent(second["cold"])
    assert row.locator(".beside").inner_text() == percent(first["cold"])
    assert "the other case: fever: yes." in page.inner_text("#other-case")
    page.click("#swap")
    until(page, "current() && answered.length === 1")
    assert row.locator("b").inner_text() == percent(first["cold"])
    assert row.locator(".beside").inner_text() == percent(second["cold"])
    page.click("#drop")
    assert page.locator(".beside").count() == 0
    page.click("#undo")
    assert told(page) == {"fever": 1, "sneezing": 1}


def test_a_summary_in_words_and_a_page_to_print(visit, clinic):
    page = visit(clinic, evidence={"fever": 1, "sneezing": 0})
    page.wait_for_selector(".why td.nats")
    exact = sb.exact_posterior(clinic, {"fever": 1, "sneezing": 0})
    text = page.evaluate("summary()")
    assert "  fever: yes\n  sneezing: no\n" in text
    assert f"  flu: {percent(exact['flu'])}, before 5.0 %".replace("\N{NO-BREAK SPACE}", " ") in text
    assert "Causes, likeliest first (Exact: sums over all states)" in text
    assert "Why flu" in text
    assert "times likelier" in text
    page.emulate_media(media="print")
    assert page.locator("button:visible:not(.cause)").count() == 0
    assert page.locator("input:visible, select:visible").count() == 0
    assert page.locator("#known .said").all_inner_texts() == ["yes", "no"]
    assert page.locator(".legend").is_visible()
    assert page.locator("#ranking .fill").first.is_visible()
    page.emulate_media(media="screen")


def test_reasons_below_a_tenth_are_folded(visit):
    effects = {("flu", "fever"): 0.9, ("flu", "vague"): 0.005, ("cold", "vague"): 0.3}
    page = visit(sb.noisy_or(effects, leak=0.1, prior=0.05), evidence={"fever": 1, "vague": 1})
    page.wait_for_selector(".why td.nats")
    page.locator("#ranking > li", has_text="flu").first.locator("table").first.wait_for()
    assert page.locator(".why:not([hidden]) .folded summary").inner_text() == "1 finding adds less than 0.1 nats"
    assert not page.locator(".folded td").first.is_visible()


def test_exactly_one_cause(visit, clinic):
    page = visit(clinic, evidence={"fever": 1, "sneezing": 1})
    page.check("#single")
    until(page, "current() && answer.prior !== prior")
    found = sb.single_cause(clinic, {"fever": 1, "sneezing": 1})
    assert [name for name, _ in shown(page)] == list(found.ranked)
    assert shown(page)[0] == [found.ranked[0], page.evaluate("p => percent(p)", found[found.ranked[0]])]
    assert page.inner_text("#kind") == "Exact, if exactly one of the causes is present."


@pytest.mark.parametrize("wide", [320, 390])
def test_buttons_are_large_enough_for_a_finger(visit, weather, wide):
    page = visit(weather, evidence={"road": "wet"}, wide=wide)
    page.fill("#search", "slip")
    page.locator("#results .not-sure").click()
    boxes = page.eval_on_selector_all(
        ".choice label, button:not([hidden]), .switch, summary, select, input[type=search], input[type=range]",
        "all => all.filter(n => n.offsetParent).map(n => { const r = n.getBoundingClientRect();"
        " return [n.textContent || n.id || n.ariaLabel, r.width, r.height]; })",
    )
    small = [box for box in boxes if box[1] < 44 or box[2] < 44]
    assert len(boxes) > 10
    assert small == []
    assert page.evaluate("document.documentElement.scrollWidth") <= wide


# --- a file and a server --------------------------------------------------------------------------------------------


@contextmanager
def served_page(browser, network, **options):
    """A tab at the page of a server of its own; its address is beside it."""
    pytest.importorskip("uvicorn")
    from sbnet.explore.server import Served, running

    with running(Served(network, document(network, "Fever", {}, server=True), 0)) as address:
        page = browser.new_page(**options)
        yield page, address
        page.close()


def deep(width):
    """Causes that depend on others: two of the three layers are hidden."""
    net = sb.layered((width, 6, 8), rng=3, scale=1.5)
    return replace(net, notes={name: sb.Note(group="causes") for name in net.names[width : width + 6]})


def unlikely():
    effects = {(f"cause {j}", f"finding {i}"): 1e-6 * (1 + j % 5) for j in range(18) for i in range(10)}
    return sb.noisy_or(effects, leak=1e-9, prior={f"cause {j}": 0.01 * (1 + j) for j in range(18)})


def states():
    """Three states, a table, noisy-MAX: all of it is exact in both."""
    edges = {("a", "b"): [[1.0, 2.0], [0.5, 1.5]], ("a", "c"): None, ("b", "c"): None, ("c", "d"): [[0.5], [0.2]]}
    kinds = {"a": ["x", "y", "z"], "b": ["none", "some", "much"], "d": ["none", "mild", "high"]}
    tables = {"c": [[[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]] * 2 + [[[0.1, 0.9]] * 3]}
    return sb.from_edges(edges, states=kinds, tables=tables, gate={"d": "noisy-or"}, bias={"d": [0.1, 0.1]})


LINKS = {
    "8 findings, rarely together": (unlikely(), 8, 0),
    "12 findings": (make_clinic(60, 100, rng=2), 12, 3),
    "12 sigmoid causes": (sb.layered((12, 20), rng=0, scale=0.7), 4, 4),
    "causes that have causes": (deep(3), 1, 2),
    "states": (states(), 1, 1),
}


def everything(page, link):
    """All numbers on the page that a link opens."""
    page.goto(link)
    until(page, "answer !== null && questions !== null && nats.size > 0 && !document.querySelector('.busy')")
    page.wait_for_timeout(250)  # bars move
    return {
        "findings": told(page),
        "ranking": shown(page),
        "before": page.eval_on_selector_all("#ranking .numbers small", "all => all.map(n => n.textContent)"),
        "bound": page.inner_text("#kind") + page.inner_text("#bound"),
        "badges": page.locator("#ranking .badge").all_inner_texts(),
        "why": page.inner_text(".why:not([hidden])"),
        "ask": page.inner_text("#ask"),
        "drawing": page.eval_on_selector_all("#drawing .node", "all => all.map(n => n.getAttribute('aria-label'))"),
    }


@pytest.mark.parametrize("case", LINKS.values(), ids=LINKS)
def test_a_file_and_a_server_say_the_same_to_the_last_digit_shown(browser, tmp_path, case):
    network, present, absent = case
    causes = {name for name in network.names if network.notes[name].group == "causes"}
    finding = [name for name in network.names if network.parents(name) and name not in causes]
    link = "#" + "&".join(
        f"{quote(name)}={quote(network.states[name][int(k < present)])}"
        for k, name in enumerate(finding[: present + absent])
    )
    path = tmp_path / "page.html"
    path.write_text(explore.html(network), encoding="utf-8")
    with served_page(browser, network) as (page, address):
        by_server = everything(page, address + link)
        by_file = everything(page, path.as_uri() + link)
    assert len(by_file["findings"]) == present + absent
    assert by_file == by_server
    assert by_file["bound"].startswith("Exact")


# --- a server that does not answer ----------------------------------------------------------------------------------


def settle(page, address):
    page.goto(f"{address}#fever=yes")
    until(page, "questions !== null && nats.size > 0")
    page.check("#certain")
    until(page, "intervals && Object.keys(intervals.units).length === 3")
    assert "guaranteed" in page.inner_text("main")


FORMER = "The grey numbers belong to the former findings (fever: yes), not to those that are known now."


def test_nothing_guaranteed_stays_beside_new_findings_when_the_server_is_gone(browser, clinic):
    with served_page(browser, clinic) as (page, address):
        settle(page, address)
        was = shown(page)
        page.context.set_offline(True)
        page.evaluate("tell(place.get('sneezing'), 1)")
        page.wait_for_selector("#no-answer:not([hidden])")
        assert "the server cannot be reached. Is sbnet explore still running?" in page.inner_text("#no-answer")
        assert FORMER in page.inner_text("#no-answer")
        assert "cannot be reached" in page.inner_text("#status")
        assert "guaranteed" not in page.inner_text("main")
        assert page.locator(".whisker:visible").count() == 0
        assert page.inner_text("#bound") == ""
        assert page.locator("#ask li").count() == 0
        assert shown(page) == was
        until(page, "Number(getComputedStyle(document.querySelector('#ranking')).opacity) < 0.6")  # grey
        page.context.set_offline(False)
        page.click("#again")
        until(page, "document.body.className === '' && questions !== null")
        assert page.is_hidden("#no-answer")
        order, exact = expected(clinic, {"fever": 1, "sneezing": 1})
        assert shown(page)[0] == [order[0], percent(exact[order[0]])]
        until(page, "document.querySelector('#bound').textContent.includes('guaranteed')")


def test_a_server_that_is_gone_is_asked_again_by_itself(browser, clinic):
    with served_page(browser, clinic) as (page, address):
        page.clock.install()
        page.goto(f"{address}#fever=yes")
        until(page, "answer !== null")
        page.context.set_offline(True)
        page.evaluate("tell(place.get('sneezing'), 1)")
        page.wait_for_selector("#no-answer:not([hidden])")
        page.context.set_offline(False)
        page.clock.fast_forward(5000)
        until(page, "document.body.className === ''")
        assert page.is_hidden("#no-answer")


def test_while_an_answer_is_awaited_the_former_one_is_marked(browser, clinic):
    with served_page(browser, clinic) as (page, address):
        settle(page, address)
        held = []
        page.route("**/answer", lambda route: held.append(route))
        page.evaluate("tell(place.get('sneezing'), 1)")
        page.wait_for_selector("#no-answer:not([hidden])")
        assert page.inner_text("#no-answer-text") == f"An answer is on its way. {FORMER}"
        page.click("#certain")  # asks for nothing about findings that have no answer yet
        page.click("#certain")
        assert page.evaluate("intervals") is None
        held[0].continue_()
        until(page, "document.body.className === ''")
        assert page.is_hidden("#no-answer")


def test_parts_of_an_answer_that_do_not_come_leave_nothing_old(browser, clinic):
    with served_page(browser, clinic) as (page, address):
        settle(page, address)
        for verb in ("questions", "reasons", "certificate"):
            page.route(f"**/{verb}", lambda route: route.abort())
        page.evaluate("tell(place.get('sneezing'), 1)")
        order, exact = expected(clinic, {"fever": 1, "sneezing": 1})
        until(page, "document.querySelector('#ask').childElementCount === 0 && !document.querySelector('.why td')")
        assert shown(page)[0] == [order[0], percent(exact[order[0]])]
        assert page.is_hidden("#no-answer")
        assert "guaranteed" not in page.inner_text("main")
        assert "No answer: the server cannot be reached." in page.inner_text("#ask-note")
        assert "No answer: the server cannot be reached." in page.inner_text(".why:not([hidden])")


def test_findings_that_cannot_be_have_no_numbers(visit):
    effects = {("flu", "fever"): 0.9, ("flu", "aches"): 0.5}
    page = visit(sb.noisy_or(effects, leak={"aches": 0.1, "fever": 0.0}, prior=0.1), evidence={"flu": 0})
    page.evaluate("tell(place.get('fever'), 1)")
    page.wait_for_selector("#no-answer:not([hidden])")
    said = "these findings cannot be, their probability is 0."
    assert said in page.inner_text("#no-answer-text")
    assert page.is_hidden("#again")
    page.evaluate("tell(place.get('flu'), undefined)")
    until(page, "current()")
    assert shown(page) == [["flu", "100\N{NO-BREAK SPACE}%"]]


def test_findings_that_cannot_be_have_no_numbers_of_a_server_either(browser, clinic):
    with served_page(browser, clinic) as (page, address):
        settle(page, address)
        page.route("**/answer", lambda route: route.fulfill(json={"logP": None, "beliefs": {}, "kind": "exact"}))
        page.evaluate("tell(place.get('sneezing'), 1)")
        page.wait_for_selector("#no-answer:not([hidden])")
        assert "cannot be, their probability is 0." in page.inner_text("#no-answer-text")
        assert page.evaluate("answer.logP") is not None


def test_a_file_says_what_is_too_large_for_it(visit):
    page = visit(sb.layered((30, 4), rng=0))
    page.evaluate("tell(30, 1)")
    page.wait_for_selector("#no-answer:not([hidden])")
    said = page.inner_text("#no-answer-text")
    assert "an exact answer needs a table of 2^30 numbers" in said
    assert "sbnet explore, with a server, answers by bounds and estimates" in said


def test_a_server_that_refuses_is_quoted_and_not_asked_again(browser, clinic):
    with served_page(browser, clinic) as (page, address):
        settle(page, address)
        page.route("**/answer", lambda route: route.fulfill(status=400, json={"error": "no such thing"}))
        page.evaluate("tell(place.get('sneezing'), 1)")
        page.wait_for_selector("#no-answer:not([hidden])")
        assert page.inner_text("#no-answer") == f"No answer: no such thing. {FORMER}"
