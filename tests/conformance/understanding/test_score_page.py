"""The page of scored intents and slots in a real browser: narrow, wide, light and dark; what is wrong is selected."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from harness.understanding.counts import Rule
from harness.understanding.reports.score_html import page
from harness.understanding.reports.score_text import SystemReport
from harness.understanding.scoring import count_system, score
from tests.unit.understanding.reports.frames import made


@pytest.fixture
def report(tmp_path: Path) -> str:
    scoring = score(*made(5, 150), Rule())
    (tmp_path / "page.html").write_text(page([SystemReport(count_system([scoring]))], [scoring]), encoding="utf-8")
    return (tmp_path / "page.html").as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1280, "dark")])
def test_nothing_but_tables_is_wider_than_the_window(browser: Browser, report: str, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    events: list[str] = []
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on(
        "request",
        lambda request: events.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
    )
    page.goto(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (int(ground.split("(")[1].split(",")[0]) < 60) == (scheme == "dark")
    assert events == []
    context.close()


def test_utterances_are_filtered_by_kind_of_error(browser: Browser, report: str) -> None:
    page = browser.new_page()
    page.goto(report)
    shown = page.locator("article:visible")
    counter = page.locator("#f-count")
    expect(counter).to_have_text("150 of 150")
    page.select_option("#f-kind", "N")
    expect(counter).not_to_have_text("150 of 150")
    missing = shown.count()
    assert missing == page.get_by_text("no prediction", exact=True).locator("visible=true").count()
    assert 0 < missing < 30
    page.select_option("#f-kind", "0")
    expect(counter).not_to_have_text(f"{missing} of 150")
    assert page.locator("article:visible .ch:is(.M,.X,.C,.B,.V)").count() == 0
    page.select_option("#f-kind", "")
    page.fill("#f-text", "d77#2")
    expect(shown).to_have_count(1)
    page.get_by_role("button", name="recall").first.click()
    cells = page.locator("#intents tbody td:nth-child(6)").all_inner_texts()
    values = [float(cell.split()[0]) for cell in cells]
    assert values == sorted(values, reverse=True)
    page.close()
