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
from harness.devices.spoken_commands import StoreClip
from harness.devices.wire.segments import WyomingEvents
from harness.devices.wyoming import Wyoming, WyomingMode, WyomingOptions
from harness.devices.wyoming_server import EVENT_BYTES, reported_version
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
from harness.session.log.clips import ClipStore
from harness.session.log.reader import read_clip
from tests.conformance.spoken import RATE_HZ, SAID, speech
from tests.conformance.wyoming_far_ends import WyomingProgram
from tests.heard import MAX_WRONG, word_error
from tests.ports import free_port
from tests.seen import HELD, Around, Seen, share_held, until

RUN = {"start_stage": "asr", "end_stage": "tts", "restart_on_end": False}
SOUND: dict[str, object] = {"rate": RATE_HZ, "width": 2, "channels": 1}


class Served:
    """A satellite and the driver that is its server."""

    def __init__(self, folder: Path, keep: StoreClip | None = None, **options: object) -> None:
        self.folder, self.seen = folder, Seen()
        self.satellite = WyomingProgram("satellite", free_port())
        wyoming_options = WyomingOptions(address=f"127.0.0.1:{self.satellite.port}", mode=WyomingMode.SERVER, **options)  # type: ignore[arg-type]
        self.driver = Wyoming("hall", wyoming_options, Around(folder, load_profile("wyoming_server", beside=folder)))
        self.driver.keep_sound(keep or ClipStore(folder / "clips").save)

    def hear(self, sound: Samples, rate_hz: int = RATE_HZ, speed: float = 10) -> None:
        """The satellite has detected its wake phrase, and sends this sound. speed: 1 is real time."""
        path = self.folder / "microphone.wav"
        soundfile.write(path, sound, rate_hz, subtype="PCM_16")
        self.satellite.say("run-pipeline", RUN)
        self.satellite.say("microphone", {"path": str(path), "speed": speed})

    def heard(self, kind: str) -> list[int]:
        """Sizes of the payloads of these events at the satellite."""
        return [size for name, size in self.satellite.heard if name == kind]

    def kept(self) -> Waveform:
        return read_clip(self.folder / "clips", self.seen.first(SoundKept).clip)


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def served(**options: Any) -> Served:
            server = Served(tmp_path, **options)
            stack.enter_context(server.satellite)
            stack.callback(server.driver.close)
            server.driver.open(server.seen)
            until(lambda: server.heard("run-satellite"))
            return server

        yield served


def test_a_command_is_kept_recognised_and_answered(serve: Serve) -> None:
    answer = "You said {text}" + ", and so on" * 10  # a long one: a busy host may report its end late
    server = serve(recogniser="moonshine", answer=answer)
    sound, began_s = speech(), time.monotonic()
    server.hear(sound, speed=1)
    text = server.seen.first(Transcript, 30).text
    assert word_error(SAID, text) <= MAX_WRONG
    assert server.seen.first(ResponseText).text == answer.replace("{text}", text)
    until(lambda: server.heard("audio-stop"), otherwise="no end of the sound")
    assert sum(server.heard("audio-chunk")) > 22_050  # half a second of speech in 16 bits
    server.satellite.say("played")
    server.seen.wait(lambda: len(server.seen.of(Status)) == 4, 30, "thinking, speaking, idle")
    assert [status.state.value for status in server.seen.of(Status)] == ["listening", "thinking", "speaking", "idle"]
    order = [kind for kind, _ in server.satellite.heard if kind not in ("ping", "audio-chunk")]
    expected = ["transcribe", "voice-stopped", "transcript", "synthesize", "audio-start", "audio-stop"]
    assert order == ["run-satellite", *expected]
    waveform, (row,) = server.kept(), server.seen.of(SoundKept)
    np.testing.assert_allclose(waveform.samples, sound[: len(waveform.samples)], atol=1e-4)
    assert len(sound) > len(waveform.samples) > len(sound) - RATE_HZ
    wake = server.seen.of(Wake)[0].at
    assert began_s - wake.error_s <= wake.at_s <= row.clip.start_s + 1
    transcribed = server.seen.of(Transcript)[0].at  # a host that stands still receives it late: its error says so
    assert row.at.at_s <= transcribed.at_s + transcribed.error_s


@pytest.mark.usefixtures("host_keeps_time")
def test_times_hold_against_the_clock_of_the_sender(tmp_path: Path) -> None:
    observations = Seen()
    sound = Event("audio-chunk", {"rate": RATE_HZ, "width": 2, "channels": 1}, bytes(2048))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        options = WyomingOptions(address=f"127.0.0.1:{listening.getsockname()[1]}", mode=WyomingMode.SERVER)
        driver = Wyoming("hall", options, Around(tmp_path, load_profile("wyoming_server", beside=tmp_path)))
        opening = threading.Thread(target=driver.open, args=(observations,))
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
            assert share_held(observations, ask) >= HELD


