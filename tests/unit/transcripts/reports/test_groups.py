"""Tables by group: in the terminal, as JSON and on the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import pytest
from rich.cells import cell_len

from harness.model.transcript import ColumnGrouping
from harness.transcripts.groups import (
    GroupedComparison,
    GroupFigures,
    Groupings,
    compare,
    compare_by_group,
    group_figures,
)
from harness.transcripts.reports import html, text
from harness.transcripts.reports.scoring_json import json_chunks
from harness.transcripts.scoring import Scoring
from tests.unit.transcripts.reports.scorings import HOSTILE, WIDE, reported, scored
from tests.unit.transcripts.reports.test_html import Page

SPOKEN = {
    "amy_1": "show me the flights",
    "amy_2": "to boston",
    "bob_1": "turn it on",
    "bob_2": "stop",
    "cy_1": "",
    "cy_2": "not listed",
}
HEARD = {"amy_1": "show me flights", "amy_2": "two boston", "bob_1": "turn it on", "cy_1": "uh", "cy_2": "not listed"}
BETTER = {**HEARD, "amy_1": "show me the flights", "bob_2": "stop"}
LISTED = Groupings(
    "groups.csv",
    ("amy_1", "amy_2", "bob_1", "bob_2", "cy_1", "zed_1"),
    (
        ColumnGrouping("level_dbfs", ("-8", "-26", "-8", "-26", "quiet", "-8")),
        ColumnGrouping("noise", ("fan", "fan", "fan", "hum", "hum", "hum")),
        ColumnGrouping("room", ("lab", "lab", "lab", "lab", "lab", "lab")),
    ),
)


def figures(scoring: Scoring, groupings: Groupings = LISTED) -> GroupFigures:
    return group_figures(scoring, [groupings], [("level_dbfs", "noise")])


def within(first: Scoring, second: Scoring) -> tuple[GroupedComparison, ...]:
    return tuple(compare_by_group(first, second, partition) for partition in figures(first).partitions)


def lines_of(breakdown: GroupFigures, width: int) -> Iterator[str]:
    return text.groups(breakdown, width).lines(width, text.MAX_ROWS)


def hostile() -> Groupings:
    """Names and labels that a terminal or a page might obey, and one that is very long."""
    labels = (HOSTILE, WIDE * 9, "<script>alert(1)</script>", "x" * 300, "a&b", "")
    return Groupings(
        "groups.csv", tuple(SPOKEN), (ColumnGrouping("level_dbfs", labels), ColumnGrouping("noise", labels[::-1]))
    )


def test_a_table_for_each_column_then_the_two_that_are_crossed() -> None:
    assert "\n".join(lines_of(figures(scored(SPOKEN, HEARD)), 100)) == TABLES.strip("\n")


TABLES = """
by level_dbfs  sentences  words  errors      WER  95 % interval  sent.err
─────────────────────────────────────────────────────────────────────────
-26                    2      3       2  66.67 %    0.0–665.6 %     100.0
-8                     2      7       1  14.29 %    0.0–100.0 %      50.0
quiet                  1      0       1      n/a            n/a     100.0
(none)                 1      2       0   0.00 %            n/a       0.0

by noise  sentences  words  errors       WER  95 % interval  sent.err
─────────────────────────────────────────────────────────────────────
fan               3      9       2   22.22 %     0.1–84.6 %      66.7
hum               2      1       2  200.00 %   0.0–1996.9 %     100.0
(none)            1      2       0    0.00 %            n/a       0.0

by room  sentences  words  errors      WER  95 % interval  sent.err
───────────────────────────────────────────────────────────────────
lab              5     10       4  40.00 %     0.4–97.4 %      80.0
(none)           1      2       0   0.00 %            n/a       0.0

level_dbfs by noise: WER in %, and the number of words; 95 % interval below

level_dbfs          fan          hum       (none)          all
──────────────────────────────────────────────────────────────
-26          50.00 of 2  100.00 of 1          n/a   66.67 of 3
                    n/a          n/a                 0.0–665.6
-8           14.29 of 7          n/a          n/a   14.29 of 7
              0.0–100.0                              0.0–100.0
quiet               n/a     n/a of 0          n/a     n/a of 0
                                 n/a                       n/a
(none)              n/a          n/a    0.00 of 2    0.00 of 2
                                              n/a          n/a
──────────────────────────────────────────────────────────────
all          22.22 of 9  200.00 of 1    0.00 of 2  33.33 of 12
               0.1–84.6   0.0–1996.9          n/a     2.6–83.0

