"""A profile's line mappings at work: one line in, observations out, with state over several lines. No I/O, no clock."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import regex

from harness.devices.wire.line_clock import DeviceTime, LineClock, read_time
from harness.model.bench import ClockKind, ConsoleSettings, LineMapping, ObservationKind
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
    Wake,
)
from harness.model.time import Stamp


class Unmapped(Exception):
    """A message does not hold what a mapping looks for in it; the text says what."""


SLOT = "slot_"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_FALSE = {"false", "0", "no", "partial"}


@dataclass(frozen=True, slots=True)
class LineFields:
    """Groups by name (a later line does not overwrite an earlier one), slots in their order, and times."""

    groups: dict[str, str] = field(default_factory=dict)
    slots: tuple[tuple[str, str], ...] = ()
    device_s: float | None = None
    audio_s: float | None = None
    block_score: float | None = None

    def with_groups(self, groups: dict[str, str], pairs: Sequence[tuple[str, str]] = ()) -> LineFields:
        """Also those of one more line; a `slot` with its `value`, and each slot_NAME, is a slot more.

        A `value` without a `slot` is a field (of a piece of state). pairs: of a `slot` and its `value` that matched
        several times in the line, all of them.
        """
        slots = [(name.removeprefix(SLOT), text) for name, text in groups.items() if name.startswith(SLOT)]
        slots += pairs
        kept = groups
        if pairs:
            kept = {name: text for name, text in groups.items() if name not in ("slot", "value")}
        elif "slot" in groups:
            slots.append((groups["slot"], groups.get("value", "")))
            kept = {name: text for name, text in groups.items() if name not in ("slot", "value")}
        return replace(self, groups={**kept, **self.groups}, slots=(*self.slots, *slots))

    def of_block(self, word: str, score: float) -> LineFields:
        """With the word that a block of scores was best for."""
        return replace(self, groups={**self.groups, "phrase": word}, block_score=score)

    def text(self, mapping: LineMapping, name: str) -> str:
        """A field: as `fields` words it (nothing when a group of that is missing), else the group of its name."""
        template = dict(mapping.fields).get(name)
        if template is None:
            found = self.groups.get(name, "")
        elif any(group not in self.groups for group in _PLACEHOLDER.findall(template)):
            found = ""
        else:
            found = _PLACEHOLDER.sub(lambda group: self.groups[group[1]], template)
        return found.strip()

    def score(self, mapping: LineMapping) -> float | None:
        """0–1 by the mapping's scale; None when there is none or it is beyond its scale."""
        if self.block_score is not None:
            return self.block_score
        text = self.text(mapping, "score")
        if not text:
            return None
        try:
            value = float(text) / mapping.score_scale
        except ValueError:
            return None
        return value if math.isfinite(value) and 0.0 <= value <= 1.0 else None


def observation(mapping: LineMapping, fields: LineFields, at: Stamp, source: str) -> Observation:
    """What the gathered fields say; Unmapped when they are not enough for it."""
    ours = dict(mapping.values)

    def named(name: str) -> str:
        text = fields.text(mapping, name)
        return ours.get(text, text)

    match mapping.kind:
        case ObservationKind.WAKE:
            return Wake(source, at, named("phrase"), fields.score(mapping), fields.audio_s)
        case ObservationKind.TRANSCRIPT:
            final = fields.text(mapping, "final").lower() not in _FALSE
            return Transcript(source, at, fields.text(mapping, "text"), final, fields.audio_s)
        case ObservationKind.INTENT:
            name = named("name")
            if not name:
                raise Unmapped("the intent has no name")
            return Intent(source, at, name, fields.slots, fields.score(mapping), fields.audio_s)
        case ObservationKind.NOT_UNDERSTOOD:
            return Intent(source, at, "", audio_s=fields.audio_s)
        case ObservationKind.RESPONSE:
            return ResponseText(source, at, fields.text(mapping, "text"))
        case ObservationKind.STATUS:
            word = named("state")
            try:
                state = DeviceState(word)
            except ValueError as error:
                raise Unmapped(f"the state {word!r} is not mapped") from error
            return Status(source, at, state, fields.text(mapping, "detail"))
        case ObservationKind.STATE:
            name = named("name")
            if not name:
                raise Unmapped("the state told has no name")
            return StateTold(source, at, name, fields.text(mapping, "value"))
        case ObservationKind.LOG:
            return LogLine(source, at, fields.text(mapping, "text"))
        case ObservationKind.LISTENING:
            return ListeningProved(source, at, Proof.HEARTBEAT)
        case ObservationKind.ABOUT:
            return DeviceDescribed(source, at, fields.text(mapping, "firmware"), fields.text(mapping, "serial"))


SEARCH_LIMIT_S = 0.05
MAX_SLOW = 3
MAX_OPEN = 8
MAX_SLOTS = 32

_AUDIO_UNIT = {ClockKind.AUDIO_S, ClockKind.AUDIO_MS}


