"""The stream clock: when, on the host's clock, a sample of a sound stream was due. No I/O.

Samples are counted, since a converter's clock is steady; the count is anchored on the earliest delivery, since a
delivery can be late and never early; and it is anchored anew every second, since the two clocks drift apart (a null
sink by 50–100 ppm). A reported converter time is not used for the anchor: it wanders by milliseconds.
"""

from __future__ import annotations

from collections import deque

WINDOW_S = 1.0
WINDOWS = 12
FIT_FROM = 5
"""Windows that must be there before a drift is believed."""
DRIFT_LIMIT = 500e-6
SETTLED_S = 0.3
LATE_S = 0.008
"""Later than this for all of GAP_S is no jitter: samples are missing."""
GAP_S = 0.8
EARLY_S = 0.005
"""Earlier than this is no drift: the stream jumped ahead."""
BASE_ERROR_S = 0.0002
FIRST_SPREAD_S = 0.001
"""How far anchors may disagree as long as there is but one."""
FILLED_S = 0.1
"""Buffers are full by then: what is delivered earlier from now on is no part of filling them."""
STEP_S = 0.002
"""So much earlier than the anchor at once is a step: jitter and drift move the anchor by less."""
AHEAD_LIMIT_S = 0.05
"""More than this no buffer of ours grows."""
_RECENT = 128


class SampleClock:
    """Feed it (sample, moment at which it was delivered or asked for); ask it for the moment of any sample."""

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._begun: float | None = None
        self._ahead_s = 0.0
        self._restart()

    def _restart(self) -> None:
        self._first: float | None = None
        self._minima: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        self._window: tuple[float, float] | None = None
        self._window_from = 0.0
        self._late_from: float | None = None
        self._late_least = 0.0
        self._latest = 0.0
        self._slope = 0.0
        self._base = 0.0
        self._spread_s = FIRST_SPREAD_S
        self._recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)

    @property
    def settled(self) -> bool:
        """True once enough was seen that the anchor is no longer a late one."""
        return self._first is not None and self._latest - self._first >= SETTLED_S

    @property
    def drift(self) -> float:
        """Host seconds that the stream gains (negative) or loses a second; 0.0 until it is known."""
        return self._slope

    @property
    def ahead_s(self) -> float:
        """By how much deliveries have come to be earlier than they were when the buffers had been filled.

        Either all were late before, or a buffer has grown, and the sound itself did not become any earlier.
        """
        return self._ahead_s

    def observe(self, sample: int, moment_s: float) -> float:
        """Takes one delivery; returns the seconds of sound that turned out to be missing just now, mostly 0.0.

        `sample` and `moment_s` never go back. After a gap the clock starts anew and is not settled.
        """
        nominal = sample / self.rate_hz
        offset = moment_s - nominal
        if self._first is None:
            self._first, self._latest = nominal, nominal
            self._window, self._window_from = (nominal, offset), nominal
            self._base = offset
            self._begun = nominal if self._begun is None else self._begun
            self._recent.append((nominal, offset))
            return 0.0
        self._recent.append((nominal, offset))
        late_s = offset - self._expected(nominal)
        if late_s < -STEP_S and self._begun is not None and nominal - self._begun >= FILLED_S:
            self._ahead_s = min(self._ahead_s - late_s, AHEAD_LIMIT_S)
        if late_s < -EARLY_S and self.settled:
            self._restart()
            return self.observe(sample, moment_s)
        if self.settled and late_s > LATE_S:
            if self._late_from is None:
                self._late_from, self._late_least = nominal, late_s
            self._late_least = min(self._late_least, late_s)
            if nominal - self._late_from >= GAP_S:
                missing_s = self._late_least
                self._restart()
                # This delivery may be later than the gap alone made it.
                self.observe(sample, moment_s - late_s + missing_s)
                return missing_s
            self._latest = nominal
            return 0.0
        self._late_from = None
        self._latest = nominal
        self._take(nominal, offset)
        return 0.0

    def time_of(self, sample: int) -> tuple[float, float]:
        """The moment of that sample and its error, in seconds; ValueError before the first observation."""
        if self._first is None:
            raise ValueError("nothing was observed yet")
        nominal = sample / self.rate_hz
        return nominal + self._expected(nominal), BASE_ERROR_S + self._spread_s

    def doubt_s(self, sample: int) -> float:
        """By how much that sample may have been later than `time_of` says, ≥ 0, as far as was seen by now.

        Deliveries that are late are taken for jitter until they were late for GAP_S; but samples may as well be
        missing, of no more than the least late of the deliveries since. ValueError before the first observation.
        """
        if self._first is None:
            raise ValueError("nothing was observed yet")
        nominal = sample / self.rate_hz
        least_s = float("inf")
        for at, offset in reversed(self._recent):
            if at < nominal and least_s < float("inf"):
                break
            least_s = min(least_s, offset - self._expected(at))
        return max(0.0, least_s)

    def sample_at(self, moment_s: float) -> int:
        """The sample that was due at a moment, rounded."""
        if self._first is None:
            raise ValueError("nothing was observed yet")
        return round((moment_s - self._base) / (1 + self._slope) * self.rate_hz)

    def _expected(self, nominal: float) -> float:
        return self._base + self._slope * nominal

    def _take(self, nominal: float, offset: float) -> None:
        if offset < self._expected(nominal):
            # An earlier delivery than the anchor: the anchor was late.
            self._base = offset - self._slope * nominal
        if self._window is None or offset < self._window[1]:
            self._window = (nominal, offset)
        if nominal - self._window_from >= WINDOW_S:
            self._minima.append(self._window)
            self._window, self._window_from = None, nominal
            self._fit()

    def _fit(self) -> None:
        """Drift by least squares through the windows' earliest deliveries; the base is the earliest of the last few."""
        if len(self._minima) >= FIT_FROM:
            count = len(self._minima)
            mean_x = sum(x for x, _ in self._minima) / count
            mean_y = sum(y for _, y in self._minima) / count
            above = sum((x - mean_x) * (y - mean_y) for x, y in self._minima)
            slope = above / sum((x - mean_x) ** 2 for x, _ in self._minima)
            self._slope = max(-DRIFT_LIMIT, min(DRIFT_LIMIT, slope))
        recent = [y - self._slope * x for x, y in list(self._minima)[-FIT_FROM:]]
        self._base = min(recent)
        self._spread_s = max(recent) - min(recent) if len(recent) > 1 else FIRST_SPREAD_S