def test_sound_is_kept_without_a_recogniser(serve: Serve) -> None:
    server = serve()
    server.hear(speech())
    assert server.seen.first(SoundKept).clip.rate_hz == RATE_HZ
    server.seen.wait(
        lambda: [status.state.value for status in server.seen.of(Status)] == ["listening", "thinking", "idle"],
        10,
        "the end",
    )
    until(lambda: server.heard("transcript"))  # so that the satellite listens for its wake word again
    assert not server.seen.of(Transcript, ResponseText)
    assert server.seen.first(DeviceDescribed).firmware == "kitchen 1"


def test_silence_is_not_understood_when_the_time_is_over(serve: Serve) -> None:
    server = serve(recogniser="moonshine", listen_limit_s=1)
    server.hear(speech()[-RATE_HZ:].repeat(3), rate_hz=48_000)
    until(lambda: server.heard("transcript"), 30)  # version 1.0 goes on after a transcript only, not after an error
    assert server.heard("error")
    assert server.kept().duration_s == pytest.approx(1, abs=0.1)
    assert not server.seen.first(Intent).name
    assert not server.seen.of(Transcript)


def test_a_command_without_sound_ends_when_its_time_is_over(serve: Serve) -> None:
    server = serve(listen_limit_s=1)
    server.satellite.say("run-pipeline", RUN)
    assert not server.seen.first(Intent).name
    until(lambda: server.heard("transcript"))


def test_only_the_payload_of_sound_belongs_to_a_command(serve: Serve) -> None:
    server = serve()
    server.satellite.say("run-pipeline", RUN)
    for kind, size in (("audio-chunk", 3200), ("snapshot", 32_000), ("audio-chunk", 3200)):
        server.satellite.say(kind, SOUND, size)
    server.satellite.say("audio-stop")
    assert len(server.kept().samples) == 3200


def test_a_new_run_ends_the_answer_of_the_one_before(serve: Serve) -> None:
    server = serve(answer="no")
    for _ in range(2):
        server.satellite.say("run-pipeline", RUN)
        server.satellite.say("audio-chunk", SOUND, 3200)
        server.satellite.say("audio-stop")
        until(lambda: server.heard("audio-stop"), otherwise="no answer")
    server.seen.wait(lambda: len(server.seen.of(Status)) == 7, 30, "the end of the second answer")
    states = [status.state.value for status in server.seen.of(Status)]
    assert states == [*["listening", "thinking", "speaking"] * 2, "idle"]


