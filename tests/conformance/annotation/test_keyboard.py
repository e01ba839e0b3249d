"""The annotators' site for somebody who has a keyboard, a screen reader, and a tunnel to the host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser

from harness.model.annotation import Accepted, Adjudicated, Intents, Labelled, Skipped, Struck, Withdrawn
from harness.model.understanding import Slot
from harness.web.invitations import Invitations
from tests.annotation_projects import CONCEPTS, LABELS, annotation_project, rows
from tests.conformance.accessible import barriers
from tests.conformance.annotation.site import AnnotationSiteProcess
from tests.conformance.annotation.tunnel import tunnel
from tests.conformance.browsing import NAMELESS, Window

TALK: list[tuple[str, Intents | None]] = [
    ("yes please", ("yes_please",)),
    ("no way", ("yes_please",)),
    ("two nights in new york please", None),
]
CONTROLS = """() => [...document.querySelectorAll('main button, main a, main input:not([type=hidden]), main textarea')]
  .filter(one => one.checkVisibility() && !one.ariaHidden).length"""
ROLES = ("button", "link", "checkbox", "textbox", "searchbox", "spinbutton")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnnotationSiteProcess]:
    """Reached through a tunnel only: its `url` is the near end."""
    folder = tmp_path_factory.mktemp("site")
    project = annotation_project(folder / "talk", TALK, LABELS + CONCEPTS, per_utterance=2)
    process = AnnotationSiteProcess(project, raters=("ann", "ben"))
    process.tokens |= Invitations(process.file).invite(["cem"], 1, adjudicator=True)
    process.start()
    with tunnel(process.url) as near:
        process.url = near
        yield process
    assert process.stop() == 0


class Reader(Window):
    """Somebody without a mouse. `check` judges a page by axe, and by the roles and names of its controls."""

    def __init__(self, browser: Browser, site: AnnotationSiteProcess, name: str) -> None:
        super().__init__(browser.new_context(), site, name)
        self.page.goto(f"{site.url}/instructions")
        assert barriers(self.page) == []
        self.tab_to("Begin")
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("#desk")
        self.page.wait_for_load_state("domcontentloaded")
        self.look()
        self.check()

    def check(self) -> None:
        page = self.page
        assert barriers(page) == []
        assert page.evaluate(NAMELESS) == []
        controls = [
            control
            for role in ROLES
            for control in page.locator("main").get_by_role(role, name=re.compile(r"\S")).all()
        ]
        assert len(controls) == page.evaluate(CONTROLS), "every control has a role and a name"
        assert page.get_by_role("main").count() == page.get_by_role("heading", level=1).count() == 1
        assert page.get_by_role("status").first.get_attribute("aria-live") == "polite"

    def tab_to(self, name: str) -> None:
        for _ in range(60):
            self.page.keyboard.press("Tab")
            if name in str(self.js("document.activeElement.innerText")):
                return
        raise AssertionError(f"Tab does not reach {name!r}")

    def type(self, keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def announced(self) -> str:
        return self.page.locator("#said[role=status]").inner_text()

    def skip_to(self, text: str) -> None:
        for _ in range(5):
            if self.heading == text:
                return
            self.press("x")
        raise AssertionError(f"{self.heading!r}, never {text!r}")


def test_a_project_is_annotated_by_keys_alone_through_a_tunnel(browser: Browser, site: AnnotationSiteProcess) -> None:
    ann = Reader(browser, site, "ann")
    keyboard, near = ann.page.keyboard, site.url
    assert ann.js("location.origin") == near
    assert ann.heading == "yes_please"
    ann.type("1")
    assert ann.js("document.activeElement.checked"), "the struck line has the focus, and is read out"
    ann.type("?hello")
    assert ann.page.locator("#guide .explained:visible").count() == 1
    ann.check()
    keyboard.press("Escape")
    keyboard.press("Escape")
    assert ann.page.locator("#guide:visible").count() == 0
    ann.press("Enter")
    assert ann.announced == "accepted 1, struck 1"
    ann.press("u")
    ann.press("Enter")
    assert [type(row) for row in rows(site.session)] == [Accepted, Struck, Withdrawn, Accepted, Struck]

    ann.skip_to("no way")
    ann.check()
    ann.type("45")
    assert ann.page.locator("#refusal[role=status]").inner_text() == "Not allowed: filler must be the only label"
    ann.type("5c")
    keyboard.type("a refusal")
    keyboard.press("Escape")
    ann.press("Enter")
    assert "saved as information" in ann.announced
    ann.skip_to("two nights in new york please")
    keyboard.press("ArrowRight")
    ann.type(">")
    assert ann.announced == "two nights"
    ann.press("2")
    assert ann.announced == "'two nights' is nights"
    for word in ("two", "nights", "in", "new"):
        keyboard.press("ArrowRight")
        assert ann.announced == word
    keyboard.press("Shift+ArrowRight")
    assert ann.announced == "new york"
    ann.press("1")
    ann.type("3")
    site.kill()
    site.start()
    site.url = near
    ann.page.reload()
    ann.look()
    assert ann.page.locator("[name=label]:checked").get_attribute("value") == "booking", "the draft outlasts the site"
    keyboard.press("ArrowRight")
    ann.type(">")
    ann.press("2")
    ann.press("Enter")
    assert ann.heading == "All done, thank you"
    ann.check()
    by_hand = {row.utterance: row for row in rows(site.session) if isinstance(row, Labelled)}
    assert (by_hand["u1"].intents, by_hand["u1"].comment) == (("information",), "a refusal")
    assert by_hand["u2"].slots == (Slot("nights", None, 0, 2),)

    ann.press("/")
    keyboard.type("no way")
    ann.press("Enter")
    assert ann.page.locator(".line").count() == 1
    ann.check()
    ann.press("Enter")
    ann.type("45")
    ann.press("Enter")
    ann.press("Escape")
    assert [row for row in rows(site.session) if isinstance(row, Labelled)][-1].intents == ("filler",)

    ben = Reader(browser, site, "ben")
    for text, key in (("yes please", "2"), ("two nights in new york please", "3"), ("no way", "4")):
        ben.skip_to(text)
        ben.type(key)
        ben.press("Enter")
    assert "the proposal is yes_please: save again to keep yours" in ben.announced
    ben.press("Enter")
    assert any(isinstance(row, Skipped) for row in rows(site.session)) or ben.heading == "All done, thank you"

    cem = Reader(browser, site, "cem")
    # On booking both agree, and only a slot differs, so it is chosen already.
    for text, agreed, keys in (("no way", [], "4"), ("two nights in new york please", ["booking"], "")):
        cem.skip_to(text)
        assert [box.get_attribute("value") for box in cem.page.locator("[name=label]:checked").all()] == agreed
        assert cem.page.get_by_role("listitem").filter(has_text="annotator 2").count() == 1
        cem.check()
        cem.type(keys)
        cem.press("Enter")
    assert cem.heading == "All done, thank you"
    assert [row.intents for row in rows(site.session) if isinstance(row, Adjudicated)] == [
        ("information",),
        ("booking",),
    ]
    for reader in (ann, ben, cem):
        assert [fault for fault in reader.faults if "ERR_" not in fault] == []
        reader.page.context.close()


def test_starting_the_site_without_annotators_prints_an_invitation(browser: Browser, tmp_path: Path) -> None:
    site = AnnotationSiteProcess(annotation_project(tmp_path / "talk"), raters=())
    site.start()
    link = re.search(r"(\S+)  (\S+/login#\S+)", site.told)
    assert link is not None
    context = browser.new_context()
    page = context.new_page()
    page.goto(link[2])
    page.get_by_text(f"You are logged in as {link[1]}").wait_for()
    context.close()
    assert site.stop() == 0


def test_inviting_an_annotator_again_says_that_the_earlier_link_has_ended(tmp_path: Path) -> None:
    site = AnnotationSiteProcess(annotation_project(tmp_path / "talk"), "--annotator", "Ann", raters=("ann",))
    site.start()
    assert "harness: the earlier link of Ann no longer works\n" in site.told
    site.kill()


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "rebinding.example"}, 421), ({"Origin": "http://127.0.0.1:1"}, 403), ({"Origin": "null"}, 403)],
)
def test_a_tunnel_opens_the_site_to_no_other_page(
    site: AnnotationSiteProcess, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{site.url}/annotate", b"do=accept", headers))
    with refused.value:
        assert refused.value.code == status
