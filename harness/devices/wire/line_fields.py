"""What the groups of a mapping's expressions say, and the observation that they make."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.devices.wire.unmapped import Unmapped
from harness.model.bench import LineMapping, ObservationKind
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
