"""Makes the pictures of pages: report.png, live.png, rating-web.png, trend.png and evaluation.png.

    .venv/bin/python docs/pictures/pages.py             # all; ten minutes, most of them for a run on two boards
    .venv/bin/python docs/pictures/pages.py trend       # or: boards, rating, evaluation

Needs chromium; the boards also need mosquitto and `make -C firmware_stubs`.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT)]

from make import CHROMIUM, HARNESS, boards, main, photograph  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402

from tests.conformance.rating.site import SiteProcess  # noqa: E402
from tests.rating_sessions import rating_session  # noqa: E402

PORT = "18769"
VOICES = ("en-us+m3", "en-gb+f2", "en-us+f3", "en-gb+m7", "en-us-nyc", "en-gb-scotland+f4", "en-gb-x-rp+m1")
OTHERS = ("good morning", "okay then, a banana", "the train is late", "turn on the light", "what did you do", "hello")


def harness(folder: Path, *words: object) -> str:
    """Runs a command of the harness in a folder, and returns what it prints."""
    command = [str(HARNESS), *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, cwd=folder, text=True).stdout


@contextmanager
def browser(width: int, height: int) -> Iterator[Page]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which(CHROMIUM), args=["--no-sandbox"])
        yield chromium.new_page(viewport={"width": width, "height": height})
        chromium.close()


def boards_pictures(folder: Path) -> None:
    """A run on two boards: in a browser at half its way, and its report."""
    with boards(folder) as bench:
        scenario = ROOT / "scenarios" / "wake_boards.yaml"
        session = harness(folder, "run", scenario, "--bench", bench, "--no-watch").split()[-1]
        invited = harness(folder, "rate", "invite", "manager", "--public-url", f"http://127.0.0.1:{PORT}")
        site = subprocess.Popen([HARNESS, "run", "attach", "--web", "--web-port", PORT], cwd=folder)
        try:
            with browser(1200, 860) as page:
                time.sleep(10.0)  # until the site listens
                page.goto(invited.split()[-1])
                page.locator("h2 a").first.click()
                while not re.search(r"\b1\d\d of 246", page.inner_text("body")):
                    page.wait_for_timeout(500)
                page.screenshot(path=HERE / "live.png")
        finally:
            site.terminate()
            site.wait()
        harness(folder, "run", "attach", session, "--plain")
    harness(folder, "report", session, "--html", "report.html")
    photograph(folder / "report.html", HERE / "report.png", 1100, 1120, folder)


def rating_picture(folder: Path) -> None:
    """A response on the raters' site, after two were judged."""
    site = SiteProcess(rating_session(folder / "kitchen", 40))
    site.start()
    try:
        with browser(1280, 800) as page:
            page.goto(site.invitation("bob"))
            page.get_by_role("link", name="Begin").click()
            for key in ("1", "9"):
                page.wait_for_timeout(2500)
                page.keyboard.press(key)
            page.wait_for_timeout(2500)
            page.screenshot(path=HERE / "rating-web.png")
    finally:
        site.stop()


def trend_picture(folder: Path) -> None:
    """Nights with a worse device from the twelfth on."""
    subprocess.run([sys.executable, ROOT / "benchmarks" / "bench_trend.py", folder / "nights"], check=True, cwd=ROOT)
    harness(folder, "report", "trend", "nights", "--measure", "false rejects", "--html", "trend.html")
    photograph(folder / "trend.html", HERE / "trend.png", 1100, 700, folder)


def evaluation_picture(folder: Path) -> None:
    """A wake engine on phrases and on other sentences, spoken by six voices."""
    for name, texts in (("yes", ("okay nabu",)), ("no", OTHERS)):
        (folder / name).mkdir()
        for number, (voice, text) in enumerate(itertools.product(VOICES, texts)):
            say = ["admin", "voices", "say", text, "--voice", f"espeak:{voice}", "--rate-hz", "16000"]
            harness(folder, *say, "--output", folder / name / f"{number:02}.wav")
    # Synthesised phrases have no second of sound before and after them.
    engine = ["-t", "microwakeword:okay_nabu", "-s", "min-in-vocab-duration=0", "--tail", "1"]
    harness(folder, "evaluate", *engine, "--in", "yes", "--out", "no", "--html", "page.html")
    photograph(folder / "page.html", HERE / "evaluation.png", 1100, 1000, folder)


PICTURES = {
    "trend": trend_picture,
    "rating": rating_picture,
    "evaluation": evaluation_picture,
    "boards": boards_pictures,
}


if __name__ == "__main__":
    main(PICTURES)