def test_words_of_a_command_before_the_present_one_are_dropped(serve: Serve) -> None:
    server = serve(recogniser="moonshine")
    server.hear(speech()[: -RATE_HZ // 2], speed=1000)
    server.satellite.freeze()  # so that both events arrive together, before the first words are recognised
    server.satellite.say("audio-stop")
    server.satellite.say("run-pipeline", RUN)
    server.satellite.thaw()
    server.seen.first(SoundKept)
    server.satellite.say("audio-chunk", SOUND, 32_000)
    server.satellite.say("audio-stop")
    assert not server.seen.first(Intent).name
    assert not server.seen.of(Transcript)
    until(lambda: server.heard("transcript"))
    assert len(server.heard("transcript")) == 1  # none of the first command, which would end the second


def test_a_satellite_that_answers_pings_is_not_silent(serve: Serve) -> None:
    server, until_s = serve(silence_limit_s=2), time.monotonic() + 3
    while time.monotonic() < until_s:
        server.satellite.say("pong")
        time.sleep(0.1)
    assert not server.seen.of(LinkLost)


def test_satellite_lost_during_a_command_keeps_the_sound_received(serve: Serve) -> None:
    server = serve()
    server.hear(speech("set a timer for twenty five minutes and remind me of the potatoes"), speed=1)
    server.seen.first(Wake)
    time.sleep(1.0)
    server.satellite.kill()
    server.seen.first(LinkLost)
    assert 0.1 < server.kept().duration_s < 3
    server.satellite.start()
    server.seen.first(LinkBack)
    server.hear(speech())
    server.seen.wait(lambda: len(server.seen.of(SoundKept)) == 2, 30, "the sound of the second command")


def failing(error: Exception) -> Callable[[Waveform, float], Clip]:
    def keep(waveform: Waveform, start_s: float) -> Clip:
        raise error

    return keep


def test_a_full_disk_is_reported(serve: Serve) -> None:
    server = serve(keep=failing(LogFull("no space is left")))
    server.hear(speech())
    assert "no space is left" in server.seen.first(Unread).what


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_the_driver_thread_is_a_lost_link(serve: Serve) -> None:
    server = serve(keep=failing(RuntimeError("a bug")))
    server.hear(speech())
    assert "ended with an error" in server.seen.first(LinkLost).what
    # It reports its error after the loss: later, that would be an error of the next test.
    address = f"127.0.0.1:{server.satellite.port}"
    until(lambda: not [thread for thread in threading.enumerate() if address in thread.name], 10)


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("run-pipeline", {**RUN, "start_stage": "wake"}, "leaves wake word detection to its server"),
        ("audio-chunk", {"rate": 16000, "width": 4, "channels": 1}, "sends sound as"),
        ("audio-chunk", {"rate": "fast"}, "sends sound as"),
        ("audio-chunk", {"rate": 8000, "width": 2, "channels": 1}, "changed its sound format"),
    ],
)
def test_a_satellite_that_it_cannot_serve_is_a_lost_link(serve: Serve, kind: str, data: object, message: str) -> None:
    server = serve()
    server.satellite.say("run-pipeline", RUN)
    server.satellite.say("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, 64)
    server.satellite.say(kind, data, 64)  # type: ignore[arg-type]
    assert message in server.seen.first(LinkLost).what


def test_garbage_and_sound_without_a_command_do_no_harm(serve: Serve) -> None:
    server = serve(silence_limit_s=5)
    server.satellite.say("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, 2_000_000)
    server.satellite.say("garbage")
    server.satellite.say("audio-stop")
    server.satellite.say("ping", {"text": "are you there?"})
    until(lambda: server.heard("pong"))
    server.hear(speech())
    assert server.seen.first(SoundKept)
    assert not server.seen.of(LinkLost)
    assert server.seen.of(LogLine)


def test_a_frozen_satellite_is_a_lost_link(serve: Serve) -> None:
    server = serve(silence_limit_s=1)
    server.satellite.freeze()
    try:
        assert "no line arrived for" in server.seen.first(LinkLost).what
    finally:
        server.satellite.thaw()


def test_a_satellite_is_identified_and_a_silent_one_refused(tmp_path: Path) -> None:
    server = Served(tmp_path)
    with server.satellite:
        assert reported_version(f"127.0.0.1:{server.satellite.port}") == "kitchen 1"
    with pytest.raises(DeviceError, match="cannot be reached"):
        server.driver.open(server.seen)
    with socket.create_server(("127.0.0.1", server.satellite.port)):  # as a satellite with another server: silent
        with pytest.raises(DeviceError, match="does not accept the harness as its server: no answer") as refused:
            server.driver.open(server.seen)
        assert "it accepts only one" in refused.value.remedy


def test_a_monitor_shows_what_the_satellite_sends(tmp_path: Path) -> None:
    with WyomingProgram("satellite", free_port()) as satellite:
        options = WyomingOptions(address=f"127.0.0.1:{satellite.port}", mode=WyomingMode.SERVER)
        source = Wyoming.source(options, load_profile("wyoming_server", beside=tmp_path), "hall", ())
        source.open()
        until(lambda: [event for event in satellite.heard if event[0] == "run-satellite"])
        satellite.say("run-pipeline", RUN)
        until(lambda: b"run-pipeline" in b"".join(piece.data for piece in source.queue.take(10_000)))
        satellite.kill()
        until(lambda: source.ended)


def test_payloads_come_in_order_after_their_events() -> None:
    data = b'{"type": "audio-chunk", "payload_length": 3}\nabc{"type": "audio-stop"}\n'
    for size in (1, 7, len(data)):
        events = WyomingEvents(EVENT_BYTES, payloads=True)
        pieces = [
            piece for start in range(0, len(data), size) for piece in events.feed(data[start : start + size], 0.0)
        ]
        assert b"".join(piece.content for piece in pieces if piece.is_payload) == b"abc"
        assert [piece.is_payload for piece in pieces] in ([False, *[True] * n, False] for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": WyomingMode.PROXY, "server": "a:1", "answer": "Yes."}, "only a server has"),
        ({"mode": WyomingMode.SERVER, "server": "a:1"}, "only a proxy has"),
        ({"mode": WyomingMode.SERVER, "voice": "espeak"}, "is not a voice"),
        ({"mode": WyomingMode.SERVER, "listen_limit_s": float("nan")}, "listen_limit_s is nan"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WyomingOptions(address="kitchen:1", **options)  # type: ignore[arg-type]
