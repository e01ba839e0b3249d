"""One declaration of columns for text, JSON and pages."""

from __future__ import annotations

from harness.base.table import Field, Table
from harness.model.numbers import percent

ROWS = [("ann", 0.25, True), ("ben", None, False)]
TABLE: Table[tuple[str, float | None, bool]] = Table(
    [
        Field("rater", "rater", lambda row: row[0]),
        Field("right", "right", lambda row: row[1], lambda row: percent(row[1])),
        Field("program", "", lambda row: row[2]),
    ],
    ROWS,
)


def test_a_table_as_text_aligns_numbers_right_and_names_what_is_missing() -> None:
    assert list(TABLE.lines(80)) == ["rater   right", "─────────────", "ann    25.0 %", "ben       n/a"]


def test_a_table_as_json_keeps_the_values() -> None:
    assert TABLE.json() == [
        {"rater": "ann", "right": 0.25, "program": True},
        {"rater": "ben", "right": None, "program": False},
    ]


def test_a_column_without_a_title_is_for_programs_only() -> None:
    assert TABLE.titles == ["rater", "right"]
    assert TABLE.cells == [["ann", "25.0 %"], ["ben", "n/a"]]
