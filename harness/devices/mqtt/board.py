"""A board that speaks our own framing over MQTT: who it is, what it said, what it is given. Threads, but no broker."""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable

from harness.base.ports import Clock
from harness.devices.mqtt import board_messages as said
from harness.devices.mqtt.board_clock import BoardClock
from harness.devices.mqtt.board_commands import AGAIN_S, Command, Commands
from harness.devices.mqtt.board_events import observation
from harness.devices.mqtt.board_silence import BoardSilence
from harness.devices.mqtt.boots import Boots, Met
from harness.devices.mqtt.feeding import QUIET_S, Feeding
from harness.devices.mqtt.injection import Injection, at_rate, pcm16
from harness.devices.mqtt.numbering import Judged, Numbering
from harness.devices.mqtt.options import MqttOptions, Pace
from harness.devices.mqtt.outlet import Outlet
from harness.devices.wire import messages
from harness.devices.wire.adpcm import EncodedSound
from harness.devices.wire.audio_link import RESEND_S, Answer, AudioLink
from harness.devices.wire.mappings import Unmapped, shown
from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    ListeningProved,
    LogLine,
    Proof,
    Status,
    StimulusEnded,
    StimulusStarted,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

_ASK_S = 1.0
_PROOF_S = 5.0
_EVENTS_LIMIT_S = 3.0
_LEFT_OVER_S = 1.0
_COMMAND_LIMIT_S = 5.0
_AT_ONCE = 32
_PUT_AWAY = 64

BOARD = "board"
FED = "fed"
Publish = Callable[[str, bytes, int], None]
"""Topic below the board's own, payload, QoS."""


