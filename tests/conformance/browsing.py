"""A headless chromium, and windows of our sites in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

# The headless shell shows a page for a third of the processor time that the browser with a desktop takes.
CHROMIUMS = ("chromium-headless-shell", "chromium")
WITHIN_MS = 120_000
"""For what a page is to do; the 30 s of Playwright are for a host that is free."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SHOWN = "() => { const its = document.getElementById('main').dataset; return [its.turn, its.item ?? '']; }"
NEXT_TURN = """before => new Promise(done => {
  const look = () => {
    const { turn, item } = document.getElementById('main').dataset;
    if (turn === before) return false;
    seen.disconnect();
    // The page takes the next key when what follows its change has run.
    setTimeout(() => done([turn, item ?? '']), 0);
    return true;
  };
  const seen = new MutationObserver(look);
  if (!look()) seen.observe(document.body, { childList: true });
})"""
NAMELESS = """() => [...document.querySelectorAll('button, a, input:not([type=hidden]), textarea, audio, summary')]
  .filter(one => one.checkVisibility() && !one.ariaHidden)
  .filter(one => !(one.innerText || one.ariaLabel || [...(one.labels ?? [])].map(l => l.innerText).join('')).trim())
  .map(one => one.outerHTML)"""
"""What can be pressed or filled in and has no name."""
SMALL = """() => [...document.querySelectorAll('button, a.button, summary, textarea, input[type=text], label.line')]
  .filter(one => one.checkVisibility() && !one.ariaHidden && one.getBoundingClientRect().height < 44)
  .map(one => one.outerHTML)"""
"""What is too small for a finger."""


class Inviting(Protocol):
    """A site that runs. tokens: by name."""

    tokens: dict[str, str]

    def invitation(self, name: str) -> str:
        """The link of an invitation."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips the test where there is none. While it is open, its thread can run no other event loop."""
    program = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if program is None:
        pytest.skip(f"no {CHROMIUMS[0]}: setup/install.sh installs it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS), timeout=WITHIN_MS)
        yield browser
        browser.close()


class Window:
    """Somebody's window, logged in and at their desk. faults: what its console said, policy violations among it.

    turn, item: what the page showed when it was last looked at; item: "" on pages that name none.
    """

    def __init__(self, context: BrowserContext, site: Inviting, name: str) -> None:
        self.faults: list[str] = []
        context.set_default_timeout(WITHIN_MS)
        self.page: Page = context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.goto(site.invitation(name))
        self.page.wait_for_url("**/instructions")
        assert site.tokens[name] not in self.page.url
        self.page.get_by_role("link", name="Begin").click()
        self.page.wait_for_selector("#desk")
        self.page.wait_for_load_state("domcontentloaded")  # a key before the page's script runs is nobody's
        self.turn, self.item = "", ""
        self.look()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def look(self) -> None:
        """Takes in which turn and item the page shows."""
        self.turn, self.item = self.page.evaluate(SHOWN)

    def press(self, *keys: str) -> None:
        """Keys of which the last one turns the page; returns when the site has answered with another turn."""
        for key in keys:
            self.page.keyboard.press(key)
        self.next_turn()

    def next_turn(self) -> None:
        """Returns when the page shows another turn than when it was last looked at."""
        self.turn, self.item = self.page.evaluate(NEXT_TURN, self.turn)

    @property
    def heading(self) -> str:
        return self.page.locator("#query").inner_text()

    def js(self, expression: str) -> object:
        return self.page.evaluate(expression)

    def wait(self, expression: str) -> None:
        # As a function: a text would have to be evaluated in the page, which its policy forbids.
        self.page.wait_for_function(f"() => {expression}")


@contextmanager
def windows(browser: Browser, site: Inviting) -> Iterator[Callable[[str], Window]]:
    """Opens a window for a name, each as in a browser of its own."""
    contexts: list[BrowserContext] = []

    def opened(name: str) -> Window:
        contexts.append(browser.new_context())
        return Window(contexts[-1], site, name)

    yield opened
    for context in contexts:
        context.close()
