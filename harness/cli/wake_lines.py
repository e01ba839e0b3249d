"""What wake, command and ambient trials come to, a line for each device, for the plain printer."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.foreign import plain_text
from harness.cli.happenings import REVIEW_WORDS, milliseconds, quoted
from harness.cli.wake_summary import rate, span
from harness.model.observation import Wake
from harness.model.record import AttemptFinished, Entry, Observed, SessionStarted
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome, Trial
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import CommandWord, Play
from harness.wake.wake_progress import DeviceWake, WakeEvent


class WakeLines:
    """Takes a log's rows in their order, and says what each has made of the figures."""

    def __init__(self) -> None:
        self.figures = WakeFigures()
        self._trials: dict[str, Trial] = {}
        self._planned = 0
        self._told: set[int] = set()

    def add(self, entry: Entry) -> list[str]:
        """The lines for a row; most have none."""
        self.figures.add(entry)
        match entry.record:
            case SessionStarted(trials=trials):
                self._trials = {one.id: one for one in trials if one.listening is not None}
                self._planned = len(trials)
            case AttemptFinished(outcome=Outcome.COUNTED | Outcome.NO_WAKE, trial_id=trial_id) if (
                trial_id in self._trials
            ):
                return [*self._verdicts(self._trials[trial_id]), *self._unmatched()]
            case AttemptFinished(trial_id=trial_id) if trial_id in self._trials:
                return list(self._unmatched())
            case Observed(observation=Wake()) if self._trials:
                return list(self._unmatched())
            case _:
                pass
        return []

    def _verdicts(self, trial: Trial) -> Iterator[str]:
        """One line for each device that has heard the trial."""
        assert trial.listening is not None
        place = f"{trial.number}/{self._planned} {trial.id}"
        for target in trial.listening.targets:
            play = next((one for one in reversed(self.figures.plays(target.device)) if one.trial.id == trial.id), None)
            if play is not None:
                yield plain_text(f"{place} {target.device}: {self._verdict(play)}", 400)

    def _verdict(self, play: Play) -> str:
        match play.kind:
            case TrialKind.AMBIENT:
                return self._ambient(play)
            case TrialKind.COMMAND:
                return _woke(play) + _understood(play)
            case TrialKind.PROBE if play.reading.hit is None:
                return "PROBE UNHEARD: what was heard since the last one is unproven"
            case TrialKind.PROBE:
                return f"probe heard: it listens; so far {span(self._device(play).exposure_s)} proven"
            case _:
                return _woke(play)

    def _ambient(self, play: Play) -> str:
        found = self._device(play)
        unproven = f", {span(play.reading.unproven_s)} of it unproven" if play.reading.unproven_s >= 0.05 else ""
        return f"ambient {span(play.end_s - play.start_s)}{unproven}; so far {rate(found.after_review)}"

    def _device(self, play: Play) -> DeviceWake:
        found = self.figures.snapshot().device(play.target.device)
        assert found is not None
        return found

    def _unmatched(self) -> Iterator[str]:
        for event in reversed(self.figures.snapshot().unmatched):
            if event.seq not in self._told:
                self._told.add(event.seq)
                yield unmatched_line(event)


def unmatched_line(event: WakeEvent) -> str:
    """`    UNMATCHED kitchen woke on "alexa" (0.83), 12.34 s into ambient-003; event 912`."""
    phrase = f" on {quoted(event.phrase, 60)}" if event.phrase else ""
    score = "" if event.score is None else f" ({event.score:.2f})"
    where = "between trials"
    if event.trial_id is not None:
        offset = "" if event.offset_s is None else f"{event.offset_s:.2f} s "
        where = f"{offset}into {plain_text(event.trial_id, 80)}"
    outside = "" if event.exposed else ", outside of exposure: it counts nowhere"
    rule = "" if event.rule is None else f", {REVIEW_WORDS[event.rule]} by rule: {plain_text(event.why, 100)}"
    device = plain_text(event.device, 60)
    return f"    UNMATCHED {device} woke{phrase}{score}, {where}; event {event.seq}{outside}{rule}"


def _woke(play: Play) -> str:
    reading = play.reading
    if reading.hit is None:
        return "FALSE REJECT" if play.kind is TrialKind.WAKE else "no wake event"
    score = "" if reading.hit.score is None else f", score {reading.hit.score:.2f}"
    if reading.delay is None:
        return f"woke{score}"
    return f"hit, {milliseconds(reading.delay)} after the phrase{score}"


def _understood(play: Play) -> str:
    heard = quoted(play.reading.heard)
    match play.reading.command:
        case CommandWord.MATCH:
            return f"; understood {heard}"
        case CommandWord.SUBSTITUTION:
            return f"; MISUNDERSTOOD as {heard}"
        case CommandWord.MISSING:
            return "; understood NOTHING"
        case None:
            return ""
