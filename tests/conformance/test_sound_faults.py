"""A sound server that dies, freezes and comes back under streams that run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from harness.lab.sound_server import LabSoundServer
from harness.model.errors import LabError, SoundError
from harness.sound.path_check import chirp, find
from tests.conformance.sound_path import RATE_HZ, noise, play, player, recorder
from tests.known import known
from tests.seen import until

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]

FOUND_S = 1.0
BACK_S = 2.5
CLOSED_S = 10.0


def strike(server: LabSoundServer, number: signal.Signals) -> None:
    assert server.pid is not None
    os.kill(server.pid, number)


def repair(server: LabSoundServer, number: signal.Signals) -> None:
    if number is signal.SIGSTOP:
        strike(server, signal.SIGCONT)
    else:
        until(lambda: not server.running(), 20.0, "the end of the server")
        server.start()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_fault_is_found_at_once_and_sound_is_exact_again_afterwards(
    lab_sound: LabSoundServer, number: signal.Signals
) -> None:
    sent = chirp()
    with recorder() as (capture, ring, heard), player() as (playback, events):
        before = {capture.child_pid, playback.child_pid}
        playback.play("cut", noise(30.0))
        until(lambda: bool(events.started), 20.0, "the start")
        struck_s = time.monotonic()
        strike(lab_sound, number)
        try:
            until(lambda: bool(events.faults) and bool(heard.faults), 20.0, "both faults")
            until(lambda: bool(events.ended), 20.0, "the end of what was cut")
            playback.play("meanwhile", noise(0.1))
            until(lambda: len(events.ended) == 2, 20.0, "the end of what could not begin")
        finally:
            repair(lab_sound, number)
        repaired_s = time.monotonic()
        until(lambda: bool(events.backs) and bool(heard.backs), BACK_S, "both streams back")
        back_s = time.monotonic() - repaired_s
        for told_s, stamp, _ in (*events.faults, *heard.faults):
            assert told_s - struck_s < FOUND_S
            # The server went while nobody looked: between the last callback and the alarm.
            assert stamp.at_s - stamp.error_s <= struck_s + 0.05
            assert struck_s <= stamp.at_s + stamp.error_s
        assert back_s < BACK_S
        assert [(play_id, complete) for play_id, _, complete in events.ended] == [("cut", False), ("meanwhile", False)]
        assert not before & {capture.child_pid, playback.child_pid}
        stamp, _ = play(playback, events, sent)
        sound, exact_s = ring.cut(stamp.at_s - 0.02, stamp.at_s + 0.4)
        match = find(sound.samples, sent.samples)
        assert match.correlation > 0.999
        assert abs(exact_s + match.start / RATE_HZ - stamp.at_s) < stamp.error_s + 0.001
        with pytest.raises(SoundError, match=r"gap|does not contain the sound"):
            ring.cut(struck_s - 0.2, stamp.at_s)


def test_stamp_error_covers_a_recent_buffer_underrun(lab_sound: LabSoundServer) -> None:
    sent = chirp()
    with recorder() as (_, ring, _), player() as (playback, events):
        pid = known(playback.child_pid)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(0.08)  # longer than what is queued; far shorter than what counts as a fault
        finally:
            os.kill(pid, signal.SIGCONT)
        # Its start is told before it can be known that the stream has lost its pace.
        stamp, _ = play(playback, events, sent)
        sound, exact_s = ring.cut(stamp.at_s - 0.02, stamp.at_s + 0.6)
    assert events.overruns
    match = find(sound.samples, sent.samples)
    assert match.correlation > 0.999
    assert abs(exact_s + match.start / RATE_HZ - stamp.at_s) < stamp.error_s + 0.001


@pytest.mark.parametrize(
    ("number", "message"), [(signal.SIGKILL, "was ended by SIGKILL"), (signal.SIGSTOP, "no sound for")]
)
def test_a_child_that_is_killed_or_frozen_is_replaced(
    lab_sound: LabSoundServer, number: signal.Signals, message: str
) -> None:
    with recorder() as (capture, _, heard), player() as (playback, events):
        for stream, words in ((capture, heard), (playback, events)):
            pid = known(stream.child_pid)
            os.kill(pid, number)
            # A busy host may have had a fault before.
            until(lambda: any(message in why for *_, why in words.faults), 20.0, "the fault")  # noqa: B023
            until(lambda: stream.child_pid not in (None, pid) and bool(words.backs), 20.0, "another child")  # noqa: B023
            until(lambda: not os.path.exists(f"/proc/{pid}"), 20.0, "its end")  # noqa: B023  waited for here


def running(_server: LabSoundServer) -> None:
    """As it is."""


def frozen(server: LabSoundServer) -> None:
    strike(server, signal.SIGSTOP)


def dead(server: LabSoundServer) -> None:
    strike(server, signal.SIGKILL)
    until(lambda: not server.running(), 20.0, "the end of the server")


def found_frozen(server: LabSoundServer) -> None:
    """After the fault was found, while a new child hangs in opening."""
    strike(server, signal.SIGSTOP)
    time.sleep(1.0)


@pytest.mark.parametrize("state", [running, frozen, dead, found_frozen])
def test_closing_takes_no_longer_in_any_state(
    lab_sound: LabSoundServer, state: Callable[[LabSoundServer], None]
) -> None:
    try:
        with recorder() as (capture, _, _), player() as (playback, _):
            playback.play("long", noise(10.0))
            state(lab_sound)
            pids = [capture.child_pid, playback.child_pid]
            begun_s = time.monotonic()
            playback.close()
            capture.close()
            assert time.monotonic() - begun_s < CLOSED_S
            assert not [pid for pid in pids if pid is not None and os.path.exists(f"/proc/{pid}")]
            capture.close()
    finally:
        if lab_sound.running():
            strike(lab_sound, signal.SIGCONT)
        else:
            lab_sound.start()


def test_opening_against_a_frozen_server_ends_with_an_error(lab_sound: LabSoundServer) -> None:
    strike(lab_sound, signal.SIGSTOP)
    try:
        begun_s = time.monotonic()
        with pytest.raises(SoundError), player():
            pass
        assert time.monotonic() - begun_s < 20
        with pytest.raises(LabError, match="does not answer"):
            lab_sound.set_path_gain("spk_h", "ear_h", 0.0)
    finally:
        strike(lab_sound, signal.SIGCONT)


def test_a_stream_may_be_opened_again(lab_sound: LabSoundServer) -> None:
    with recorder() as (capture, ring, _):
        capture.close()
        ring.clear()
        capture.open()
        until(lambda: ring.end_s() is not None, 20.0, "blocks")
        with pytest.raises(SoundError, match="already open"):
            capture.open()
