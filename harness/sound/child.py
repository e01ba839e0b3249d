"""The process in which PyAudio runs: `python -m harness.sound.child capture|playback|devices …`.

A frozen sound server hangs PortAudio's calls, and closing a stream under a reader can crash. The engine therefore
never calls PortAudio itself, and ends this process when it falls silent. It uses only the standard library, so that
it starts fast. It ends when its standard input closes.

    engine ─► child   PLAY, STOP
    child ─► engine   capture: OPENED, then a BLOCK per callback, and LOST in between
                      playback: OPENED, then a TICK per callback, with STARTED and ENDED of each play
                      on an error: FAILED, and the child exits

A packet is a head (HEAD: little endian, without padding) and a payload of `length` bytes. Samples are PCM16, mono.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from enum import IntEnum
from queue import SimpleQueue
from typing import Any, Final

from harness.model.errors import SoundError
from harness.model.frozen import frozen
from harness.sound.sound_devices import NO_DEVICE, PULSE, SoundDevice, find, server_devices

HEAD: Final = struct.Struct("<BIIQddI")
"""The fields of a head: kind, number, frames, first sample, moment, reported, length."""


class PacketKind(IntEnum):
    """The kind of a packet. The first two go to the child, the others come from it."""

    PLAY = 1
    """Play a sound. number: number of the play. Payload: its samples."""
    STOP = 2
    OPENED = 3
    """The stream runs. reported: the latency that PortAudio states, in seconds."""
    BLOCK = 4
    """One capture callback. number: PortAudio's status flags. Payload: the samples."""
    TICK = 5
    """One playback callback, as BLOCK without samples."""
    STARTED = 6
    """A play begins at stream sample `first_sample`. number: number of the play."""
    ENDED = 7
    """A play ended just before sample `first_sample`. frames: 1 if complete, 0 if stopped."""
    FAILED = 8
    """The child reports an error and exits. Payload: JSON object with `what` and `remedy`."""
    LOST = 9
    """Samples were dropped because the reader of the pipe was too slow. frames: their number."""


@frozen
class Packet:
    """One message between engine and child. The kind of packet says what number, frames and payload are.

    - first_sample: number of a sample, from the start of the stream.
    - moment_s: CLOCK_MONOTONIC at the start of the callback.
    - reported_s: PortAudio's converter time of the block's first sample, minus moment_s.
    """

    kind: PacketKind
    number: int = 0
    frames: int = 0
    first_sample: int = 0
    moment_s: float = 0.0
    reported_s: float = 0.0
    payload: bytes = b""

    def encode(self) -> bytes:
        head = HEAD.pack(
            self.kind, self.number, self.frames, self.first_sample, self.moment_s, self.reported_s, len(self.payload)
        )
        return head + self.payload


class PacketReader:
    """Turns bytes from any source into complete packets."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[Packet]:
        """The packets that are complete now. Raises ValueError for bytes that are not packets."""
        self._buffer += chunk
        packets = []
        while len(self._buffer) >= HEAD.size:
            kind_code, number, frames, first_sample, moment_s, reported_s, length = HEAD.unpack_from(self._buffer)
            kind = PacketKind(kind_code)
            end = HEAD.size + length
            if len(self._buffer) < end:
                break
            payload = bytes(self._buffer[HEAD.size : end])
            packets.append(
                Packet(
                    kind=kind,
                    number=number,
                    frames=frames,
                    first_sample=first_sample,
                    moment_s=moment_s,
                    reported_s=reported_s,
                    payload=payload,
                )
            )
            del self._buffer[:end]
        return packets


SAMPLE_BYTES = 2  # Of 16-bit samples.
REALTIME_PRIORITY = 5  # Of 1 to 99. Low, since any real-time priority comes before all ordinary processes.
PACTL_LIMIT_S = 1.0  # Chosen: two calls to a frozen server leave most of LIST_LIMIT_S for PortAudio's own list.
BACKLOG_LIMIT_S = 30.0
"""Length of the sound that the engine may leave unread, in seconds. Further blocks are dropped and reported."""

_ErrorHandler = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
_JackHandler = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


def _ignore_alsa_message(_file: bytes, _line: int, _function: bytes, _error: int, _text: bytes) -> None:
    """Ignores a message of ALSA, which writes one for every device that PortAudio cannot open while it probes them."""


def _ignore_jack_message(_text: bytes) -> None:
    """Ignores a message of JACK, which writes several when it does not run."""


# Kept here: the libraries would call a handler even after Python has freed it.
_ALSA_HANDLER = _ErrorHandler(_ignore_alsa_message)
_JACK_HANDLER = _JackHandler(_ignore_jack_message)


def mute_library_errors() -> None:
    """Keeps the libraries below PortAudio off standard error. A missing library is skipped."""
    for library, setters, handler in (
        ("libasound.so.2", ("snd_lib_error_set_handler",), _ALSA_HANDLER),
        ("libjack.so.0", ("jack_set_error_function", "jack_set_info_function"), _JACK_HANDLER),
    ):
        try:
            shared_library = ctypes.CDLL(library)
        except OSError:
            continue
        for setter in setters:
            getattr(shared_library, setter)(handler)


def raise_priority() -> None:
    """Asks for real-time priority: ordinary processes of a busy host delay sound by tens of milliseconds."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REALTIME_PRIORITY))
    except OSError:
        # Not allowed: ordinary priority, and larger buffers if needed.
        return


