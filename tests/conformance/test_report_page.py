"""The report in a real browser: it asks for nothing, says nothing in the console, fits, plays, sorts and zooms."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from harness.report.comparison import compare_sessions
from harness.report.comparison_page import differing_facts, write_page
from harness.report.session_cases import SoundStorage
from harness.report.session_page import write_report
from harness.session.engine.launch import start_engine
from tests.conformance.accessible import barriers
from tests.conformance.engine_runs import Runs, Watcher, wait_for
from tests.unit.report.test_comparison import wake_session


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a session of wake trials, commands and ambient sound, run by an engine."""
    root = tmp_path_factory.mktemp("report")
    runs = Runs(root)
    try:
        folder = runs.prepare("wake.yaml", "wake_bench.yaml")
        assert Watcher(start_engine(folder)).goodbye().exit_code == 0
    finally:
        runs.close()
    write_report([folder], root / "report.html", SoundStorage.EMBED)
    return root / "report.html"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a session that never began."""
    root = tmp_path_factory.mktemp("empty")
    runs = Runs(root)
    write_report([runs.prepare("wake.yaml", "wake_bench.yaml")], root / "report.html", SoundStorage.EMBED)
    runs.close()
    return root / "report.html"


@pytest.fixture(scope="module")
def misheard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of judged queries, some of them misheard."""
    root = tmp_path_factory.mktemp("misheard")
    shutil.copytree(Path(__file__).parents[1] / "data" / "kept" / "queries", root / "queries")
    write_report([root / "queries"], root / "report.html", SoundStorage.EMBED)
    assert "Misheard words: 1" in (root / "report.html").read_text(encoding="utf-8")
    return root / "report.html"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("comparison")
    folders = [wake_session(root / "a", 0.05), wake_session(root / "b", 0.4, seed=2)]
    report = compare_sessions(folders)
    write_page(report, differing_facts(report, folders), root / "comparison.html")
    return root / "comparison.html"


@pytest.mark.parametrize("which", ["report", "empty", "misheard", "comparison"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_report_page_makes_no_foreign_requests_and_fits_the_window(
    browser: Browser, request: pytest.FixtureRequest, which: str, width: int, scheme: str
) -> None:
    report: Path = request.getfixturevalue(which)
    with browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        page, messages, requests = context.new_page(), list[str](), list[str]()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(report.as_uri())
        page.wait_for_load_state("load")
        assert messages == []
        assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert barriers(page) == []
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_clip_plays_tables_sort_and_the_timeline_zooms(browser: Browser, report: Path) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(report.as_uri())
        assert page.evaluate("new Audio(document.querySelector('audio').src).play().then(() => 'plays')") == "plays"
        before = page.locator(".zoom output").inner_text()
        page.get_by_role("button", name="Zoom in").press("Enter")
        wait_for(lambda: page.locator(".zoom output").inner_text() != before, event="the zoom")
        page.get_by_role("button", name="All").click()
        assert page.locator(".zoom output").inner_text() == before
        table = page.locator("#trials-1 ~ details table")
        assert table.locator("tbody td").first.inner_text() == "1"
        table.get_by_role("button", name="#").click()
        assert table.locator("tbody td").first.inner_text() != "1"
