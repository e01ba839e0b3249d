"""Widgets of the run screen: event log, semantic frames, level meters, totals, and the list of trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.content import Content

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.events import EventLine, LineTone
from harness.dashboard.watch import DeclaredCriteria
from harness.dashboard.widgets.bars import RowList, TextWidget, ValueWidget, highlight, move_keys, named_title
from harness.dashboard.widgets.wake import device_names
from harness.dashboard.wording import level, median_latency, query_text, share, wer
from harness.model.feed import Meters
from harness.model.numbers import NOTHING, counted, number, ordinal, percent, seconds
from harness.model.record import UnderstandingResult
from harness.model.trial import EvidenceSource, Trial
from harness.rating.guide import LABELS
from harness.session.figures.limits import limits_so_far
from harness.session.figures.progress import Progress, normalisation_of, words_of_session
from harness.session.figures.trials import AttemptProgress, TrialProgress, TrialState
from harness.session.summary import disturbed_trials, session_verdict
from harness.session.wording import OUTCOME_WORDS, short_names
from harness.statistics.intervals import Share, is_exact_enough
from harness.statistics.text import number_interval, percent_interval, percentile
from harness.understanding.reported_frames import FramePart, PartMark, parts_line, parts_of, verdict_in_words
from harness.wake.wake_progress import WakeProgress

MAX_EVENTS = 2000
"""Number of last lines that the event log keeps."""

_COLOURS = {
    LineTone.QUIET: palette.QUIET,
    LineTone.PLAIN: palette.TEXT,
    LineTone.GOOD: palette.GREEN,
    LineTone.PERSON: palette.YELLOW,
    LineTone.FAULT: palette.RED,
}


class EventLog(RowList):
    """The last `MAX_EVENTS` lines. Stays at the end unless you scroll up."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Events"
        self._events: list[EventLine] = []
        self._is_at_end = True
        self._is_scroll_due = False

    @property
    def count(self) -> int:
        return len(self._events)

    def extend(self, lines: Sequence[EventLine]) -> None:
        """Adds lines. A line that renews the previous one replaces it."""
        if not lines:
            return
        # If lines come faster than they are drawn, the scrolling for the previous ones is still to come.
        self._is_at_end = self._is_scroll_due or self.scroll_offset.y >= self.max_scroll_y
        events = list(self._events)
        for line in lines:
            merged = line.merged_with(events[-1]) if events else None
            if merged is None:
                events.append(line)
            else:
                events[-1] = merged
        self._events = events[-MAX_EVENTS:]
        self.fit()
        self._stay_at_end()

    def on_resize(self) -> None:
        self._stay_at_end()

    def _stay_at_end(self) -> None:
        if self._is_at_end:
            # Forced: the new lines have no layout yet, and a list without a scroll bar refuses to scroll.
            self._is_scroll_due = True
            self.call_after_refresh(self._scroll_to_end)

    def _scroll_to_end(self) -> None:
        self._is_scroll_due = False
        self.scroll_end(animate=False, force=True, immediate=True)

    def line(self, index: int, width: int) -> Text:
        event = self._events[index]
        text = Text(f"{event.time_of_day} ", style=palette.RULE if width < 30 else palette.QUIET)
        text.append(event.text, style=_COLOURS[event.tone])
        return text


FRAME_TITLE = "Last frame"
_STYLES: dict[PartMark, Style] = {
    PartMark.RIGHT: Style(color=palette.GREEN),
    PartMark.OTHER_VALUE: Style(color=palette.ORANGE, strike=True),
    PartMark.MISSING: Style(color=palette.RED),
    PartMark.TOO_MANY: Style(color=palette.RED, strike=True),
    PartMark.ASIDE: Style(color=palette.QUIET),
}


