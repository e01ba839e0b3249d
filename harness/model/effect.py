"""What a query should bring about, and what is known of it: the effect decides, whatever was said.

Source: response-assessment guide (tricky cases), spec of ratings (effect checks).
"""

from __future__ import annotations

from enum import StrEnum

from harness.model.frozen import frozen


class EffectOutcome(StrEnum):
    """How far the wanted effect happened; UNKNOWN means no answer, never "no"."""

    RIGHT = "right"
    PARTIAL = "partial"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class EffectSource(StrEnum):
    """Who says so: the device's own reports, the operator, or nobody yet."""

    DEVICE = "device"
    OPERATOR = "operator"
    NONE = "none"


@frozen
class StateWanted:
    """A piece of the device's state, as its profile's `state` mappings report it. value: None is any, "" is none."""

    name: str
    value: str | None = None

    def fits(self, name: str, value: str) -> bool:
        """Whether a reported value is this one; case and surrounding spaces do not count."""
        return name == self.name and (self.value is None or _plain(value) == _plain(self.value))


@frozen
class EffectCheck:
    """What a trial's query should bring about. wanted: in words, for people.

    state: the device must report all of it within `within_s` of the query's end. A slow device is not wrong: it may
    take until its first response has ended.
    question: for the operator, or "". It is asked during the run unless `after_s` or `at` is set.
    after_s: seconds after the response at which one can look.
    at: a local time of day, HH:MM, the next such time after the response.
    """

    wanted: str
    state: tuple[StateWanted, ...] = ()
    within_s: float = 10.0
    question: str = ""
    after_s: float | None = None
    at: str | None = None

    @property
    def later(self) -> bool:
        """Whether one can only look after the run has gone on."""
        return self.after_s is not None or self.at is not None


@frozen
class EffectEvidence:
    """What is known of a trial's effect. said: the evidence in words, device's texts among them, as they came.

    due_wall_s: Unix time from which a person can look; None where nobody is asked. A response whose effect is open is
    held until the evidence comes; UNKNOWN of the operator says that it will not come, and holds nothing.
    """

    check: EffectCheck
    word: EffectOutcome = EffectOutcome.UNKNOWN
    source: EffectSource = EffectSource.NONE
    said: str = ""
    due_wall_s: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether nobody has said yet what became of it."""
        return self.source is EffectSource.NONE


def _plain(value: str) -> str:
    return " ".join(value.casefold().split())