intervals            apply to further utterances of these speakers
without a row        1 (cy_2); counted under (none)
unmatched rows       1 (zed_1); counted nowhere
"""


def test_a_column_with_one_value_is_a_line() -> None:
    listing = Groupings(
        "g.csv", tuple(SPOKEN), (ColumnGrouping("room", ("lab",) * 6), ColumnGrouping("hall", ("",) * 6))
    )
    assert list(lines_of(group_figures(scored(SPOKEN, HEARD), [listing]), 100))[:2] == [
        "room: lab in every utterance",
        "hall: (none) in every utterance",
    ]


def test_long_tables_say_what_is_left_out() -> None:
    texts = {f"amy_{number}": "x" for number in range(text.MAX_ROWS + 7)}
    groupings = Groupings("g.csv", tuple(texts), (ColumnGrouping("at", tuple(texts)),))
    lines = list(lines_of(group_figures(scored(texts, texts), [groupings]), 80))
    assert "… and 7 more" in lines
    assert sum(line.startswith("amy_") for line in lines) == text.MAX_ROWS


def test_notes_on_single_utterances_have_no_table() -> None:
    texts = {f"amy_{number}": "x" for number in range(1001)}
    groupings = Groupings("g.csv", tuple(texts), (ColumnGrouping("file", tuple(texts)),))
    assert list(lines_of(group_figures(scored(texts, texts), [groupings]), 80)) == [
        "file: 1,001 different labels are too many for a table"
    ]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_table_columns_stay_aligned_with_any_labels(width: int) -> None:
    first, two = scored(SPOKEN, HEARD, title="one"), scored(SPOKEN, BETTER, title="two")
    for groupings in (LISTED, hostile()):
        breakdown = figures(first, groupings)
        lines = list(lines_of(breakdown, width))
        for partition in breakdown.partitions:
            lines += text._group_comparison_table(compare_by_group(first, two, partition)).lines(width)
        assert all(line.isprintable() for line in lines)
        heads = [(head, rule) for head, rule in pairwise(lines) if rule.startswith("─") and head.startswith("by ")]
        assert len(heads) == 2 * len(breakdown.grouped)
        assert all(cell_len(head) == cell_len(rule) <= max(width, 43) for head, rule in heads)


def as_json(*systems: Scoring) -> Any:
    reports = [reported(scoring, groups=figures(scoring)) for scoring in systems]
    pairs = [within(first, second) for first, second in combinations(systems, 2)]
    return json.loads("".join(json_chunks(reports, compare(systems), pairs)))


def test_json_has_the_counts_of_each_value() -> None:
    report = as_json(scored(SPOKEN, HEARD))
    assert [group["by"] for group in report["groups"]] == ["level_dbfs", "noise", "room"]
    fan, hum, none = report["groups"][1]["values"]
    assert fan.pop("interval") == pytest.approx([0.001, 0.846], abs=0.001)
    assert fan == {
        "value": "fan", "sentences": 3, "sentences_with_error": 2, "words": 9, "correct": 7, "substitutions": 1,
        "deletions": 1, "insertions": 0, "wer": 2 / 9, "interval_over": "utterances",
    }  # fmt: skip
    assert (hum["value"], hum["wer"], none["value"], none["interval"]) == ("hum", 2.0, None, None)
    (cross,) = report["crossed"]
    assert (cross["by"], cross["rows"], cross["columns"]) == (
        ["level_dbfs", "noise"], ["-26", "-8", "quiet", None], ["fan", "hum", None]
    )  # fmt: skip
    assert cross["cells"][1][1] is None
    assert (cross["cells"][0][0]["words"], cross["cells"][2][1]["wer"]) == (2, None)
    assert (report["without_group"], report["groups_of_no_utterance"]) == (["cy_2"], ["zed_1"])


def test_json_has_the_differences_of_each_value() -> None:
    (pair,) = as_json(scored(SPOKEN, HEARD, title="one"), scored(SPOKEN, BETTER, title="two"))["comparisons"]
    fan, hum, none = next(group for group in pair["groups"] if group["by"] == "noise")["values"]
    assert (fan["value"], fan["utterances"], fan["difference"]) == ("fan", 3, pytest.approx(1 / 9))
    assert (fan["first_totals"]["deletions"], fan["second_totals"]["deletions"]) == (1, 0)
    assert (hum["utterances"], hum["first_missing"], hum["second_missing"]) == (2, 1, 0)
    assert (hum["difference"], hum["p"]) == (1.0, pytest.approx(0.5))
    assert (none["utterances"], none["difference"], none["interval"], none["p"]) == (1, None, None, None)


def page_of(*systems: Scoring, groupings: Groupings = LISTED) -> Page:
    return Page(html.page([reported(scoring, groups=figures(scoring, groupings)) for scoring in systems], "Kitchen"))


def test_the_page_has_the_tables_with_their_intervals() -> None:
    page = page_of(scored(SPOKEN, HEARD))
    assert not page.open
    assert "-26 2 3 2 66.67 % 0.0–665.6 % 100.0" in page.text
    assert "quiet 1 0 1 n/a n/a 100.0" in page.text
    assert "interval is over queries in rows with 6 or more of them; without such a list, over speakers" in page.text
    assert "-26 50.00 of 2 n/a 100.00 of 1 n/a n/a 66.67 of 3 0.0–665.6" in page.text
    assert "without a row 1 (cy_2); counted under (none) unmatched rows 1 (zed_1); counted nowhere" in page.text
    whiskers = [tag["style"] or "" for tag in page.of("i") if (tag.get("style") or "").startswith("left")]
    assert len(whiskers) == 8  # of the 9 values, the one over no words has none
    assert all(0 <= float(end) <= 100.01 for style in whiskers for end in re.findall(r":([\d.]+)%", style))


def test_a_page_on_several_systems_compares_them_within_each_value() -> None:
    page = page_of(scored(SPOKEN, HEARD, title="one"), scored(SPOKEN, BETTER, title="two"))
    assert not page.open
    assert "fan 3 9 2 22.22 % 0.1–84.6 %" in page.text
    assert re.search(r"fan 3 9 1 11\.11 % [\d.]+–[\d.]+ %", page.text)
    assert re.search(r"fan 3 22\.22 % 11\.11 % \+11\.11 -42\.\d\d to \+64\.\d\d 0\.433", page.text)
    assert page.text.count("level_dbfs by noise") == 2


def test_foreign_labels_are_only_text_on_the_page() -> None:
    page = page_of(scored(SPOKEN, HEARD), scored(SPOKEN, BETTER), groupings=hostile())
    assert not page.open
    assert "<script>alert(1)</script>" in page.text
    assert "alert(" not in page.raw
    assert "\x1b" not in page.text
