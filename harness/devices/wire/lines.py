"""Applies a profile's line rules: one line in, observations out, with state over several lines. No I/O, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import regex

from harness.devices.wire.line_clock import DeviceTime, LineClock, read_time
from harness.devices.wire.thresholds import SEARCH_LIMIT_S, StateChange, ThresholdState
from harness.model.bench import ClockKind, ConsoleSettings, LineMapping, MessageMapping, ObservationKind, Threshold
from harness.model.frozen import frozen
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    Intent,
    ListeningProved,
    LogLine,
    Observation,
    Proof,
    ResponseText,
    StateTold,
    Status,
    Transcript,
    Unread,
    Wake,
)
from harness.model.time import Stamp


class MappingError(Exception):
    """A message lacks something that a rule needs; the text says what."""


SLOT = "slot_"
LINE_ENDS = re.compile(rb"[\r\n]+")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NOT_FINAL_WORDS = {"false", "0", "no", "partial"}
"""The device's words for a transcript that is not final; if it sends none, the transcript is final."""


@frozen
class LineFields:
    """The values gathered from the lines of an observation.

    - groups: name → text (a later line does not overwrite an earlier one).
    - slots: (name, value), in their order.
    - device_s, audio_s: times in the lines.
    - block_score: best score of a block. None: not given.
    """

    groups: dict[str, str] = field(default_factory=dict)
    slots: tuple[tuple[str, str], ...] = ()
    device_s: float | None = None
    audio_s: float | None = None
    block_score: float | None = None

    def with_match(self, match: regex.Match[str]) -> LineFields:
        """Adds the groups of one more line. A `slot` with its `value`, and each slot_NAME, adds a slot.

        A `value` without a `slot` is a field (of a piece of state).
        """
        groups, pairs = _groups(match), _pairs(match)
        slots = [(name.removeprefix(SLOT), text) for name, text in groups.items() if name.startswith(SLOT)]
        if pairs or "slot" in groups:
            slots += pairs or [(groups["slot"], groups.get("value", ""))]
            groups = {name: text for name, text in groups.items() if name not in ("slot", "value")}
        return replace(self, groups={**groups, **self.groups}, slots=(*self.slots, *slots))

    def with_best_word(self, word: str, score: float) -> LineFields:
        """Adds the word with the best score of a block."""
        return replace(self, groups={**self.groups, "phrase": word}, block_score=score)

    def text(self, mapping: LineMapping, name: str) -> str:
        """A field: the text in `fields` (empty if one of its groups is missing), else the group of that name."""
        template = dict(mapping.fields).get(name)
        if template is None:
            text = self.groups.get(name, "")
        elif any(group not in self.groups for group in _PLACEHOLDER.findall(template)):
            text = ""
        else:
            text = _PLACEHOLDER.sub(lambda group: self.groups[group[1]], template)
        return text.strip()

    def score(self, mapping: LineMapping) -> float | None:
        """The score as 0–1 by the rule's scale; None when it is missing or out of range."""
        if self.block_score is not None:
            return self.block_score
        return scaled_score(self.text(mapping, "score"), mapping.score_scale)


def scaled_score(text: str, scale: float) -> float | None:
    """A score as 0–1; None when it is missing or out of range."""
    try:
        value = float(text) / scale
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None


FIELDS: dict[ObservationKind, tuple[str, ...]] = {
    ObservationKind.WAKE: ("phrase", "score", "inferred"),
    ObservationKind.TRANSCRIPT: ("text", "final"),
    ObservationKind.INTENT: ("name", "slots", "score"),
    ObservationKind.NOT_UNDERSTOOD: (),
    ObservationKind.RESPONSE: ("text",),
    ObservationKind.STATUS: ("state", "detail"),
    ObservationKind.STATE: ("name", "value"),
    ObservationKind.LOG: ("text",),
    ObservationKind.LISTENING: (),
    ObservationKind.ABOUT: ("firmware", "serial"),
    ObservationKind.LOST: ("count",),
}
"""The fields that a rule of each kind may fill in."""

