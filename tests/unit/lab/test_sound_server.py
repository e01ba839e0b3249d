"""A private sound server, from its files to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab.sound_server import REACHED_EARS, ROOMS, Ear, LabSoundServer, Mouth, named_room
from harness.model.errors import InputError, LabError
from tests.known import known


@pytest.mark.parametrize("name", ROOMS)
def test_no_room_makes_sound_louder_and_the_far_loudspeaker_is_farther_in_every_room(name: str) -> None:
    gain_db = ROOMS[name].gain_db
    assert all(gain_db(mouth, ear) <= 0 for mouth, ears in REACHED_EARS.items() for ear in ears)
    assert all(gain_db(Mouth.FAR, ear) < gain_db(Mouth.NEAR, ear) for ear in Ear)


def test_noise_is_heard_at_the_device_only() -> None:
    with pytest.raises(KeyError, match="does not reach"):
        ROOMS["anechoic"].gain_db(Mouth.NOISE, Ear.HARNESS)


def test_a_wrong_room_lists_the_rooms() -> None:
    assert named_room("desk") is ROOMS["desk"]
    with pytest.raises(InputError, match="the room 'livingroom' does not exist") as caught:
        named_room("livingroom")
    assert caught.value.remedy.startswith("Did you mean 'living_room'?")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vh-") as name:
        yield Path(name)


def volumes(server: LabSoundServer) -> str:
    environment = {**os.environ, **server.environment(), "LC_ALL": "C"}
    result = subprocess.run(
        ["pactl", "list", "sink-inputs"], env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout


@pytest.fixture
def server(folder: Path) -> Iterator[LabSoundServer]:
    """One that runs."""
    sound_server = LabSoundServer(folder)
    sound_server.start()
    yield sound_server
    sound_server.stop()


@pytest.mark.sound
def test_the_sound_server_starts_answers_and_ends(folder: Path) -> None:
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
def test_another_process_may_take_it_over_and_stop_it(server: LabSoundServer) -> None:
    other = LabSoundServer(server.folder)
    other.adopt(known(server.pid))
    other.set_path_gain(Mouth.NEAR, Ear.DEVICE, None)
    assert "Mute: yes" in volumes(server)
    with pytest.raises(LabError, match="at most 0 dB"):
        other.set_path_gain(Mouth.NEAR, Ear.DEVICE, 3.0)
    with pytest.raises(LabError, match="no path from"):
        other.set_path_gain(Mouth.NOISE, Ear.HARNESS, 0.0)
    other.stop()
    assert not server.running()
    with pytest.raises(LabError, match="is not the sound server of"):
        other.adopt(os.getpid())


@pytest.mark.sound
def test_a_frozen_server_can_be_stopped_and_restarted_with_its_room(server: LabSoundServer) -> None:
    server.use_room(ROOMS["next_room"])
    before = sorted(line for line in volumes(server).splitlines() if "Volume:" in line)
    os.kill(known(server.pid), signal.SIGSTOP)
    server.stop()
    assert not server.running()
    server.start()
    assert sorted(line for line in volumes(server).splitlines() if "Volume:" in line) == before


@pytest.mark.sound
def test_leftover_sound_server_is_stopped_first(server: LabSoundServer) -> None:
    other = LabSoundServer(server.folder)
    try:
        other.start()
        assert not server.running()
        assert other.running()
    finally:
        other.stop()


@pytest.mark.parametrize(
    ("name", "problem"),
    [("x" * 100, "too long for a socket"), ("ä" * 50, "too long for a socket"), ("a b", "contains a space")],
)
def test_a_folder_that_pulseaudio_cannot_use_is_refused(folder: Path, name: str, problem: str) -> None:
    with pytest.raises(LabError, match=problem):
        LabSoundServer(folder / name).start()
