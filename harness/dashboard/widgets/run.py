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
from harness.dashboard.widgets.bars import Painted, RowList, Showing, highlight, move_keys, named_title
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
from harness.understanding.reported_frames import FramePart, PartMark, compared, parts_of, verdict_in_words
from harness.wake.wake_progress import WakeProgress

KEPT = 2000

_COLOURS = {
    LineTone.QUIET: palette.QUIET,
    LineTone.PLAIN: palette.TEXT,
    LineTone.GOOD: palette.GREEN,
    LineTone.PERSON: palette.YELLOW,
    LineTone.FAULT: palette.RED,
}


class EventLog(RowList):
    """Keeps the last `KEPT` lines, and stays at the end unless you scroll up."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = "Events"
        self._events: list[EventLine] = []
        self._is_at_end = True
        self._is_to_scroll = False

    @property
    def count(self) -> int:
        return len(self._events)

    def extend(self, lines: Sequence[EventLine]) -> None:
        if not lines:
            return
        # Lines that come faster than they are drawn find the log where the lines before will still scroll it.
        self._is_at_end = self._is_to_scroll or self.scroll_offset.y >= self.max_scroll_y
        events = list(self._events)
        for line in lines:
            together = line.after(events[-1]) if events else None
            if together is None:
                events.append(line)
            else:
                events[-1] = together
        self._events = events[-KEPT:]
        self.fit()
        self._stay_at_end()

    def on_resize(self) -> None:
        self._stay_at_end()

    def _stay_at_end(self) -> None:
        if self._is_at_end:
            # Forced: the new lines have no layout yet, and a list without a scroll bar refuses to scroll.
            self._is_to_scroll = True
            self.call_after_refresh(self._scroll_to_end)

    def _scroll_to_end(self) -> None:
        self._is_to_scroll = False
        self.scroll_end(animate=False, force=True, immediate=True)

    def line(self, index: int, width: int) -> Text:
        event = self._events[index]
        text = Text(f"{event.clock} ", style=palette.RULE if width < 30 else palette.QUIET)
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


class FramePanel(Painted):
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
        *before, last = self._attempts
        head, *part_lines = _last_frame(self._trial, last)
        if 1 + len(part_lines) > height:
            part_lines = _pack(part_lines, width)
        lines = [head, *part_lines, *(_frame_before(self._trial, attempt) for attempt in reversed(before))]
        if 1 + len(part_lines) > height:
            lines = [
                *lines[: height - 1],
                Text(f"… {1 + len(part_lines) - height + 1} more lines", style=palette.QUIET),
            ]
        return Text("\n").join(lines[:height])


def _reported_frame(attempt: AttemptProgress) -> UnderstandingResult | None:
    return None if attempt.verdict is None else attempt.verdict.understood


def _pack(parts: Sequence[Text], width: int) -> list[Text]:
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + 2 + part.cell_len <= width:
            lines[-1] = Text("  ").join((lines[-1], part))
        else:
            lines.append(part)
    return lines


def _last_frame(trial: Trial, attempt: AttemptProgress) -> list[Text]:
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
    return [head, *(_part(part) for part in parts)]


def _part(part: FramePart) -> Text:
    style = _STYLES[part.mark]
    sign = Text(f"{part.mark.sign} ", style=Style(color=style.color))
    text = (
        plain_text(part.name, 80) if part.value is None else f"{plain_text(part.name, 40)} “{plain_text(part.value)}”"
    )
    sign.append(text, style=style)
    if part.mark is PartMark.OTHER_VALUE:
        sign.append(f", not “{plain_text(part.wanted or '')}”", style=palette.TEXT)
    return sign


def _frame_before(trial: Trial, attempt: AttemptProgress) -> Text:
    """The errors of an earlier attempt, on one line."""
    frame, row = _reported_frame(attempt), attempt.verdict
    wrong = [] if row is None else [part for part in parts_of(trial, row) if part.mark is not PartMark.RIGHT]
    summary = compared(wrong) or ("" if frame is None else verdict_in_words(frame))
    return Text(f"×{attempt.attempt} {summary}", style=palette.QUIET)


MIN_DBFS = -80.0
LOUD_DBFS = -6.0
_EIGHTHS = " ▏▎▍▌▋▊▉"


def cells(value_dbfs: float, width: int) -> float:
    """The position of a level on a scale of `width` cells."""
    return max(0.0, min(1.0, 1 - value_dbfs / MIN_DBFS)) * width


class LevelMeters(Showing[Meters]):
    """Two bars from −80 to 0 dBFS; `│` marks the noise floor."""

    DEFAULT_CSS = "LevelMeters { height: 2; padding: 0 1; }"

    def paint(self, width: int, height: int) -> Text:
        now = self.shown or Meters(None, None, None)
        speaker = self._bar("Speaker   ", now.speaker_dbfs, None, width, palette.BLUE)
        microphone = self._bar("Microphone", now.microphone_dbfs, now.noise_floor_dbfs, width, palette.GREEN)
        return speaker.append("\n").append_text(microphone)

    @staticmethod
    def _bar(name: str, value: float | None, floor: float | None, width: int, colour: str) -> Text:
        room = max(4, width - 40)
        filled = 0.0 if value is None else cells(value, room)
        whole = int(filled)
        bar = "█" * whole + (_EIGHTHS[int((filled - whole) * 8)] if whole < room else "")
        bar = bar.replace(" ", "").ljust(room, "·")[:room]
        loud = value is not None and value > LOUD_DBFS
        text = Text(f"{name} ", style=palette.QUIET)
        drawn = len(bar.rstrip("·"))
        text.append(bar[:drawn], style=palette.ORANGE if loud else colour)
        text.append(bar[drawn:], style=palette.RULE)
        if floor is not None:
            column = len(name) + 1 + min(room - 1, int(cells(floor, room)))
            text = Text.assemble(text[:column], ("│", palette.YELLOW), text[column + 1 :])
        text.append(f" {level(value):>8}", style=palette.TEXT)
        if loud:
            text.append(" loud", style=palette.ORANGE)
        elif floor is not None:
            text.append(f"  floor {level(floor)}", style=palette.YELLOW)
        return text


TOTALS_TITLE = "So far (95 % intervals)"
NAMES = 11  # columns


class TotalsPanel(Painted):
    """Rates with 95 % intervals; n/a where nothing was counted."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = TOTALS_TITLE
        self._progress = Progress()
        self._wake = WakeProgress()
        self._criteria = DeclaredCriteria()

    def show(self, progress: Progress, wake: WakeProgress, declared: DeclaredCriteria | None = None) -> None:
        if progress != self._progress or wake is not self._wake:
            self._progress, self._wake, self._criteria = progress, wake, declared or self._criteria
            name = plain_text(normalisation_of(progress), 40)
            heard = words_of_session(progress.totals, wake)[0].attempts
            self.border_title = Content(f"95 % intervals · words: {name}" if heard else TOTALS_TITLE)
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        progress, totals = self._progress, self._progress.totals
        first, _ = words_of_session(totals, self._wake)
        heard = [("WER 1st", wer(first, width - NAMES))] if first.attempts else []
        faults = ("Faults", f"{progress.faults}   pauses {progress.pauses}   overruns {progress.late_sound.blocks}")
        rows: list[tuple[str, str]] = [
            *_frames(progress),
            *_recognition_cells(progress),
            *heard,
            ("Lat. p50", median_latency(totals.latency, width - NAMES)),
            ("Lat. p95", percentile(totals.latency.p95, totals.latency.total)),
            ("Answered", share(totals.answered)),
            ("Judged", f"{totals.judged} of {totals.to_judge}"),
        ]
        if not _until_understood(progress):
            rows.append(("Attempts", _attempts(totals.attempts_needed)))
        rows.append(faults)
        if self._wake.planned:
            if all(trial.trial.listening is not None for trial in progress.trials):
                rows = [*heard, faults]
            rows += _wake_rows(self._wake)
        if limits := limits_so_far(self._criteria.limits, self._criteria.stopping, progress, self._wake):
            held_count = sum(limit.holds for limit in limits)
            verdict, _ = session_verdict(limits, progress)
            rows.insert(0, ("Limits", f"{verdict} ({held_count} of {len(limits)} hold)"))
        if progress.late_sound.consequence:
            rows.insert(0, ("BUSY HOST", f"{counted(progress.late_sound.blocks, 'block')} late or lost"))
        if totals.disturbed.count:
            attempts = counted(totals.disturbed.total, "attempt")
            rows.insert(0, ("", f"in {disturbed_trials(progress, 1)}"))
            rows.insert(0, ("BUSY HOST", f"{totals.disturbed.count} of {attempts} disturbed"))
        if progress.unread:
            rows.insert(0, ("NOT READ", f"{counted(progress.unread, 'line')} of devices"))
        if progress.unplaced:
            rows.insert(0, ("LOG", f"{counted(progress.unplaced, 'row')} of unknown trials"))
        items = [(f"{name:<{NAMES}}", palette.QUIET, value) for name, value in rows]
        items += [
            (f"{OUTCOME_WORDS[outcome]:<13}", palette.OUTCOMES[outcome], str(n)) for outcome, n in totals.by_outcome
        ]
        return Text("\n").join(Text.assemble((name, colour), (value, palette.TEXT)) for name, colour, value in items)


