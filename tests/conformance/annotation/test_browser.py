"""The annotators' site in a real browser: two annotators by keys, through an undo, an old window and a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness.model.annotation import Accepted, AnnotationRow, Labelled, SecondAnnotatorMode, Struck, Withdrawn
from harness.model.understanding import Slot
from tests.annotation_projects import CONCEPTS, LABELS, annotation_project, repeated, rows
from tests.conformance.annotation.site import AnnotationSiteProcess
from tests.conformance.browsing import NAMELESS, SMALL, Window
from tests.conformance.rating.site import SiteProcess


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnnotationSiteProcess]:
    """One site for all tests; each has annotators of its own."""
    folder = tmp_path_factory.mktemp("site")
    talk = [*repeated(3), *((f"hello {n} " + "and so on " * 40, ("greeting",)) for n in range(8))]
    process = AnnotationSiteProcess(
        annotation_project(folder / "talk", talk, per_utterance=2), raters=("ann", "bob", "cem", "dora")
    )
    process.start()
    yield process
    assert process.stop() == 0


def given(site: SiteProcess, annotator: str) -> list[AnnotationRow]:
    return [row for row in rows(site.session) if getattr(row, "annotator", "") == annotator]


def test_two_annotators_review_strike_label_and_undo_by_keys(
    site: AnnotationSiteProcess, window: Callable[[str], Window]
) -> None:
    ann, bob = window("ann"), window("bob")
    page = ann.page
    assert ann.heading == "greeting", "the largest group"
    ann.press("x")
    assert ann.heading == "yes_please"
    page.keyboard.press("2")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Space")
    assert [page.locator(f"[name=struck][value='{n}']").is_checked() for n in range(1, 7)] == [
        False, True, False, True, False, False,
    ]  # fmt: skip
    assert given(site, "ann") == []
    ann.press("Enter")
    accepted, struck = given(site, "ann")
    assert isinstance(accepted, Accepted)
    assert isinstance(struck, Struck)
    assert (len(accepted.utterances), len(struck.utterances)) == (4, 2)
    assert "accepted 4, struck 2" in page.locator("#said[aria-live=polite]").inner_text()
    ann.press("u")
    assert ann.heading == "yes_please"
    assert page.locator("[name=struck]:checked").count() == 2
    assert isinstance(given(site, "ann")[2], Withdrawn)
    ann.press("4", "Enter")  # one of the two is right after all
    assert [len(row.utterances) for row in given(site, "ann")[3:] if isinstance(row, Accepted | Struck)] == [5, 1]

    ann.press("l")
    while "you struck" not in page.locator(".item").inner_text():
        ann.press("x")
    assert "yes_please" in page.locator(".proposal").inner_text()
    page.keyboard.press("1")
    page.keyboard.press("5")
    assert page.locator("#refusal").inner_text() == "Not allowed: filler must be the only label"
    page.keyboard.press("5")
    assert page.locator("#refusal").inner_text() == ""
    page.keyboard.press("c")
    page.keyboard.type("1 or 2? u")
    page.reload()  # at once: the draft is not sent yet
    ann.look()
    assert page.locator("#comment").input_value() == "1 or 2? u"
    ann.press("Enter")
    row = given(site, "ann")[-1]
    assert isinstance(row, Labelled)
    assert (row.utterance, row.intents, row.comment) == (struck.utterances[0], ("greeting",), "1 or 2? u")

    assert "0 of 26 done" in bob.page.locator(".bar").inner_text()
    bob.press("x")
    bob.press("Enter")
    assert given(site, "bob")
    assert not bob.page.get_by_text("ann", exact=True).count()
    assert ann.faults == bob.faults == []


def test_enter_accepts_only_visible_lines_and_held_key_one_page(
    site: AnnotationSiteProcess, window: Callable[[str], Window]
) -> None:
    cem = window("cem")
    assert cem.heading == "greeting"
    cem.page.set_viewport_size({"width": 400, "height": 600})
    cem.wait("innerWidth === 400 && innerHeight === 600")
    cem.page.keyboard.press("Enter")
    cem.page.get_by_role("alert").wait_for()
    assert given(site, "cem") == []
    for _ in range(30):
        if given(site, "cem"):
            break
        before = cem.page.evaluate("[scrollY, document.getElementById('main').dataset.turn].join()")
        cem.page.keyboard.press("Enter")
        cem.page.wait_for_function(
            "before => [scrollY, document.getElementById('main').dataset.turn].join() !== before", arg=before
        )
    cem.page.set_viewport_size({"width": 1200, "height": 2000})
    cem.wait("innerWidth === 1200 && innerHeight === 2000")
    cem.look()
    for _ in range(20):
        cem.page.keyboard.down("Enter")  # the second and later ones are repeats
    cem.page.keyboard.up("Enter")
    cem.next_turn()
    assert len(given(site, "cem")) == 2


def test_stale_window_saves_nothing_and_kill_loses_nothing(
    site: AnnotationSiteProcess, window: Callable[[str], Window]
) -> None:
    old = window("dora")
    new = Window(old.page.context, site, "dora")
    new.press("x")
    new.press("1", "Enter")
    rows_then = given(site, "dora")
    old.press("3", "Enter")
    assert "Nothing was saved" in old.page.get_by_role("alert").inner_text()
    assert given(site, "dora") == rows_then
    assert old.heading == new.heading
    site.kill()
    old.page.keyboard.press("Enter")
    old.page.get_by_text("Not saved: the site does not answer").wait_for()
    site.start()
    old.press("Enter")
    assert len(given(site, "dora")) == len(rows_then) + 1


@pytest.fixture(scope="module")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnnotationSiteProcess]:
    """One for two annotators, who both label all and have proposals for all."""
    folder = tmp_path_factory.mktemp("small")
    project = annotation_project(folder / "talk", repeated(2), per_utterance=2, second=SecondAnnotatorMode.GROUPS)
    process = AnnotationSiteProcess(project, raters=("eve", "fay"))
    process.start()
    yield process
    assert process.stop() == 0


def test_labelled_utterance_is_searched_changed_and_undone_by_keys(
    browser: Browser, small_site: AnnotationSiteProcess
) -> None:
    site, context = small_site, browser.new_context()
    fay = Window(context, site, "fay")
    page, lines = fay.page, fay.page.locator(".line")
    assert fay.heading == "yes_please"
    fay.press("Enter")
    accepted = given(site, "fay")[0]
    assert isinstance(accepted, Accepted)
    page.keyboard.press("2")  # a strike that is not saved yet
    before = fay.heading
    fay.press("/")
    page.keyboard.type("YES please")  # letters are no keys in the field
    fay.press("Enter")
    assert lines.count() == page.get_by_text("yes_please", exact=True).count() == 2
    page.keyboard.press("j")
    fay.press("Enter")
    assert page.locator("[name=label]:checked").get_attribute("value") == "yes_please"
    fay.press("3", "Enter")
    row = given(site, "fay")[-1]
    assert isinstance(row, Labelled)
    assert (row.utterance, row.intents) == (accepted.utterances[1], ("booking", "yes_please"))
    assert lines.nth(1).inner_text().endswith("booking + yes_please")
    assert fay.js("document.activeElement === document.querySelectorAll('.line')[1]"), "one may go on from there"
    fay.press("u")
    withdrawn = given(site, "fay")[-1]
    assert isinstance(withdrawn, Withdrawn)
    assert withdrawn.rows == (row.id,)
    fay.press("Escape")
    assert lines.nth(1).inner_text().endswith("\nyes_please")
    page.keyboard.press("/")
    page.keyboard.type("u6")
    page.keyboard.press("Escape")  # leaves the field
    page.keyboard.press("/")
    fay.press("Enter")
    assert page.locator("#words").input_value() == "u6"
    fay.press("Escape")
    assert fay.heading == before
    assert page.locator("[name=struck]:checked").get_attribute("value") == "2"
    assert fay.faults == []
    context.close()


def test_annotation_works_without_scripts_at_phone_width(browser: Browser, small_site: AnnotationSiteProcess) -> None:
    site = small_site
    context = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 700})
    page = context.new_page()
    page.goto(f"{site.url}/login")
    page.get_by_label("Invitation").fill(site.tokens["eve"])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Begin").click()
    page.get_by_role("checkbox").nth(1).check()
    page.get_by_role("button", name="Accept all that are not struck").click()
    accepted, struck = given(site, "eve")
    assert isinstance(accepted, Accepted)
    assert isinstance(struck, Struck)
    page.get_by_role("button", name="Label by hand").click()
    page.get_by_role("checkbox", name="filler").check()
    page.get_by_label("Comment").fill("by hand")
    page.get_by_role("button", name="Save").click()
    row = given(site, "eve")[-1]
    assert isinstance(row, Labelled)
    assert (row.intents, row.comment) == (("filler",), "by hand")
    page.get_by_role("button", name="Find").click()
    page.get_by_label("Find an utterance of yours").fill(row.utterance)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="filler").click()
    page.get_by_role("checkbox", name="filler").uncheck()
    page.get_by_role("checkbox", name="greeting").check()
    with page.expect_navigation():  # loaded whole: without its style sheet a page is wider than the window
        page.get_by_role("button", name="Save").click()
    changed = given(site, "eve")[-1]
    assert isinstance(changed, Labelled)
    assert (changed.utterance, changed.intents) == (row.utterance, ("greeting",))
    fits(page)
    page.get_by_role("button", name="Continue annotating").click()
    page.get_by_role("link", name="Guide").click()
    assert page.get_by_text("It says yes to what was asked.").is_visible()
    page.get_by_role("link", name="Back to the utterances").first.click()
    for place in ("/annotate", "/guide", "/instructions"):
        page.goto(f"{site.url}{place}")
        fits(page)
    context.close()


def fits(page: Page) -> None:
    """Nothing of a page is beyond a narrow window, too small, or without a name."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(SMALL) == []
    assert page.evaluate("[document.querySelectorAll('h1').length, document.documentElement.lang]") == [1, "en"]