class FramePanel(TextWidget):
    """A line for each intent and slot; its sign shows an error without colour."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = FRAME_TITLE
        self._trial: Trial | None = None
        self._attempts: tuple[AttemptProgress, ...] = ()

    def show(self, progress: Progress) -> None:
        """Shows the last attempt whose intents are known, or certain to stay unknown, and earlier ones of its take."""
        if progress.last_frame is None:
            return
        trial_id, take_number, attempt_number = progress.last_frame
        trial = progress.trial(trial_id)
        take = next((candidate for candidate in trial.takes if candidate.take == take_number), None) if trial else None
        if trial is None or take is None:
            return
        attempts = tuple(
            attempt
            for attempt in take.attempts
            if attempt.attempt <= attempt_number and _reported_frame(attempt) is not None
        )
        if (trial.trial, attempts) == (self._trial, self._attempts):
            return
        self._trial, self._attempts = trial.trial, attempts
        self.border_title = named_title(self, f"{FRAME_TITLE}, ×{attempt_number}: ", trial_id)
        self.refresh()

    def paint(self, width: int, height: int) -> Text:
        if self._trial is None or not self._attempts:
            return Text("none yet", style=palette.QUIET)
        *earlier_attempts, last_attempt = self._attempts
        head, *part_lines = _frame_lines(self._trial, last_attempt)
        if 1 + len(part_lines) > height:
            part_lines = _join_lines(part_lines, width)
        lines = [
            head,
            *part_lines,
            *(_earlier_frame_line(self._trial, attempt) for attempt in reversed(earlier_attempts)),
        ]
        line_count = 1 + len(part_lines)
        if line_count > height:  # earlier attempts are left out without a word
            lines[height - 1 :] = [Text(f"… {line_count - height + 1} more lines", style=palette.QUIET)]
        return Text("\n").join(lines[:height])


def _reported_frame(attempt: AttemptProgress) -> UnderstandingResult | None:
    return None if attempt.verdict is None else attempt.verdict.understood


def _join_lines(parts: Sequence[Text], width: int) -> list[Text]:
    """Puts several parts on a line where they fit."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + 2 + part.cell_len <= width:
            lines[-1] = Text("  ").join((lines[-1], part))
        else:
            lines.append(part)
    return lines


def _frame_lines(trial: Trial, attempt: AttemptProgress) -> list[Text]:
    """The verdict on an attempt's frame, then a line for each of its parts."""
    frame, row = _reported_frame(attempt), attempt.verdict
    if frame is None or row is None:
        return [Text()]
    colour = palette.CYAN
    if frame.right is not None:
        colour = palette.GREEN if frame.right else palette.RED
    head = Text(verdict_in_words(frame), style=colour)
    if frame.source is EvidenceSource.OPERATOR:
        head.append(", by the operator", style=palette.QUIET)
    parts = parts_of(trial, row)
    if not parts and frame.intents is not None:
        head.append(": nothing, as expected" if frame.right else ": nothing", style=palette.QUIET)
    return [head, *(_part_line(part) for part in parts)]


def _part_line(part: FramePart) -> Text:
    style = _STYLES[part.mark]
    line = Text(f"{part.mark.sign} ", style=Style(color=style.color))
    if part.value is None:
        line.append(plain_text(part.name, 80), style=style)
    else:
        line.append(f"{plain_text(part.name, 40)} “{plain_text(part.value)}”", style=style)
    if part.mark is PartMark.OTHER_VALUE:
        line.append(f", not “{plain_text(part.wanted or '')}”", style=palette.TEXT)
    return line


def _earlier_frame_line(trial: Trial, attempt: AttemptProgress) -> Text:
    """The errors of an earlier attempt, on one line."""
    frame, row = _reported_frame(attempt), attempt.verdict
    wrong = [] if row is None else [part for part in parts_of(trial, row) if part.mark is not PartMark.RIGHT]
    summary = parts_line(wrong) or ("" if frame is None else verdict_in_words(frame))
    return Text(f"×{attempt.attempt} {summary}", style=palette.QUIET)


MIN_DBFS = -80.0
LOUD_DBFS = -6.0
_EIGHTHS = " ▏▎▍▌▋▊▉"


def level_cells(value_dbfs: float, width: int) -> float:
    """The position of a level on a scale of `width` cells, from MIN_DBFS to 0 dBFS."""
    return max(0.0, min(1.0, 1 - value_dbfs / MIN_DBFS)) * width