TICKS_PER_WRITE = 5
"""Ticks of an idle stream are written this many at a time, so that the processes do not wake for each callback."""
IDLE_CALLBACKS = 100
"""A stream is idle after this many callbacks without a play; by then the last one has left all buffers."""


class PacketOutlet:
    """Packets on their way to the engine. Callbacks add them without waiting; the main thread writes them."""

    def __init__(self, max_packets: int) -> None:
        self._packets: deque[Packet] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()  # wakes the main thread
        self._max_packets = max_packets
        self._lost_frames = 0
        self._idle_packets = 0  # of those that can wait

    def put(self, packet: Packet, *, can_wait: bool = False) -> None:
        """Adds a packet. can_wait: whether it may wait for TICKS_PER_WRITE such packets, or one that cannot wait."""
        # Only blocks hold sound, which fills the memory. The engine needs each of the other packets.
        if packet.kind is PacketKind.BLOCK and len(self._packets) > self._max_packets:
            self._lost_frames += packet.frames
            return
        if self._lost_frames:
            self._packets.append(Packet(PacketKind.LOST, frames=self._lost_frames))
            self._lost_frames = 0
        self._packets.append(packet)
        if can_wait:
            self._idle_packets += 1
        if not can_wait or self._idle_packets % TICKS_PER_WRITE == 0:
            self._bell.put(None)

    def take_all(self) -> bytes:
        """Removes all packets that were added, and returns them encoded. Waits for the first one that cannot wait."""
        self._bell.get()
        # The length is read once, since callbacks go on adding.
        return b"".join(self._packets.popleft().encode() for _ in range(len(self._packets)))

    def write_packets(self) -> None:
        """Writes packets to standard output, for ever. Raises BrokenPipeError when the engine has gone."""
        while True:
            unwritten = memoryview(self.take_all())
            while unwritten:
                unwritten = unwritten[os.write(1, unwritten) :]


@frozen
class Output:
    """The output of a device to which a sound goes, while its other outputs are silent.

    - number: number of the output, from 1.
    - count: number of outputs with which the device is opened.
    """

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Output:
        """The output in a text such as 3/8 (number/count)."""
        number, _, count = text.partition("/")
        return cls(int(number), int(count))

    def frames(self, mono: bytes) -> bytes:
        """Samples for all outputs: the sound for this one, and silence for the others."""
        if self.count == 1:
            return mono
        frames = bytearray(len(mono) * self.count)
        for byte in range(SAMPLE_BYTES):  # a slice with a step copies single bytes
            frames[(self.number - 1) * SAMPLE_BYTES + byte :: SAMPLE_BYTES * self.count] = mono[byte::SAMPLE_BYTES]
        return bytes(frames)


