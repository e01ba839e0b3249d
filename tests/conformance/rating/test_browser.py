"""The raters' site in a real browser: by keys alone, with sound, through reloads and kills."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from harness.model.judgment import Category, JudgmentStatus, SubFlag
from harness.rating.guide import KEYS
from tests.conformance.browsing import NAMELESS, SMALL, Window, windows
from tests.conformance.rating.site import SiteProcess
from tests.rating_sessions import rating_session

ITEMS = 64
RATERS = ("cem", "dora", "eve", "finn", "gil", "hana", "ivo", "jo", "kim", "lea", "mia", "nia", "ole", "pia")
GONE = re.compile(r"net::ERR_(?!BLOCKED)")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteProcess]:
    """One site for all tests; each has raters of its own."""
    process = SiteProcess(rating_session(tmp_path_factory.mktemp("site") / "s1", ITEMS), raters=RATERS)
    process.start()
    yield process
    assert process.stop() == 0


@pytest.fixture
def site(program: SiteProcess) -> SiteProcess:
    """It runs, also where the test before left it killed."""
    if not program.running:
        program.start()
    return program


def test_two_raters_press_all_keys_side_by_side(browser: Browser, tmp_path: Path) -> None:
    pressed = [*KEYS, *KEYS]
    random.Random(5).shuffle(pressed)
    site = SiteProcess(rating_session(tmp_path / "s1", len(pressed) + 4))
    site.start()
    with windows(browser, site) as window:
        ann, bob = window("ann"), window("bob")
        categories: dict[str, Category] = {}
        for number, (key, category) in enumerate(pressed):
            assert ann.item not in categories
            categories[ann.item] = category
            ann.press(key)
            if number % 5 == 0:
                bob.press("9")
                assert not re.search(r"\bann\b", bob.page.locator("#main").inner_text())
        rows = site.rows("ann")
        assert {row.item_id: row.category for row in rows} == categories
        assert len(rows) == 22
        assert all(row.time_to_answer_s and row.time_to_answer_s < 30 for row in rows)
        assert [row.category for row in site.rows("bob")] == [Category.WRONG] * 5
        assert "22 of 26 done" in ann.page.locator(".bar").inner_text()
        assert "5 of 26 done" in bob.page.locator(".bar").inner_text()
        for _ in range(4):
            ann.press("1")
        assert "All done" in ann.page.locator("h1").inner_text()
        assert ann.faults == bob.faults == []
    assert site.stop() == 0


def test_the_response_is_heard_and_counted(site: SiteProcess, window: Callable[[str], Window]) -> None:
    cem = window("cem")
    audio = "document.querySelector('[data-sound=response] audio')"
    cem.page.keyboard.press("Space")
    cem.wait(f"{audio}.currentTime > 0.2 && !{audio}.paused")
    left = "parseFloat(document.querySelector('[data-sound=response] .cursor').style.left)"
    first = cem.js(left)
    cem.wait(f"{left} > {first}")
    cem.page.keyboard.press("s")  # from the start, slower, at the same pitch
    cem.wait(f"{audio}.playbackRate === 0.75 && {audio}.preservesPitch && {audio}.currentTime > 0.1 && !{audio}.paused")
    cem.page.keyboard.press(".")
    cem.wait(f"{audio}.paused")
    cem.page.keyboard.press("a")
    query = "document.querySelector('[data-sound=query] audio')"
    cem.wait(f"{query}.currentTime > 0.1 && {audio}.paused")
    assert cem.page.locator("[data-sound=response] img").evaluate("one => one.naturalWidth") > 0
    cem.press("2")
    (row,) = site.rows("cem")
    assert row.plays == 2
    assert row.heard_ms is not None
    assert 200 < row.heard_ms < 20_000
    assert row.transcript_shown is False
    cem.page.keyboard.press("s")
    cem.wait(f"{audio}.ended && {audio}.playbackRate === 0.75")
    length_ms = 1000 * cem.js(f"{audio}.duration")
    cem.press("2")
    slower = site.rows("cem")[-1]
    assert slower.heard_ms is not None
    assert 0.95 * length_ms < slower.heard_ms < 1.25 * length_ms, "of the response, not of the clock"
    assert cem.faults == []


def test_a_sound_that_the_browser_blocks_is_not_counted(site: SiteProcess, window: Callable[[str], Window]) -> None:
    nia = window("nia")
    nia.page.get_by_label("Autoplay").check()
    nia.page.reload()  # nobody has pressed a key on the new page
    shown = nia.page.locator("[data-sound=response] [data-time]")
    shown.filter(has_text="press a key to hear this (Space)").wait_for()
    nia.wait("document.querySelector('[data-sound=response] audio').readyState > 0")
    assert "press a key" in shown.inner_text()
    nia.look()
    nia.press("9")
    audio = "document.querySelector('[data-sound=response] audio')"
    nia.wait(f"{audio}.currentTime > 0.1 && !{audio}.paused")  # now there was a key
    nia.press("1")
    nia.page.keyboard.press(".")
    nia.press("1")
    silent, heard, _ = site.rows("nia")
    assert (silent.plays, silent.heard_ms) == (0, 0)
    assert heard.plays == 1
    assert heard.heard_ms is not None
    assert heard.heard_ms >= 100
    assert nia.faults == []


def test_playback_is_not_counted_for_the_next_response(site: SiteProcess, window: Callable[[str], Window]) -> None:
    ole = window("ole")
    audio = "document.querySelector('[data-sound=response] audio')"
    for _ in range(3):
        ole.page.keyboard.press("Space")
        ole.wait(f"{audio}.currentTime > 0.05 && !{audio}.paused")
        ole.press("1")
        ole.press("2")
    assert [(row.plays, bool(row.heard_ms)) for row in site.rows("ole")] == [(1, True), (0, False)] * 3


def test_what_was_typed_right_before_a_reload_is_kept_and_saved(
    site: SiteProcess, window: Callable[[str], Window]
) -> None:
    pia = window("pia")
    for text, category in (("the lamp went on", "9"), ("zweite Zeile\nß 北京", "1")):
        pia.page.locator("#comment").fill(text)
        pia.page.reload()  # at once: no draft is sent yet
        pia.look()
        assert pia.page.locator("#comment").input_value() == text
        pia.press(category)
    pia.page.reload()
    assert pia.page.locator("#comment").input_value() == ""
    assert [row.comment for row in site.rows("pia")] == ["the lamp went on", "zweite Zeile\nß 北京"]
    assert pia.faults == []


def test_drafts_notes_aid_and_undo_by_keys(site: SiteProcess, window: Callable[[str], Window]) -> None:
    dora = window("dora")
    page, item = dora.page, dora.item
    page.keyboard.press("c")
    page.keyboard.type("heard 1 or 2 words? u")
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    page.keyboard.press("k")
    page.keyboard.press("b")
    # Parts of the draft may have been sent before, where the machine is slow.
    with page.expect_response(
        lambda response: response.status == 204 and "too_little" in (response.request.post_data or "")
    ):
        page.keyboard.press("a")  # too little
    page.keyboard.press("Escape")
    assert site.rows("dora") == []
    page.reload()
    dora.look()
    assert dora.item == item
    assert page.locator("#comment").input_value() == "heard 1 or 2 words? u"
    assert page.locator("[name=confidence]:checked").get_attribute("value") == "2"
    assert page.locator("[value=too_little]").is_checked()
    page.keyboard.press("?")
    page.wait_for_selector(".aid .answers")
    page.keyboard.press("Backspace")  # overrules what was filled in
    page.wait_for_selector(".aid h2:has-text('Question 2')")
    page.keyboard.press("a")
    page.wait_for_selector(".aid h2:has-text('Question 3')")
    page.keyboard.press("b")
    page.wait_for_selector(".aid .answers .main")
    dora.press("Enter")
    (row,) = site.rows("dora")
    assert (row.item_id, row.category, row.confidence) == (item, Category.SLOT_REQUEST, 2)
    assert row.comment == "heard 1 or 2 words? u"
    assert row.aid_path[-1] == "asks_back=detail"
    assert dora.item != item
    dora.press("u")
    assert dora.item == item
    assert page.locator("#comment").input_value() == row.comment
    dora.press("1")
    assert [row.status for row in site.rows("dora")] == [
        JudgmentStatus.SUBMITTED, JudgmentStatus.WITHDRAWN, JudgmentStatus.SUBMITTED
    ]  # fmt: skip
    page.keyboard.press("f")
    dora.press("d")
    assert site.rows("dora")[-1].flags == ("privacy",)
    assert dora.faults == []


def test_a_draft_that_arrives_late_undoes_no_later_key(site: SiteProcess, window: Callable[[str], Window]) -> None:
    mia = window("mia")
    page, item = mia.page, mia.item
    late: list[Route] = []
    page.route("**/judge", lambda route: route.continue_() if late else late.append(route))
    with page.expect_request("**/judge"):
        page.keyboard.press("k")
    page.keyboard.press("b")
    with page.expect_response(lambda answer: "too_little" in (answer.request.post_data or "")):
        page.keyboard.press("a")  # too little
    (save,) = late
    with page.expect_response(lambda answer: answer.request == save.request):
        save.continue_()
    page.reload()
    mia.look()
    assert page.locator("[name=confidence]:checked").get_attribute("value") == "1"
    assert page.locator("[value=too_little]").is_checked()
    mia.press("2")
    (row,) = site.rows("mia")
    assert (row.item_id, row.confidence, row.sub_flags) == (item, 1, (SubFlag.TOO_LITTLE,))
    assert mia.faults == []


def test_a_link_on_another_site_leaves_a_rater_logged_in(site: SiteProcess, window: Callable[[str], Window]) -> None:
    ole = window("ole")
    mail = ole.page.context.new_page()
    links = "".join(f'<a href="{site.url}{path}">{path}</a>' for path in ("/", "/login"))
    forged = f'<form method="post" action="{site.url}/judge"><button name="do" value="label.wrong">x</button></form>'
    mail.route("http://mail.example/**", lambda route: route.fulfill(content_type="text/html", body=links + forged))
    rows = len(site.rows("ole"))
    for path in ("/", "/login"):
        mail.goto("http://mail.example/")
        mail.get_by_role("link", name=path, exact=True).click()
        mail.get_by_text("You are logged in as ole").wait_for()
        ole.page.reload()
        assert ole.page.url.endswith("/judge")
    mail.goto("http://mail.example/")
    mail.get_by_role("button").click()
    mail.get_by_text("That form belongs to another site.").wait_for()
    ole.page.reload()
    ole.look()
    ole.press("1")
    assert len(site.rows("ole")) == rows + 1


def test_a_key_that_is_held_labels_one_item(site: SiteProcess, window: Callable[[str], Window]) -> None:
    eve = window("eve")
    for _ in range(30):
        eve.page.keyboard.down("1")  # the second and later ones are repeats
    eve.next_turn()
    eve.page.keyboard.up("1")
    eve.press("2")
    assert [row.category for row in site.rows("eve")] == [Category.CORRECT, Category.PARTIALLY_CORRECT]


def test_an_old_window_labels_nothing(site: SiteProcess, window: Callable[[str], Window]) -> None:
    old = window("finn")
    new = Window(old.page.context, site, "finn")
    assert new.item == old.item
    new.press("1")
    old.press("9")
    assert [row.category for row in site.rows("finn")] == [Category.CORRECT]
    assert "Nothing was saved" in old.page.get_by_role("alert").inner_text()
    assert old.item == new.item != ""
    assert all("409" in fault for fault in old.faults)


@pytest.mark.parametrize(("rater", "kills"), [("gil", 2), pytest.param("kim", 12, marks=pytest.mark.soak)])
def test_kills_after_any_key_lose_no_judgment(
    site: SiteProcess, window: Callable[[str], Window], rater: str, kills: int
) -> None:
    desk = window(rater)
    chance = random.Random(11)
    judgments: list[tuple[str, Category]] = []
    for _ in range(kills):
        for _ in range(chance.randrange(1, 9)):
            key, category = chance.choice(KEYS)
            judgments.append((desk.item, category))
            desk.press(key)
        item = desk.item
        key, category = chance.choice(KEYS)
        desk.page.keyboard.press(key)  # and killed at once: it may be saved or not
        site.kill()
        site.start()
        desk.page.reload()
        desk.look()
        # At most the item that was on the screen is open again.
        last = [(row.item_id, row.category) for row in site.rows(rater)][len(judgments) :]
        assert last in ([], [(item, category)])
        judgments += [(item, category)] if last else []
        assert (desk.item == item) == (not last)
        assert [(row.item_id, row.category) for row in site.rows(rater)] == judgments
    desk.press("1")
    assert len(site.standing(rater)) == len(judgments) + 1
    assert [fault for fault in desk.faults if not GONE.search(fault)] == []


def test_failed_save_is_reported_and_can_be_repeated(site: SiteProcess, window: Callable[[str], Window]) -> None:
    hana = window("hana")
    item = hana.item
    site.kill()
    hana.page.keyboard.press("1")
    hana.page.get_by_role("alert").wait_for()
    assert "Not saved" in hana.page.get_by_role("alert").inner_text()
    site.start()
    hana.press("1")
    assert [(row.item_id, row.category) for row in site.rows("hana")] == [(item, Category.CORRECT)]


def test_every_control_has_a_name_and_a_large_enough_target(site: SiteProcess, window: Callable[[str], Window]) -> None:
    ivo = window("ivo")
    for width in (360, 1600):
        ivo.page.set_viewport_size({"width": width, "height": 800})
        # The sounds are drawn anew for the new width.
        ivo.page.wait_for_function("wide => document.documentElement.scrollWidth === wide", arg=width)
    assert ivo.js(NAMELESS) == []
    assert ivo.js(SMALL) == []
    assert ivo.js("document.querySelectorAll('main').length + document.querySelectorAll('h1').length") == 2
    assert ivo.js("document.documentElement.lang") == "en"
    ids = ivo.page.evaluate("() => [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    ivo.press("1")
    assert "saved as Correct" in ivo.page.locator("#said[aria-live=polite]").inner_text()
    assert ivo.js("document.activeElement.id") == "query"
    ivo.page.keyboard.press("Tab")
    style = ivo.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


@pytest.mark.parametrize("height", [844, 664])  # of a phone, without and with the bars of its browser
def test_a_phone_shows_the_response_and_all_categories_at_once(
    site: SiteProcess, window: Callable[[str], Window], height: int
) -> None:
    lea = window("lea")
    lea.page.set_viewport_size({"width": 390, "height": height})
    lea.page.wait_for_function("() => document.documentElement.scrollWidth === 390")
    hidden = """() => [...document.querySelectorAll('#query, [data-play="1"], .categories button')].filter(one => {
      const box = one.getBoundingClientRect();
      const met = [box.top + 1, box.bottom - 1].map(y => document.elementFromPoint(box.left + box.width / 2, y));
      return !met.every(found => one.contains(found));
    }).filter(one => one.closest('[data-sound=query]') === null).map(one => one.innerText)"""
    assert lea.page.evaluate(hidden) == []
    assert lea.page.locator(".categories button").count() == len(KEYS)


def test_all_works_without_scripts(browser: Browser, site: SiteProcess) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.url}/login")
    page.get_by_label("Invitation").fill(site.tokens["jo"])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Begin").click()
    assert page.locator("audio").first.is_visible()
    page.get_by_label("Comment").fill("by hand")
    page.get_by_label("1 unsure").check()
    page.get_by_role("button", name="9 Wrong").click()
    (row,) = site.rows("jo")
    assert (row.category, row.comment, row.confidence) == (Category.WRONG, "by hand", 1)
    page.get_by_role("button", name="Undo").click()
    assert page.get_by_label("Comment").input_value() == "by hand"
    context.close()
