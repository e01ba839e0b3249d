"""A board's clock over a broker: when to ping it, and what its times are on ours."""

from __future__ import annotations

from harness.devices.mqtt.board_messages import Pong
from harness.devices.wire.device_clock import DeviceClock, PingSchedule, Sync
from harness.model.observation import ClockFitted
from harness.model.time import Stamp

_KEPT = 64
_FIRST_FIT = 12
_TOLD_EVERY_S = 30.0


class BoardClock:
    """Of one boot at a time. Tokens of pings are counted over all boots of a driver, so that a late pong is known."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._clock = DeviceClock()
        self._schedule = PingSchedule()
        self._sent: dict[int, float] = {}
        self._token = 0
        self._told_s = float("-inf")
        self._answered = 0

    def meet(self, boot: str) -> None:
        """A hello came: a burst of pings is due."""
        self._clock.start(boot)
        self._sent.clear()
        self._schedule.answered()
        self._schedule.burst()
        self._told_s, self._answered = float("-inf"), 0

    def wait_s(self, now_s: float) -> float:
        """How long until the next ping is due."""
        return self._schedule.wait_s(now_s)

    def ping(self, now_s: float) -> int:
        """The token of the ping that leaves now."""
        self._token += 1
        self._sent[self._token] = now_s
        while len(self._sent) > _KEPT:
            del self._sent[next(iter(self._sent))]
        self._schedule.sent(now_s)
        return self._token

    def awaits(self, token: int) -> bool:
        """Whether a ping with that token has left since the boot was met, and waits for its answer."""
        return token in self._sent

    def pong(self, pong: Pong, at: Stamp) -> ClockFitted | None:
        """What is to be told: after the first few, and now and then."""
        sent_s = self._sent.pop(pong.token, None)
        if sent_s is None or pong.boot != self._clock.boot:
            return None
        self._schedule.answered()
        if self._clock.ping(sent_s, pong.received_us, pong.sent_us, at.at_s) is Sync.JUMPED:
            self._schedule.burst()
        self._answered += 1
        if self._answered < _FIRST_FIT or at.at_s - self._told_s < _TOLD_EVERY_S:
            return None
        fit = self._clock.fit()
        if fit is None:
            return None
        self._told_s = at.at_s
        return ClockFitted(self._id, at, fit.boot, fit.offset_s, fit.skew_ppm, fit.error_s)

    def stamp(self, time_us: int | None, at: Stamp) -> Stamp:
        """The time of an event by the board's clock; that of its arrival as long as the clock is not known."""
        if time_us is None or not self._clock.fitted:
            return at
        return self._clock.host_time(time_us)