def test_slots_are_marked_with_mouse_and_keys(browser: Browser, tmp_path: Path) -> None:
    project = annotation_project(tmp_path / "talk", [("two nights in new york please", None)], LABELS + CONCEPTS)
    site = AnnotationSiteProcess(project, raters=("ann",))
    site.start()
    context = browser.new_context()
    ann = Window(context, site, "ann")
    page, words = ann.page, ann.page.locator("[data-word]")
    words.nth(4).hover()
    page.mouse.down()
    words.nth(3).hover()
    page.mouse.up()
    assert [page.locator(f"[name={end}]").input_value() for end in ("from", "to")] == ["4", "5"]
    ann.press("1")  # a concept while words are selected, a label otherwise
    assert "new york·city" in ann.heading
    page.keyboard.press("1")
    assert page.locator("[name=label]:checked").get_attribute("value") == "greeting"
    page.keyboard.press("1")
    page.keyboard.press("3")
    page.keyboard.press("ArrowRight")
    page.keyboard.press(">")
    ann.press("2")
    assert "two nights·nights" in ann.heading
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    assert page.locator(".word.at").count() == 0
    assert page.evaluate(NAMELESS) == page.evaluate(SMALL) == []
    ann.press("Enter")
    (row,) = given(site, "ann")
    assert isinstance(row, Labelled)
    assert (row.intents, row.slots) == (("booking",), (Slot("nights", None, 0, 2), Slot("city", None, 3, 5)))
    assert ann.faults == []
    context.close()
    assert site.stop() == 0