class Player:
    """The playback callback: plays one sound after the other, and silence in between."""

    def __init__(self, outlet: PacketOutlet, carry_on: int, output: Output = Output()) -> None:
        self._outlet = outlet
        self._carry_on = carry_on  # PortAudio's value for "more sound follows"
        self._output = output
        self._sample = 0
        self._plays: deque[tuple[int, memoryview]] = deque()
        self._offset = 0  # bytes of the first play that were played
        self._stop_until = 0  # number of the last play that is to be stopped
        self._idle_ticks = 0

    def play(self, number: int, samples: bytes) -> None:
        """Adds a play after all others. Called on another thread than the callback, as `stop` is."""
        self._plays.append((number, memoryview(samples)))

    def stop(self) -> None:
        """Ends every play that was given so far. Later plays are not affected."""
        if self._plays:
            self._stop_until = self._plays[-1][0]

    def callback(self, _in: object, frames: int, time_info: Mapping[str, float], status: int) -> tuple[bytes, int]:
        """Returns the next `frames` samples. Reports the plays that begin and end in them, and the callback itself."""
        moment_s = time.monotonic()
        self._end_stopped()
        bytes_left = frames * SAMPLE_BYTES
        parts: list[bytes | memoryview] = []
        while bytes_left and self._plays:
            number, samples = self._plays[0]
            position = self._sample + frames - bytes_left // SAMPLE_BYTES
            if self._offset == 0:
                self._outlet.put(Packet(PacketKind.STARTED, number, first_sample=position))
            part = samples[self._offset : self._offset + bytes_left]
            parts.append(part)
            bytes_left -= len(part)
            self._offset += len(part)
            if self._offset >= len(samples):
                end = position + len(part) // SAMPLE_BYTES
                self._outlet.put(Packet(PacketKind.ENDED, number, frames=1, first_sample=end))
                self._plays.popleft()
                self._offset = 0
        parts.append(bytes(bytes_left))
        reported_s = time_info["output_buffer_dac_time"] - time_info["current_time"]
        tick = Packet(
            PacketKind.TICK,
            number=status,
            frames=frames,
            first_sample=self._sample,
            moment_s=moment_s,
            reported_s=reported_s,
        )
        self._idle_ticks = 0 if self._plays else self._idle_ticks + 1
        self._outlet.put(tick, can_wait=self._idle_ticks > IDLE_CALLBACKS)
        self._sample += frames
        return self._output.frames(b"".join(parts)), self._carry_on

    def _end_stopped(self) -> None:
        """Ends plays that are to be stopped, before the block of this callback."""
        while self._plays and self._plays[0][0] <= self._stop_until:
            number, _ = self._plays.popleft()
            self._outlet.put(Packet(PacketKind.ENDED, number, frames=0, first_sample=self._sample))
            self._offset = 0


class Recorder:
    """The capture callback."""

    def __init__(self, outlet: PacketOutlet, carry_on: int) -> None:
        self._outlet = outlet
        self._carry_on = carry_on
        self._sample = 0

    def callback(self, samples: bytes, frames: int, time_info: Mapping[str, float], status: int) -> tuple[None, int]:
        moment_s = time.monotonic()
        reported_s = time_info["input_buffer_adc_time"] - time_info["current_time"]
        self._outlet.put(
            Packet(
                kind=PacketKind.BLOCK,
                number=status,
                frames=frames,
                first_sample=self._sample,
                moment_s=moment_s,
                reported_s=reported_s,
                payload=samples,
            )
        )
        self._sample += frames
        return None, self._carry_on


def run_commands(player: Player | None) -> None:
    """Carries out packets from standard input. Ends the process when it closes."""
    packets = PacketReader()
    while chunk := os.read(0, 1 << 16):
        for packet in packets.feed(chunk):
            match packet.kind:
                case PacketKind.PLAY if player is not None:
                    player.play(packet.number, packet.payload)
                case PacketKind.STOP if player is not None:
                    player.stop()
    # Not sys.exit: closing a stream of a frozen server hangs.
    os._exit(0)


