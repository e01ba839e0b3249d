"""Turns numbers in lines into named states, with hysteresis and a minimum length. No I/O and no clock.

Light, current and traffic use the same rules. A change of state becomes the line
`NAME: STATE, before: STATE`, for the profile's line rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import regex

from harness.model.bench import LevelState, Threshold
from harness.model.frozen import frozen
from harness.model.time import Stamp

SEARCH_LIMIT_S = 0.05  # Of one line. Chosen: a reasonable expression needs far less than a millisecond.
_ROUNDING_S = 1e-9  # More than the rounding of a difference of times.
_PAIR = re.compile(r"([A-Za-z_]\w*)=([-+]?\d+(?:\.\d+)?)(?![\w.])")


@frozen
class StateChange:
    """A change of the state of a threshold.

    - before: the previous state; None for the first state.
    - at: lies between the last certain reading of the previous state and the first reading of the new one.
    """

    name: str
    state: str
    before: str | None
    at: Stamp

    @property
    def line(self) -> str:
        """The line for the profile's rules. The first state began before it was seen, so its line is different."""
        if self.before is None:
            return f"{self.name} at first: {self.state}"
        return f"{self.name}: {self.state}, before: {self.before}"


class ThresholdState:
    """The current state of one threshold of one connection.

    A state stays while its numbers lie within its ranges, widened by the hysteresis. After that, the first state whose
    ranges hold begins, and counts once it has lasted for its minimum length. If no range holds, nothing changes.
    """

    def __init__(self, threshold: Threshold) -> None:
        self.slow = 0
        """Number of searches that exceeded the time limit."""
        self._rule = threshold
        self._expression = regex.compile(threshold.match) if threshold.match else None
        self._value_names = {name for state in threshold.states for name, _, _ in state.ranges}
        self._current_state: LevelState | None = None
        self._next_state: LevelState | None = None
        self._next_stamp = Stamp(0.0)
        self._next_began_s = self._state_since_s = 0.0
        self._last_certain_s: float | None = None

    @property
    def in_words(self) -> str:
        """The current state, for the monitor."""
        current = self._current_state.name if self._current_state else "no state yet"
        candidate = f", perhaps {self._next_state.name}" if self._next_state else ""
        return f"{self._rule.name}: {current}{candidate}"

    def parse_numbers(self, text: str) -> dict[str, float] | None:
        """The numbers in a line; None if it lacks one that the states use.

        Raises TimeoutError if the search is too slow.
        """
        if self._expression is None:
            texts = {name: value for name, value in _PAIR.findall(text) if name in self._value_names}
        elif match := self._expression.search(text, timeout=SEARCH_LIMIT_S):
            texts = {name: value for name, value in match.groupdict().items() if value is not None}
        else:
            return None
        try:
            numbers = {name: float(texts[name]) for name in self._value_names}
        except (KeyError, ValueError):
            return None
        return numbers if all(math.isfinite(number) for number in numbers.values()) else None

    def feed(self, numbers: Mapping[str, float], stamp: Stamp) -> StateChange | None:
        """Adds a reading, in the order of their times. Returns the change of state that it confirms; None if none."""
        earliest_s = stamp.at_s - stamp.error_s
        if self._last_certain_s is None:
            self._last_certain_s = earliest_s
        state = self._matching_state(numbers)
        if state is None or state is self._current_state:
            if self._next_state is not None:
                self._next_state, self._state_since_s = None, stamp.at_s
            # After a flash, the state is certain again once it has lasted for its minimum length.
            if state is None or stamp.at_s - self._state_since_s >= state.min_s - _ROUNDING_S:
                self._last_certain_s = earliest_s
            return None
        if state is not self._next_state:
            start_s = min(self._last_certain_s, earliest_s)
            end_s = stamp.at_s + stamp.error_s
            self._next_state, self._next_began_s = state, stamp.at_s
            self._next_stamp = Stamp((start_s + end_s) / 2, (end_s - start_s) / 2)
        if stamp.at_s - self._next_began_s < state.min_s - _ROUNDING_S:
            return None
        previous, self._current_state, self._next_state = self._current_state, state, None
        self._state_since_s, self._last_certain_s = self._next_began_s, earliest_s
        return StateChange(self._rule.name, state.name, previous.name if previous else None, self._next_stamp)

    def _matching_state(self, numbers: Mapping[str, float]) -> LevelState | None:
        """The state that the numbers show; None if no range holds and there is no state yet."""
        for candidate in (self._next_state, self._current_state):
            if candidate is not None and candidate.ranges and self._holds(candidate, numbers, widened=True):
                return candidate
        in_order = sorted(self._rule.states, key=lambda state: not state.ranges)  # states without ranges come last
        return next((state for state in in_order if self._holds(state, numbers, widened=False)), self._current_state)

    def _holds(self, state: LevelState, numbers: Mapping[str, float], *, widened: bool) -> bool:
        """Whether all ranges of a state hold. widened: with the hysteresis."""
        margins = dict(self._rule.hysteresis) if widened else {}
        for name, low, high in state.ranges:
            value, margin = numbers[name], margins.get(name, 0.0)
            low_end = -math.inf if low is None else low - margin
            high_end = math.inf if high is None else high + margin
            turns: tuple[float, ...] = (0.0,)
            if name == "hue" and low is not None and high is not None:  # 1 is 2 away from 359
                turns = (-360.0, 0.0, 360.0)
                high_end += 360.0 if low > high else 0.0
            if not any(low_end <= value + turn <= high_end for turn in turns):
                return False
        return True
