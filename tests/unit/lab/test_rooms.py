"""Rooms and the topology they stand on."""

from __future__ import annotations

import pytest

from harness.lab.sound_server import LEGS, ROOMS, Ear, Mouth, named_room
from harness.model.errors import InputError


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
