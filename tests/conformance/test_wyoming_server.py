"""A Wyoming satellite whose server is the harness."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from wyoming.event import Event, write_event

from harness.devices.profiles.profile import load_profile
from harness.devices.spoken_commands import Keep
from harness.devices.wire.segments import WyomingEvents
from harness.devices.wyoming import Wyoming, WyomingMode, WyomingOptions
from harness.devices.wyoming_server import EVENT_BYTES, who_answers
from harness.model.errors import DeviceError, InputError, LogFull
from harness.model.observation import (
    DeviceDescribed,
    Intent,
    LinkBack,
    LinkLost,
    LogLine,
    ResponseText,
    SoundKept,
    Status,
    Transcript,
    Unread,
    Wake,
)
from harness.model.stimulus import Clip, Samples, Waveform
from harness.session.log.clips import ClipShelf
from harness.session.log.reader import read_clip
from tests.conformance.spoken import RATE_HZ, SAID, speech
from tests.conformance.wyoming_far_ends import WyomingProgram
from tests.heard import MOST_WRONG, word_error
from tests.ports import free_port
from tests.seen import HELD, Around, Seen, share_held, until

RUN = {"start_stage": "asr", "end_stage": "tts", "restart_on_end": False}


class Served:
    """A satellite and the driver that is its server."""

    def __init__(self, folder: Path, keep: Keep | None = None, **options: object) -> None:
        self.folder, self.seen = folder, Seen()
        self.satellite = WyomingProgram("satellite", free_port())
        given = WyomingOptions(address=f"127.0.0.1:{self.satellite.port}", mode=WyomingMode.SERVER, **options)  # type: ignore[arg-type]
        self.driver = Wyoming("hall", given, Around(folder, load_profile("wyoming_server", beside=folder)))
        self.driver.keep_sound(keep or ClipShelf(folder / "clips").save)

    def hear(self, sound: Samples, rate_hz: int = RATE_HZ, speed: float = 10) -> None:
        """The satellite has detected its wake phrase, and sends this sound. speed: 1 is real time."""
        path = self.folder / "microphone.wav"
        soundfile.write(path, sound, rate_hz, subtype="PCM_16")
        self.satellite.say("run-pipeline", RUN)
        self.satellite.say("microphone", {"path": str(path), "speed": speed})

    def heard(self, kind: str) -> list[int]:
        """Sizes of the payloads of these events at the satellite."""
        return [size for one, size in self.satellite.heard if one == kind]

    def kept(self) -> Waveform:
        return read_clip(self.folder / "clips", self.seen.first(SoundKept).clip)


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def served(**options: Any) -> Served:
            one = Served(tmp_path, **options)
            stack.enter_context(one.satellite)
            stack.callback(one.driver.close)
            one.driver.open(one.seen)
            until(lambda: one.heard("run-satellite"))
            return one

        yield served


def test_a_command_is_kept_recognised_and_answered(serve: Serve) -> None:
    one = serve(recogniser="moonshine", answer="You said {text}")
    sound, began_s = speech(), time.monotonic()
    one.hear(sound, speed=1)
    text = one.seen.first(Transcript, 30).text
    assert word_error(SAID, text) <= MOST_WRONG
    assert one.seen.first(ResponseText).text == f"You said {text}"
    until(lambda: one.heard("audio-stop"), otherwise="no end of the sound")
    assert sum(one.heard("audio-chunk")) > 22_050  # half a second of speech in 16 bits
    one.satellite.say("played")
    one.seen.wait(lambda: len(one.seen.of(Status)) == 4, 30, "thinking, speaking, idle")
    assert [one.state.value for one in one.seen.of(Status)] == ["listening", "thinking", "speaking", "idle"]
    order = [kind for kind, _ in one.satellite.heard if kind not in ("ping", "audio-chunk")]
    wanted = ["transcribe", "voice-stopped", "transcript", "synthesize", "audio-start", "audio-stop"]
    assert order == ["run-satellite", *wanted]
    kept, (row,) = one.kept(), one.seen.of(SoundKept)
    np.testing.assert_allclose(kept.samples, sound[: len(kept.samples)], atol=1e-4)
    assert len(sound) > len(kept.samples) > len(sound) - RATE_HZ
    wake = one.seen.of(Wake)[0].at
    assert began_s - wake.error_s <= wake.at_s <= row.clip.start_s + 1
    assert row.at.at_s <= one.seen.of(Transcript)[0].at.at_s


@pytest.mark.usefixtures("host_keeps_time")
def test_times_hold_against_the_clock_of_the_sender(tmp_path: Path) -> None:
    seen = Seen()
    sound = Event("audio-chunk", {"rate": RATE_HZ, "width": 2, "channels": 1}, bytes(2048))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        options = WyomingOptions(address=f"127.0.0.1:{listening.getsockname()[1]}", mode=WyomingMode.SERVER)
        driver = Wyoming("hall", options, Around(tmp_path, load_profile("wyoming_server", beside=tmp_path)))
        opening = threading.Thread(target=driver.open, args=(seen,))
        opening.start()
        link, _ = listening.accept()
        link.sendall(b'{"type": "info", "data": {}}\n')
        opening.join()
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as asyncio's sockets
    with link, link.makefile("wb") as file:

        def ask() -> None:
            for event in (Event("run-pipeline", dict(RUN)), sound, sound):
                write_event(event, file)
            file.flush()

        with closing(driver):
            assert share_held(seen, ask) >= HELD


def test_without_a_recogniser_the_sound_is_kept_and_nobody_knows_the_words(serve: Serve) -> None:
    one = serve()
    one.hear(speech())
    assert one.seen.first(SoundKept).clip.rate_hz == RATE_HZ
    one.seen.wait(
        lambda: [seen.state.value for seen in one.seen.of(Status)] == ["listening", "thinking", "idle"], 10, "the end"
    )
    until(lambda: one.heard("transcript"))  # so that the satellite listens for its wake word again
    assert not one.seen.of(Transcript, ResponseText)
    assert one.seen.first(DeviceDescribed).firmware == "kitchen 1"


def test_silence_is_not_understood_when_the_time_is_over(serve: Serve) -> None:
    one = serve(recogniser="moonshine", listen_limit_s=1)
    one.hear(speech()[-RATE_HZ:].repeat(3), rate_hz=48_000)
    until(lambda: one.heard("transcript"), 30)  # version 1.0 goes on after a transcript only, not after an error
    assert one.heard("error")
    assert one.kept().duration_s == pytest.approx(1, abs=0.1)
    assert not one.seen.first(Intent).name
    assert not one.seen.of(Transcript)


def test_a_satellite_that_is_gone_in_a_command_leaves_the_sound_until_then(serve: Serve) -> None:
    one = serve()
    one.hear(speech("set a timer for twenty five minutes and remind me of the potatoes"), speed=1)
    one.seen.first(Wake)
    time.sleep(0.3)
    one.satellite.kill()
    one.seen.first(LinkLost)
    assert 0.1 < one.kept().duration_s < 3
    one.satellite.start()
    one.seen.first(LinkBack)
    one.hear(speech())
    one.seen.wait(lambda: len(one.seen.of(SoundKept)) == 2, 30, "the sound of the second command")


def failing(error: Exception) -> Callable[[Waveform, float], Clip]:
    def keep(waveform: Waveform, start_s: float) -> Clip:
        raise error

    return keep


def test_a_full_disk_is_reported(serve: Serve) -> None:
    one = serve(keep=failing(LogFull("no space is left")))
    one.hear(speech())
    assert "no space is left" in one.seen.first(Unread).what


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_its_thread_is_a_lost_link(serve: Serve) -> None:
    one = serve(keep=failing(RuntimeError("a bug")))
    one.hear(speech())
    assert "ended with an error" in one.seen.first(LinkLost).what


@pytest.mark.parametrize(
    ("kind", "data", "what"),
    [
        ("run-pipeline", {**RUN, "start_stage": "wake"}, "lets its server find the wake phrase"),
        ("audio-chunk", {"rate": 16000, "width": 4, "channels": 1}, "sends sound as"),
        ("audio-chunk", {"rate": "fast"}, "sends sound as"),
        ("audio-chunk", {"rate": 8000, "width": 2, "channels": 1}, "changed its sound format"),
    ],
)
def test_a_satellite_that_it_cannot_serve_is_a_lost_link(serve: Serve, kind: str, data: object, what: str) -> None:
    one = serve()
    one.satellite.say("run-pipeline", RUN)
    one.satellite.say("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, 64)
    one.satellite.say(kind, data, 64)  # type: ignore[arg-type]
    assert what in one.seen.first(LinkLost).what


def test_garbage_and_sound_without_a_command_do_no_harm(serve: Serve) -> None:
    one = serve(silence_limit_s=5)
    one.satellite.say("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, 2_000_000)
    one.satellite.say("garbage")
    one.satellite.say("audio-stop")
    one.satellite.say("ping", {"text": "are you there?"})
    until(lambda: one.heard("pong"))
    one.hear(speech())
    assert one.seen.first(SoundKept)
    assert not one.seen.of(LinkLost)
    assert one.seen.of(LogLine)


def test_a_frozen_satellite_is_a_lost_link(serve: Serve) -> None:
    one = serve(silence_limit_s=1)
    one.satellite.freeze()
    try:
        assert "no line came for" in one.seen.first(LinkLost).what
    finally:
        one.satellite.thaw()


def test_who_answers_and_what_if_nobody_does(tmp_path: Path) -> None:
    one = Served(tmp_path)
    with one.satellite:
        assert who_answers(f"127.0.0.1:{one.satellite.port}") == "kitchen 1"
    with pytest.raises(DeviceError, match="cannot be reached"):
        one.driver.open(one.seen)
    with socket.create_server(("127.0.0.1", one.satellite.port)):  # as a satellite with another server: silent
        with pytest.raises(DeviceError, match="does not accept the harness as its server: no answer") as refused:
            one.driver.open(one.seen)
        assert "it accepts one" in refused.value.remedy


def test_a_monitor_shows_what_the_satellite_sends(tmp_path: Path) -> None:
    with WyomingProgram("satellite", free_port()) as satellite:
        options = WyomingOptions(address=f"127.0.0.1:{satellite.port}", mode=WyomingMode.SERVER)
        source = Wyoming.source(options, load_profile("wyoming_server", beside=tmp_path), "hall", ())
        source.open()
        until(lambda: [one for one in satellite.heard if one[0] == "run-satellite"])
        satellite.say("run-pipeline", RUN)
        until(lambda: b"run-pipeline" in b"".join(one.data for one in source.queue.take(10_000)))
        satellite.kill()
        until(lambda: source.ended)


def test_payloads_come_in_order_after_their_events() -> None:
    data = b'{"type": "audio-chunk", "payload_length": 3}\nabc{"type": "audio-stop"}\n'
    for size in (1, 7, len(data)):
        events = WyomingEvents(EVENT_BYTES, payloads=True)
        found = [one for at in range(0, len(data), size) for one in events.feed(data[at : at + size], 0.0)]
        assert b"".join(one.data for one in found if one.is_payload) == b"abc"
        assert [one.is_payload for one in found] in ([False, *[True] * n, False] for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"mode": WyomingMode.PROXY, "server": "a:1", "answer": "Yes."}, "only a server has"),
        ({"mode": WyomingMode.SERVER, "server": "a:1"}, "only a proxy has"),
        ({"mode": WyomingMode.SERVER, "voice": "espeak"}, "is not a voice"),
        ({"mode": WyomingMode.SERVER, "listen_limit_s": float("nan")}, "listen_limit_s is nan"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        WyomingOptions(address="kitchen:1", **options)  # type: ignore[arg-type]
