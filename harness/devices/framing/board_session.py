"""One board that speaks docs/reference/framing.md: its boots, clock, events, commands and sound, over any wire.

No I/O, threads or clock. A driver passes in messages with their arrival times, and asks what to send, under a lock.
Serial frames and MQTT messages only encode and decode.

    link_up ──► hello requested ──► hello: known ──► events, commands, pings ──► enough pings: ready for sound
                   ▲                  │
                   │                  └─ with another boot id: numbers, clock and audio line start anew
                   └─ silent, link_down, used by another program, or two boards under one name

`receive` handles a message, `due` returns what to send, `tick` reports a board that does not answer. A sound waits
until its place on the audio line is known (`_place_sound`), and begins with its first chunk. It ends when its last
sample is acknowledged and all events up to that acknowledgement have arrived (`_end_if_complete`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from harness.devices.active_play import ActivePlay, to_pcm
from harness.devices.framing.board_messages import Outgoing, ReceivedMessage, WireProperties, observation
from harness.devices.framing.numbering import (
    BoardCommand,
    BoardCommands,
    Boots,
    DeliveredEvents,
    EventDecision,
    EventNumbers,
    HelloResult,
    ResentEvents,
)
from harness.devices.outlet import DriverOutlet
from harness.devices.wire import messages
from harness.devices.wire.adpcm import ADPCM_CHUNK, EncodedSound, Encoding, Pcm
from harness.devices.wire.audio_sender import MAX_RESEND_S, MIN_RESEND_S, AudioAnswer, AudioSender
from harness.devices.wire.console import PROOF_EVERY_S
from harness.devices.wire.device_clock import MAX_DRIFT, DeviceClock, PingResult, PingSchedule
from harness.model.numbers import exact, seconds
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    ListeningProved,
    LogLine,
    Proof,
    Status,
    StimulusEnded,
    StimulusStarted,
    Unread,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

BOARD = "board"
USED_BY_OTHER = "used"
NO_PROGRESS_S = 10.0  # A board that answers, but accepts no sound for so long, ends the sound. Chosen.
SETTLED_PINGS = 30
"""After this many answers, the fit of the clock is reported less often."""
_MIN_FITTED_PINGS = 8  # Chosen: the error of a fit of fewer answers says little.
USED_QUIET_S = 5.0
"""Quiet time after another program has used the board, before the harness uses it again."""
_CLOCK_REPORT_INTERVAL_S = 30.0  # Between reports of the clock's fit. Chosen: a crystal drifts little meanwhile.
_LAST_EVENTS_WAIT_S = 1.0
"""How long a sound waits for the last events of the previous one, in seconds."""
_MAX_PINGS = 64
_MAX_ACKS = 256
_MAX_UNCONFIRMED = 64
"""Limits on the numbers of unanswered pings, unsent acknowledgements, and events of a boot without its hello yet."""
_MAX_WAIT_S = 0.2  # Chosen: a driver's thread looks at deadlines at least this often.
_MAX_TICK_GAP_S = 1.0
"""A longer time between two ticks, in seconds, shows that the thread could not run."""
_NEVER = float("-inf")


def _silence_text(silent_s: float) -> str:
    return f"the board has not answered for {seconds(silent_s)}; its port is still there"


class BoardSession:
    """A board over all its boots and all connections of its wire.

    - last_command: number of the last command of earlier sessions; None: as the board reports it (see `BoardCommands`).
    - silence_text: returns why a board counts as lost that has been silent for so many seconds.
    """

    def __init__(
        self,
        source: str,
        outlet: DriverOutlet,
        wire: WireProperties,
        *,
        encoding: Encoding = Encoding.PCM16,
        realtime: bool = False,
        injects: bool = True,
        ping_period_s: float = 1.0,
        answer_limit_s: float = 4.0,
        last_command: int | None = None,
        silence_text: Callable[[float], str] = _silence_text,
    ) -> None:
        self.clock = DeviceClock()
        self.boots = Boots(single_board=wire.is_lossy)
        self.events: EventNumbers = ResentEvents() if wire.is_lossy else DeliveredEvents()
        self.sender = AudioSender(realtime=realtime, min_resend_s=MIN_RESEND_S if wire.is_lossy else MAX_RESEND_S)
        self.hello: messages.BoardHello | None = None
        self._hello_at = Stamp(0.0)
        self.playing: ActivePlay | None = None
        self.known = False  # its hello on this link has arrived
        self.missing = 0  # events of earlier boots
        self.completed = 0  # sounds that were heard to their end
        self._source, self._outlet, self._wire = source, outlet, wire
        self._encoding, self._injects = encoding, injects
        self._answer_limit_s, self._silence_text = answer_limit_s, silence_text
        self._last_command = last_command
        self._commands = BoardCommands(wire.command_resend_s, last_command)
        self._schedule = PingSchedule(ping_period_s)
        self._link_is_up = False
        self._pings: dict[int, float] = {}
        self._token = self._pongs = 0
        self._acks: deque[Outgoing] = deque(maxlen=_MAX_ACKS)
        self._unconfirmed: deque[tuple[ReceivedMessage, Stamp]] = deque(maxlen=_MAX_UNCONFIRMED)
        self._must_request_hello = self._must_resync = self._must_reset = False
        self._last_description = "", ""
        self._reported_boot = ""
        self._is_gone = False
        self._last_ack: messages.AudioAck | None = None
        self._hello_requested_s = self._pinged_s = self._received_s = _NEVER
        self._listening_reported_s = self._clock_reported_s = self._progress_s = self._foreign_use_s = _NEVER
        self._opened_s = self._ticked_s = float("inf")

    # Queries of a driver

    @property
    def ready(self) -> bool:
        """Whether everything that a stimulus needs is known."""
        if not self.known or self._pongs < self._wire.min_pongs:
            return False
        if not isinstance(self.events, ResentEvents):
            return True
        return self.events.has_begun and (self.sender.ready or not self._accepts_sound)

    @property
    def rate_hz(self) -> int | None:
        """Sample rate of the sound that it accepts; None: it accepts none, or the rate is not known yet."""
        return self.hello.rate_hz if self._injects and self.hello is not None and self._accepts_sound else None

    @property
    def _accepts_sound(self) -> bool:
        return self.hello is not None and self.hello.window > 0

    def link_up(self, now_s: float) -> None:
        """The wire is connected (again)."""
        self._link_is_up, self._received_s = True, now_s
        self._opened_s = min(self._opened_s, now_s)
        self._must_request_hello, self._hello_requested_s = True, _NEVER

    def link_down(self, now_s: float) -> None:
        """The wire is no longer connected: cuts off the current sound."""
        self._link_is_up = False
        self.await_hello(now_s)

    def await_hello(self, now_s: float) -> None:
        """The board is gone, or another one may be there: cuts off the current sound, and requests hello first."""
        self.known, self._must_request_hello = False, True
        self._pongs, self._last_ack = 0, None
        self._pings.clear()
        self._acks.clear()
        self._commands.fail_all()
        self._end_sound(now_s, complete=False)
        self.sender.disconnect()

    def report_foreign_use(self, reason: str, now_s: float) -> None:
        """Another program uses the board: the link is lost until that program has been quiet for a while."""
        is_new = now_s - self._foreign_use_s >= USED_QUIET_S  # one message may show it in several ways
        self._foreign_use_s = now_s
        self._outlet.lose(USED_BY_OTHER, reason, urgent=is_new)  # report the reason before the sound that it cut off
        self.await_hello(now_s)

    def prepare(self, waveform: Waveform) -> tuple[int, Pcm, EncodedSound] | None:
        """Rate, samples and encoded sound; None when the board accepts no sound. Slow: call it without the lock."""
        hello, rate_hz = self.hello, self.rate_hz
        if hello is None or rate_hz is None:
            return None
        encoding = self._encoding
        if encoding is Encoding.ADPCM and hello.window < ADPCM_CHUNK:  # its chunks are sent whole
            encoding = Encoding.PCM16
        samples = to_pcm(waveform, rate_hz)
        return rate_hz, samples, EncodedSound(samples, encoding)

    def play(self, play_id: str, sound: tuple[int, Pcm, EncodedSound], now_s: float) -> None:
        """Begins a sound. A current one ends incomplete. A board that is not ready receives nothing."""
        self.stop(now_s)
        rate_hz, samples, encoded = sound
        if not self.ready or rate_hz != self.rate_hz:
            self._outlet.tell(StimulusEnded(self._source, Stamp(now_s), play_id, complete=False))
            return
        end = self.sender.end
        self.playing = ActivePlay(play_id, samples, rate_hz, start=end, end=end, unplaced=encoded, requested_s=now_s)
        self._progress_s = now_s
        self._place_sound(now_s)

    def stop(self, now_s: float) -> None:
        """Ends the current sound incomplete."""
        self._end_sound(now_s, complete=False)

    def level_dbfs(self) -> float | None:
        return self.playing.level_dbfs(self.sender.sent) if self.playing is not None else None

    def command(self, message: messages.TextCommand | messages.Set) -> BoardCommand:
        """Queues a command, whose `done` is set when it has ended. `drop` gives up waiting for it."""
        return self._commands.add(message)

    def drop(self, command: BoardCommand) -> None:
        self._commands.drop(command)

    def reset(self) -> None:
        """Requests a restart of the board, before anything else is sent."""
        self._must_reset = True

    def tick(self, now_s: float) -> str:
        """Lets time pass. Returns why the board counts as lost; "" if it does not."""
        self._report_due_events(now_s)
        self._end_if_complete(now_s)
        if self.playing is not None and now_s - self._progress_s > NO_PROGRESS_S:
            text = f"the board answers, but has accepted no sound for {exact(NO_PROGRESS_S)} s"
            self._outlet.remark(text)
            self._end_sound(now_s, complete=False, why=text)
        if now_s - self._foreign_use_s >= USED_QUIET_S:
            self._outlet.back(USED_BY_OTHER)
        if now_s - self._ticked_s > _MAX_TICK_GAP_S:
            # On a busy host this thread may have slept, with the answer still unread. Do not blame the board.
            self._received_s += now_s - self._ticked_s
        self._ticked_s = now_s
        silent_s = now_s - self._received_s
        # A frozen board accepts no more bytes on a serial port, so a ping cannot be sent either.
        is_asked = self._wire.is_lossy or self._pinged_s > self._received_s
        return self._silence_text(silent_s) if self.known and is_asked and silent_s > self._answer_limit_s else ""

    def due(self, now_s: float) -> list[Outgoing]:
        """The messages to send now."""
        if not self._link_is_up:
            return []
        if self._must_reset:
            self._must_reset = False
            if self._wire.is_lossy:
                # An event of the next boot that arrives before its hello may look like one already reported.
                self.known, self._hello_requested_s = False, now_s
            return [(messages.Reset(), 0)]
        if (
            self._must_request_hello or not self.known
        ) and now_s >= self._hello_requested_s + self._wire.hello_resend_s:
            self._hello_requested_s = now_s
            if not self._wire.is_lossy:
                self._must_request_hello = False
            return [(messages.HelloRequest(), 0)]
        if not self.known:
            return []
        if self._schedule.wait_s(now_s) <= 0:
            self._token = (self._token + 1) & 0xFFFFFFFF
            while len(self._pings) >= _MAX_PINGS:
                oldest = next(iter(self._pings))
                del self._pings[oldest]
            self._pings[self._token] = self._pinged_s = now_s
            self._schedule.record_sent(now_s)
            return [(messages.Ping(self._token), 0)]  # sent alone, so that its timestamp is that of its departure
        outgoing = [*self._acks, *self._commands.due(now_s)]
        self._acks.clear()
        self._place_sound(now_s)
        for _ in range(self._wire.audio_batch):
            chunk = self.sender.due(now_s)
            if chunk is None:
                break
            outgoing.append((messages.Audio(chunk.encoding, chunk.first, chunk.data), 0))
            playing = self.playing
            if playing is not None and playing.unplaced is None and self.sender.sent > playing.start:
                self._report_started(playing, now_s)
        return outgoing

    def wait_s(self, now_s: float) -> float:
        """Time until `due` or `tick` may have something to do, s."""
        if not self._link_is_up:
            return _MAX_WAIT_S
        if not self.known:
            return min(_MAX_WAIT_S, max(0.0, self._hello_requested_s + self._wire.hello_resend_s - now_s))
        waits = [_MAX_WAIT_S, self._schedule.wait_s(now_s), self._commands.wait_s(now_s), self.sender.wait_s(now_s)]
        if self.playing is not None and self.playing.unplaced is not None:
            waits.append(_LAST_EVENTS_WAIT_S / 10)
        return 0.0 if self._acks else min(wait_s for wait_s in waits if wait_s is not None)

    # Messages of the board

    def receive(self, received: ReceivedMessage, stamp: Stamp) -> None:
        """Handles a message of the board. stamp: when it arrived."""
        now_s, message, boot = stamp.at_s, received.message, received.boot
        if isinstance(message, messages.BoardHello):
            self._received_s = now_s
            self._receive_hello(message, stamp)
        elif boot and (boot != self.boots.current or self.boots.rivals):
            self._receive_from_other_boot(received, stamp)
        else:
            self._received_s = now_s
            match message:
                case messages.Pong():
                    self.boots.record_answer(boot, now_s)
                    self._receive_pong(message, stamp)
                case messages.AudioAck():
                    self._receive_audio_ack(message, now_s)
                case messages.CommandAck(number):
                    self._commands.acknowledge(number)
                case _:
                    self._receive_event(received, stamp)
        self._end_if_complete(now_s)

    def _receive_event(self, received: ReceivedMessage, stamp: Stamp) -> None:
        """Handles a message of the current boot that is an event, a log line, or not valid."""
        event, seq = received.message, received.seq
        if self._wire.is_lossy and not (self.known and self.clock.fitted):
            return  # the board resends an event that arrives before its boot is known
        if seq is None:
            if isinstance(event, messages.Event | messages.Log):
                self._report_event(event, stamp)
            return
        match self.events.offer(seq, event if isinstance(event, messages.Event | messages.Log) else None, stamp):
            case EventDecision.ACKNOWLEDGE:
                if self._wire.is_lossy:
                    self._acks.append((messages.EventAck(seq), 0))
                self._report_due_events(stamp.at_s)
            case EventDecision.REQUEST_HELLO:
                self._suspect_restart()
            case EventDecision.IGNORE:
                pass

    def _receive_from_other_boot(self, received: ReceivedMessage, stamp: Stamp) -> None:
        """Handles a message of a boot that is not current. Nothing changes before the hello of that boot."""
        message, boot = received.message, received.boot
        if isinstance(message, messages.Pong):
            if boot != self.boots.current and message.token in self._pings:
                if self.boots.record_answer(boot, stamp.at_s):
                    self._report_rivals(stamp.at_s)
                self._must_request_hello = True
        elif isinstance(message, messages.Event | messages.Log):
            if self.boots.is_known(boot):
                self._outlet.tell(LogLine(self._source, stamp, f"from another boot, {boot}: {message}"))
                return
            self._unconfirmed.append((received, stamp))
            if self.boots.current:
                text = f"from boot {boot}, which no hello has confirmed: {message}"
                self._outlet.tell(LogLine(self._source, stamp, text))
            self._must_request_hello = True

    def _report_rivals(self, now_s: float) -> None:
        boots = " and ".join(self.boots.rivals)
        reason = f"two boards use this name (boots {boots}): switch one off, or rename it"
        self._outlet.lose(BOARD, reason, urgent=True)
        self.await_hello(now_s)

    def _receive_hello(self, hello: messages.BoardHello, stamp: Stamp) -> None:
        """Makes the boot of the hello current, unless two boards use one name, and starts with it if it is new."""
        now_s, was_contested = stamp.at_s, bool(self.boots.rivals)
        result = self.boots.receive_hello(hello.boot, now_s)
        if result is HelloResult.RIVALS:
            if not was_contested:
                self._report_rivals(now_s)
            return
        if result is not HelloResult.SAME:
            self._switch_boot(hello.boot, stamp, restarted=result is HelloResult.RESTARTED)
        if hello.protocol != messages.PROTOCOL and (self.hello is None or self.hello.protocol != hello.protocol):
            self._outlet.remark(
                f"the board speaks framing version {hello.protocol}, the harness version {messages.PROTOCOL}"
            )
        if (hello.firmware or hello.serial) and self._last_description != (hello.firmware, hello.serial):
            self._last_description = hello.firmware, hello.serial
            self._outlet.tell(DeviceDescribed(self._source, stamp, hello.firmware, hello.serial))
        self.hello, self._hello_at, self._must_request_hello = hello, stamp, False
        if not self.known or self._must_resync:
            self._start_after_hello(hello, now_s)
        # Events that came before this hello; only now can their boot be trusted.
        confirmed = [(received, at) for received, at in self._unconfirmed if received.boot == hello.boot]
        for received, arrival in confirmed:
            self._unconfirmed.remove((received, arrival))
            self._receive_event(received, arrival)

    def _start_after_hello(self, hello: messages.BoardHello, now_s: float) -> None:
        """Starts with a board that is now known on this link: clock and position in the audio are measured anew."""
        self._end_sound(now_s, complete=False)
        self.known, self._must_resync = True, False
        self.clock.start(hello.boot)
        self._pings.clear()
        self._schedule.record_answer()
        self._schedule.request_burst()
        self._clock_reported_s = _NEVER
        if self._accepts_sound:
            self.sender.start(hello.rate_hz, hello.window, hello.boot)
        elif isinstance(self.events, ResentEvents) and not self.events.has_begun:
            self.events.begin(None)
        if self._is_gone:
            # It has not restarted, so nothing else would revoke that it was gone.
            self._is_gone = False
            self._outlet.tell(Status(self._source, Stamp(now_s), DeviceState.IDLE, "the board sends hello again"))
        self._outlet.back(BOARD)

    def _switch_boot(self, boot: str, stamp: Stamp, *, restarted: bool) -> None:
        """Makes another boot the current one. restarted: whether the board has restarted."""
        if restarted:
            # Report the restart before the sound that it cut off, so that the session knows the reason.
            detail = f"boot {boot}" if self._wire.is_lossy else "its boot id changed"
            for received, _ in reversed(self._unconfirmed):  # the board's own first event about it says more
                match received.message:
                    case messages.StatusEvent(state=DeviceState.STARTED, detail=own_detail) if received.boot == boot:
                        detail = own_detail
            self._report_start_once(boot, stamp, detail)
        self._reported_boot = boot  # the first boot, and a boot that returns, is not a restart
        self.missing = self.lost_events  # before the count of `events` restarts
        if not self._wire.is_lossy:
            self.events = DeliveredEvents(from_one=restarted)
        elif restarted:
            self.events = ResentEvents()
            self.events.begin(0)
        self.hello = None
        self.await_hello(stamp.at_s)
        self._commands = BoardCommands(self._wire.command_resend_s, self._last_command)

    @property
    def lost_events(self) -> int:
        """Number of lost events, over all boots."""
        return self.missing + self.events.missing

    def _report_start_once(self, boot: str, stamp: Stamp, detail: str) -> bool:
        """Reports a start once per boot; returns False when it was already reported."""
        if self._reported_boot == boot:
            return False
        self._reported_boot = boot
        self._outlet.tell(Status(self._source, stamp, DeviceState.STARTED, detail))
        return True

    def _receive_pong(self, pong: messages.Pong, stamp: Stamp) -> None:
        """Adds the answer to a ping to the clock's fit, and reports that fit now and then."""
        now_s = stamp.at_s
        sent_s = self._pings.pop(pong.token, None)
        if sent_s is None or not self.known:
            return
        self._schedule.record_answer()
        match self.clock.add_ping(sent_s, pong.received_us, pong.sent_us, now_s):
            case PingResult.IMPOSSIBLE:
                return
            case PingResult.JUMPED:
                self._outlet.remark("its clock has jumped")
                self._schedule.request_burst()
                self._must_request_hello, self._clock_reported_s = True, _NEVER
            case PingResult.ACCEPTED:
                pass
        self._pongs += 1
        is_fitted = self._pongs >= max(self._wire.min_pongs, _MIN_FITTED_PINGS)
        every_s = _CLOCK_REPORT_INTERVAL_S if self._pongs > SETTLED_PINGS else _CLOCK_REPORT_INTERVAL_S / 6
        is_due = is_fitted and now_s - self._clock_reported_s >= every_s
        if is_due and (fit := self.clock.fit(self._source, stamp)) is not None:
            self._clock_reported_s = now_s
            self._outlet.tell(fit)
        if pong.listening:
            self._report_listening(Proof.HEARTBEAT, now_s)

    def _receive_audio_ack(self, ack: messages.AudioAck, now_s: float) -> None:
        """The board acknowledges samples, and gives the number of its last event."""
        if not self.known:
            return
        match self.sender.acknowledge(ack.next, now_s):
            case AudioAnswer.FOUND:
                if isinstance(self.events, ResentEvents) and not self.events.has_begun:
                    self.events.begin(ack.events)
                elif missing := self.events.resume(ack.events):
                    self._outlet.remark(f"events missing: {missing} (the board no longer had them)")
            case AudioAnswer.FOREIGN if self._wire.is_lossy:
                self._suspect_restart()
                return
            case AudioAnswer.FOREIGN:
                if self._last_ack is not None and ack.next >= self._last_ack.next:
                    reason = f"the board expects sample {ack.next}, which the harness never sent: two programs use it"
                    self.report_foreign_use(reason, now_s)
                return  # otherwise a later one has overtaken it
            case AudioAnswer.ADVANCED:
                self._progress_s = now_s
            case AudioAnswer.REPEATED:
                pass
        self._last_ack = ack
        if ack.command is not None:
            self._commands.acknowledge_up_to(ack.command)
        playing = self.playing
        if playing is None or playing.unplaced is not None or playing.last_event is not None:
            return
        if self.sender.acknowledged >= playing.end:
            playing.last_event, playing.events_due_s = ack.events, now_s + self._wire.last_events_s
        elif self.sender.acknowledged > playing.start:
            self._report_listening(Proof.ACKNOWLEDGED, now_s)

    def _suspect_restart(self) -> None:
        """Handles a message that this boot cannot have sent: the board may have restarted."""
        self._must_request_hello = self._must_resync = True

    def _report_due_events(self, now_s: float) -> None:
        """Reports the events that are ready, and those given up as missing, which end a sound on a lossy wire."""
        if missing := self.events.skip_missing(min(now_s, self._received_s + _MAX_WAIT_S)):
            self._outlet.tell(Unread(self._source, Stamp(now_s), f"events missing before the next: {missing}", missing))
            if self._wire.is_lossy:  # a broker's gap may still be filled
                self._end_sound(now_s, complete=False, why=f"{missing} of its events are missing")
        for event, stamp in self.events.due():
            self._report_event(event, stamp)
            if self.playing is not None:
                self.playing.events_due_s = now_s + self._wire.last_events_s  # more may follow it

    def _report_event(self, event: messages.Event | messages.Log | None, stamp: Stamp) -> None:
        """Reports an event at the time that it names, or else at its arrival. Starts and last wills change the link."""
        if isinstance(event, messages.StatusEvent) and event.state is DeviceState.STARTED:
            # On a serial port, its hello has already reported this.
            if not self._wire.is_lossy and not self._report_start_once(self.boots.current, stamp, event.detail):
                self._outlet.remark(f"status: started {event.detail}".rstrip())
            return
        if isinstance(event, messages.StatusEvent) and event.state is DeviceState.GONE:
            detail = event.detail or "the broker reports its last will"
            self._outlet.tell(Status(self._source, stamp, DeviceState.GONE, detail))
            self._is_gone = True
            if self.known:
                self._outlet.lose(BOARD, "the board has left the broker (its last will)")
                self.await_hello(stamp.at_s)
            return
        if event is not None and event.time_us is not None:
            stamp = self.clock.host_time(event.time_us) if self.clock.fitted else self._hello_time(event.time_us, stamp)
        reported = observation(event, self._source, stamp, self.sender)
        if stamp.at_s + stamp.error_s >= self._opened_s:  # a board also sends what it kept from before this session
            self._outlet.tell(reported)

    def _hello_time(self, time_us: int, stamp: Stamp) -> Stamp:
        """The time of an event that arrived before the first answer to a ping, from the board's time in the hello."""
        if self.hello is None:
            return stamp
        since_s = (time_us - self.hello.time_us) * 1e-6
        return Stamp(self._hello_at.at_s + since_s, self._hello_at.error_s + MAX_DRIFT * abs(since_s))

    def _report_listening(self, proof: Proof, now_s: float, *, always: bool = False) -> None:
        """Reports that the board listens, at most every PROOF_EVERY_S unless `always`."""
        if always or now_s - self._listening_reported_s >= PROOF_EVERY_S:
            self._listening_reported_s = now_s
            audio_s = self.sender.audio_line_s(self.sender.acknowledged) if self._injects else None
            self._outlet.tell(ListeningProved(self._source, Stamp(now_s), proof, audio_s))

    # Sound

    def _place_sound(self, now_s: float) -> None:
        """Gives the sound its position, once all earlier sound is acknowledged and its events have arrived."""
        playing = self.playing
        if playing is None or playing.unplaced is None:
            return
        if not self._wire.is_lossy:  # on a serial port events arrive in order, and name their samples
            if self.sender.acknowledged < self.sender.end:
                return
            if self._last_ack is not None and not self.events.is_settled(self._last_ack.events):
                if now_s - playing.requested_s < _LAST_EVENTS_WAIT_S:
                    return
                self.events.settle(self._last_ack.events)
        playing.start, playing.end = self.sender.append(playing.unplaced)
        playing.unplaced = None
        if playing.start == playing.end:  # an empty sound: no acknowledgement would ever end it
            self._report_started(playing, now_s)
            self._end_sound(now_s, complete=True)

    def _end_if_complete(self, now_s: float) -> None:
        """Ends the sound when the last sample is acknowledged and all its events have arrived."""
        playing = self.playing
        if playing is None or playing.last_event is None:
            return
        if self.events.is_settled(playing.last_event):
            self._report_listening(Proof.ACKNOWLEDGED, now_s, always=True)
            self.completed += 1
            self._end_sound(now_s, complete=True)
            if self._wire.is_lossy:
                self._schedule.request_burst()  # the wire is free now, so its round trips are short
        elif now_s >= playing.events_due_s:
            why = f"events up to number {playing.last_event} are missing"
            self._outlet.remark(f"{why}, so {playing.play_id} does not count")
            self.events.settle(playing.last_event)
            self._end_sound(now_s, complete=False, why=why)

    def _report_started(self, playing: ActivePlay, now_s: float) -> None:
        if not playing.has_started:
            playing.has_started = True
            audio_s = self.sender.audio_line_s(playing.start)
            self._outlet.tell(StimulusStarted(self._source, Stamp(now_s), playing.play_id, audio_s))

    def _end_sound(self, now_s: float, *, complete: bool, why: str = "") -> None:
        """Reports the end of the current sound, if any, and drops what is not sent of it."""
        playing, self.playing = self.playing, None
        if playing is None:
            return
        if not self._wire.is_lossy:
            self._report_started(playing, now_s)
        end = playing.end if complete else max(playing.start, min(self.sender.drop_unsent(), playing.end))
        audio_s = self.sender.audio_line_s(end)
        self._outlet.tell(StimulusEnded(self._source, Stamp(now_s), playing.play_id, complete, audio_s, why))