class Board:
    """Everything under the outlet's lock; one thread of its own sends what is due."""

    def __init__(
        self,
        id: str,
        options: MqttOptions,
        clock: Clock,
        outlet: Outlet,
        publish: Publish,
        broker_owes: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._id = id
        self._options = options
        self._now_s = clock.now_s
        self._outlet = outlet
        self._publish = publish
        self._silence = BoardSilence(broker_owes)
        self._changed = threading.Condition(outlet.lock)
        self._audio = AudioLink(realtime=options.pace is Pace.REALTIME, soonest_s=RESEND_S)
        self._boots = Boots()
        self._numbering = Numbering()
        self._put_away: deque[tuple[said.Told, Stamp]] = deque(maxlen=_PUT_AWAY)
        self._wonders = False
        self._clock = BoardClock(id)
        owner = secrets.token_hex(4)
        self._feeding = Feeding(owner)
        self._fed_s = float("-inf")
        self._said_unseen = False
        self._described = "", ""
        self._hello: said.Hello | None = None
        self._met = threading.Event()
        self._linked = False
        self._asked_s = float("-inf")
        self._proved_s = float("-inf")
        self._acked: said.Ack | None = None
        self._started_told = ""
        self._commands = Commands(owner)
        self._playing: Injection | None = None
        self._ended = False
        self._is_gone = False
        self.duplicates = 0
        self.missing = 0
        self._thread = threading.Thread(target=self._work, name=f"{id}-board", daemon=True)

    @property
    def hello(self) -> said.Hello | None:
        return self._hello

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """What plays ends untold."""
        with self._changed:
            self._ended = True
            self._playing = None
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def wait_until_met(self, limit_s: float) -> bool:
        return self._met.wait(limit_s)

    # The link

    def link_up(self) -> None:
        with self._changed:
            self._linked = True
            self._asked_s = float("-inf")
            self._changed.notify_all()

    def link_down(self) -> None:
        with self._changed:
            self._linked = False
            self._part()

    def _part(self) -> None:
        """It cannot be spoken to now: what plays is cut off, and it must say hello before anything else."""
        self._met.clear()
        self._audio.lose()
        self._acked = None
        self._end(complete=False)
        self._changed.notify_all()

    # What it says

    def take(self, topic: str, payload: bytes, at: Stamp) -> None:
        """A message on `vh/<device>/<topic>`, not a retained one."""
        try:
            message = said.read(topic, payload)
        except Unmapped as error:
            self._outlet.tell(LogLine(self._id, at, f"{topic}: {shown(payload)} ({error})"))
            return
        with self._changed:
            match message:
                case said.Hello():
                    self._silence.heard(self._now_s())
                    self._greet(message, at)
                case said.Pong() if message.boot != self._boots.current:
                    self._answer_of_another(message)
                case said.Told() if message.boot != self._boots.current or self._boots.rivals:
                    self._put_aside(message, topic, payload, at)
                case _ if message.boot != self._boots.current or self._boots.rivals:
                    pass  # only a hello says who it is
                case said.Ack():
                    self._silence.heard(self._now_s())
                    self._acknowledge(message, at)
                case said.Pong():
                    self._silence.heard(self._now_s())
                    self._boots.answered(message.boot, self._now_s())
                    self._answer(message, at)
                case said.Told():
                    self._silence.heard(self._now_s())
                    self._number(message, at)
            self._settle(at)
            self._changed.notify_all()

    def take_given(self, topic: str, payload: bytes) -> None:
        """The echo of what was published on `vh/<device>/in/…`, by us or by somebody else."""
        with self._changed:
            what = self._feeding.stranger(topic, payload)
            if what:
                self._fed_s = self._now_s()
                # First the reason, then what it cut off.
                self._outlet.lose(
                    FED, f"somebody else gives this board {what} (vh/…/{topic}): it is used by two", named=True
                )
                self._part()

    def _put_aside(self, told: said.Told, topic: str, payload: bytes, at: Stamp) -> None:
        """Of a boot that is not the board: without a hello of it nothing changes."""
        if self._boots.known(told.boot):
            self._outlet.tell(LogLine(self._id, at, f"of another start of it: {topic}: {shown(payload)}"))
            return
        self._put_away.append((told, at))
        if self._boots.current:
            text = f"of a boot that no hello has confirmed: {topic}: {shown(payload)}"
            self._outlet.tell(LogLine(self._id, at, text))
        self._wonders = True

    def _answer_of_another(self, pong: said.Pong) -> None:
        if not self._clock.awaits(pong.token):
            return
        if self._boots.answered(pong.boot, self._now_s()):
            self._contest()
        self._wonders = True

    def _contest(self) -> None:
        boots = " and ".join(self._boots.rivals)
        what = f"two boards use this name (boots {boots}): switch one off, or rename it"
        self._outlet.lose(BOARD, what, named=True)
        self._part()

    def _number(self, told: said.Told, at: Stamp) -> None:
        """Something that the board itself said."""
        judged = self._numbering.count(told.seq) if told.seq is not None else Judged()
        if judged.duplicate:
            self.duplicates += 1
            return
        if judged.missing:
            self.missing += judged.missing
            text = f"{judged.missing} of its messages are missing before this one"
            self._outlet.tell(LogLine(self._id, at, text))
        self._hear(told, at)
        if self._playing is not None:
            self._playing.due_s = self._now_s() + _EVENTS_LIMIT_S  # there may be more behind it

    def _changed_boot(self, boot: str, at: Stamp, *, restarted: bool) -> None:
        """Another boot is the board now."""
        if restarted:
            # First the restart, then what it cut off: the session is to hear the reason.
            starts = (
                told.what.detail
                for told, _ in self._put_away
                if told.boot == boot and isinstance(told.what, said.Is) and told.what.state is DeviceState.STARTED
            )
            self._tell_started(boot, at, next(starts, "its boot id changed"))
        self._started_told = boot  # the boot that we meet first, or again, is no restart
        self._numbering = Numbering(from_one=restarted)
        self._hello = None
        self._commands.clear()
        self._part()

    def _tell_started(self, boot: str, at: Stamp, detail: str) -> bool:
        """Once for each start; False when it was told."""
        if self._started_told == boot:
            return False
        self._started_told = boot
        self._outlet.tell(Status(self._id, at, DeviceState.STARTED, detail))
        return True

    def _greet(self, hello: said.Hello, at: Stamp) -> None:
        was_contested = bool(self._boots.rivals)
        met = self._boots.hello(hello.boot, self._now_s())
        if met is Met.RIVALS:
            if not was_contested:
                self._contest()
            return
        if met is not Met.SAME:
            self._changed_boot(hello.boot, at, restarted=met is Met.RESTARTED)
        if hello.protocol != messages.PROTOCOL:
            self._outlet.remark(f"it speaks version {hello.protocol} of the framing, and we {messages.PROTOCOL}")
        if (hello.firmware or hello.serial) and self._described != (hello.firmware, hello.serial):
            self._described = hello.firmware, hello.serial
            self._outlet.tell(DeviceDescribed(self._id, at, hello.firmware, hello.serial))
        self._hello = hello
        self._wonders = False
        if not self._met.is_set():
            self._audio.start(hello.rate_hz, hello.window)
            self._clock.meet(hello.boot)
            self._met.set()
            if self._is_gone:
                # It never restarted: nothing else would take back that it was gone.
                self._is_gone = False
                self._outlet.tell(Status(self._id, Stamp(self._now_s()), DeviceState.IDLE, "it says hello again"))
            self._outlet.back(BOARD)
        for told, told_at in [one for one in self._put_away if one[0].boot == hello.boot]:
            self._put_away.remove((told, told_at))
            self._number(told, told_at)

    def _acknowledge(self, ack: said.Ack, at: Stamp) -> None:
        if not self._met.is_set():
            return
        now_s = self._now_s()
        match self._audio.acknowledge(ack.next, now_s):
            case Answer.FOUND:
                # What it said before we listened is not waited for.
                self._numbering.settle(ack.events)
            case Answer.FOREIGN:
                if self._acked is not None and ack.next >= self._acked.next:
                    self._fed_s = self._now_s()
                    self._outlet.lose(
                        FED, f"it expects sample {ack.next}, which we never gave: it is used by two", named=True
                    )
                    self._part()
                return  # otherwise it was overtaken by a later one
            case Answer.ADVANCED | Answer.REPEATED:
                pass
        self._acked = ack
        self._commands.acknowledge(ack.command)
        playing = self._playing
        if playing is None or playing.sound is not None:
            return
        if playing.needed is None and self._audio.heard >= playing.end:
            playing.needed, playing.due_s = ack.events, now_s + _EVENTS_LIMIT_S
        elif playing.needed is None and self._audio.heard > playing.start:
            self._prove(Proof.ACKNOWLEDGED, at)

    def _answer(self, pong: said.Pong, at: Stamp) -> None:
        fitted = self._clock.pong(pong, at)
        if fitted is not None:
            self._outlet.tell(fitted)
        if pong.listening and self._playing is None:
            self._prove(Proof.HEARTBEAT, at)

    def _hear(self, told: said.Told, at: Stamp) -> None:
        what = told.what
        if isinstance(what, said.Is) and what.state is DeviceState.STARTED:
            if not self._tell_started(told.boot, at, what.detail):
                self._outlet.remark(f"status: started {what.detail}".rstrip())
            return
        if isinstance(what, said.Is) and what.state is DeviceState.GONE:
            self._outlet.tell(Status(self._id, at, DeviceState.GONE, what.detail or "the broker tells its last will"))
            self._is_gone = True
            if self._met.is_set():
                self._outlet.lose(BOARD, "the board has gone from the broker (its last will)")
                self._part()
            return
        audio_s = self._audio.audio_s(told.sample) if told.sample is not None else None
        self._outlet.tell(observation(self._id, what, self._clock.stamp(told.time_us, at), audio_s))

    def _prove(self, proof: Proof, at: Stamp, *, always: bool = False) -> None:
        now_s = self._now_s()
        if always or now_s - self._proved_s >= _PROOF_S:
            self._proved_s = now_s
            self._outlet.tell(ListeningProved(self._id, at, proof, self._audio.line_s(self._audio.heard)))

    # What it is given

    def reset(self) -> None:
        """Asks it to start anew."""
        with self._changed:
            self._feeding.gives("in/reset", b"")
        self._publish("in/reset", b"", 1)

    def play(self, play_id: str, waveform: Waveform) -> None:
        """DeviceError when it is not there, or while something is being played."""
        hello = self._hello
        if hello is None or not self._met.is_set():
            raise DeviceError(f"{self._id}: the board is not there", remedy="Wait until its link is back")
        samples = at_rate(waveform, hello.rate_hz)
        sound = EncodedSound(pcm16(samples), self._options.encoding.encoding)
        with self._changed:
            if self._playing is not None:
                raise DeviceError(f"{self._id} is playing {self._playing.play_id} already", remedy="Stop it first")
            if self._hello is not hello or not self._met.is_set():
                raise DeviceError(f"{self._id}: the board has just gone", remedy="Wait until its link is back")
            end = self._audio.end
            self._playing = Injection(play_id, samples, hello.rate_hz, end, end, sound, self._now_s())
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            if self._playing is not None:
                self._audio.cut()
                self._end(complete=False)
                self._changed.notify_all()

    def level_dbfs(self) -> float | None:
        with self._changed:
            playing = self._playing
            return None if playing is None else playing.level_dbfs(self._audio.sent)

    def command(self, topic: str, fields: dict[str, object]) -> None:
        """Returns when the board has acknowledged it, after those before; DeviceError when it does not within 5 s."""
        command = Command(topic, fields)
        with self._changed:
            if not self._met.is_set():
                raise DeviceError(f"{self._id}: the board is not there", remedy="Wait until its link is back")
            self._commands.add(command)
            self._changed.notify_all()
            self._changed.wait_for(lambda: command.taken or not self._commands.holds(command), _COMMAND_LIMIT_S)
            self._commands.drop(command)
            if not command.taken:
                raise DeviceError(
                    f"{self._id}: the board has not acknowledged {topic}", remedy="See whether it restarted or was lost"
                )

    def _settle(self, at: Stamp) -> None:
        """Ends what plays when the last sample and every event up to there have come."""
        playing = self._playing
        if playing is None or playing.needed is None:
            return
        if self._numbering.complete_to(playing.needed):
            self._prove(Proof.ACKNOWLEDGED, at, always=True)
            if not self._feeding.echoed and not self._said_unseen:
                self._said_unseen = True
                self._outlet.remark("the broker does not show us in/audio: others who give it sound are not noticed")
            self._end(complete=True)
        elif self._now_s() >= playing.due_s:
            self._outlet.remark(f"events up to number {playing.needed} are missing: {playing.play_id} does not count")
            self._numbering.settle(playing.needed)
            self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        playing, self._playing = self._playing, None
        if playing is None:
            return
        self._begin(playing)
        end = playing.end if complete else min(playing.end, max(playing.start, self._audio.sent))
        audio_s = self._audio.line_s(end)
        self._outlet.tell(StimulusEnded(self._id, Stamp(self._now_s()), playing.play_id, complete, audio_s))

    def _begin(self, playing: Injection) -> None:
        if playing.started:
            return
        playing.started = True
        at = Stamp(self._now_s())
        self._outlet.tell(StimulusStarted(self._id, at, playing.play_id, self._audio.line_s(playing.start)))

    # What is due

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
        self._silence.look(now_s)
        if not self._linked:
            return [], _ASK_S
        if now_s - self._fed_s >= QUIET_S:
            self._outlet.back(FED)
        if not self._met.is_set() or self._wonders:
            if now_s - self._asked_s >= _ASK_S:
                self._asked_s, self._wonders = now_s, False
                return [("in/hello", b"", 0)], 0.0
            if not self._met.is_set():
                return [], self._asked_s + _ASK_S - now_s
        if silent := self._silence.too_long(now_s, self._options.answer_wait_s):
            # First the loss, then what it cut off: the session is to hear the reason.
            self._outlet.lose(BOARD, silent)
            self._part()
            return [], 0.0
        out = [*self._ping_due(now_s), *self._commands.due(now_s), *self._audio_due(now_s)]
        self._settle(Stamp(now_s))
        waits = [self._clock.wait_s(now_s), _ASK_S]
        waits.append(AGAIN_S)
        if self._playing is not None and self._playing.sound is not None:
            waits.append(_LEFT_OVER_S / 10)
        if (audio_wait_s := self._audio.wait_s(now_s)) is not None:
            waits.append(max(audio_wait_s, 0.001))
        return out, min(waits)

    def _ping_due(self, now_s: float) -> list[tuple[str, bytes, int]]:
        if self._clock.wait_s(now_s) > 0:
            return []
        self._silence.asked(now_s)
        return [("in/ping", str(self._clock.ping(now_s)).encode(), 0)]

    def _give(self, playing: Injection, now_s: float) -> None:
        """Its place on the line, as soon as what a stop left on its way was heard, and its events have come."""
        if playing.sound is None or self._audio.heard < self._audio.end:
            return
        if self._acked is not None:
            told = self._numbering.complete_to(self._acked.events)
            if not told and now_s - playing.asked_s < _LEFT_OVER_S:
                return
            self._numbering.settle(self._acked.events)
        playing.start, playing.end = self._audio.give(playing.sound)
        playing.sound = None

    def _audio_due(self, now_s: float) -> list[tuple[str, bytes, int]]:
        out: list[tuple[str, bytes, int]] = []
        if self._playing is not None:
            self._give(self._playing, now_s)
        while len(out) < _AT_ONCE and (chunk := self._audio.due(now_s)) is not None:
            payload = messages.encode(messages.Audio(chunk.encoding, chunk.first, chunk.data))[1]
            out.append(("in/audio", payload, 0))
            playing = self._playing
            if playing is not None and playing.sound is None and self._audio.sent > playing.start:
                self._begin(playing)
        return out
