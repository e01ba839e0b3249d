"""Wake statistics as text: a block for each device, a comparison of devices, and a line for each trial as it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.foreign import plain_text
from harness.base.text_table import first_lines, labelled_lines
from harness.model import numbers
from harness.model.numbers import exact, fixed
from harness.model.observation import Wake, weak_evidence_text
from harness.model.record import AttemptFinished, Entry, Observed, ReviewVerdict, SessionStarted
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome, Trial
from harness.statistics import text
from harness.statistics.comparison import NOT_CORRECTED, MeasureKind, sentence
from harness.statistics.intervals import Share
from harness.wake.requests import CONSISTENT, GapRequests, ShortestPause, shortest_pause
from harness.wake.wake import DevicePair, WakeFigures, comparisons
from harness.wake.wake_plays import CommandResult, Play
from harness.wake.wake_progress import DeviceWake, Rate, Ratio, Recovery, UnmatchedWake, WakeProgress

NO_DATA = f"{numbers.NOTHING} (no data)"
ANY_TIME = (
    "at any time: holds whenever you look during a run, and is therefore wider unless no event came in the first 3 h"
)
MAX_TRIALS = 20
"""Number of trials that are listed of those in which only one device woke. The rest are only counted."""
REVIEW_WORDS: dict[ReviewVerdict, str] = {
    ReviewVerdict.FALSE_ACCEPT: "false accept",
    ReviewVerdict.REAL_PERSON: "real person",
    ReviewVerdict.SELF_WAKE: "self-wake",
    ReviewVerdict.STIMULUS_FAULT: "stimulus fault",
}


def review_in_words(verdict: ReviewVerdict | None) -> str:
    """The words for the result of a review; None is an event without one."""
    return "unreviewed" if verdict is None else REVIEW_WORDS[verdict]


def phrase_in_words(phrase: str) -> str:
    """The words for the phrase of an event, as its device reports it."""
    return plain_text(phrase, 80) or "an unnamed phrase"


def wake_summary(figures: WakeFigures) -> list[str]:
    """Lines for every device that listened and every pair of them; none without trials in which devices listen."""
    progress = figures.snapshot()
    pairs = comparisons(figures) if len(progress.devices) > 1 else ()
    lines = device_lines(progress)
    if pairs:
        lines.append("")
    for pair in pairs:
        lines += _pair_lines(pair)
    return [*lines, *correction_note(pairs)]


def device_lines(progress: WakeProgress) -> list[str]:
    """Lines for every device that listened; none without trials in which devices listen."""
    if not progress.planned:
        return []
    lines: list[str] = []
    for device in progress.devices:
        if lines:
            lines.append("")
        lines += _device_lines(device)
    return [*lines, "", ANY_TIME] if any("at any time" in line for line in lines) else lines


def _device_lines(device: DeviceWake) -> Iterator[str]:
    """The block of one device: false rejects, false accepts and exposure always, other results if there are any."""
    yield f"device {plain_text(device.device, 80)}"
    yield f"  false rejects      {ratio_text(device.false_rejects)}"
    yield f"  false accepts      {rate_text(device.after_review)}, after review"
    yield f"                     {rate_text(device.false_accepts)}, before review"
    proven, unproven = numbers.hours(device.exposure_s, 1), numbers.hours(device.unproven_s, 1)
    yield f"  heard              {proven} proven, {unproven} without proof"
    yield f"  wake delay         {text.delays(device.delays) if device.delays.measured else NO_DATA}"
    if device.double_wakes.count:
        yield f"  double wakes       {text.share_with_interval(device.double_wakes)}"
    yield from labelled_lines("  recovery", map(recovery_words, device.recoveries))
    if device.probes.total:
        yield f"  probes             {device.probes.count} of {device.probes.total} heard"
    if device.commands.total:
        wrong = f"{device.substituted} misunderstood, {device.missed} missed"
        yield f"  commands           {text.share_with_interval(device.commands)}; {wrong}"
    if device.first_sounds.times.measured:
        yield f"  first sound        {device.first_sounds}"
    events = ", ".join(f"{review_in_words(verdict)} {count}" for verdict, count in device.events) or "none"
    details = [
        f"{count} {label}"
        for count, label in (
            (device.in_vocabulary_events, "in wake trials"),
            (device.uncounted_events, "in trials that do not count"),
            (device.ambient_events_outside, "outside exposure"),
            (device.pending_events, "in an unfinished attempt"),
            (device.suppressed, "within the refractory time"),
        )
        if count
    ]
    details_text = f" ({', '.join(details)})" if details else ""
    yield f"  unmatched events   {events}{details_text}"
    if device.source_events:
        yield f"  sources            {disagreements(device)}, of {numbers.counted(device.source_events, 'event')}"
    for evidence, count in device.inferred:
        noun_and_verb = "event is" if count == 1 else "events are"
        yield f"  weak evidence      {count} {noun_and_verb} inferred from {plain_text(evidence, 60)}"
    for figure, passed in device.decisions:
        yield f"  sequential test    {figure.replace('_', ' ')}: {'passed' if passed else 'FAILED'}"
    for condition, condition_ratio in device.conditions:
        yield f"    {plain_text(condition, 60)}: {ratio_text(condition_ratio)}"


def recovery_words(recovery: Recovery) -> str:
    """`after the wake phrase: between 0.5 s (0 of 12 heard) and 2 s (12 of 12 heard)`."""
    shorter, enough = recovery.bracket_of_half
    stimulus = f'"{plain_text(recovery.say, 60)}"' if recovery.say else "the wake phrase"
    if enough is None:
        return f"after {stimulus}: not within {_pause_text(shorter)}"
    if shorter is None:
        return f"after {stimulus}: within {_pause_text(enough)}"
    return f"after {stimulus}: between {_pause_text(shorter)} and {_pause_text(enough)}"


def _pause_text(result: tuple[float, Share] | None) -> str:
    """`2 s (12 of 12 heard)`; "" for None. result: (pause in s, share of phrases that woke the device)."""
    if result is None:
        return ""
    pause_s, woke = result
    return f"{exact(pause_s)} s ({woke.count} of {woke.total} heard)"


def request_lines(device: str, gaps: Sequence[GapRequests]) -> Iterator[str]:
    """Lines for one device: the shortest pause from which requests arrive whole, the evidence, and the shares."""
    yield f"{plain_text(device, 60)}: {pause_words(shortest_pause(gaps))}"
    yield f"{consistent_words(gaps)}; {evidence_words(gaps)}"
    yield ", ".join(f"{gap.gap_ms} ms: {gap.whole.count} of {gap.whole.total}" for gap in gaps)


def pause_words(pause: ShortestPause | None) -> str:
    """`90 % arrive whole after between 250 and 500 ms (95 % interval 250 to 1000 ms)`."""
    if pause is None:
        return f"{numbers.NOTHING} (what arrived is not known)"
    if pause.enough is None:
        sentence = f"fewer than 90 % arrive whole after {pause.too_short} ms, the longest pause"
    elif pause.too_short is None:
        sentence = f"90 % arrive whole after {pause.enough} ms, the shortest pause"
    else:
        sentence = f"90 % arrive whole after between {pause.too_short} and {pause.enough} ms"
    low_ms, high_ms = pause.interval
    interval = f"{exact(low_ms)} ms and up" if high_ms is None else f"{exact(low_ms)} to {exact(high_ms)} ms"
    return f"{sentence} (95 % interval {interval})"


def consistent_words(gaps: Sequence[GapRequests]) -> str:
    """`first 10 of 10 after 500 ms`: the result as published procedures count."""
    pause = shortest_pause(gaps)
    if all(gap.total < CONSISTENT for gap in gaps):
        return f"fewer than {CONSISTENT} requests after each pause"
    if pause is None or pause.consistent is None:
        return f"not {CONSISTENT} of {CONSISTENT} after any pause"
    return f"first {CONSISTENT} of {CONSISTENT} after {pause.consistent} ms"


def evidence_words(gaps: Sequence[GapRequests]) -> str:
    """`judged by the words of transcripts, 2 unknown, 3 without a wake event`."""
    by_response, judged = sum(gap.by_response for gap in gaps), sum(gap.whole.total for gap in gaps)
    counts = (
        (judged - by_response, "judged by the words of transcripts"),
        (by_response, "judged by the expected response, without transcripts"),
        (sum(gap.unknown for gap in gaps), "unknown"),
        (sum(gap.unwoken for gap in gaps), "without a wake event"),
    )
    return ", ".join(f"{count} {label}" for count, label in counts if count)


def disagreements(device: DeviceWake) -> str:
    """`led but no log: 3, log but no led: 1`, or `all agree`; for a device with several sources."""
    parts = (
        f"{' and '.join(disagreement.seen)} but no {' or '.join(disagreement.missing)}: {disagreement.count}"
        for disagreement in device.disagreements
    )
    return plain_text(", ".join(parts), 300) or "all agree"


def _pair_lines(pair: DevicePair) -> Iterator[str]:
    counts = pair.counts
    yield (
        f"{plain_text(pair.first, 60)} against {plain_text(pair.second, 60)}: of the same {counts.total} stimuli, both "
        f"heard {counts.both}, only the first {counts.only_first}, only the second {counts.only_second}, "
        f"neither {counts.neither}{lag_text(pair)}"
    )
    yield f"  share heard        {heard_sentence(pair)}"


def correction_note(pairs: Sequence[DevicePair]) -> list[str]:
    """A note that the comparisons are not corrected for their number; [] for a single pair."""
    return [NOT_CORRECTED] if len(pairs) > 1 else []


def heard_sentence(pair: DevicePair, max_name: int = 60) -> str:
    """A sentence on which of two devices woke in more of the trials that count for both.

    max_name: number of characters to which the name of a device is shortened.
    """
    first, second = plain_text(pair.first, max_name), plain_text(pair.second, max_name)
    comparison = sentence(first, second, pair.counts.difference, MeasureKind.SHARE, more_is_better=True)
    return f"{comparison} (McNemar)"


def lag_text(pair: DevicePair) -> str:
    """`; the second woke +8.00 ms after the first, median of 40 (95 % +5.20 to +11.0 ms, …)`; "" without times."""
    if pair.lag.p50 is None:
        return ""
    median, low, high = (
        numbers.TOO_FEW if time_s is None else numbers.signed_ms(time_s)
        for time_s in (pair.lag.p50.value_s, pair.lag.p50.low_s, pair.lag.p50.high_s)
    )
    ends = low if low == high == numbers.TOO_FEW else f"{low} to {high} ms"
    return (
        f"; the second woke {median} ms after the first, median of {pair.lag.total} "
        f"(95 % {ends}, {text.clocks(pair.lag.error_s)})"
    )


def pairs_with_trials(pairs: Sequence[DevicePair]) -> Iterator[str]:
    """Comparisons with the rates of false accepts and the trials on which the devices differ."""
    for pair in pairs:
        yield from _pair_lines(pair)
        names = plain_text(pair.first, 60), plain_text(pair.second, 60)
        accepts = sentence(*names, pair.rates, MeasureKind.RATE, more_is_better=False)
        yield f"  false accepts      {accepts} (two Poisson rates)"
        for name, trials in ((pair.first, pair.only_first), (pair.second, pair.only_second)):
            if trials:
                trial_names = first_lines([plain_text(trial, 60) for trial in trials], MAX_TRIALS)
                yield f"  only {plain_text(name, 40)}: {', '.join(trial_names)}"
    yield from correction_note(pairs)


def ratio_text(value: Ratio) -> str:
    """`3 of 120 = 2.50 % (95 % exact 0.52–7.13 %; at any time 0.15–10.4 %)`, or `… over 5 voices …`.

    Also `… exact, talkers unknown: …`, and `3 of 120 = 2.50 % (too few voices for an interval: over 1 voice)`.
    """
    if value.share.value is None:
        return NO_DATA
    basis = text.basis(value.voices, value.speakers.unknown)
    if value.interval is None:
        return f"{text.share(value.share)} ({text.TOO_FEW_VOICES}: {basis})"
    colon = ":" if value.speakers.unknown else ""
    ends, any_time = text.percent_interval(value.interval), text.percent_interval(value.any_time)
    return f"{text.share(value.share)} (95 % {basis}{colon} {ends}; at any time {any_time})"


def rate_text(value: Rate) -> str:
    """`4 in 0.500 h = 8.00/h (95 % exact 2.18–20.5; at any time 0.51–34.1)`."""
    if value.per_hour is None:
        return f"{value.count} in 0 h: {numbers.NOTHING}"
    intervals = f"95 % exact {text.number_interval(value.interval)}; at any time {text.number_interval(value.any_time)}"
    return f"{value.count} in {numbers.exposure(value.hours)} = {numbers.number(value.per_hour)}/h ({intervals})"


class WakeLines:
    """Describes in lines how each row of a log changes the results. Rows must be added in their order."""

    def __init__(self) -> None:
        self.figures = WakeFigures()
        self._trials: dict[str, Trial] = {}
        self._trial_count = 0
        self._printed_events: set[int] = set()

    def add(self, entry: Entry) -> list[str]:
        """The lines for a row; most have none."""
        self.figures.add(entry)
        match entry.record:
            case SessionStarted(trials=trials):
                self._trials = {trial.id: trial for trial in trials if trial.listening is not None}
                self._trial_count = len(trials)
            case AttemptFinished(trial_id=trial_id, outcome=outcome) if trial_id in self._trials:
                lines: list[str] = []
                if outcome in (Outcome.COUNTED, Outcome.NO_WAKE):
                    lines += self._trial_lines(self._trials[trial_id])
                return [*lines, *self._new_event_lines()]
            case Observed(observation=Wake()) if self._trials:
                return list(self._new_event_lines())
            case _:
                pass
        return []

    def _trial_lines(self, trial: Trial) -> Iterator[str]:
        """The results of a trial that has just ended, one line for each device for which it counts."""
        assert trial.listening is not None
        place = f"{trial.number}/{self._trial_count} {trial.id}"
        for target in trial.listening.targets:
            play = next(
                (play for play in reversed(self.figures.plays(target.device)) if play.trial.id == trial.id), None
            )
            if play is not None:
                yield plain_text(f"{place} {target.device}: {self._result_text(play)}", 400)

    def _result_text(self, play: Play) -> str:
        """The result of a play that counts; for probes and ambient sound also the sums so far."""
        wake = self.figures.snapshot().device(play.target.device)
        assert wake is not None
        match play.kind:
            case TrialKind.AMBIENT:
                unproven_s = play.reading.unproven_s
                unproven = f", {numbers.seconds(unproven_s)} of it unproven" if unproven_s >= 0.05 else ""
                played = numbers.seconds(play.end_s - play.start_s)
                return f"ambient {played}{unproven}; so far {rate_text(wake.after_review)}"
            case TrialKind.COMMAND:
                return _wake_text(play) + _understood(play)
            case TrialKind.PROBE if play.reading.hit is None:
                return "PROBE UNHEARD: the sound since the last probe is unproven"
            case TrialKind.PROBE:
                return f"probe heard: the device listens; so far {numbers.seconds(wake.exposure_s)} proven"
            case _:
                return _wake_text(play)

    def _new_event_lines(self) -> Iterator[str]:
        """Lines for unmatched events that have none yet, the earliest first."""
        for event in reversed(self.figures.snapshot().unmatched):
            if event.seq not in self._printed_events:
                self._printed_events.add(event.seq)
                yield unmatched_line(event)


def unmatched_line(event: UnmatchedWake) -> str:
    """`    UNMATCHED kitchen woke on "alexa" (0.83), 12.345 s into ambient-003; event 912`."""
    phrase = f' on "{plain_text(event.phrase, 60)}"' if event.phrase else ""
    score = "" if event.score is None else f" ({fixed(event.score, 2)})"
    place = "between trials"
    if event.trial_id is not None:
        offset = "" if event.offset_s is None else f"{numbers.moment(event.offset_s)} "
        place = f"{offset}into {plain_text(event.trial_id, 80)}"
    exposure_note = "" if event.exposed else ", outside exposure: not counted"
    rule = "" if event.rule is None else f", {REVIEW_WORDS[event.rule]} by rule: {plain_text(event.why, 100)}"
    device = plain_text(event.device, 60)
    weak = weak_evidence_text(plain_text(event.inferred, 60), ", ")
    return f"    UNMATCHED {device} woke{phrase}{score}, {place}; event {event.seq}{exposure_note}{rule}{weak}"


def _wake_text(play: Play) -> str:
    reading = play.reading
    if reading.hit is None:
        return "FALSE REJECT" if play.kind is TrialKind.WAKE else "no wake event"
    score = "" if reading.hit.score is None else f", score {fixed(reading.hit.score, 2)}"
    score += weak_evidence_text(plain_text(reading.hit.inferred, 60), ", ")
    if reading.delay is None:
        return f"hit{score}"
    return f"hit, {text.measured(reading.delay)} after the phrase{score}"


def _understood(play: Play) -> str:
    words = f'"{plain_text(play.reading.heard, 200)}"'
    match play.reading.command:
        case CommandResult.MATCH:
            return f"; understood {words}"
        case CommandResult.SUBSTITUTION:
            return f"; MISUNDERSTOOD as {words}"
        case CommandResult.MISSING:
            return "; understood NOTHING"
        case None:
            return ""
