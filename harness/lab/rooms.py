"""The virtual lab's topology "two ears", and its rooms: how loud every mouth is at every ear."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.errors import InputError, did_you_mean


class Mouth(StrEnum):
    """Where sound comes from; the value is the name of the sink that one plays to."""

    NEAR = "spk_h"
    """The harness' loudspeaker close to the device."""
    FAR = "spk_far"
    """The harness' loudspeaker at the other end of the room."""
    DEVICE = "spk_d"
    NOISE = "noise_d"
    """Noise at the device's microphone only, so that it does not hide the response from the harness."""


class Ear(StrEnum):
    """Where sound is heard; the value is the name of the null sink whose monitor one records."""

    HARNESS = "ear_h"
    DEVICE = "ear_d"


MONITOR_SINK = "monitor"
"""Headphones at the bench: a sink that no ear hears."""

LEGS: dict[Mouth, tuple[Ear, ...]] = {
    Mouth.NEAR: (Ear.HARNESS, Ear.DEVICE),
    Mouth.FAR: (Ear.HARNESS, Ear.DEVICE),
    Mouth.DEVICE: (Ear.HARNESS, Ear.DEVICE),
    Mouth.NOISE: (Ear.DEVICE,),
}
"""Which ears a mouth reaches at all."""


@dataclass(frozen=True, slots=True)
class Room:
    """Path gains in dB (≤ 0; None: not heard) by mouth and ear; a path that is not named has 0 dB.

    Only levels: a room's reflections are not simulated.
    """

    name: str
    title: str
    gains_db: tuple[tuple[Mouth, Ear, float | None], ...]

    def gain_db(self, mouth: Mouth, ear: Ear) -> float | None:
        """The gain of a path; KeyError when the topology has no such path."""
        if ear not in LEGS[mouth]:
            raise KeyError(f"{mouth} does not reach {ear}")
        for its_mouth, its_ear, gain_db in self.gains_db:
            if (its_mouth, its_ear) == (mouth, ear):
                return gain_db
        return 0.0


_FAR = ((Mouth.FAR, Ear.HARNESS, -12.0), (Mouth.FAR, Ear.DEVICE, -12.0))

ROOMS: dict[str, Room] = {
    room.name: room
    for room in (
        Room("anechoic", "Nothing is lost on the way; the far loudspeaker is 12 dB down", _FAR),
        Room(
            "desk",
            "Device and loudspeaker side by side, the harness' microphone at the device",
            (*_FAR, (Mouth.NEAR, Ear.HARNESS, -3.0), (Mouth.NEAR, Ear.DEVICE, -3.0)),
        ),
        Room(
            "living_room",
            "Near loudspeaker at 1 m, far one at 4 m of the device",
            (
                (Mouth.NEAR, Ear.HARNESS, -3.0),
                (Mouth.NEAR, Ear.DEVICE, -6.0),
                (Mouth.FAR, Ear.HARNESS, -15.0),
                (Mouth.FAR, Ear.DEVICE, -18.0),
                (Mouth.DEVICE, Ear.HARNESS, -6.0),
            ),
        ),
        Room(
            "next_room",
            "The near loudspeaker stands at the door, the far one behind it",
            (
                (Mouth.NEAR, Ear.HARNESS, -12.0),
                (Mouth.NEAR, Ear.DEVICE, -20.0),
                (Mouth.FAR, Ear.HARNESS, -20.0),
                (Mouth.FAR, Ear.DEVICE, -30.0),
                (Mouth.DEVICE, Ear.HARNESS, -3.0),
            ),
        ),
    )
}


def room(name: str) -> Room:
    """The room of that name; InputError that lists the rooms otherwise."""
    if name in ROOMS:
        return ROOMS[name]
    meant = did_you_mean(name, ROOMS)
    raise InputError(f"no room is called {name!r}", remedy=f"{meant}Rooms: {', '.join(ROOMS)}")
