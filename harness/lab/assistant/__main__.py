"""Starts the assistant: `python -m harness.lab.assistant [--settings FILE] --state FILE [--mqtt HOST:PORT]`."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr

from harness.base.child_process import python_command
from harness.base.plugins import Group, load
from harness.base.ports import Recogniser
from harness.base.whole_file import atomic_stream
from harness.devices.mqtt.options import DEFAULT_PORT
from harness.devices.tcp import host_and_port
from harness.lab.assistant.device import AssistantDevice
from harness.lab.assistant.ears import RATE_HZ, Ears
from harness.lab.assistant.faults import Faults
from harness.lab.assistant.mouth import AssistantMouth
from harness.lab.assistant.report import Reporter
from harness.lab.assistant.settings import AssistantSettings, read_settings
from harness.model.errors import HarnessError, LabError
from harness.model.observation import DeviceState
from harness.sound.capture import Block, Capture
from harness.sound.detectors.webrtc import WebrtcDetector
from harness.sound.playback import Playback

_log = logging.getLogger("assistant")
_HEARTBEAT_S = 1.0
_SOUND_RATE_HZ = 48000
_FRAMES_PER_BUFFER = 960  # 20 ms: half the work of the usual 10 ms, and low latency is not needed here


class StateFile:
    """A file with the assistant's state for `harness admin lab status`, replaced as a whole at least every second."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state = DeviceState.STARTED
        self._write_lock = threading.Lock()  # a second thread writes the heartbeat

    def enter(self, state: DeviceState) -> None:
        """Changes the state, and writes it."""
        self._state = state
        self.write()

    def write(self) -> None:
        status = {"pid": os.getpid(), "state": str(self._state), "at_s": time.monotonic()}
        with self._write_lock, atomic_stream(self._path, durable=False) as stream:
            stream.write(json.dumps(status).encode())

    def keep_fresh(self, stop: threading.Event) -> None:
        """Writes the file every second until `stop` is set, so that a frozen assistant is noticed."""
        while not stop.wait(_HEARTBEAT_S):
            self.write()


class Resampler:
    """Converts blocks at 48 kHz to int16 at 16 kHz, without gaps or clicks."""

    def __init__(self) -> None:
        self._stream = soxr.ResampleStream(_SOUND_RATE_HZ, RATE_HZ, 1, dtype="float32", quality="HQ")
        self._epoch: int | None = None

    def __call__(self, block: Block) -> npt.NDArray[np.int16]:
        if self._epoch != block.epoch:  # sound was lost before this block
            self._stream.clear()
            self._epoch = block.epoch
        samples = self._stream.resample_chunk(block.samples)
        pcm: npt.NDArray[np.int16] = np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)
        return pcm


def run(
    settings: AssistantSettings, state: StateFile, mqtt: str, use_counts: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Runs until a signal (returns None) or a fault that restarts it (returns how often each fault was used)."""
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    recogniser = _load_recogniser(settings)
    engine = load(Group.WAKE_ENGINES, settings.wake_engine)(settings.wake_phrase)
    mouth = AssistantMouth(settings)
    mouth.synthesise("ready")  # raises VoiceError here, not in the first answer, if the voice cannot speak
    host, port = host_and_port(mqtt, default=DEFAULT_PORT) if mqtt else ("", 0)
    faults = Faults(settings.faults, settings.seed, use_counts)
    device: AssistantDevice  # Assigned below. The callbacks use it only after `open`.
    # The environment names the sound server, so the assistant does not need a lab that is already up.
    playback = Playback(
        settings.speaker,
        "system",
        on_ended=lambda play_id, stamp, complete: device.end_play(play_id),
        on_fault=lambda stamp, reason: _log.warning("speaker: %s", reason),
        on_back=lambda stamp: _log.warning("the speaker is back"),
        frames_per_buffer=_FRAMES_PER_BUFFER,
    )
    resampler = Resampler()
    capture = Capture(
        settings.microphone,
        "system",
        on_block=lambda block: device.feed(resampler(block)),
        on_fault=lambda stamp, reason: device.note_microphone(back=False),
        on_back=lambda stamp: device.note_microphone(back=True),
        frames_per_buffer=_FRAMES_PER_BUFFER,
    )
    reporter = Reporter(settings.device, settings.reports, host, port)
    if not reporter.wait_connected(limit_s=10.0):
        raise LabError(f"the MQTT broker at {mqtt} does not answer", remedy="Check `mqtt` in the settings")
    device = AssistantDevice(
        settings=settings,
        ears=Ears(engine, WebrtcDetector(), settings),
        recogniser=recogniser,
        mouth=mouth,
        speaker=playback,
        reporter=reporter,
        faults=faults,
        on_state=state.enter,
    )
    try:
        playback.open()
        capture.open()
        threading.Thread(target=state.keep_fresh, args=(stop,), daemon=True).start()
        device.run(stop)
    finally:
        capture.close()
        playback.close()
        if not device.restart:  # a restart imitates a power failure (see `main`)
            reporter.close()
    return faults.use_counts if device.restart else None


def _load_recogniser(settings: AssistantSettings) -> Recogniser:
    recogniser: Recogniser = load(Group.RECOGNISERS, settings.recogniser)()
    if hasattr(recogniser, "expect"):  # it accepts a text as context for the words to come
        recogniser.expect(context(settings.wake_phrase))
    return recogniser


def context(wake_phrase: str) -> str:
    """Typical queries, as context for the recogniser."""
    phrase = wake_phrase.replace("_", " ").capitalize()
    questions = ("what time is it?", "set an alarm or a timer.", "what is two plus three?", "what's the date?")
    return " ".join(f"{phrase}, {question}" for question in questions)


def main(arguments: list[str]) -> None:
    """Runs the assistant. After a fault that restarts it, replaces this process by a new one."""
    parser = argparse.ArgumentParser(prog="harness.lab.assistant", description=__doc__)
    parser.add_argument("--settings", type=Path)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--mqtt", default="", help="address of the lab's broker")
    parser.add_argument("--used", default="", help="how often each fault was used before the restart")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    try:
        settings = read_settings(options.settings) if options.settings else AssistantSettings()
        broker = options.mqtt if settings.mqtt == "lab" else settings.mqtt
        use_counts = tuple(int(count) for count in options.used.split(",") if count)
        restart_counts = run(settings, StateFile(options.state), broker, use_counts)
    except HarnessError as error:
        sys.stderr.write(f"assistant: {error}\n")
        sys.exit(error.exit_code)
    if restart_counts is not None:
        _log.info("restarting (fault: restart)")
        new_arguments = [*_without_used(arguments), "--used", ",".join(str(count) for count in restart_counts)]
        # Closes the connection to the broker without a goodbye, as at a power failure: the last will is sent.
        os.execv(sys.executable, python_command("harness.lab.assistant", *new_arguments))


def _without_used(arguments: list[str]) -> list[str]:
    """The arguments without `--used` and its value, from an earlier restart."""
    if "--used" in arguments:
        index = arguments.index("--used")
        return arguments[:index] + arguments[index + 2 :]
    return arguments


if __name__ == "__main__":
    main(sys.argv[1:])
