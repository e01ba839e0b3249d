"""Makes annotation-terminal.png, annotation-labels.png and annotation-web.png: a project in a terminal and in chromium.

.venv/bin/python docs/pictures/annotation.py            # half a minute; needs tmux and chromium
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import make  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from tests.annotation_projects import annotation_project  # noqa: E402
from tests.conformance.annotation.site import AnnotationSiteProcess  # noqa: E402
from tests.conformance.rating.terminal import RatingTerminal  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
WISHES = (
    "a double room in porto for the ninth of may",
    "two nights near the station and not too dear",
    "i would like to book for three adults",
    "from monday to thursday if that can be had",
    "is there anything under eighty euros",
    "a quiet room with a view of the river for my parents who arrive a day before the rest of us",
    "the one with the garden for the first week of june",
    "we are four and have a dog",
    "somewhere by the sea in august",
    "make it two rooms side by side",
)
QUESTIONS = ("what does breakfast cost", "how far is it from the airport", "can we park there", "is there a lift")
TALK = [
    *((text, ("booking",)) for text in WISHES),
    *((f"yes {text}", ("booking", "yes_please")) for text in WISHES[:6]),
    *((text, ("information",)) for text in QUESTIONS),
    *((text, ("yes_please",)) for text in ("yes please", "that is fine", "all right then")),
    ("er", None),
    ("well you know", None),
    ("good evening i would like a room", None),
]


def in_a_terminal(folder: Path) -> None:
    project = annotation_project(folder / "travellers", TALK, id="travellers")
    make.COLUMNS, make.ROWS = 100, 28
    terminal = RatingTerminal(folder, (make.COLUMNS, make.ROWS))
    harness = str(Path(sys.executable).with_name("harness"))
    try:
        terminal.start(harness, "annotate", "review", str(project), "--annotator", "ann")
        terminal.wait(lambda screen: "group 1 of" in screen)
        for key in ("x", "l", "r"):  # the group of two labels is the next one
            terminal.type(key)
            time.sleep(0.5)
        for key, seen in (("5", "5 ✗"), ("k", "›4")):
            terminal.type(key)
            terminal.wait(lambda screen, seen=seen: seen in screen)  # type: ignore[misc]
        make.picture(coloured(terminal), HERE / "annotation-terminal.png", folder)
        terminal.type("l")
        terminal.wait(lambda screen: "chosen" in screen)
        for key in ("3", "5"):
            terminal.type(key)
        terminal.wait(lambda screen: "not like this" in screen)
        make.picture(coloured(terminal), HERE / "annotation-labels.png", folder)
    finally:
        terminal.close()


def coloured(terminal: RatingTerminal) -> str:
    return "\n".join(terminal.ask("capture-pane -p -e -N"))


def in_a_browser(folder: Path) -> None:
    site = AnnotationSiteProcess(annotation_project(folder / "web", TALK, id="travellers"), raters=("ann",))
    site.start()
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = chromium.new_page(viewport={"width": 1100, "height": 900})
            page.goto(site.invitation("ann"))
            page.get_by_role("link", name="Begin").click()
            page.wait_for_selector(".js #desk .at")
            for key in ("5", "j", "j"):
                page.keyboard.press(key)
            page.screenshot(path=HERE / "annotation-web.png")
            chromium.close()
    finally:
        site.stop()


def main() -> None:
    os.environ.update(COLORTERM="truecolor")
    with tempfile.TemporaryDirectory(prefix="vh") as name:
        in_a_terminal(Path(name))
        in_a_browser(Path(name))


if __name__ == "__main__":
    main()