@dataclass(frozen=True, slots=True)
class LineReading:
    """What came of one line. rule: number of the mapping that took it, from 0; None: none did.

    why: what was wrong, when a mapping took the line and could make nothing of it, or a line was cut.
    device_s: the time that the line itself gives. unread: whatever it said is lost. waiting: something that was begun
    waits for further lines.
    """

    text: str
    at: Stamp
    observations: tuple[Observation, ...] = ()
    rule: int | None = None
    why: str = ""
    device_s: float | None = None
    unread: bool = False
    waiting: bool = False


@dataclass(slots=True)
class _Rule:
    """A mapping with its expressions ready. slow: searches that ran into the time limit."""

    number: int
    mapping: LineMapping
    match: regex.Pattern[str]
    more: tuple[regex.Pattern[str], ...]
    until: regex.Pattern[str] | None
    slow: int = 0
    told: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Opened:
    """An observation that waits for the lines that belong to it."""

    rule: _Rule
    raw: str
    at: Stamp
    since_s: float
    fields: LineFields
    seen: set[int] = field(default_factory=set)
    lines: int = 0
    scores: dict[str, float] = field(default_factory=dict)


class LineRules:
    """The mappings of one console, in their order: the first that fits a line takes it.

    slow: searches that were ended by their time limit; a mapping with three of them is not used any more.
    """

    def __init__(
        self,
        mappings: Iterable[LineMapping],
        settings: ConsoleSettings,
        source: str,
        *,
        clock: LineClock | None = None,
        takes_audio: bool = False,
    ) -> None:
        self.slow = 0
        self._source = source
        self._rules = [_rule(number, mapping) for number, mapping in enumerate(mappings)]
        self._time = regex.compile(settings.time) if settings.time else None
        self._time_kind = settings.clock
        self._takes_audio = takes_audio
        self._clock = clock or LineClock()
        self._opened: list[_Opened] = []

    def __len__(self) -> int:
        """How many mappings there are."""
        return len(self._rules)

    def take(self, text: str, raw: str, at: Stamp) -> list[LineReading]:
        """What a line (`text`: without colours) makes, and what it completes; its own reading is the last one."""
        found = self.expire(at.at_s)
        time = self._line_time(text)
        if time is not None:
            self._clock.add(time, at)
        for opened in reversed(self._opened):
            opened.lines += 1
        readings = self._continued(text, raw, at) or self._begun(text, raw, at, time, found)
        found += readings
        for opened in [one for one in self._opened if one.lines >= one.rule.mapping.within_lines]:
            found.insert(-1, self._close(opened))
        if len(found) == 1 and not self._opened:
            return found
        last = replace(found[-1], waiting=bool(self._opened))
        return [*(replace(one, waiting=True) for one in found[:-1]), last]

    def expire(self, now_s: float) -> list[LineReading]:
        """What has waited long enough for its lines."""
        over = [one for one in self._opened if now_s - one.since_s > one.rule.mapping.within_s]
        return [self._close(one) for one in over]

    def flush(self) -> list[LineReading]:
        """What still waits, as complete as it is."""
        return [self._close(one) for one in list(self._opened)]

    def _line_time(self, text: str) -> DeviceTime | None:
        if self._time is None:
            return None
        found = self._search(self._time, text)
        return read_time(found["time"], self._time_kind) if found and found["time"] else None

    def _search(self, pattern: regex.Pattern[str], text: str, rule: _Rule | None = None) -> regex.Match[str] | None:
        try:
            return pattern.search(text, timeout=SEARCH_LIMIT_S)
        except TimeoutError:
            self.slow += 1
            if rule is not None:
                rule.slow += 1
            elif self._time is pattern:
                self._time = None
            return None

    def _continued(self, text: str, raw: str, at: Stamp) -> list[LineReading]:
        """The line belongs to something that was opened before."""
        for opened in reversed(self._opened):
            rule = opened.rule
            if rule.until is not None and self._search(rule.until, text, rule):
                done = self._close(opened)
                return [LineReading(raw, at, done.observations, rule.number, done.why, done.device_s)]
            for number, pattern in enumerate(rule.more):
                if found := self._search(pattern, text, rule):
                    return self._add(opened, number, found, raw, at)
        return []

    def _add(self, opened: _Opened, number: int, found: regex.Match[str], raw: str, at: Stamp) -> list[LineReading]:
        rule = opened.rule
        groups = _groups(found)
        opened.seen.add(number)
        if rule.mapping.block is not None:
            part = opened.fields.with_groups(groups)
            score = part.score(rule.mapping)
            if score is not None and len(opened.scores) < MAX_SLOTS:
                opened.scores[part.text(rule.mapping, "phrase")] = score
        elif len(opened.fields.slots) < MAX_SLOTS:
            opened.fields = opened.fields.with_groups(groups, _pairs(found))
        complete = rule.until is None and rule.mapping.block is None and len(opened.seen) == len(rule.more)
        if not complete:
            return [LineReading(raw, at, (), rule.number)]
        done = self._close(opened)
        return [LineReading(raw, at, done.observations, rule.number, done.why, done.device_s)]

    def _begun(
        self, text: str, raw: str, at: Stamp, line_time: DeviceTime | None, found: list[LineReading]
    ) -> list[LineReading]:
        """The line begins something, or is an observation by itself, or is nothing that we know."""
        # A block of scores ends with the first line that is no score.
        for opened in [one for one in self._opened if one.scores and one.rule.until is None]:
            found.append(self._close(opened))
        for rule in self._rules:
            if rule.slow >= MAX_SLOW:
                continue
            match = self._search(rule.match, text, rule)
            if match is None:
                continue
            groups = _groups(match)
            mapping = rule.mapping
            # What comes in later lines is asked for when it is complete.
            if any(groups.get(key, wanted if mapping.more else None) != wanted for key, wanted in mapping.when):
                continue
            time = read_time(groups["time"], mapping.clock) if "time" in groups else None
            if time is not None and mapping.clock not in _AUDIO_UNIT:
                self._clock.add(time, at)
            else:
                time = time or line_time
            return [self._take_by(rule, match, raw, at, time)]
        return [LineReading(raw, at, device_s=line_time.device_s if line_time else None)]

    def _take_by(
        self, rule: _Rule, found: regex.Match[str], raw: str, at: Stamp, time: DeviceTime | None
    ) -> LineReading:
        mapping, groups = rule.mapping, _groups(found)
        is_audio = mapping.clock in _AUDIO_UNIT and "time" in groups
        stamp = self._clock.stamp(time, at) if time is not None and not is_audio else at
        device_s = time.device_s if time is not None else None
        fields = LineFields(device_s=device_s, audio_s=device_s if is_audio and self._takes_audio else None)
        fields = fields.with_groups(groups, _pairs(found))
        opened = _Opened(rule, raw, stamp, at.at_s, fields)
        if not mapping.more and not mapping.until:
            done = self._made(opened)
            return LineReading(raw, at, done.observations, rule.number, done.why, device_s)
        closed = [one for one in self._opened if one.rule is rule] or self._opened[: -MAX_OPEN + 1]
        told: tuple[Observation, ...] = ()
        for one in closed:
            told += self._close(one).observations
        self._opened.append(opened)
        return LineReading(raw, at, told, rule.number, "", device_s)

    def _close(self, opened: _Opened) -> LineReading:
        self._opened.remove(opened)
        return self._made(opened)

    def _made(self, opened: _Opened) -> LineReading:
        """The observation of what was gathered; none, with the reason, when it is not enough."""
        rule, mapping, fields = opened.rule, opened.rule.mapping, opened.fields
        nothing = LineReading("", opened.at, (), rule.number, "", fields.device_s)
        if mapping.block is not None:
            best = _best(opened)
            above = {word for word, score in opened.scores.items() if score >= mapping.block.threshold}
            before, rule.told = rule.told, rule.told & above
            if best is None or best in before:
                return nothing
            rule.told.add(best)
            fields = fields.of_block(best, opened.scores[best])
        missing = [key for key, wanted in mapping.when if fields.groups.get(key) != wanted]
        if missing:
            return nothing
        try:
            seen = observation(mapping, fields, opened.at, self._source)
        except Unmapped as error:
            line = LogLine(self._source, opened.at, f"{opened.raw} ({error})")
            return LineReading("", opened.at, (line,), rule.number, str(error), fields.device_s)
        return LineReading("", opened.at, (seen,), rule.number, "", fields.device_s)


def _rule(number: int, mapping: LineMapping) -> _Rule:
    more = tuple(regex.compile(one) for one in mapping.more)
    until = regex.compile(mapping.until) if mapping.until else None
    return _Rule(number, mapping, regex.compile(mapping.match), more, until)


def _groups(found: regex.Match[str]) -> dict[str, str]:
    return {name: text for name, text in found.groupdict().items() if text is not None}


def _pairs(found: regex.Match[str]) -> tuple[tuple[str, str], ...]:
    """Slots with their values where both groups matched several times in one line; () where they matched once."""
    if not {"slot", "value"} <= set(found.re.groupindex):
        return ()
    slots, values = found.captures("slot"), found.captures("value")
    if len(slots) < 2 or len(slots) != len(values):
        return ()
    return tuple(zip(slots, values, strict=True))[:MAX_SLOTS]


def _best(opened: _Opened) -> str | None:
    """The word with the highest score, when it reaches the threshold and is a phrase."""
    block = opened.rule.mapping.block
    if block is None or not opened.scores:
        return None
    word = max(opened.scores, key=lambda one: opened.scores[one])
    return word if opened.scores[word] >= block.threshold and word not in block.ignore else None
