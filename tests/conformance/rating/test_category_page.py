"""The page of category figures in a real browser: narrow and wide, light and dark, without scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from harness.rating.reports.category_page import write_html
from tests.unit.rating.reports.reports import reported, two_devices


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_but_tables_is_wider_than_the_window(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    write_html(reported(two_devices()), tmp_path / "page.html")
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    events: list[str] = []
    page.on("console", lambda message: events.append(message.text))
    page.on(
        "request",
        lambda request: events.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
    )
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_by_role("img").count() == 3
    assert page.get_by_role("row", name="Admitted defeat").count() >= 1
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    red = int(ground.split("(")[1].split(",")[0])
    assert (red < 60) == (scheme == "dark")
    assert events == []
    context.close()
