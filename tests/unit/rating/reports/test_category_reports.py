"""A category report as lines: what they say, and that they stay within the terminal."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.base.text_table import width_of
from harness.model.choices import ResultGrouping
from harness.model.judgment import Category
from harness.model.trial import Recognition
from harness.rating.figures.judged_responses import QueryOutcome
from harness.rating.reports.categories import CategoryReport, Selection
from harness.rating.reports.category_page import page, write_html
from harness.rating.reports.category_text import FUNNEL, TOO_FEW_WHY, report_lines, stages
from tests.contrast import contrast
from tests.unit.rating.figures.rated_rows import Case
from tests.unit.rating.reports.reports import HOSTILE, SORTS, A, C, W, every_sort, reported, two_devices


def lines(report: CategoryReport, width: int = 80) -> list[str]:
    return list(report_lines(report, width))


@pytest.mark.parametrize("index", range(SORTS))
@pytest.mark.parametrize("width", [80, 120])
def test_report_lines_are_escaped_and_fit_the_width(index: int, width: int) -> None:
    for line in lines(every_sort()[index], width):
        assert line.isprintable(), line
        assert width_of(line) <= width, line


def test_the_funnel_adds_up_on_screen() -> None:
    planned, *further = stages(reported(two_devices()).figures)
    left = planned.count
    for line in further:
        if line.is_loss:
            left -= line.count
        else:
            assert line.count == left, line.name
    counts = {line.name: line.count for line in further}
    assert counts["tied"] == counts["held"] == 1
    assert {outcome for _, outcomes, _ in FUNNEL for outcome in outcomes} == set(QueryOutcome) - {QueryOutcome.CATEGORY}


def test_the_funnel_says_why_recognition_was_not_assessed() -> None:
    report = reported([Case("a", {"ann": A}), Case("b", {"ann": A}, recognition=Recognition.NOT_ASSESSED)], Selection())
    remarks = {line.name: line.remark for line in stages(report.figures)}
    assert remarks["recognised"] == "1 of them not assessed (the trial required no evidence)"
    text = " ".join(" ".join(lines(report)).split())
    assert "attempts 1 query at the 1st, 0 never recognised; the mean" in text
    assert "1 query not assessed: the scenario asks for no evidence of what was heard; with `evidence: auto`" in text


def test_both_readings_are_shown_side_by_side() -> None:
    text = lines(
        reported([Case("a", {"ann": A}, core=True), Case("b", {"ann": A}), Case("c", {"ann": W})], Selection())
    )
    (defeats,) = [line for line in text if line.startswith("8 ")]
    (wrong,) = [line for line in text if line.startswith("9 ")]
    assert re.search(r"Admitted defeat +2 +66\.7 +\S+ +1 +33\.3", defeats)
    assert re.search(r"Wrong +1 +33\.3 +\S+ +2 +66\.7", wrong)
    assert "they differ on 1 response: 0 marked by raters, 1 by the scenario, 0 by both" in " ".join(
        " ".join(text).split()
    )


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (3, "n/a: nothing was judged"),
        (4, "n/a: no query was answered"),
        (5, "n/a: raters differ on all 30 judged responses, and none is settled"),
        (6, "n/a: they have no query in common"),
        (7, "n/a: no query was planned"),
        (2, "only one, so agreement between raters is unknown"),
    ],
)
def test_missing_figure_states_its_reason(index: int, words: str) -> None:
    assert words in " ".join(" ".join(lines(every_sort()[index])).split())


def test_tied_responses_are_listed_with_what_was_said() -> None:
    text = "\n".join(lines(every_sort()[5]))
    assert "tied (30): not counted until settled" in text
    assert "a0 (kitchen): 1 Correct, 1 Wrong" in text
    assert "and 10 more" in text


def test_the_first_line_says_how_many_responses_are_not_counted() -> None:
    cases = [Case("a", {"ann": C}), Case("b", {"ann": C, "ben": W}), Case("c"), Case("d", {"ann": C})]
    head, *text = lines(reported(cases, Selection()))
    assert head.startswith("categories of 2 of 4 first responses (not counted: 1 not judged, 1 tied), ")
    assert "  held" not in "\n".join(text)
    assert lines(reported(cases[:1], Selection()))[0].startswith("categories of 1 first response, ")


def test_only_devices_are_grouped_unless_groupings_are_named() -> None:
    cases = [Case("a", {"ann": C}, query_class="x"), Case("b", {"ann": C}, query_class="y", device="den")]
    text = lines(reported(cases, Selection()))
    assert {line.split()[1] for line in text if line.startswith("by ")} == {"device"}
    assert text[-1] == "More groupings: --by class. All of them: --html FILE"


def test_requested_groupings_are_shown_even_with_one_label() -> None:
    selection = Selection(by=(ResultGrouping.QUERY, ResultGrouping.SESSION))
    text = lines(reported([Case("a", {"ann": C}), Case("b", {"ann": W})], selection))
    assert [line.split()[1] for line in text if line.startswith("by ")] == ["query"] * 2 + ["session"] * 2 + [
        "query",
        "session",
    ]


def test_wrong_is_compared_under_both_readings() -> None:
    report = every_sort()[1]
    assert [comparison.reading.value for comparison in report.comparisons] == ["a", "b"]
    assert report.comparisons[0].on is Category.WRONG


def test_two_devices_are_compared_in_a_sentence() -> None:
    cases = [
        Case(f"{device}{n}", {"ann": category}, query=f"q{n}", device=device)
        for n in range(8)
        for device, category in (("kitchen", C), ("den", W if n else C))
    ]
    report = reported(cases, Selection(compare=("kitchen", "den")))
    words = (
        "den is worse than kitchen by 87.50 points (9.30 to 100.00), p = 0.016, swap test over whole queries (exact)"
    )
    assert f"difference {words} pairs both 1" in " ".join(" ".join(lines(report)).split())
    assert f"<bdi>{words}</bdi>" in page(report)


def test_a_group_of_one_query_says_too_few_instead_of_an_interval() -> None:
    repeated = [Case(f"a{n}", {"ann": C}, query="a", query_class="time") for n in range(4)]
    others = [Case(f"b{n}", {"ann": W}, query_class="lists") for n in range(4)]
    report = reported([*repeated, *others], Selection(by=(ResultGrouping.CLASS,)))
    (time,) = [line for line in lines(report) if re.match(r"time\s+100 ", line) and "1.00" not in line]
    (lists,) = [line for line in lines(report) if re.match(r"lists\s+0\.00 ", line)]
    assert time.count("too few") == 3
    assert "too few" not in lists
    assert TOO_FEW_WHY in lines(report)
    assert time.split()[:4] == ["time", "100", "too", "few"]
    assert f"<bdi>{TOO_FEW_WHY}</bdi>" in page(report)
    assert "too few" not in page(reported(two_devices()))


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


@pytest.mark.parametrize("index", range(SORTS))
def test_report_pages_load_nothing_else(index: int) -> None:
    text = page(every_sort()[index])
    document = Page(text)
    assert not document.of("script")
    assert not re.search(r"(?:src|href)=\"?(?!#|data:,)[\w/]", text)
    ids = [attributes["id"] for _, attributes in document.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in document.tags:
        for name in ("aria-labelledby",):
            assert attributes.get(name, ids[0]) in ids
    for attributes in document.of("a"):
        assert (attributes["href"] or "").removeprefix("#") in ids
    for attributes in document.of("th"):
        assert attributes.get("scope") in ("col", "row") or attributes.get("aria-hidden") == "true"


def test_hostile_text_on_the_page_is_escaped() -> None:
    text = page(reported(two_devices()))
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e", "\u200b"}


def test_bars_have_text_alternatives() -> None:
    document = Page(page(reported(two_devices())))
    labels = [span["aria-label"] or "" for span in document.of("span") if span.get("role") == "img"]
    assert len(labels) == 3  # the readings differ for one of the two devices
    assert "kitchen, reading A: Correct 75 %, Admitted defeat 12 %, Wrong 12 %" in labels


def test_wrong_and_tied_responses_are_listed_with_query_and_answer() -> None:
    text = " ".join(Page(page(reported(two_devices()))).text)
    assert text.count("an answer") == 6  # one tied; four wrong, and an admitted lack of a core capability
    assert "core capability, wrong under B" in text
    assert "1 Correct, 1 Wrong" in text


def test_keys_can_be_read_on_their_colours() -> None:
    colours = re.findall(r"\.c(\d+)\{background:(#\w+);color:(#\w+)\}", page(reported(two_devices())))
    assert len(colours) == 11
    for _, back, front in colours:
        assert contrast(back, front) >= CONTRAST, back


def test_report_page_is_written_atomically(tmp_path: Path) -> None:
    write_html(reported(two_devices()), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert len(list(tmp_path.iterdir())) == 1
