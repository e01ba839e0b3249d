"""How figures and times are drawn in characters, without a screen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from harness.dashboard.watch import DeclaredCriteria, View
from harness.dashboard.widgets.run import TotalsPanel
from harness.dashboard.widgets.wake import (
    LABEL_WIDTH,
    Point,
    block_rows,
    funnel,
    limits_by_device,
    round_up_nicely,
    scale_top,
    span_text,
    timeline,
)
from harness.dashboard.wording import median_latency, wer
from harness.model.feed import StateChanged, StateWord
from harness.model.record import TrialFinished, TrialStarted
from harness.model.scenario import Limits, Normalisation, RecognitionRule, TrialKind
from harness.model.time import MeasuredDuration
from harness.model.transcript import Rewriting, WordCounts
from harness.model.trial import Outcome, Recognition
from harness.session.figures.progress import Progress
from harness.statistics.intervals import LatencyFigures, Share, latency_figures
from harness.statistics.significance import Discordance
from harness.statistics.verdict import LimitVerdict
from harness.transcripts.recognition import GroupTranscripts
from harness.wake.wake import DevicePair
from harness.wake.wake_progress import DeviceWake, MarkKind, Speakers, TimelineMark, WakeProgress, ratio_with_intervals
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.wake.wake_rows import WakeRows, wake_trial
from tests.written_sessions import progress_of

BRAILLE = {chr(0x2800 + bits) for bits in range(1, 256)} | {" "}


@st.composite
def points(draw: st.DrawFn) -> list[Point]:
    series, after = [], 0.0
    for _ in range(draw(st.integers(0, 30))):
        after += draw(st.floats(0.001, 10))
        low, value, high = sorted(draw(st.tuples(*[st.floats(0, 1e4)] * 3)))
        series.append(Point(after, low, value, high))
    return series


@given(points(), st.integers(1, 60), st.integers(1, 8), st.none() | st.floats(0.001, 100))
def test_an_interval_band_stays_within_its_width(
    band: list[Point], width: int, height: int, limit: float | None
) -> None:
    rows = funnel(band, width, height, scale_top(band, limit))
    assert [len(row.plain) for row in rows] == [width] * height
    if band:
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
    top = round_up_nicely(value)
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
    assert len(timeline(marks, width, now_s).plain) == max(width, LABEL_WIDTH + 1)


def test_what_matters_most_is_seen_where_marks_fall_together() -> None:
    marks = [
        TimelineMark(MarkKind.AMBIENT, 0.0, 60.0),
        TimelineMark(MarkKind.UNMATCHED, 30.0, 30.0),
        TimelineMark(MarkKind.HIT, 61.0, 64.0),
        TimelineMark(MarkKind.FALSE_REJECT, 66.0, 69.0),
    ]
    drawn = timeline(marks, LABEL_WIDTH + 60).plain
    assert drawn.startswith("  −2 min ")
    assert [drawn.count(glyph) for glyph in "!✓✗"] == [1, 1, 1]
    assert drawn.index("!") < drawn.index("✓") < drawn.index("✗")
    assert drawn.count("░") > 20
    assert "✓" not in timeline(marks, LABEL_WIDTH + 60, now_s=50.0).plain, "what is still to come is not drawn"


def test_ranges_are_worded() -> None:
    assert [span_text(span_s) for span_s in (5, 300, 7200)] == ["5 s", "5 min", "2 h"]


def painted(progress: Progress, wake: WakeProgress) -> list[str]:
    panel = TotalsPanel()
    panel.show(progress, wake)
    return panel.paint(37, 8).plain.splitlines()


def test_word_error_rates_of_queries_are_drawn() -> None:
    rows = Rows.of(planned(1), planned(2))
    assert not [line for line in painted(progress_of(rows), WakeProgress()) if line.startswith("WER")]
    for number, heard in ((1, "what lime is it"), (2, None)):
        rows.add(TrialStarted(f"time-{number}", 1))
        rows.attempt(f"time-{number}", 1, Outcome.MISHEARD, Recognition.NO, heard=heard, latency_s=None)
        rows.add(TrialFinished(f"time-{number}", 1, Outcome.MISHEARD, 1, 1))
    lines = painted(progress_of(rows), WakeProgress())
    assert lines[2] == "WER 1st    25.0 %  1/2"


def test_commands_of_devices_that_tell_their_words() -> None:
    trial = wake_trial(1, TrialKind.COMMAND)
    rows = WakeRows()
    rows.plan(trial)
    rows.play(trial, words=[("kitchen", 2.6, "turn off the light")])
    assert painted(progress_of(rows), rows.progress)[0] == "WER 1st    25.0 %  1/1"
    assert not painted(progress_of(rows), WakeProgress((DeviceWake("kitchen"),), planned=1))[0].startswith("WER")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (GroupTranscripts.of([("time", None), ("time", None)]), "n/a  0/2"),
        (GroupTranscripts.of([("time", WordCounts(8, 1, 1, 0, 1, 1))]), "20.0 %  1/1"),
    ],
)
def test_word_error_rates_are_worded(words: GroupTranscripts, expected: str) -> None:
    assert wer(words) == expected
    assert " by attempt  2/2" in wer(words + words) or words.wer is None


def test_the_unit_of_the_interval_gives_way_before_a_figure_does() -> None:
    words = GroupTranscripts.of((f"q{number}", WordCounts(8, number % 2, 0, 0, 1, number % 2)) for number in range(144))
    wide, narrow = wer(words, 33), wer(words, 24)
    assert wide.split()[3:] == ["by", "query", "144/144"]
    assert narrow.split() == [*wide.split()[:3], "144/144"]
    assert len(narrow) <= 24


def test_the_error_of_clocks_gives_way_before_the_interval_does() -> None:
    figures = latency_figures([MeasuredDuration(0.8 + 0.01 * number, 0.01) for number in range(20)])
    assert median_latency(figures, 27) == "890 ms ± 10 ms (850–940 ms)"
    assert median_latency(figures, 26) == "890 ms (850–940 ms)"
    assert median_latency(LatencyFigures(), 26) == "n/a"


def test_the_normalisation_stands_in_the_title_harmless() -> None:
    rows = Rows.of(
        replace(planned(1), recognised=RecognitionRule(rewriting=Rewriting("[red]a\x1bb", Normalisation.PLAIN, ())))
    )
    panel = TotalsPanel()
    panel.show(progress_of(rows), WakeProgress())
    assert panel.border_title == "So far (95 % intervals)"
    rows.add(TrialStarted("time-1", 1))
    rows.attempt("time-1", 1, Outcome.MISHEARD, Recognition.NO, heard="what", latency_s=None)
    rows.add(TrialFinished("time-1", 1, Outcome.MISHEARD, 1, 1))
    panel.show(progress_of(rows), WakeProgress())
    assert Content.from_markup(str(panel.border_title)).plain == r"95 % intervals · words: [red]a\eb"


@pytest.mark.parametrize(
    ("shares", "planned", "texts"),
    [
        ({"ann": Share(0, 9)}, ("ben",), ("too few voices", "for an interval", "hits 9")),
        ({"ann": Share(0, 9), "ben": Share(0, 9)}, (), ("any time 0.00–", "2 voices 0.00–", "hits 18")),
        ({"": Share(0, 9)}, (), ("any time 0.00–", "exact    0.00–", "hits 9, talkers unknown")),
    ],
)
def test_intervals_of_false_rejects_name_their_unit(
    shares: dict[str, Share], planned: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    whole = sum(shares.values(), Share())
    device = DeviceWake("kitchen", ratio_with_intervals(whole, Speakers.of(shares, planned)), hits=whole.total)
    view = View(Progress(), WakeProgress((device,)))
    rows = [row.plain for row in block_rows(view, 100, 20)]
    assert rows[1].startswith(f" FR    0.00 %  0 of {whole.total} ")
    assert all(text in row for text, row in zip(texts, rows[2:5], strict=True)), rows


def test_without_pings_the_clock_error_is_that_of_the_delays() -> None:
    delays = latency_figures([MeasuredDuration(0.4, 0.039), MeasuredDuration(0.5, 0.039)])
    for device, clock in (
        (DeviceWake("kitchen"), "clock error n/a"),
        (DeviceWake("kitchen", delays=delays), "clock error ± 39 ms"),
        (DeviceWake("kitchen", delays=delays, clock_error_s=0.0004), "clock error ± 0.4 ms"),
    ):
        assert clock in block_rows(View(Progress(), WakeProgress((device,))), 100, 20)[0].plain


def test_a_device_shows_no_limit_on_queries() -> None:
    declared = DeclaredCriteria(Limits(max_first_sound_p95_ms=900, max_false_reject_share=0.1))
    limits = limits_by_device(View(Progress(), WakeProgress((DeviceWake("kitchen"),)), criteria=declared))
    assert {device: list(device_limits) for device, device_limits in limits.items()} == {
        "kitchen": ["max_false_reject_share"],
        "": ["max_first_sound_p95_ms"],
    }


def test_long_names_of_devices_stay_different() -> None:
    devices = tuple(DeviceWake(f"satellite_in_the_living_room_{number}") for number in (1, 2))
    view = View(Progress(), WakeProgress(devices), (DevicePair(*(device.device for device in devices), Discordance()),))
    rows = [row.plain for row in block_rows(view, 100, 20)]
    heads = {row.split()[0] for row in rows if "link up" in row}
    assert len(heads) == 2, rows
    (pair,) = (row for row in rows if " : " in row)
    first, _, second, *_ = pair.split()
    assert first != second
    assert len({row.split()[0] for row in painted(Progress(), replace(view.wake, planned=1)) if " FR " in row}) == 2


def test_limits_are_decided_once_all_is_played() -> None:
    device = DeviceWake("kitchen", ratio_with_intervals(Share(6, 20), Speakers()))
    declared = DeclaredCriteria(Limits(max_false_reject_share=0.1))
    view = View(Progress(), WakeProgress((device,)), criteria=declared)
    for word, verdict in ((StateWord.WAITING, LimitVerdict.OPEN), (StateWord.FINISHED, LimitVerdict.FAIL)):
        limits = limits_by_device(replace(view, state=StateChanged(word, 0.0)))
        assert limits["kitchen"]["max_false_reject_share"].verdict is verdict
