"""A board with our own framing at a broker: topics to messages and back, who else gives it something, a thread."""

from __future__ import annotations

import secrets
import struct
import threading
import zlib
from collections.abc import Callable

from harness.base.ports import Clock
from harness.devices.framing.board_session import BOARD, BoardSession
from harness.devices.framing.board_words import BROKER
from harness.devices.mqtt.board_messages import published, read
from harness.devices.mqtt.options import MqttOptions
from harness.devices.outlet import DriverOutlet
from harness.devices.wire.adpcm import InjectionPace
from harness.devices.wire.audio_link import PROBE_SAMPLE
from harness.devices.wire.lines import Unmapped
from harness.devices.wire.mappings import parse, shown
from harness.devices.wire.messages import BoardHello, Set, TextCommand
from harness.model.errors import DeviceError
from harness.model.observation import LogLine
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

_REMEMBERED = 4096
_FIRST_SAMPLE = struct.Struct("<xxQ")
GIVEN = {"in/audio": "sound", "in/text": "words", "in/set": "a setting", "in/reset": "a reset"}
"""The topics that change something, and what they carry."""


class Feeding:
    """owner: how our commands are marked (`by`); sound is known by its bytes, each as often as it was given."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._given: dict[int, int] = {}
        self.echoed = False
        """Whether we see what reaches the board: our own sound has come back."""

    def gives(self, topic: str, payload: bytes) -> None:
        """We publish this; to be called before it is published."""
        if topic in ("in/audio", "in/reset"):
            mark = _mark(topic, payload)
            self._given[mark] = self._given.pop(mark, 0) + 1
            while len(self._given) > _REMEMBERED:
                del self._given[next(iter(self._given))]

    def stranger(self, topic: str, payload: bytes) -> str:
        """What somebody else has given it; "" for our own, and for questions, which change nothing."""
        what = GIVEN.get(topic, "")
        if not what:
            return ""
        if topic in ("in/text", "in/set"):
            try:
                document = parse(payload)
            except Unmapped:
                return ""  # the board does not take it either
            ours = isinstance(document, dict) and document.get("by") == self._owner
            return "" if ours else what
        if topic == "in/audio" and len(payload) >= _FIRST_SAMPLE.size:
            (first,) = _FIRST_SAMPLE.unpack_from(payload)
            if first == PROBE_SAMPLE:
                return ""
        mark = _mark(topic, payload)
        if mark not in self._given:
            return what
        self._given[mark] -= 1
        if not self._given[mark]:
            del self._given[mark]
        self.echoed = self.echoed or topic == "in/audio"
        return ""


def _mark(topic: str, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(topic.encode()))


_COMMAND_LIMIT_S = 5.0
_BROKER_ANSWERS_S = 1.2
"""It is asked each second."""
Publish = Callable[[str, bytes, int], None]
"""Topic below the board's own, payload, QoS."""