REQUIRED: dict[ObservationKind, str] = {
    ObservationKind.TRANSCRIPT: "text",
    ObservationKind.INTENT: "name",
    ObservationKind.RESPONSE: "text",
    ObservationKind.STATUS: "state",
    ObservationKind.STATE: "name",
    ObservationKind.LOG: "text",
}
"""The required field of each kind. If no fields are named, it is the whole payload."""


def observation(
    mapping: LineMapping | MessageMapping,
    texts: Mapping[str, str],
    stamp: Stamp,
    source: str,
    *,
    slots: tuple[tuple[str, str], ...] = (),
    score: float | None = None,
    audio_s: float | None = None,
) -> Observation:
    """The observation of a rule's kind. texts: the text of each of its FIELDS; "" if it is missing.

    Raises MappingError for a state that the rule does not translate into one of the harness's.
    """
    translations = dict(mapping.values)

    def translated(name: str) -> str:
        """A field, by the rule's `values` if it is among them."""
        return translations.get(texts[name], texts[name])

    match mapping.kind:
        case ObservationKind.WAKE:
            return Wake(source, stamp, translated("phrase"), score, audio_s, texts["inferred"])
        case ObservationKind.TRANSCRIPT:
            is_final = texts["final"].strip().lower() not in _NOT_FINAL_WORDS
            return Transcript(source, stamp, texts["text"].strip(), is_final, audio_s)
        case ObservationKind.INTENT:
            return Intent(source, stamp, translated("name"), slots, score, audio_s)
        case ObservationKind.NOT_UNDERSTOOD:
            return Intent(source, stamp, "", audio_s=audio_s)
        case ObservationKind.RESPONSE:
            return ResponseText(source, stamp, texts["text"].strip())
        case ObservationKind.STATUS:
            state_text = translated("state")
            try:
                state = DeviceState(state_text)
            except ValueError as error:
                raise MappingError(f"the state {state_text!r} is not mapped") from error
            return Status(source, stamp, state, texts["detail"])
        case ObservationKind.STATE:
            return StateTold(source, stamp, translated("name"), texts["value"])
        case ObservationKind.LOG:
            return LogLine(source, stamp, texts["text"])
        case ObservationKind.LISTENING:
            return ListeningProved(source, stamp, Proof.HEARTBEAT)
        case ObservationKind.ABOUT:
            return DeviceDescribed(source, stamp, texts["firmware"], texts["serial"])
        case ObservationKind.LOST:
            return Unread(source, stamp, LOST, _lines_lost(texts["count"]))


def observation_of_lines(mapping: LineMapping, fields: LineFields, stamp: Stamp, source: str) -> Observation:
    """The observation for the gathered fields. Raises MappingError when a required one is missing."""
    texts = {name: fields.text(mapping, name) for name in FIELDS[mapping.kind]}
    score, audio_s = fields.score(mapping), fields.audio_s
    result = observation(mapping, texts, stamp, source, slots=fields.slots, score=score, audio_s=audio_s)
    match mapping.kind, result:
        case ObservationKind.INTENT, Intent(name=""):
            raise MappingError("the intent has no name")
        case _, StateTold(name=""):
            raise MappingError("the reported state has no name")
    return result


LOST = "the device reports that lines were lost"


def _lines_lost(count: str) -> int:
    """The number of lost lines that a device reports; 1 if it reports no number."""
    return int(count) if count.isascii() and count.isdecimal() and 0 < len(count) < 10 else 1


MAX_SLOW = 3  # After so many slow searches, a rule is ignored: it would delay all later lines.
MAX_PENDING = 8  # Observations that wait for further lines. A device must not fill the memory.
MAX_SLOTS = 32

_AUDIO_CLOCKS = {ClockKind.AUDIO_S, ClockKind.AUDIO_MS}


@frozen
class LineReading:
    """The result of one line.

    - rule: number of the rule that matched, from 0; None: none did.
    - why: the problem, if a rule matched but gave nothing, or the line was cut; else "".
    - device_s: time in the line; None without one.
    - unread: whether the line was not read.
    - waiting: whether an observation waits for further lines.
    - level: state of the threshold that has read the line, in words; "" if none has.
    """

    text: str
    at: Stamp
    observations: tuple[Observation, ...] = ()
    rule: int | None = None
    why: str = ""
    device_s: float | None = None
    unread: bool = False
    waiting: bool = False
    level: str = ""


