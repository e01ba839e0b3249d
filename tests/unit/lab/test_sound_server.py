"""A private sound server, from its files to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab.sound_server import LEGS, ROOMS, Ear, LabSoundServer, Mouth, named_room
from harness.model.errors import InputError, LabError


def test_no_room_makes_sound_louder_and_every_path_has_a_gain() -> None:
    for one in ROOMS.values():
        for mouth, ears in LEGS.items():
            for ear in ears:
                gain_db = one.gain_db(mouth, ear)
                assert gain_db is None or gain_db <= 0


def test_the_far_loudspeaker_is_farther_in_every_room() -> None:
    for one in ROOMS.values():
        for ear in Ear:
            near, far = one.gain_db(Mouth.NEAR, ear), one.gain_db(Mouth.FAR, ear)
            assert near is not None
            assert far is not None
            assert far < near


def test_noise_is_at_the_device_only() -> None:
    with pytest.raises(KeyError, match="does not reach"):
        ROOMS["anechoic"].gain_db(Mouth.NOISE, Ear.HARNESS)


def test_a_wrong_room_lists_the_rooms() -> None:
    assert named_room("desk") is ROOMS["desk"]
    with pytest.raises(InputError, match="no room is called 'livingroom'") as caught:
        named_room("livingroom")
    assert caught.value.remedy.startswith("Did you mean 'living_room'?")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vh-") as name:
        yield Path(name)


def volumes(server: LabSoundServer) -> str:
    environment = {**os.environ, **server.environment(), "LC_ALL": "C"}
    done = subprocess.run(["pactl", "list", "sink-inputs"], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.sound
def test_it_starts_answers_and_ends(folder: Path) -> None:
    server = LabSoundServer(folder)
    assert not server.running()
    environment = server.start()
    try:
        assert environment == server.environment()
        assert server.start() == environment
        assert (folder.stat().st_mode & 0o777) == 0o700
        # Four mouths: three heard by both ears, one by one of them.
        assert volumes(server).count("Sink Input #") == 7
    finally:
        server.stop()
    assert not server.running()
    server.stop()


@pytest.mark.sound
def test_another_process_may_take_it_over_and_stop_it(folder: Path) -> None:
    server = LabSoundServer(folder)
    server.start()
    try:
        assert server.pid is not None
        other = LabSoundServer(folder)
        other.adopt(server.pid)
        other.set_path_gain(Mouth.NEAR, Ear.DEVICE, None)
        assert "Mute: yes" in volumes(server)
        other.stop()
        assert not server.running()
        with pytest.raises(LabError, match="is no sound server of"):
            other.adopt(os.getpid())
    finally:
        server.stop()


@pytest.mark.sound
def test_a_frozen_one_ends_too_and_its_room_is_there_again(folder: Path) -> None:
    server = LabSoundServer(folder)
    server.start()
    try:
        server.use_room(ROOMS["next_room"])
        before = sorted(line for line in volumes(server).splitlines() if "Volume:" in line)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        server.stop()
        assert not server.running()
        server.start()
        assert sorted(line for line in volumes(server).splitlines() if "Volume:" in line) == before
    finally:
        server.stop()


@pytest.mark.sound
def test_one_that_was_left_over_is_ended_first(folder: Path) -> None:
    lost = LabSoundServer(folder)
    lost.start()
    server = LabSoundServer(folder)
    try:
        server.start()
        assert not lost.running()
        assert server.running()
    finally:
        server.stop()
        lost.stop()


@pytest.mark.sound
def test_what_cannot_be_is_refused(folder: Path) -> None:
    server = LabSoundServer(folder)
    server.start()
    try:
        with pytest.raises(LabError, match="at most 0 dB"):
            server.set_path_gain(Mouth.NEAR, Ear.DEVICE, 3.0)
        with pytest.raises(LabError, match="no path from"):
            server.set_path_gain(Mouth.NOISE, Ear.HARNESS, 0.0)
    finally:
        server.stop()


def test_a_folder_that_is_too_long_is_refused(folder: Path) -> None:
    with pytest.raises(LabError, match="too long for a socket"):
        LabSoundServer(folder / ("x" * 100)).start()
