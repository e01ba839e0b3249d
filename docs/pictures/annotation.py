"""Makes annotation-web.png: a page of a group on the annotators' site, in chromium.

.venv/bin/python docs/pictures/annotation.py            # half a minute; needs chromium
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from playwright.sync_api import sync_playwright  # noqa: E402

from tests.annotation_projects import annotation_project  # noqa: E402
from tests.conformance.annotation.site import AnnotationSiteProcess  # noqa: E402

CHROMIUM = shutil.which("chromium")
REQUESTS = (
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
UTTERANCES = [
    *((text, ("booking",)) for text in REQUESTS),
    *((f"yes {text}", ("booking", "yes_please")) for text in REQUESTS[:6]),
    *((text, ("information",)) for text in QUESTIONS),
    *((text, ("yes_please",)) for text in ("yes please", "that is fine", "all right then")),
    ("er", None),
    ("well you know", None),
    ("good evening i would like a room", None),
]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="vh") as name:
        site = AnnotationSiteProcess(
            annotation_project(Path(name) / "web", UTTERANCES, id="travellers"), raters=("ann",)
        )
        site.start()
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
                page = chromium.new_page(viewport={"width": 1100, "height": 780})
                page.goto(site.invitation("ann"))
                page.get_by_role("link", name="Begin").click()
                page.wait_for_selector(".js #desk .at")
                for key in ("5", "j", "j"):
                    page.keyboard.press(key)
                page.screenshot(path=HERE / "annotation-web.png")
                chromium.close()
        finally:
            site.stop()


if __name__ == "__main__":
    main()
