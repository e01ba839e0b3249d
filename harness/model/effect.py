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
    """A piece of the device's state, as its profile's `state` mappings report it.

    value: None accepts any value; "" means that the device must report it as ended or empty.
    """

    name: str
    value: str | None = None

    def fits(self, name: str, value: str) -> bool:
        """Whether a reported value is the wanted one; case and surrounding spaces do not count."""
        return name == self.name and (self.value is None or _plain(value) == _plain(self.value))


@frozen
class EffectCheck:
    """What a trial's query should bring about.

    - wanted: the effect in words, for people.
    - state: the device must report all of it within `within_s` of the query's end. A slow device is not wrong: it may
      take until its first response has ended.
    - question: what the operator is asked; "" if nothing. It is asked during the run unless `after_s` or `at` is set.
    - after_s: seconds after the response at which the effect can be seen.
    - at: the local time of day, HH:MM, at which the effect can be seen: the next such time after the response.
    """

    wanted: str
    state: tuple[StateWanted, ...] = ()
    within_s: float = 10.0
    question: str = ""
    after_s: float | None = None
    at: str | None = None

    @property
    def later(self) -> bool:
        """Whether the effect can be seen only later, when the run has moved to other trials."""
        return self.after_s is not None or self.at is not None


@frozen
class EffectEvidence:
    """What is known of a trial's effect.

    - said: the evidence in words. It may quote texts of the device, which are not sanitised.
    - due_wall_s: Unix time from which a person can see the effect; None where nobody is asked.

    A response whose effect is open is not put before raters until the evidence comes. If the operator answers UNKNOWN,
    none will come, and the response is not held back.
    """

    check: EffectCheck
    word: EffectOutcome = EffectOutcome.UNKNOWN
    source: EffectSource = EffectSource.NONE
    said: str = ""
    due_wall_s: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether neither the device nor the operator has reported the effect yet."""
        return self.source is EffectSource.NONE


def _plain(value: str) -> str:
    """A value without the differences that do not count: case and spaces."""
    return " ".join(value.casefold().split())
