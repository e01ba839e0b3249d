"""One declaration of columns for text, JSON and pages."""

from __future__ import annotations

from harness.base.pages import templates_of
from harness.base.table import CrossTable, Field, Notes, Occurrences, Section, Table
from harness.base.text_table import Column
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


def test_a_text_table_aligns_numbers_right_and_names_missing_values() -> None:
    assert list(TABLE.lines(80)) == ["rater   right", "─────────────", "ann    25.0 %", "ben       n/a"]


def test_a_table_as_json_keeps_the_values() -> None:
    assert TABLE.json() == [
        {"rater": "ann", "right": 0.25, "program": True},
        {"rater": "ben", "right": None, "program": False},
    ]


def test_a_column_without_a_title_is_for_programs_only() -> None:
    assert TABLE.titles == ["rater", "right"]
    assert TABLE.cells == [["ann", "25.0 %"], ["ben", "n/a"]]


SECTION = Section(
    "all",
    "All",
    (
        Table.of(
            (Column("voice"), Column("words")), [("amy", "12")], ends=[("all", "<12>")], plots=[(0.5, (0.25, 0.75))]
        ),
        CrossTable("voice by level", "voice", ("-8", "all"), [("amy", [("1 of 2", "0–1"), ("n/a", "")])]),
        Occurrences("confusions", [(("to", "<two>"), 1200), (("a",), 7)]),
        Notes([("missing", "2 (a_1, a_2); left out"), ("", "level: -8 at \x1btimes")], at=10),
    ),
)


def test_a_text_section_prints_its_parts_one_below_another() -> None:
    assert list(SECTION.lines(80, 1)) == [
        "voice  words",
        "────────────",
        "amy       12",
        "────────────",
        "all     <12>",
        "",
        "voice by level",
        "",
        "voice         -8     all",
        "────────────────────────",
        "amy       1 of 2     n/a",
        "             0–1",
        "",
        "confusions: 1,207 in all, 2 different",
        "  1,200  to → <two>",
        "  … and 1 more",
        "",
        "missing   2 (a_1, a_2); left out",
        r"level: -8 at \etimes",
    ]


def test_a_section_on_a_page_has_the_same_cells_escaped() -> None:
    template = '{% from "macros.html" import parts with context %}{{ parts(section) }}'
    page = templates_of("harness.transcripts.reports").from_string(template).render(section=SECTION)
    for text in (
        "<td class=n>&lt;12&gt;", "left:25.00%;width:50.00%", "<b>1 of 2</b><br><small>0–1</small>",
        "<h4>confusions: 1,207 in all, 2 different</h4>", "<bdi>to</bdi> → <bdi>&lt;two&gt;</bdi>",
        "<dt>missing<dd><bdi>2 (a_1, a_2); left out</bdi>", r"<p class=legend><bdi>level: -8 at \etimes</bdi>",
    ):  # fmt: skip
        assert text in page