def list_portaudio_devices(portaudio: Any) -> list[SoundDevice]:
    """The devices that PortAudio finds, in its order, then the sinks and sources of the sound server."""
    sound_devices = []
    for index in range(portaudio.get_device_count()):
        description = portaudio.get_device_info_by_index(index)
        inputs, outputs = int(description["maxInputChannels"]), int(description["maxOutputChannels"])
        sound_devices.append(
            SoundDevice(index, str(description["name"]), inputs, outputs, int(description["defaultSampleRate"]))
        )
    if any(device.name == PULSE for device in sound_devices):
        sound_devices += server_devices(sound_devices, _server_names("sinks"), _server_names("sources"))
    return sound_devices


def _server_names(kind: str) -> list[str]:
    """Names of PulseAudio's (or PipeWire's) sinks or sources; empty without the server or its tool."""
    try:
        result = subprocess.run(
            ["pactl", "list", "short", kind], capture_output=True, timeout=PACTL_LIMIT_S, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = (line.split("\t") for line in result.stdout.splitlines())
    return [row[1] for row in rows if len(row) > 1] if result.returncode == 0 else []


def open_stream(arguments: argparse.Namespace, outlet: PacketOutlet) -> None:
    """Opens the stream and leaves it running. Raises SoundError or OSError if it cannot be opened."""
    import pyaudio  # imported here: loads PortAudio, which reads the environment

    plays = arguments.task == "playback"
    player = Player(outlet, pyaudio.paContinue, arguments.output) if plays else None
    # Before PortAudio, whose calls may hang: the process must always end with its standard input.
    threading.Thread(target=run_commands, args=(player,), name="commands", daemon=True).start()
    mute_library_errors()
    raise_priority()
    portaudio = pyaudio.PyAudio()
    device = None  # the default output of the host
    if arguments.device or not plays:
        server = arguments.sound_server
        device = find(list_portaudio_devices(portaudio), arguments.device, plays=plays, sound_server=server)
    index = None if device is None else device.index
    if device is not None and device.server_name:
        # Read by libpulse when the stream is opened.
        os.environ["PULSE_SINK" if plays else "PULSE_SOURCE"] = device.server_name
    pa_stream = portaudio.open(
        rate=arguments.rate_hz,
        channels=arguments.output.count,
        format=pyaudio.paInt16,
        input=not plays,
        output=plays,
        input_device_index=None if plays else index,
        output_device_index=index if plays else None,
        frames_per_buffer=arguments.frames_per_buffer,
        stream_callback=player.callback if player else Recorder(outlet, pyaudio.paContinue).callback,
    )
    latency_s = pa_stream.get_output_latency() if plays else pa_stream.get_input_latency()
    outlet.put(Packet(PacketKind.OPENED, reported_s=latency_s))


def list_devices() -> None:
    """Prints the devices as one JSON line, and ends the process."""
    import pyaudio  # imported here: loads PortAudio, which reads the environment

    mute_library_errors()
    sound_devices = list_portaudio_devices(pyaudio.PyAudio())
    rows = [
        [device.index, device.name, device.inputs, device.outputs, device.rate_hz, device.server_name]
        for device in sound_devices
    ]
    sys.stdout.write(json.dumps(rows) + "\n")
    sys.stdout.flush()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="harness.sound.child")
    parser.add_argument("task", choices=("capture", "playback", "devices"))
    parser.add_argument("--device", default="")
    parser.add_argument("--sound-server", choices=NO_DEVICE, default="system")
    parser.add_argument("--rate-hz", type=int, default=48000)
    parser.add_argument("--frames-per-buffer", type=int, default=480)
    parser.add_argument("--output", type=Output.parse, default=Output())
    arguments = parser.parse_args()
    if arguments.task == "devices":
        list_devices()
        return
    outlet = PacketOutlet(int(BACKLOG_LIMIT_S * arguments.rate_hz / arguments.frames_per_buffer))
    try:
        open_stream(arguments, outlet)
    except (SoundError, OSError) as error:
        device_name = repr(arguments.device) if arguments.device else "the host's default output"
        failure = {"what": f"{device_name} cannot be opened: {error.args[-1]}", "remedy": ""}
        if isinstance(error, SoundError):
            failure = {"what": error.what, "remedy": error.remedy}
        outlet.put(Packet(PacketKind.FAILED, payload=json.dumps(failure).encode()))
    try:
        outlet.write_packets()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