@dataclass(slots=True)
class _Rule:
    """A rule with compiled expressions.

    - slow: number of searches that exceeded the time limit.
    - reported: words of a block that were reported, and whose score has not fallen below the threshold since.
    """

    number: int
    mapping: LineMapping
    match: regex.Pattern[str]
    more: tuple[regex.Pattern[str], ...]
    until: regex.Pattern[str] | None
    slow: int = 0
    reported: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _PendingObservation:
    """An observation that waits for its further lines.

    - raw, at: its first line, and its time.
    - since_s: when that line arrived.
    - matched: numbers of the `more` expressions that have matched.
    - lines: number of lines since.
    - scores: best score of each word of a block.
    """

    rule: _Rule
    raw: str
    at: Stamp
    since_s: float
    fields: LineFields
    matched: set[int] = field(default_factory=set)
    lines: int = 0
    scores: dict[str, float] = field(default_factory=dict)


class LineRules:
    """The rules of one console, in order: the first that matches a line is applied.

    MAX_SLOW searches that their time limit ends disable a rule.
    """

    def __init__(
        self,
        mappings: Iterable[LineMapping],
        settings: ConsoleSettings,
        source: str,
        *,
        clock: LineClock | None = None,
        takes_audio: bool = False,
        thresholds: Iterable[Threshold] = (),
    ) -> None:
        self._source = source
        self._rules = [_compile_rule(number, mapping) for number, mapping in enumerate(mappings)]
        self._thresholds = [ThresholdState(threshold) for threshold in thresholds]
        self._time = regex.compile(settings.time) if settings.time else None
        self._clock_kind = settings.clock
        self._takes_audio = takes_audio
        self._clock = clock or LineClock()
        self._pending: list[_PendingObservation] = []

    def __len__(self) -> int:
        """The number of rules."""
        return len(self._rules)

    def apply(self, text: str, raw: str, stamp: Stamp) -> list[LineReading]:
        """The results of a line, after those of observations that it completes. text: the line without colours.

        The last result is that of the line itself.
        """
        results = self.expire(stamp.at_s)
        time = self._line_time(text, stamp)
        if readings := [*self._read_thresholds(text, raw, stamp, time)]:
            return [*results, *readings]
        for pending in reversed(self._pending):
            pending.lines += 1
        readings = self._continue_pending(text, raw, stamp) or self._match_rules(text, raw, stamp, time, results)
        results += readings
        overdue = [pending for pending in self._pending if pending.lines >= pending.rule.mapping.within_lines]
        for pending in overdue:
            results.insert(-1, self._close(pending))  # before the result of the line
        if len(results) == 1 and not self._pending:
            return results
        last = replace(results[-1], waiting=bool(self._pending))
        return [*(replace(reading, waiting=True) for reading in results[:-1]), last]

    def expire(self, now_s: float) -> list[LineReading]:
        """Ends the observations that have waited long enough for their lines. Returns their results."""
        overdue = [pending for pending in self._pending if now_s - pending.since_s > pending.rule.mapping.within_s]
        return [self._close(pending) for pending in overdue]

    def stamp_line(self, text: str, arrival: Stamp) -> tuple[Stamp, float | None]:
        """When a line was written that no rule reads, and the device time in it; its arrival and None without one."""
        time = self._line_time(text, arrival)
        return (arrival, None) if time is None else (self._clock.stamp(time, arrival), time.device_s)

    def flush(self) -> list[LineReading]:
        """Ends the observations that still wait for lines. Returns their results, with the values so far."""
        return [self._close(pending) for pending in list(self._pending)]

    def _read_thresholds(self, text: str, raw: str, arrival: Stamp, time: DeviceTime | None) -> Iterator[LineReading]:
        """One result per threshold that reads numbers from the line."""
        stamp = arrival if time is None else self._clock.stamp(time, arrival)
        for threshold in self._thresholds:
            try:
                numbers = threshold.parse_numbers(text) if threshold.slow < MAX_SLOW else None
            except TimeoutError:
                threshold.slow += 1
                continue
            if numbers is not None:
                change = threshold.feed(numbers, stamp)
                observations = self._apply_change(change) if change else ()
                device_s = time.device_s if time else None
                # A threshold has read it, so the line counts as mapped even if no rule is for the change.
                yield LineReading(raw, arrival, observations, 0, device_s=device_s, level=threshold.in_words)

    def _apply_change(self, change: StateChange) -> tuple[Observation, ...]:
        """Applies the rules to the line of a change; without a rule for it, the line is kept in the log."""
        readings: list[LineReading] = []  # of a block of scores that ends here
        change_readings = self._match_rules(change.line, change.line, change.at, None, readings)
        ended = tuple(observation for reading in readings for observation in reading.observations)
        return ended + (change_readings[-1].observations or (LogLine(self._source, change.at, change.line),))

    def _line_time(self, text: str, arrival: Stamp) -> DeviceTime | None:
        """The time that the console's `time` expression finds in a line; the clock follows it."""
        match = self._search(self._time, text) if self._time is not None else None
        time = read_time(match["time"], self._clock_kind) if match and match["time"] else None
        if time is not None:
            self._clock.add(time, arrival)
        return time

    def _search(self, pattern: regex.Pattern[str], text: str, rule: _Rule | None = None) -> regex.Match[str] | None:
        """Searches with a time limit. A search that exceeds it counts against its rule, and finds nothing."""
        try:
            return pattern.search(text, timeout=SEARCH_LIMIT_S)
        except TimeoutError:
            if rule is not None:
                rule.slow += 1
            elif self._time is pattern:
                self._time = None  # it would delay every line
            return None

    def _continue_pending(self, text: str, raw: str, stamp: Stamp) -> list[LineReading]:
        """Adds the line to an observation that waits, if it belongs to one. Returns its result; [] if it does not."""
        for pending in reversed(self._pending):
            rule = pending.rule
            if rule.until is not None and (match := self._search(rule.until, text, rule)):
                pending.fields = pending.fields.with_match(match)
                reading = self._close(pending)
                return [LineReading(raw, stamp, reading.observations, rule.number, reading.why, reading.device_s)]
            for number, pattern in enumerate(rule.more):
                if match := self._search(pattern, text, rule):
                    return self._add_line(pending, number, match, raw, stamp)
        return []

    def _add_line(
        self, pending: _PendingObservation, number: int, match: regex.Match[str], raw: str, stamp: Stamp
    ) -> list[LineReading]:
        rule = pending.rule
        pending.matched.add(number)
        if rule.mapping.block is not None:
            line_fields = pending.fields.with_match(match)
            score = line_fields.score(rule.mapping)
            if score is not None and len(pending.scores) < MAX_SLOTS:
                pending.scores[line_fields.text(rule.mapping, "phrase")] = score
        elif len(pending.fields.slots) < MAX_SLOTS:
            pending.fields = pending.fields.with_match(match)
        complete = rule.until is None and rule.mapping.block is None and len(pending.matched) == len(rule.more)
        if not complete:
            return [LineReading(raw, stamp, (), rule.number)]
        reading = self._close(pending)
        return [LineReading(raw, stamp, reading.observations, rule.number, reading.why, reading.device_s)]

    def _match_rules(
        self, text: str, raw: str, stamp: Stamp, line_time: DeviceTime | None, results: list[LineReading]
    ) -> list[LineReading]:
        """Starts an observation with the line, or gives one at once, or leaves the line unmapped.

        results: gets the results of observations that the line ends.
        """
        # A block of scores ends with the first line that is not a score.
        ended_blocks = [pending for pending in self._pending if pending.scores and pending.rule.until is None]
        results += [self._close(pending) for pending in ended_blocks]
        for rule in self._rules:
            if rule.slow >= MAX_SLOW:
                continue
            match = self._search(rule.match, text, rule)
            if match is None:
                continue
            groups = _groups(match)
            mapping = rule.mapping
            # Fields of later lines are checked when the observation is complete.
            if any(groups.get(key) != expected for key, expected in mapping.when if key in groups or not mapping.more):
                continue
            time = read_time(groups["time"], mapping.clock) if "time" in groups else None
            if time is not None and mapping.clock not in _AUDIO_CLOCKS:
                self._clock.add(time, stamp)
            else:
                time = time or line_time
            return [self._reading_by_rule(rule, match, raw, stamp, time)]
        return [LineReading(raw, stamp, device_s=line_time.device_s if line_time else None)]

    def _reading_by_rule(
        self, rule: _Rule, match: regex.Match[str], raw: str, arrival: Stamp, time: DeviceTime | None
    ) -> LineReading:
        """The result of a line that a rule matches: an observation, or none while it waits for further lines."""
        mapping, groups = rule.mapping, _groups(match)
        is_audio = mapping.clock in _AUDIO_CLOCKS and "time" in groups
        stamp = self._clock.stamp(time, arrival) if time is not None and not is_audio else arrival
        device_s = time.device_s if time is not None else None
        fields = LineFields(device_s=device_s, audio_s=device_s if is_audio and self._takes_audio else None)
        fields = fields.with_match(match)
        first_line = _PendingObservation(rule, raw, stamp, arrival.at_s, fields)
        if not mapping.more and not mapping.until:
            reading = self._result_of(first_line)
            return LineReading(raw, arrival, reading.observations, rule.number, reading.why, device_s)
        # A rule starts anew with its first line. Otherwise the oldest observations make room, if there are too many.
        outdated = [pending for pending in self._pending if pending.rule is rule] or self._pending[: -MAX_PENDING + 1]
        observations: tuple[Observation, ...] = ()
        for pending in outdated:
            observations += self._close(pending).observations
        self._pending.append(first_line)
        return LineReading(raw, arrival, observations, rule.number, "", device_s)

    def _close(self, pending: _PendingObservation) -> LineReading:
        """Ends an observation that waits, and returns its result."""
        self._pending.remove(pending)
        return self._result_of(pending)

    def _result_of(self, pending: _PendingObservation) -> LineReading:
        """The observation from the gathered values; if they are not enough, none, with the reason."""
        rule, mapping, fields = pending.rule, pending.rule.mapping, pending.fields
        no_result = LineReading("", pending.at, (), rule.number, "", fields.device_s)
        if mapping.block is not None:
            best = _best_word(pending)
            words_above = {word for word, score in pending.scores.items() if score >= mapping.block.threshold}
            reported_words, rule.reported = rule.reported, rule.reported & words_above
            if best is None or best in reported_words:
                return no_result
            rule.reported.add(best)
            fields = fields.with_best_word(best, pending.scores[best])
        if any(fields.groups.get(key) != expected for key, expected in mapping.when):
            return no_result
        try:
            result = observation_of_lines(mapping, fields, pending.at, self._source)
        except MappingError as error:
            line = LogLine(self._source, pending.at, f"{pending.raw} ({error})")
            return LineReading("", pending.at, (line,), rule.number, str(error), fields.device_s)
        return LineReading("", pending.at, (result,), rule.number, "", fields.device_s)


def _compile_rule(number: int, mapping: LineMapping) -> _Rule:
    more = tuple(regex.compile(pattern) for pattern in mapping.more)
    until = regex.compile(mapping.until) if mapping.until else None
    return _Rule(number, mapping, regex.compile(mapping.match), more, until)


def _groups(match: regex.Match[str]) -> dict[str, str]:
    return {name: text for name, text in match.groupdict().items() if text is not None}


def _pairs(match: regex.Match[str]) -> tuple[tuple[str, str], ...]:
    """Slots with their values if both groups matched several times in one line; () if they matched once."""
    if not {"slot", "value"} <= set(match.re.groupindex):
        return ()
    slots, values = match.captures("slot"), match.captures("value")
    if len(slots) < 2 or len(slots) != len(values):
        return ()
    return tuple(zip(slots, values, strict=True))[:MAX_SLOTS]


def _best_word(pending: _PendingObservation) -> str | None:
    """The word with the highest score, when it reaches the threshold and is a phrase."""
    block = pending.rule.mapping.block
    if block is None or not pending.scores:
        return None
    word = max(pending.scores, key=lambda candidate: pending.scores[candidate])
    return word if pending.scores[word] >= block.threshold and word not in block.ignore else None
