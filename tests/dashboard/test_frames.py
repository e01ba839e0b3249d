"""What was understood beside what was expected: readable without colours, harmless, the last attempt first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.text import Text

from harness.dashboard.watch import DeclaredCriteria
from harness.dashboard.widgets.run import FramePanel, TotalsPanel
from harness.model.observation import Overrun
from harness.model.record import EndReason, Observed, SessionFinished, TrialStarted, UnderstandingResult
from harness.model.scenario import Limits, RepeatUntil, RepromptRule
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome
from harness.model.understanding import ExpectedFrame
from harness.session.figures.progress import Progress
from harness.wake.wake_progress import WakeProgress
from tests.dashboard.bench import double, opened, screen_text, sizes
from tests.dashboard.frame_bench import TIMER, some_frames, told, wanting
from tests.unit.session.figures.rows import Rows, planned
from tests.written_sessions import progress_of


def after(expects: ExpectedFrame, *understood: UnderstandingResult) -> Rows:
    rows = Rows.of(wanting(1, "set a timer for ten minutes", "timer", expects))
    rows.add(TrialStarted("timer", 1))
    for number, frame in enumerate(understood, start=1):
        rows.attempt("timer", number, Outcome.MISHEARD, understood=frame)
    return rows


def painted(rows: Rows, height: int = 9, width: int = 60) -> Text:
    panel = FramePanel()
    panel.show(progress_of(rows))
    return panel.paint(width, height)


def lines(rows: Rows, height: int = 9, width: int = 60) -> list[str]:
    return painted(rows, height, width).plain.splitlines()


def test_each_part_has_a_sign_for_its_result(tmp_path: Path) -> None:
    assert lines(some_frames(tmp_path)) == [
        "not understood",
        "− add_to_list",
        "= set_timer",
        "+ read_list",
        "≠ duration “9 minutes”, not “5 minutes”",
        "− item “eggs”",
        "+ day “today”",
        '×2 − add_to_list, − item "eggs"',
        '×1 − add_to_list, − set_timer, − duration "5 minutes", − item "eggs"',
    ]


def test_what_is_too_many_or_has_another_value_is_struck_through_as_well(tmp_path: Path) -> None:
    text = painted(some_frames(tmp_path))
    struck = [text.plain[span.start : span.end] for span in text.spans if getattr(span.style, "strike", False)]
    assert struck == ["read_list", "duration “9 minutes”", "day “today”"]


def test_where_there_are_few_lines_several_parts_share_one(tmp_path: Path) -> None:
    assert lines(some_frames(tmp_path), 4, 44) == [
        "not understood",
        "− add_to_list  = set_timer  + read_list",
        "≠ duration “9 minutes”, not “5 minutes”",
        "− item “eggs”  + day “today”",
    ]


def test_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    assert lines(some_frames(tmp_path), 3, 44)[1:] == ["− add_to_list  = set_timer  + read_list", "… 2 more lines"]
    assert lines(some_frames(tmp_path), 7)[-1] == "+ day “today”"


@pytest.mark.parametrize(
    ("expects", "understood", "words"),
    [
        (TIMER, told("set_timer", "duration=ten minutes", right=True),
         "understood|= set_timer|= duration “ten minutes”"),
        (TIMER, told("set_timer", right=False, intents_right=True),
         "intents right, slots not|= set_timer|− duration “10 minutes”"),
        (ExpectedFrame((), ()), told("", right=True), "understood: nothing, as expected"),
        (ExpectedFrame((), None), told("", "x=1", right=True), "understood|· x “1”"),
        (TIMER, UnderstandingResult(), "what it understood is unknown"),
        (TIMER, UnderstandingResult(right=True, intents_right=True, source=EvidenceSource.OPERATOR),
         "understood, by the operator"),
    ],
)  # fmt: skip
def test_lines_of_a_frame_have_the_expected_words(
    expects: ExpectedFrame, understood: UnderstandingResult, words: str
) -> None:
    assert "|".join(lines(after(expects, understood))) == words


def test_device_names_are_escaped() -> None:
    hostile = told("\x1b]0;owned\x07[/red]", "[bold]\u202e=\r\n\x1b[2J", right=False)
    text = painted(after(TIMER, hostile)).plain
    assert not set(text) & set("\x1b\x07\r\u202e")
    assert "[/red]" in text
    assert "[bold]" in text


def test_a_run_without_such_trials_has_no_panel_to_show() -> None:
    rows = one_query()
    rows.trial("time-1")
    assert progress_of(rows).last_frame is None
    assert lines(rows) == ["none yet"]


def figures(progress: Progress, declared: DeclaredCriteria | None = None) -> list[str]:
    panel = TotalsPanel()
    panel.show(progress, WakeProgress(), declared)
    return panel.paint(37, 8).plain.splitlines()


def test_frames_and_intents_come_first_among_the_figures(tmp_path: Path) -> None:
    shown = figures(progress_of(some_frames(tmp_path)))
    assert shown[:4] == [
        "Frames     3/4 75 % (30–95)",
        "Intents    3/4 75 % (30–95)",
        "Frame 1st  2/4 50 % (15–85)",
        "Understood 1st: 2  2nd: 1  never: 1",
    ]
    # All are asked until they are understood: that their words were recognised ends nothing.
    assert not [line for line in shown if line.startswith(("Recognised", "Recog. 1st", "Attempts"))]


def test_lost_sound_that_may_have_caused_the_results_comes_before_the_figures() -> None:
    rows = one_query()
    rows.trial("time-1")
    assert not figures(progress_of(rows))[0].startswith("BUSY HOST")
    rows.add(Observed(Overrun("near", Stamp(1.0), 12)), 1.0)
    assert figures(progress_of(rows))[0] == "BUSY HOST  12 blocks late or lost"
    rows.trial("time-1", disturbed="the host stood still for 800 ms")
    assert figures(progress_of(rows))[:2] == ["BUSY HOST  1 of 1 attempt disturbed", "           in time-1"]


def test_the_verdict_on_the_limits_comes_before_the_figures() -> None:
    rows = one_query()
    rows.trial("time-1")
    declared = DeclaredCriteria(Limits(min_recognised_share=0.5, max_inconclusive=-1))
    assert figures(progress_of(rows), declared)[0] == "Limits     FAIL (0 of 2 hold)"
    rows.add(SessionFinished(EndReason.COMPLETED))
    assert figures(progress_of(rows), declared)[0] == "Limits     FAIL (1 of 2 hold)"
    assert not figures(progress_of(rows))[0].startswith("Limits")


def test_figures_of_words_stay_beside_them_where_words_decide(tmp_path: Path) -> None:
    rows = Rows()
    by_words = replace(wanting(1, "set a timer", "timer", TIMER), reprompt=RepromptRule(until=RepeatUntil.RECOGNISED))
    rows.start(by_words, planned(2))
    shown = figures(progress_of(rows))
    assert [line.split()[0] for line in shown[:6]] == [
        "Frames",
        "Intents",
        "Frame",
        "Understood",
        "Recognised",
        "Recog.",
    ]
    assert not [line for line in figures(progress_of(one_query())) if line.startswith("Frames")]


def one_query() -> Rows:
    return Rows.of(planned(1))


@sizes
async def test_other_runs_keep_the_shape_of_the_response(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(double(tmp_path), size) as (_, _, pilot):
        assert "Last frame" not in screen_text(pilot)
