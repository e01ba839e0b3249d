"""Whether a broker is alive, and how long a message is on its way: measured with messages of our own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import paho.mqtt.client as mqtt

_PERIOD_S = 1.0
_FIRST_GUESS_S = 0.05
_KEPT = 16
_EARLY_KEPT = 16


class Pulse:
    """Publishes an empty message each second (QoS 1, to a topic that nobody reads) and waits for the acknowledgement.

    A broker that may not take the topic still acknowledges it (MQTT 3.1.1). `frozen(silent_s)` is called, once for each
    connection, when no acknowledgement came for limit_s. now_s: the session's clock.
    """

    def __init__(
        self, client: mqtt.Client, now_s: Callable[[], float], limit_s: float, frozen: Callable[[float], None]
    ) -> None:
        self._client = client
        self._now_s = now_s
        self._limit_s = limit_s
        self._frozen = frozen
        self._lock = threading.Lock()
        self._sent: dict[int, float] = {}
        self._early: dict[int, float] = {}
        self._trips: deque[float] = deque(maxlen=_KEPT)
        self.count = 0
        self._alive = True
        self._alive_s = now_s()
        self._absent_since_s: float | None = None
        self._stop = threading.Event()
        self._beat_now = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="mqtt-pulse", daemon=True)

    @property
    def error_s(self) -> float:
        """An upper bound of how long before its arrival a message was sent: the longest recent round trip.

        More while the broker is slow to answer, and for what it kept for us while there was no connection.
        """
        now_s = self._now_s()
        with self._lock:
            usual_s = max(self._trips, default=_FIRST_GUESS_S)
            if self._absent_since_s is not None:
                return now_s - self._absent_since_s
            oldest_s = min(self._sent.values(), default=now_s)
            # Slower than ever: it may have stood still since the pulse before.
            return usual_s if now_s - oldest_s <= usual_s else now_s - oldest_s + _PERIOD_S

    @property
    def owed_s(self) -> float:
        """For how long the oldest pulse has waited for its answer; 0 when none does."""
        now_s = self._now_s()
        with self._lock:
            return now_s - min(self._sent.values(), default=now_s)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._beat_now.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(0.5)

    def answered(self, number: int) -> None:
        """The broker has acknowledged the message of that number."""
        now_s = self._now_s()
        self.count += 1
        with self._lock:
            sent_s = self._sent.pop(number, None)
            if sent_s is None:
                # The acknowledgement overtook `publish`'s return, or it is of a message that is no pulse.
                self._early[number] = now_s
                while len(self._early) > _EARLY_KEPT:
                    del self._early[next(iter(self._early))]
                return
            self._took(sent_s, now_s - sent_s)

    def lose(self) -> None:
        """The connection is gone: what was sent on it will not be answered."""
        with self._lock:
            self._sent.clear()
            self._alive = False
            if self._absent_since_s is None:
                self._absent_since_s = self._alive_s

    def revive(self) -> None:
        """There is a connection (again)."""
        with self._lock:
            self._sent.clear()
            self._early.clear()
            self._alive = True
        # What the broker kept for us comes before the answer to this one.
        self._beat_now.set()

    def _took(self, sent_s: float, trip_s: float) -> None:
        self._trips.append(trip_s)
        self._alive_s = max(self._alive_s, sent_s)
        self._absent_since_s = None

    def _beat(self) -> None:
        topic = f"vh/_pulse/{self._client._client_id.decode()}"
        looked_s = self._now_s()
        while not self._stop.is_set():
            self._beat_now.wait(_PERIOD_S)
            self._beat_now.clear()
            with self._lock:
                alive, oldest_s = self._alive, min(self._sent.values(), default=None)
            now_s = self._now_s()
            # After a sleep that was too long on a busy host, the answer may lie there unread.
            overslept, looked_s = now_s - looked_s > 2 * _PERIOD_S, now_s
            if self._stop.is_set() or not alive or overslept:
                continue
            if oldest_s is not None and now_s - oldest_s >= self._limit_s:
                self.lose()
                self._frozen(now_s - oldest_s)
            elif self._client.is_connected():
                number = self._client.publish(topic, b"", qos=1).mid
                with self._lock:
                    early_s = self._early.pop(number, None)
                    if early_s is None or early_s < now_s:
                        self._sent[number] = now_s
                    else:
                        self._took(now_s, early_s - now_s)