class LevelMeters(ValueWidget[Meters]):
    """Two bars from −80 to 0 dBFS; `│` marks the noise floor."""

    DEFAULT_CSS = "LevelMeters { height: 2; padding: 0 1; }"

    def paint(self, width: int, height: int) -> Text:
        meters = self.shown or Meters(None, None, None)
        speaker = self._bar("Speaker   ", meters.speaker_dbfs, None, width, palette.BLUE)
        microphone = self._bar("Microphone", meters.microphone_dbfs, meters.noise_floor_dbfs, width, palette.GREEN)
        return speaker.append("\n").append_text(microphone)

    @staticmethod
    def _bar(name: str, value: float | None, floor: float | None, width: int, colour: str) -> Text:
        bar_width = max(4, width - 40)
        filled_cells = 0.0 if value is None else level_cells(value, bar_width)
        full_cells = int(filled_cells)
        bar = "█" * full_cells
        if full_cells < bar_width:
            bar += _EIGHTHS[int((filled_cells - full_cells) * 8)].strip()
        is_loud = value is not None and value > LOUD_DBFS
        text = Text(f"{name} ", style=palette.QUIET)
        text.append(bar, style=palette.ORANGE if is_loud else colour)
        text.append("·" * (bar_width - len(bar)), style=palette.RULE)
        if floor is not None:
            column = len(name) + 1 + min(bar_width - 1, int(level_cells(floor, bar_width)))
            text = Text.assemble(text[:column], ("│", palette.YELLOW), text[column + 1 :])
        text.append(f" {level(value):>8}", style=palette.TEXT)
        if is_loud:
            text.append(" loud", style=palette.ORANGE)
        elif floor is not None:
            text.append(f"  floor {level(floor)}", style=palette.YELLOW)
        return text


TOTALS_TITLE = "So far (95 % intervals)"
NAME_WIDTH = 11
"""Width of the names of results, in columns."""


