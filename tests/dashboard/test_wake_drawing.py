"""How figures and times are drawn in characters, without a screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dashboard.widgets.wake import LABEL, Point, funnel, nice_top, plus_minus, short_span, timeline, top_of
from harness.wake.wake_progress import MarkKind, TimelineMark

BRAILLE = {chr(0x2800 + bits) for bits in range(1, 256)} | {" "}


@st.composite
def points(draw: st.DrawFn) -> list[Point]:
    found, after = [], 0.0
    for _ in range(draw(st.integers(0, 30))):
        after += draw(st.floats(0.001, 10))
        low, value, high = sorted(draw(st.tuples(*[st.floats(0, 1e4)] * 3)))
        found.append(Point(after, low, value, high))
    return found


@given(points(), st.integers(1, 60), st.integers(1, 8), st.none() | st.floats(0.001, 100))
def test_a_band_keeps_to_its_room(found: list[Point], width: int, height: int, limit: float | None) -> None:
    rows = funnel(found, width, height, top_of(found, limit))
    assert [len(row.plain) for row in rows] == [width] * height
    if found:
        assert set("".join(row.plain for row in rows)) <= BRAILLE
        assert all(any(row.plain[column] != " " for row in rows) for column in range(width)), "no gap in the band"


def test_a_band_that_narrows_is_drawn_so_and_its_figure_is_a_free_line() -> None:
    narrowing = [Point(n, 0.5 - 0.5 / n, 0.5, 0.5 + 0.5 / n) for n in range(1, 21)]
    rows = [row.plain for row in funnel(narrowing, 20, 4, 1.0)]
    heights = [
        sum(bin(ord(row[column]) - 0x2800).count("1") for row in rows if row[column] != " ") for column in (0, 5, 19)
    ]
    assert heights[0] > heights[1] > heights[2] > 0
    assert heights[0] == 2 * 16 - 2, "the whole height less the figure's line, in both columns of dots"


@given(st.floats(1e-9, 1e9))
def test_the_scale_ends_at_a_round_number_near_the_value(value: float) -> None:
    top = nice_top(value)
    assert value * (1 - 1e-9) <= top <= value * 2
    assert float(f"{top:.1e}") == pytest.approx(top)


@given(
    st.lists(
        st.builds(
            lambda kind, start, length: TimelineMark(kind, start, start + length),
            st.sampled_from(MarkKind),
            st.floats(0, 1e5),
            st.floats(0, 100),
        ),
        max_size=60,
    ),
    st.integers(1, 150),
    st.none() | st.floats(0, 1e5),
)
def test_a_timeline_is_one_line_of_its_width(marks: list[TimelineMark], width: int, now_s: float | None) -> None:
    assert len(timeline(marks, width, now_s).plain) == max(width, LABEL + 1)


def test_what_matters_most_is_seen_where_marks_fall_together() -> None:
    marks = [
        TimelineMark(MarkKind.AMBIENT, 0.0, 60.0),
        TimelineMark(MarkKind.UNMATCHED, 30.0, 30.0),
        TimelineMark(MarkKind.HIT, 61.0, 64.0),
        TimelineMark(MarkKind.FALSE_REJECT, 66.0, 69.0),
    ]
    drawn = timeline(marks, LABEL + 60).plain
    assert drawn.startswith("  −2 min ")
    assert [drawn.count(glyph) for glyph in "!✓✗"] == [1, 1, 1]
    assert drawn.index("!") < drawn.index("✓") < drawn.index("✗")
    assert drawn.count("░") > 20
    assert "✓" not in timeline(marks, LABEL + 60, now_s=50.0).plain, "what is still to come is not drawn"


def test_errors_of_clocks_and_reaches_in_words() -> None:
    assert (plus_minus(None), plus_minus(0.00042), plus_minus(0.0312)) == ("n/a", "±0.42 ms", "±31 ms")
    assert [short_span(one) for one in (5, 300, 7200)] == ["5 s", "5 min", "2 h"]