def _until_understood(progress: Progress) -> bool:
    """Whether some trials repeat until they are understood, and none until its words are recognised."""
    trials = [trial_progress.trial for trial_progress in progress.trials if trial_progress.trial.listening is None]
    return bool(trials) and all(trial.until_understood for trial in trials)


def _frames(progress: Progress) -> Iterator[tuple[str, str]]:
    if not any(trial.trial.expects is not None for trial in progress.trials):
        return
    figures = progress.totals.understood
    yield "Frames", share(figures.right)
    yield "Intents", share(figures.intents)
    yield "Frame 1st", share(figures.first_right)
    yield "Understood", _attempts(figures.attempts_needed)


def _attempts(tallies: Iterable[tuple[int | None, Share]]) -> str:
    """`1st: 2  2nd: 1  never: 1`: trials by the attempt at which they succeeded."""
    counts = (f"{'never' if attempt is None else ordinal(attempt)}: {tally.count}" for attempt, tally in tallies)
    return "  ".join(counts) or NOTHING


def _recognition_cells(progress: Progress) -> Iterator[tuple[str, str]]:
    if not _until_understood(progress):
        yield "Recognised", share(progress.totals.recognised)
        yield "Recog. 1st", share(progress.totals.first_attempt)


def _wake_rows(wake: WakeProgress) -> Iterator[tuple[str, str]]:
    """Two lines for each device, with time-uniform intervals. The wake screen has the rest."""
    for device in wake.devices:
        ratio, rate = device.false_rejects, device.after_review
        name = plain_text(device.device, 10)
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
        self._following = True
        self._names: list[str] = []
        self._names_for = 0

    @property
    def count(self) -> int:
        return len(self._trials)

    @property
    def selected(self) -> TrialProgress | None:
        return self._trials[self._selected] if self._selected < len(self._trials) else None

    @property
    def in_sight(self) -> bool:
        """Whether the selected trial is among the visible rows."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        return top <= self._selected < top + height

    def show(self, progress: Progress) -> None:
        if progress.trials == self._trials:
            return
        grown = len(progress.trials) != len(self._trials)
        self._trials = progress.trials
        if grown:
            self._names_for = 0
            self.fit()
        if self._following:
            going = next((n for n, trial in enumerate(self._trials) if trial.state is TrialState.RUNNING), None)
            last = next((n for n in reversed(range(self.count)) if self._trials[n].outcome is not None), 0)
            self._select(last if going is None else going)
        self.refresh()

    def action_move(self, step: int) -> None:
        self._following = False
        self._select(self._selected + step)

    def action_follow(self) -> None:
        self._following = True
        trials, self._trials = self._trials, ()
        self.show(Progress(trials=trials))

    def _select(self, index: int) -> None:
        self._selected = max(0, min(index, self.count - 1))
        chosen = None if self._following else self.selected
        self.border_title = named_title(self, "Trials: ", chosen.trial.id) if chosen else "Trials"
        if not self.in_sight:
            # A list without a layout cannot scroll.
            self.call_after_refresh(self._bring_into_sight)
        self.refresh()

    def _bring_into_sight(self) -> None:
        """Scrolls to the selection at the list's current height. Without a height, a resize follows."""
        height = self.scrollable_content_region.height
        if height and not self.in_sight:
            # Forced: a list whose scroll bar is not drawn yet would not scroll.
            self.scroll_to(y=self._selected - height // 2, animate=False, force=True)

    def on_resize(self) -> None:
        self._select(self._selected)

    def line(self, index: int, width: int) -> Text:
        trial = self._trials[index]
        chosen = index == self._selected
        word, colour = self._outcome(trial)
        take = trial.counting or trial.current
        attempts = trial.attempts
        if attempts is None:
            attempts = len(take.attempts) if take else 0
        deciding = take.deciding if take else None
        latency = deciding.verdict.latency if deciding and deciding.verdict else None
        cursor = "›" if chosen else " "
        mark = "▶" if trial.state is TrialState.RUNNING else cursor
        digits = max(2, len(str(self.count)))
        text = Text(f"{mark}{trial.trial.number:>{digits}} ", style=palette.TEXT if chosen else palette.QUIET)
        # mark and number, outcome 13, attempts 3, latency 7; the name gets the rest
        names = self._names_within(max(8, min(MAX_NAME_COLUMNS, width - digits - 26)))
        name_width = max(map(len, names))
        columns = Text.assemble(
            (f"{set_cell_size(names[index], name_width)} ", palette.TEXT),
            (f"{word:<12} ", colour),
            (f"{f'×{attempts}' if attempts else '':<3}", palette.QUIET),
            (f"{seconds(latency.value_s) if latency and is_exact_enough(latency) else '':>7}", palette.TEXT),
        )
        text.append_text(columns)
        response = trial.response
        if response is not None and response.judgment is not None and width >= 58:
            judgment = response.judgment
            text.append(
                f"  {LABELS[judgment.category] if judgment.category else judgment.status.value}", style=palette.BLUE
            )
        if width >= 64:
            text.append(f"  {query_text(trial.trial)}", style=palette.QUIET)
        return highlight(text, width) if chosen else text

    def _names_within(self, width: int) -> list[str]:
        if width != self._names_for:
            self._names = short_names([trial.trial.id for trial in self._trials], width)
            self._names_for = width
        return self._names

    @staticmethod
    def _outcome(trial: TrialProgress) -> tuple[str, str]:
        if trial.state is TrialState.RUNNING:
            return "running", palette.BLUE
        if trial.rerun_asked:
            return "once more", palette.BLUE
        if trial.outcome is None:
            return "to come", palette.QUIET
        return OUTCOME_WORDS[trial.outcome], palette.OUTCOMES[trial.outcome]
