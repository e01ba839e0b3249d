"""The server's side of a Wyoming satellite: the harness receives a command's sound, and can answer.

The satellite waits for connections, and the server connects, as Home Assistant does. Source: wyoming 1.10.2 and
wyoming-satellite 1.0.0 and 1.4.1 (satellite.py). One thread reads. Another one sends, and works on each command.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from harness.base import threads
from harness.base.foreign import plain_text
from harness.devices import tcp
from harness.devices.outlet import BROKEN
from harness.devices.spoken_commands import ANSWER_HZ, NOTHING_HEARD, SOUND_GRACE_S, CommandSound, ServerUse
from harness.devices.text_streams import CONNECT_LIMIT_S, PIECE_BYTES
from harness.devices.wire.segments import StreamSegment, WyomingEvents
from harness.model.errors import DeviceError, HarnessError
from harness.model.numbers import exact
from harness.model.observation import DeviceDescribed, LogLine, Unread
from harness.model.time import Stamp

JOIN_S = 0.5  # For each of two threads, within the 2 s of `ports.Driver`.
STOP_CHECK_S = 0.2
PING_INTERVAL_S = 2.0
UNACKNOWLEDGED_S = 15.0  # Chosen: a satellite may be slow to accept a long answer.
EVENT_BYTES = 65_536
_INFO_LIMIT_S = 2.0
_CHUNK_SAMPLES = 1024
PLAYED_LATE_S = 0.5
"""How long after the end of the sound `played` may come, as in Home Assistant. Some satellites never send it."""
PIPELINE_ENDED = b'\n{"type": "pipeline-ended"}\n'
"""The line for the end of a run that the satellite does not report."""
_CLOSED = "the satellite closed the connection"
_INFO = b'{"type": "info"'
_UNREPORTED_KINDS = ("ping", "pong", "info", "audio-chunk")


class ServerLink:
    """A connection to a satellite, as a `FarEnd` for `TextStream`.

    Events from the satellite, and those sent to it, are read from it as lines of JSON with their times.
    """

    def __init__(self, address: str, use: ServerUse, stop: threading.Event) -> None:
        """stop: ends the attempt to connect.

        Raises DeviceError when the satellite does not answer, or has another server.
        """
        self._address, self._use = address, use
        self._end_reason = _CLOSED
        self._socket = open_connection(address)
        # A ping is nearly always under way, so this notices a satellite that is gone.
        tcp.limit_unacknowledged(self._socket, UNACKNOWLEDGED_S)
        self._send_lock = threads.lock()
        self._events = WyomingEvents(EVENT_BYTES, payloads=True)
        self._early_segments: list[tuple[StreamSegment, float]] = []
        try:
            self._await_acceptance(stop)
        except OSError as error:
            self._socket.close()
            raise DeviceError(
                f"{address} does not accept the harness as its server: {error}",
                remedy="Disconnect its server, such as Home Assistant: it accepts only one",
            ) from error
        self._lines = deque[tuple[bytes, float]]()
        self.last_read: list[tuple[bytes, float]] = []
        """The lines of the last `read`, and when their events arrived or were sent."""
        self._signal_writer, self._signal_reader = socket.socketpair()
        self._signal_writer.setblocking(False)
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = threads.simple_queue()  # None: the end
        self._command: CommandSound | None = None
        self._expects_command = self._plays_answer = self._payload_is_sound = False
        self._command_due_s = 0.0  # a command without enough sound ends then, on the monotonic clock
        self._run_number = 0  # Number of the latest run. The words and the answer of an earlier one are dropped.
        self._answer_was_played = threads.event()
        self._threads = [
            threads.thread(run, name=f"wyoming {address}") for run in (self._listen, self._run_work_thread)
        ]

    def _await_acceptance(self, stop: threading.Event) -> None:
        """Waits until the satellite accepts the harness as its server.

        A satellite with another server does not answer after `run-satellite`, but may stay connected.
        """
        self._send("run-satellite")
        self._send("describe")
        self._socket.settimeout(STOP_CHECK_S)
        until_s = threads.monotonic() + CONNECT_LIMIT_S
        while not any(segment.is_frame and segment.content.startswith(_INFO) for segment, _ in self._early_segments):
            if stop.is_set() or threads.monotonic() > until_s:
                raise TimeoutError(f"no answer within {exact(CONNECT_LIMIT_S)} s")
            with contextlib.suppress(TimeoutError):
                if not (data := self._socket.recv(PIECE_BYTES)):
                    raise ConnectionError(_CLOSED)
                at_s = self._use.now_s()
                self._early_segments += [(segment, at_s) for segment in self._events.feed(data, 0.0)]
        self._socket.settimeout(None)

    def begin(self) -> ServerLink:
        """Starts the satellite, and returns this link."""
        for thread in self._threads:
            thread.start()
        return self

    def fileno(self) -> int:
        return self._signal_reader.fileno()

    def read(self) -> bytes:
        """The lines that have arrived, which `last_read` has with their times; b"" at the end."""
        if not self._signal_reader.recv(PIECE_BYTES) and not self._lines:
            return b""
        self.last_read = [self._lines.popleft() for _ in range(len(self._lines))]
        return b"".join(line for line, _ in self.last_read) or b"\n"  # not the end

    def write(self, data: bytes) -> None:
        raise OSError("a satellite does not accept commands")

    def end_reason(self) -> str:
        return f"{self._address}: {self._end_reason}"

    def close(self) -> None:
        """Ends the connection and both threads, in any state."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._answer_was_played.set()
        reading_thread, work_thread = self._threads
        if reading_thread.ident is not None:
            reading_thread.join(JOIN_S)
            self._jobs.put(None)
            work_thread.join(JOIN_S)
        for open_socket in (self._socket, self._signal_writer, self._signal_reader):
            open_socket.close()

    # The thread that reads

    def _listen(self) -> None:
        """Handles what the satellite sends, until the connection ends."""
        try:
            for segment, at_s in self._early_segments:
                self._handle_segment(segment, at_s)
            while data := self._receive():
                at_s = self._use.now_s()
                self._queue_line(b"", at_s)  # whatever came shows that the satellite is there
                for segment in self._events.feed(data, 0.0):
                    self._handle_segment(segment, at_s)
        except (OSError, DeviceError) as error:
            if self._end_reason != BROKEN:  # else the other thread has ended and closed the socket
                self._end_reason = str(error)
        except BaseException:
            self._end_reason = BROKEN
            raise
        finally:
            self._cut_off_command()
            with contextlib.suppress(OSError):
                self._signal_writer.shutdown(socket.SHUT_WR)

    def _receive(self) -> bytes:
        """The next bytes from the satellite. A command whose sound does not come in time ends meanwhile."""
        if self._expects_command:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            if not poll.poll(1000 * max(0.0, self._command_due_s - threads.monotonic())):
                self._end_command()
        return self._socket.recv(PIECE_BYTES)

    def _handle_segment(self, segment: StreamSegment, at_s: float) -> None:
        """Reports an event, and does what a server must do about it. Sound belongs to the command in progress."""
        if segment.is_payload:
            command = self._command if self._expects_command and self._payload_is_sound else None
            if command is not None and command.feed(segment.content, at_s):
                self._end_command()
            return
        if not segment.is_frame:
            self._queue_line(segment.content, at_s)
            return
        event = json.loads(segment.content)
        kind, data = event["type"], event["data"]
        self._payload_is_sound = kind == "audio-chunk"
        if kind not in _UNREPORTED_KINDS:
            self._queue_line(b"\n%b\n" % segment.content, at_s)
        match kind:
            case "ping":
                self._send("pong", data)
            case "info":
                self._use.report(DeviceDescribed(self._use.id, Stamp(at_s), _describe(data)))
            case "run-pipeline" if data.get("start_stage") == "asr":
                self._cut_off_command()
                self._run_number += 1
                self._answer_was_played.set()  # or it was cut off
                self._expects_command, self._plays_answer = True, data.get("end_stage") == "tts"
                self._command_due_s = threads.monotonic() + self._use.limit_s + SOUND_GRACE_S
                self._send_and_report("transcribe")
            case "run-pipeline" if data.get("start_stage") == "wake":
                raise DeviceError(
                    f"{self._address} leaves wake word detection to its server",
                    remedy="Start the satellite with a wake word service (--wake-uri), or set `mode: proxy`",
                )
            case "audio-chunk" if self._expects_command:
                rate_hz, channels = _sound_format(data)
                self._command = self._command or CommandSound(rate_hz, channels, self._use.limit_s)
                if (rate_hz, channels) != (self._command.rate_hz, self._command.channels):
                    raise DeviceError(
                        "the satellite changed its sound format in a command", remedy="Restart the satellite"
                    )
            case "played":
                self._answer_was_played.set()
            case "audio-stop" if self._expects_command:
                self._end_command()

    def _end_command(self) -> None:
        """Ends a command: its sound is stored and answered."""
        self._expects_command, command, self._command = False, self._command, None
        self._send_and_report("voice-stopped")
        self._jobs.put(partial(self._answer, command, self._run_number))

    def _cut_off_command(self) -> None:
        """Ends a command that was cut off: its sound is stored."""
        self._expects_command, command, self._command = False, self._command, None
        if command is not None:
            self._jobs.put(partial(self._use.keep_command, command))

    # The thread that works on commands

    def _run_work_thread(self) -> None:
        """Runs jobs until the end. The connection ends with this thread."""
        try:
            self._run_jobs()
        except BaseException:
            self._end_reason = BROKEN
            raise
        finally:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _run_jobs(self) -> None:
        """Runs jobs as they come, and sends a ping when none has come for PING_INTERVAL_S."""
        while True:
            job: Callable[[], object] | None = partial(self._send, "ping")
            with contextlib.suppress(queue.Empty):
                job = self._jobs.get(timeout=PING_INTERVAL_S)
            if job is None:
                return
            with contextlib.suppress(OSError):  # the reading thread reports why the connection has ended
                job()

    def _answer(self, command: CommandSound | None, run: int) -> None:
        """Stores the sound of a command, and recognises it if there is a recogniser. None: no sound came."""
        waveform = None if command is None else self._use.keep_command(command)
        answerer = self._use.answerer
        recogniser = None if answerer is None else answerer.recogniser
        if waveform is None:
            self._handle_words(run, "")
        elif recogniser is not None:
            recogniser.transcribe_later(waveform, lambda words: self._jobs.put(partial(self._handle_words, run, words)))
        elif run == self._run_number:
            self._send_no_words(ends=False)
            self._speak_answer(run, "")

    def _handle_words(self, run: int, words: str | HarnessError) -> None:
        """Sends the recognised words and answers them, or reports that there are none. Drops those of an earlier run.

        The satellite would take them for the words of its present command.
        """
        if run != self._run_number:
            return
        if isinstance(words, HarnessError):
            self._use.report(Unread(self._use.id, Stamp(self._use.now_s()), f"the recogniser failed: {words}"))
            self._send("error", {"text": "the recogniser failed", "code": "stt-stream-failed"})
            self._send_no_words()
        elif not words.strip():
            self._send_and_report("error", {"text": "no text recognized", "code": NOTHING_HEARD})
            self._send_no_words()
        else:
            self._send_and_report("transcript", {"text": words})
            self._speak_answer(run, words)

    def _send_no_words(self, *, ends: bool = True) -> None:
        """Makes the satellite wait for its wake word again. No words were recognised, so this is not reported.

        An error alone does not do so with wyoming-satellite 1.0.
        """
        self._send("transcript", {"text": ""})
        if ends:
            self._report_end()

    def _speak_answer(self, run: int, words: str) -> None:
        """Sends the spoken answer, and waits until it was played. Without an answer, only the end is reported."""
        answerer = self._use.answerer
        text = "" if answerer is None else answerer.answer(words).strip()
        if answerer is None or not text or not self._plays_answer:
            self._report_end()
            return
        self._send_and_report("synthesize", {"text": text})
        try:
            samples = answerer.speak(text)
        except HarnessError as error:
            self._use.report(LogLine(self._use.id, Stamp(self._use.now_s()), f"the answer was not spoken: {error}"))
            self._report_end()
            return
        self._answer_was_played.clear()
        sound: dict[str, object] = {"rate": ANSWER_HZ, "width": 2, "channels": 1}
        content = np.clip(samples * 32767, -32768, 32767).astype("<i2").tobytes()
        self._send_and_report("audio-start", {**sound, "timestamp": 0})
        for start in range(0, len(content), 2 * _CHUNK_SAMPLES):
            self._send("audio-chunk", sound, content[start : start + 2 * _CHUNK_SAMPLES])
        self._send("audio-stop", {"timestamp": 1000 * len(samples) // ANSWER_HZ})
        until_s = threads.monotonic() + len(samples) / ANSWER_HZ + PLAYED_LATE_S
        while not self._answer_was_played.wait(min(PING_INTERVAL_S, max(0.0, until_s - threads.monotonic()))):
            if run != self._run_number:
                return
            if threads.monotonic() >= until_s:
                self._report_end()
                return
            self._send("ping")

    def _report_end(self) -> None:
        """Reports the end of a command for which the satellite reports none."""
        self._queue_line(PIPELINE_ENDED, self._use.now_s())

    # Both threads

    def _send_and_report(self, kind: str, data: dict[str, object] | None = None) -> None:
        """Sends an event, and reports it with the time at which it was sent."""
        at_s = self._use.now_s()
        self._send(kind, data)
        line = json.dumps({"type": kind, "data": data or {}}, ensure_ascii=False)
        self._queue_line(b"\n%b\n" % line.encode("utf-8", "replace"), at_s)

    def _send(self, kind: str, data: dict[str, object] | None = None, payload: bytes = b"") -> None:
        header: dict[str, object] = {"type": kind, "data": data or {}}
        if payload:
            header["payload_length"] = len(payload)
        with self._send_lock:
            self._socket.sendall(json.dumps(header).encode() + b"\n" + payload)

    def _queue_line(self, line: bytes, at_s: float) -> None:
        """Queues a line for `read`, and wakes its reader."""
        self._lines.append((line, at_s))
        with contextlib.suppress(OSError):  # full: the reader will look anyway
            self._signal_writer.send(b"\0")


def open_connection(address: str, limit_s: float = CONNECT_LIMIT_S) -> socket.socket:
    """An open connection to the address. Raises DeviceError when nothing answers."""
    try:
        return tcp.connect(*tcp.host_and_port(address), limit_s)
    except OSError as error:
        raise DeviceError(
            f"{address} cannot be reached: {error}",
            remedy="Check that the satellite is on, and that its address is correct",
        ) from error


def reported_info(address: str, limit_s: float = CONNECT_LIMIT_S) -> dict[str, Any]:
    """What a satellite or a service reports about itself; {} without an answer.

    Raises DeviceError if nothing is there.
    """
    events = WyomingEvents(EVENT_BYTES)
    with open_connection(address, limit_s) as connection, contextlib.suppress(OSError):
        connection.settimeout(_INFO_LIMIT_S)
        connection.sendall(b'{"type": "describe"}\n')
        until_s = threads.monotonic() + _INFO_LIMIT_S
        while threads.monotonic() < until_s and (data := connection.recv(PIECE_BYTES)):
            for segment in events.feed(data, 0.0):
                event = json.loads(segment.content) if segment.is_frame else {}
                if event.get("type") == "info":
                    return cast(dict[str, Any], event["data"])
    return {}


def reported_version(address: str) -> str:
    """Name and version that a satellite or a service reports; "no version" without an answer.

    Raises DeviceError if nothing is there.
    """
    return _describe(reported_info(address)) or "no version"


def wake_phrases(info: dict[str, Any]) -> tuple[str, ...]:
    """The phrases that a satellite listens for; if it does not report the active ones, all phrases that it has."""
    models = [model for service in _dicts(info.get("wake")) for model in _dicts(service.get("models"))]
    phrases = {str(model.get("name")): str(model.get("phrase") or model.get("name")) for model in models}
    satellite = info.get("satellite")
    active = satellite.get("active_wake_words") if isinstance(satellite, dict) else None
    names = active if isinstance(active, list) and active else list(phrases)
    return tuple(_phrase_of(phrases.get(str(name), str(name))) for name in names)


def sends_detections(info: dict[str, Any]) -> bool:
    """Whether a satellite sends its detections to its server. Version 1.0 does not, and reports no version."""
    satellite = info.get("satellite")
    if not isinstance(satellite, dict):
        return True
    version = str(satellite.get("version") or "")
    return bool(version) and version != "1.0" and not version.startswith("1.0.")


def _dicts(entries: object) -> list[dict[str, Any]]:
    """The objects in a list; [] for anything else."""
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _phrase_of(name: str) -> str:
    """The phrase in the name of a model: `ok_nabu_v0.1` as words."""
    return re.sub(r"_v\d[\d.]*$", "", plain_text(name, 80)).replace("_", " ").strip()


def _sound_format(data: dict[str, object]) -> tuple[int, int]:
    """Rate in Hz and channels of a chunk. Raises DeviceError for a format that is not supported."""
    match data:
        case {"rate": int(rate), "width": 2, "channels": int(channels)} if 8000 <= rate <= 96_000 and 0 < channels < 9:
            return rate, channels
    format_text = plain_text(json.dumps(data), 200)
    raise DeviceError(
        f"the satellite sends sound as {format_text}", remedy="Configure it to send 16 bits per sample at 16000 Hz"
    )


def _describe(info: dict[str, object]) -> str:
    """`hall 1.4.1`: names and versions of the satellite or the services, as they report them."""
    services = _dicts([info.get("satellite")])
    for entries in info.values():
        services += _dicts(entries)
    names = (" ".join(str(service[key]) for key in ("name", "version") if service.get(key)) for service in services)
    return plain_text(", ".join(name for name in names if name), 200)
