"""The page of category figures: whole, escaped, readable without sight and without scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.rating.reports.category_page import page, write_html
from tests.unit.rating.reports.reports import HOSTILE, every_sort, reported, two_devices

CONTRAST = 4.5


class Page(HTMLParser):
    """Start tags with their attributes, ids, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("at", range(len(every_sort())))
def test_pages_of_every_sort_need_nothing_else(at: int) -> None:
    text = page(every_sort()[at])
    found = Page(text)
    assert not found.of("script")
    assert not re.search(r"(?:src|href)=\"?(?!#|data:,)[\w/]", text)
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in found.tags:
        for name in ("aria-labelledby",):
            assert attributes.get(name, ids[0]) in ids
    for attributes in found.of("a"):
        assert (attributes["href"] or "").removeprefix("#") in ids
    for attributes in found.of("th"):
        assert attributes.get("scope") in ("col", "row") or attributes.get("aria-hidden") == "true"


def test_hostile_text_is_harmless() -> None:
    text = page(reported(two_devices()))
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e", "\u200b"}


def test_bars_say_what_they_show() -> None:
    found = Page(page(reported(two_devices())))
    labels = [one["aria-label"] or "" for one in found.of("span") if one.get("role") == "img"]
    assert len(labels) == 3  # the readings differ for one of the two devices
    assert "kitchen, reading A: Correct 75 %, Admitted defeat 12 %, Wrong 12 %" in labels


def test_wrong_and_disputed_responses_are_listed_with_query_and_answer() -> None:
    text = " ".join(Page(page(reported(two_devices()))).text)
    assert text.count("an answer") == 6  # one disputed; four wrong, and an admitted lack of a core capability
    assert "core capability, wrong under B" in text
    assert "1 Correct, 1 Wrong" in text


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    whole = digits if len(digits) == 6 else "".join(2 * one for one in digits)
    parts = [int(whole[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_keys_can_be_read_on_their_colours() -> None:
    colours = re.findall(r"\.c(\d+)\{background:(#\w+);color:(#\w+)\}", page(reported(two_devices())))
    assert len(colours) == 11
    for _, back, front in colours:
        dark, light = sorted((luminance(back), luminance(front)))
        assert (light + 0.05) / (dark + 0.05) >= CONTRAST, back


def test_it_is_written_whole(tmp_path: Path) -> None:
    write_html(reported(two_devices()), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert len(list(tmp_path.iterdir())) == 1