class TotalsPanel(TextWidget):
    """Rates with 95 % intervals; n/a where nothing was counted."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = TOTALS_TITLE
        self._progress = Progress()
        self._wake = WakeProgress()
        self._criteria = DeclaredCriteria()

    def show(self, progress: Progress, wake: WakeProgress, criteria: DeclaredCriteria | None = None) -> None:
        """Shows new results. criteria: None keeps the limits shown before."""
        if progress != self._progress or wake is not self._wake:
            self._progress, self._wake, self._criteria = progress, wake, criteria or self._criteria
            name = plain_text(normalisation_of(progress), 40)
            first_words, _ = words_of_session(progress.totals, wake)
            has_words = bool(first_words.attempts)
            self.border_title = Content(f"95 % intervals · words: {name}" if has_words else TOTALS_TITLE)
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        rows = [*self._warning_rows(), *self._result_rows(width)]
        cells = [(f"{name:<{NAME_WIDTH}}", palette.QUIET, value) for name, value in rows]
        cells += [
            (f"{OUTCOME_WORDS[outcome]:<13}", palette.OUTCOMES[outcome], str(count))
            for outcome, count in self._progress.totals.by_outcome
        ]
        return Text("\n").join(Text.assemble((name, colour), (value, palette.TEXT)) for name, colour, value in cells)

    def _warning_rows(self) -> Iterator[tuple[str, str]]:
        """What makes the results doubtful, and whether the limits hold."""
        progress, disturbed = self._progress, self._progress.totals.disturbed
        if progress.unplanned_rows:
            yield "LOG", f"{counted(progress.unplanned_rows, 'row')} of unknown trials"
        if progress.unread:
            yield "NOT READ", f"{counted(progress.unread, 'line')} of devices"
        if disturbed.count:
            yield "BUSY HOST", f"{disturbed.count} of {counted(disturbed.total, 'attempt')} disturbed"
            yield "", f"in {disturbed_trials(progress, 1)}"
        if progress.late_sound.consequence:
            yield "BUSY HOST", f"{counted(progress.late_sound.blocks, 'block')} late or lost"
        limits = limits_so_far(self._criteria.limits, self._criteria.stopping, progress, self._wake)
        if limits:
            held_count = sum(limit.holds for limit in limits)
            verdict, _ = session_verdict(limits, progress)
            yield "Limits", f"{verdict} ({held_count} of {len(limits)} hold)"

    def _result_rows(self, width: int) -> list[tuple[str, str]]:
        progress, totals = self._progress, self._progress.totals
        first_words, _ = words_of_session(totals, self._wake)
        word_rows = [("WER 1st", wer(first_words, width - NAME_WIDTH))] if first_words.attempts else []
        faults = ("Faults", f"{progress.faults}   pauses {progress.pauses}   overruns {progress.late_sound.blocks}")
        if self._wake.planned and all(trial.trial.listening is not None for trial in progress.trials):
            return [*word_rows, faults, *_wake_rows(self._wake)]  # there are no queries
        rows: list[tuple[str, str]] = [
            *_frame_rows(progress),
            *_recognition_rows(progress),
            *word_rows,
            ("Lat. p50", median_latency(totals.latency, width - NAME_WIDTH)),
            ("Lat. p95", percentile(totals.latency.p95, totals.latency.total)),
            ("Answered", share(totals.answered)),
            ("Judged", f"{totals.judged} of {totals.to_judge}"),
        ]
        if not _repeats_until_understood(progress):
            rows.append(("Attempts", _attempts_text(totals.attempts_needed)))
        rows.append(faults)
        if self._wake.planned:
            rows += _wake_rows(self._wake)
        return rows


def _repeats_until_understood(progress: Progress) -> bool:
    """Whether some trials repeat until they are understood, and none until its words are recognised."""
    trials = [trial_progress.trial for trial_progress in progress.trials if trial_progress.trial.listening is None]
    return bool(trials) and all(trial.until_understood for trial in trials)


def _frame_rows(progress: Progress) -> Iterator[tuple[str, str]]:
    if not any(trial.trial.expects is not None for trial in progress.trials):
        return
    figures = progress.totals.understood
    yield "Frames", share(figures.right)
    yield "Intents", share(figures.intents)
    yield "Frame 1st", share(figures.first_right)
    yield "Understood", _attempts_text(figures.attempts_needed)


def _attempts_text(tallies: Iterable[tuple[int | None, Share]]) -> str:
    """`1st: 2  2nd: 1  never: 1`: trials by the attempt at which they succeeded."""
    counts = (f"{'never' if attempt is None else ordinal(attempt)}: {tally.count}" for attempt, tally in tallies)
    return "  ".join(counts) or NOTHING


def _recognition_rows(progress: Progress) -> Iterator[tuple[str, str]]:
    if not _repeats_until_understood(progress):
        yield "Recognised", share(progress.totals.recognised)
        yield "Recog. 1st", share(progress.totals.first_attempt)


def _wake_rows(wake: WakeProgress) -> Iterator[tuple[str, str]]:
    """Two lines for each device, with time-uniform intervals. The wake screen has the rest."""
    for device, name in zip(wake.devices, device_names(wake, NAME_WIDTH - 1), strict=True):
        ratio, rate = device.false_rejects, device.after_review
        yield name, f"FR {percent(ratio.share.value)} ({percent_interval(ratio.any_time)})"
        yield "", f"FA/h {number(rate.per_hour)} ({number_interval(rate.any_time)})"


MAX_NAME_COLUMNS = 24


class TrialList(RowList):
    """Follows the running trial until you move the selection; `end` follows again."""

    BINDINGS: ClassVar[list[BindingType]] = move_keys(
        "Previous trial", "Next trial", "First trial", ("follow", "Follow the run")
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Trials"
        self._trials: tuple[TrialProgress, ...] = ()
        self._selected = 0
        self._is_following = True
        self._names: list[str] = []
        """The trials' names, shortened to `_names_width` columns."""
        self._names_width = 0

    @property
    def count(self) -> int:
        return len(self._trials)

    @property
    def selected(self) -> TrialProgress | None:
        return self._trials[self._selected] if self._selected < len(self._trials) else None

    @property
    def is_selection_visible(self) -> bool:
        """Whether the selected trial is among the visible rows."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        return top <= self._selected < top + height

    def show(self, progress: Progress) -> None:
        if progress.trials == self._trials:
            return
        has_grown = len(progress.trials) != len(self._trials)
        self._trials = progress.trials
        if has_grown:
            self._names_width = 0
            self.fit()
        if self._is_following:
            self._select(self._running_index())
        self.refresh()

    def _running_index(self) -> int:
        """The trial that runs, else the last one with an outcome, else the first."""
        for index, trial in enumerate(self._trials):
            if trial.state is TrialState.RUNNING:
                return index
        for index in reversed(range(self.count)):
            if self._trials[index].outcome is not None:
                return index
        return 0

    def action_move(self, step: int) -> None:
        self._is_following = False
        self._select(self._selected + step)

    def action_follow(self) -> None:
        self._is_following = True
        self._select(self._running_index())

    def _select(self, index: int) -> None:
        self._selected = max(0, min(index, self.count - 1))
        chosen = None if self._is_following else self.selected
        self.border_title = named_title(self, "Trials: ", chosen.trial.id) if chosen else "Trials"
        if not self.is_selection_visible:
            # A list without a layout cannot scroll.
            self.call_after_refresh(self._scroll_to_selection)
        self.refresh()

    def _scroll_to_selection(self) -> None:
        """Scrolls to the selection at the list's current height. Without a height, a resize follows."""
        height = self.scrollable_content_region.height
        if height and not self.is_selection_visible:
            # Forced: a list whose scroll bar is not drawn yet would not scroll.
            self.scroll_to(y=self._selected - height // 2, animate=False, force=True)

    def on_resize(self) -> None:
        self._select(self._selected)

    def line(self, index: int, width: int) -> Text:
        trial = self._trials[index]
        is_selected = index == self._selected
        outcome, colour = self._outcome_text(trial)
        take = trial.counting or trial.current
        attempts = trial.attempts
        if attempts is None:  # it is not finished
            attempts = len(take.attempts) if take else 0
        deciding = take.deciding if take else None
        latency = deciding.verdict.latency if deciding and deciding.verdict else None
        mark = "›" if is_selected else " "
        if trial.state is TrialState.RUNNING:
            mark = "▶"
        digits = max(2, len(str(self.count)))
        text = Text(f"{mark}{trial.trial.number:>{digits}} ", style=palette.TEXT if is_selected else palette.QUIET)
        # The name gets what the mark, the number, the outcome (13), the attempts (3) and the latency (7) leave.
        names = self._names_within(max(8, min(MAX_NAME_COLUMNS, width - digits - 26)))
        name_width = max(map(len, names))
        columns = Text.assemble(
            (f"{set_cell_size(names[index], name_width)} ", palette.TEXT),
            (f"{outcome:<12} ", colour),
            (f"{f'×{attempts}' if attempts else '':<3}", palette.QUIET),
            (f"{seconds(latency.value_s) if latency and is_exact_enough(latency) else '':>7}", palette.TEXT),
        )
        text.append_text(columns)
        response = trial.response
        if response is not None and response.judgment is not None and width >= 58:
            judgment = response.judgment
            label = LABELS[judgment.category] if judgment.category else judgment.status.value
            text.append(f"  {label}", style=palette.BLUE)
        if width >= 64:
            text.append(f"  {query_text(trial.trial)}", style=palette.QUIET)
        return highlight(text, width) if is_selected else text

    def _names_within(self, width: int) -> list[str]:
        if width != self._names_width:
            self._names = short_names([trial.trial.id for trial in self._trials], width)
            self._names_width = width
        return self._names

    @staticmethod
    def _outcome_text(trial: TrialProgress) -> tuple[str, str]:
        if trial.state is TrialState.RUNNING:
            return "running", palette.BLUE
        if trial.rerun_asked:
            return "once more", palette.BLUE
        if trial.outcome is None:
            return "to come", palette.QUIET
        return OUTCOME_WORDS[trial.outcome], palette.OUTCOMES[trial.outcome]