class BoardAtBroker:
    """Everything under the outlet's lock; one thread of its own sends what is due.

    broker_owes: for how long the broker has owed us an answer, s.
    """

    def __init__(
        self,
        id: str,
        options: MqttOptions,
        clock: Clock,
        outlet: DriverOutlet,
        publish: Publish,
        broker_owes: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._id, self._now_s, self._outlet, self._publish = id, clock.now_s, outlet, publish
        self._broker_owes = broker_owes
        self._owner = secrets.token_hex(4)
        self._feeding = Feeding(self._owner)
        self._said_unseen = self._ended = False
        self._changed = threading.Condition(outlet.lock)
        self.session = BoardSession(
            id,
            outlet,
            BROKER,
            encoding=options.encoding.encoding,
            realtime=options.pace is InjectionPace.REALTIME,
            answer_limit_s=options.answer_wait_s,
            silent=self._silent,
        )
        self._thread = threading.Thread(target=self._work, name=f"{id}-board", daemon=True)

    @property
    def hello(self) -> BoardHello | None:
        return self.session.hello

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """What plays ends untold."""
        with self._changed:
            self._ended = True
            self.session.playing = None
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def wait_until_met(self, limit_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.session.known, limit_s)

    def link_up(self) -> None:
        with self._changed:
            self.session.linked(self._now_s())
            self._changed.notify_all()

    def link_down(self) -> None:
        with self._changed:
            self.session.unlinked(self._now_s())

    def take(self, topic: str, payload: bytes, at: Stamp) -> None:
        """A message on `vh/<device>/<topic>`, not a retained one."""
        try:
            received = read(topic, payload)
        except Unmapped as error:
            self._outlet.tell(LogLine(self._id, at, f"{topic}: {shown(payload)} ({error})"))
            return
        with self._changed:
            completed = self.session.completed
            self.session.take(received, at)
            if self.session.completed > completed and not self._feeding.echoed and not self._said_unseen:
                self._said_unseen = True
                self._outlet.remark("the broker does not show us in/audio: others who give it sound are not noticed")
            self._changed.notify_all()

    def take_given(self, topic: str, payload: bytes) -> None:
        """The echo of what was published on `vh/<device>/in/…`, by us or by somebody else."""
        with self._changed:
            if what := self._feeding.stranger(topic, payload):
                text = f"somebody else gives this board {what} (vh/…/{topic}): it is used by two"
                self.session.used_by_another(text, self._now_s())

    def reset(self) -> None:
        """Asks it to start anew."""
        with self._changed:
            self.session.reset()
            self._changed.notify_all()

    def play(self, play_id: str, waveform: Waveform) -> None:
        """DeviceError when it is not there, or while something is being played."""
        hello, sound = self.session.hello, self.session.prepared(waveform)
        with self._changed:
            playing = self.session.playing
            if playing is not None:
                raise DeviceError(f"{self._id} is playing {playing.play_id} already", remedy="Stop it first")
            if sound is None or self.session.hello is not hello or not self.session.ready:
                raise DeviceError(f"{self._id}: the board is not there", remedy="Wait until its link is back")
            self.session.play(play_id, sound, self._now_s())
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self.session.stop(self._now_s())
            self._changed.notify_all()

    def level_dbfs(self) -> float | None:
        with self._changed:
            return self.session.level_dbfs()

    def command(self, message: TextCommand | Set) -> None:
        """Returns when the board has acknowledged it, after those before; DeviceError when it does not within 5 s."""
        with self._changed:
            if not self.session.known:
                raise DeviceError(f"{self._id}: the board is not there", remedy="Wait until its link is back")
            command = self.session.command(message)
            self._changed.notify_all()
        command.done.wait(_COMMAND_LIMIT_S)
        with self._changed:
            self.session.drop(command)
        if not command.acknowledged:
            raise DeviceError(
                f"{self._id}: the board has not acknowledged {message}", remedy="See whether it restarted or was lost"
            )

    def _silent(self, silent_s: float) -> str:
        if self._broker_owes() > _BROKER_ANSWERS_S:
            return f"the broker answers nothing, and nothing has come from the board for {silent_s:.1f} s"
        return f"the board has said nothing for {silent_s:.1f} s; the broker answers"

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._ended:
                    return
                out, wait_s = self._due(self._now_s())
                if not out:
                    self._changed.wait(wait_s)
                    continue
                for topic, payload, _ in out:
                    self._feeding.gives(topic, payload)
            for topic, payload, qos in out:
                self._publish(topic, payload, qos)

    def _due(self, now_s: float) -> tuple[list[tuple[str, bytes, int]], float]:
        """What to publish now, and how long to wait when that is nothing."""
        if silent := self.session.tick(now_s):
            # First the loss, then what it cut off: the session is to hear the reason.
            self._outlet.lose(BOARD, silent)
            self.session.lost(now_s)
        out = [published(message, number, self._owner) for message, number in self.session.due(now_s)]
        return out, max(0.001, self.session.wait_s(now_s))
