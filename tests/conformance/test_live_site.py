"""The live site in a real browser, over real engines: it renews itself, and a killed engine is not shown as running."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient

from harness.base.places import runtime_folder
from harness.session.engine.launch import find, start_engine
from harness.web.invitations import Invitations, SiteReach
from harness.web.live_site import LiveSessions, LiveSite
from tests.conformance.accessible import barriers
from tests.conformance.engine_runs import HARNESS, Runs, kill, wait_for
from tests.known import known
from tests.unit.web.visitors import BASE, field_of

HOSTILE = "<img src=x onerror=alert(1)>{{ 7 * 7 }}"


@pytest.fixture
def runs_here(short: Path) -> Iterator[Runs]:
    runs = Runs(short)
    yield runs
    runs.close()


@pytest.fixture
def site(runs_here: Runs) -> Iterator[LiveSite]:
    """Open before any session runs; ann is invited."""
    invitations = Invitations(runs_here.root / "invitations.json")
    live_site = LiveSite(LiveSessions(), invitations, reached=SiteReach(("localhost",), 8765, False))
    yield live_site
    live_site.close()


@pytest.fixture
def ann(site: LiveSite, runs_here: Runs) -> TestClient:
    token = Invitations(runs_here.root / "invitations.json").invite(("ann",), 30)["ann"]
    client = TestClient(site.app, base_url=BASE, follow_redirects=False)
    word = field_of(client.get("/login").text, "form_word")
    assert client.post("/login", data={"form_word": word, "token": token}).headers["location"] == "/live"
    return client


def _one(client: TestClient) -> str:
    match = known(re.search(r'href="(/live/[0-9a-f]+)"', client.get("/live").text))
    return match[1]


def test_a_run_with_a_hostile_title_is_shown_to_its_end_and_its_clip_plays(
    runs_here: Runs, ann: TestClient, tmp_path: Path
) -> None:
    assert "No session is running" in ann.get("/live").text
    text = (Path(__file__).parent / "in_process" / "three.yaml").read_text(encoding="utf-8")
    scenario = tmp_path / "three.yaml"
    scenario.write_text(re.sub(r"(?m)^title:.*$", f'title: "{HOSTILE}"', text), encoding="utf-8")
    start_engine(runs_here.prepare(scenario))
    wait_for(lambda: "ENDED" in ann.get("/live").text, within_s=60, event="the end on the page")
    overview = ann.get("/live").text
    assert escape(HOSTILE) in overview
    assert "3 of 3 trials" in overview
    assert "<img" not in overview
    page = ann.get(_one(ann)).text
    assert "recognised           3 of 3 = 100 % (95 % interval 43.9–100 %)" in page
    clip = known(re.search(r'src="(/sound/[^"]+)"', page))
    sound = ann.get(clip[1], headers={"range": "bytes=0-3"})
    assert (sound.status_code, sound.content) == (206, b"RIFF")
    assert ann.get(clip[1].rpartition("/")[0] + "/log.sqlite").status_code == 404


def test_a_killed_engine_is_not_shown_as_running(runs_here: Runs, ann: TestClient) -> None:
    place = start_engine(runs_here.prepare("lasting.yaml"))
    wait_for(lambda: "of 1200 trials" in ann.get("/live").text, event="the session on the page")
    assert "NOT RUNNING" not in ann.get("/live").text
    kill(place)
    wait_for(lambda: "NOT RUNNING" in ann.get("/live").text, event="the kill on the page")
    assert "harness run resume" in ann.get(_one(ann)).text


def test_a_search_that_fails_is_shown_and_goes_on(ann: TestClient) -> None:
    record = runtime_folder() / "engine-000000000000.json"
    record.mkdir(parents=True)
    try:
        wait_for(lambda: "The search for sessions failed" in ann.get("/live").text, event="the failure on the page")
    finally:
        record.rmdir()
    wait_for(lambda: "The search for sessions" not in ann.get("/live").text, event="the next search")


def test_live_site_is_read_only_and_needs_a_login(site: LiveSite, ann: TestClient) -> None:
    stranger = TestClient(site.app, base_url=BASE, follow_redirects=False)
    assert stranger.get("/live").headers["location"] == "/login"
    assert stranger.get("/sound/x/y").status_code == 401
    assert ann.post("/live", data={}).status_code == 405
    assert "<form" not in ann.get("/live").text


def test_live_page_makes_no_foreign_requests_and_fits_the_window(
    browser: Browser, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(short)
    token = Invitations(short / "invitations.json").invite(("ann",), 30)["ann"]
    inputs = Path(__file__).parent / "in_process"
    soak = ["run", str(inputs / "wake_long.yaml"), "--bench", str(inputs / "wake_bench.yaml")]
    command = [*HARNESS, *soak, "--web", "--web-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
        try:
            assert run.stderr is not None
            address = known(re.search(r"http://[^ ]+", run.stderr.readline()))
            for width, scheme in ((1280, "light"), (390, "dark")):
                _look(browser, address[0], token, width, scheme)
        finally:
            run.terminate()
            for folder in (short / "sessions").glob("*"):
                if (place := find(folder)) is not None:
                    kill(place)


def _look(browser: Browser, address: str, token: str, width: int, scheme: str) -> None:
    with browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        page, messages, requests = context.new_page(), list[str](), list[str]()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{address}/login#{token}")
        page.wait_for_url("**/live")
        assert barriers(page) == []
        page.locator("h2 a").click()
        page.wait_for_selector(".charts polyline")
        before = page.locator("[data-part=now]").inner_text()
        page.wait_for_function("before => document.querySelector('[data-part=now]').innerText !== before", arg=before)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert barriers(page) == []
        assert messages == []
        assert [url for url in requests if not url.startswith(address)] == []
