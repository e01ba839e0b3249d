"""Wake, command and ambient templates become trials."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from harness.model.bench import Bench, Device, ObservationKind
from harness.model.errors import InputError, Place, UnmetNeed
from harness.model.scenario import AmbientSource, AmbientSpec, Route, Scenario, TrialTemplate
from harness.model.stimulus import Ambience, RecordingPiece, Saying, VoiceSpec
from harness.model.trial import Target

T = TypeVar("T")

INJECTED_HZ = 16_000
"""Rate of stimuli that no loudspeaker plays."""
AIR_HZ = 48_000
NOTHING_S = 0.001
"""A rest of a recording that is not worth a piece of its own."""
LETTERS_A_SECOND = 15.0
PAUSE_S = 0.9
"""How long sayings are taken to be when they are dealt out; whoever speaks them begins again if they are shorter."""


def listeners(scenario: Scenario, bench: Bench, template: TrialTemplate) -> tuple[Device, ...]:
    """The devices that listen in a template's trials; UnmetNeed when wake events are not reported, or InputError."""
    place = Place(scenario.path)
    named = template.devices or ((template.device,) if template.device is not None else ())
    if not named:
        found = tuple(device for device in bench.devices if reports_wake(device))
        if not found:
            raise UnmetNeed(
                f"trial {template.id!r} counts wake events, and no device of bench {bench.id!r} reports any",
                place=place,
                remedy="Use a device with a connection, whose profile reports wake",
            )
        return found
    devices = []
    for name in named:
        device = next((one for one in bench.devices if one.id == name), None)
        if device is None:
            raise InputError(
                f"trial {template.id!r} listens to {name!r}, which is not on bench {bench.id!r}",
                place=place,
                remedy=f"There are: {', '.join(one.id for one in bench.devices)}",
            )
        if not reports_wake(device):
            raise UnmetNeed(
                f"trial {template.id!r} counts the wake events of {name!r}, which reports none",
                place=place,
                remedy="Use a device with a connection, whose profile reports wake",
            )
        devices.append(device)
    return tuple(devices)


def reports_wake(device: Device) -> bool:
    """Whether wake events of that device can be counted."""
    return device.connection is not None and ObservationKind.WAKE in device.profile.reports


def is_injected(device: Device, template: TrialTemplate, scenario: Scenario) -> bool:
    """Whether the sound reaches it over its connection; UnmetNeed when that is asked for and cannot be."""
    can = device.connection is not None and device.connection.injects
    if template.route is Route.INJECTION and not can:
        driver = device.connection.driver if device.connection else "none"
        raise UnmetNeed(
            f"trial {template.id!r} injects sound into {device.id!r}, whose connection ({driver}) carries none",
            place=Place(scenario.path),
            remedy="Write `route: loudspeaker`, or use a connection that carries audio",
        )
    return can and template.route is not Route.LOUDSPEAKER


def target(device: Device, player: str) -> Target:
    """The device as a target that `player` brings the sound to."""
    assert device.connection is not None
    profile = device.profile
    return Target(
        device.id, device.connection.id, player, tuple(sorted(profile.reports)), tuple(sorted(profile.listening_states))
    )


def phrase_of(scenario: Scenario, devices: tuple[Device, ...], template: TrialTemplate) -> str:
    """What is said to wake them: one phrase for all; InputError when they do not agree."""
    if template.phrase is not None:
        return template.phrase
    phrases = {device.id: next(iter(device.profile.wake_phrases), "") for device in devices}
    different = set(phrases.values())
    if len(different) == 1 and "" not in different:
        return different.pop()
    listed = ", ".join(f"{name}: {phrase or 'none'}" for name, phrase in phrases.items())
    raise InputError(
        f"the devices of trial {template.id!r} do not wake to one phrase ({listed})",
        place=Place(scenario.path),
        remedy="Write `phrase: …`, or one trial for each with `devices: [...]`",
    )


@dataclass(frozen=True, slots=True)
class Segment:
    """One ambient trial's sound; number counts from 1."""

    number: int
    source: str
    ambience: Ambience


def segments(spec: AmbientSpec, seed: str) -> Iterator[Segment]:
    """The segments of a soak; the same seed gives the same ones.

    Each is of one source. Sources get their shares of the number of segments, in an order drawn by the seed; the
    recordings of a source follow one another, shuffled anew in every loop, and go on where the last segment ended.
    """
    total_s = spec.hours * 3600
    order = _shared_out(spec.sources, spec.segments)
    random.Random(f"{seed}:order").shuffle(order)
    streams = {source.id: _Stream(source, f"{seed}:{source.id}") for source in spec.sources}
    left_s = total_s
    for number, source in enumerate(order, start=1):
        duration_s = round(min(spec.segment_s, left_s), 6)
        left_s -= duration_s
        yield Segment(number, source.id, streams[source.id].next(duration_s))


def _shared_out(sources: tuple[AmbientSource, ...], count: int) -> list[AmbientSource]:
    """Each source as often as its share of `count` says; what is left over goes to the largest remainders."""
    whole = sum(source.share for source in sources)
    exact = [count * source.share / whole for source in sources]
    given = [math.floor(each) for each in exact]
    by_remainder = sorted(range(len(sources)), key=lambda n: (given[n] - exact[n], n))
    for n in by_remainder[: count - sum(given)]:
        given[n] += 1
    return [source for source, times in zip(sources, given, strict=True) for _ in range(times)]


class _Stream:
    """The endless sound of one source, cut into segments."""

    def __init__(self, source: AmbientSource, seed: str) -> None:
        self._source = source
        self._seed = seed
        self._chance = random.Random(f"{seed}:draws")
        self._recordings = self._shuffled(tuple(zip(source.recordings, source.durations_s, strict=True)))
        self._sayings = self._shuffled(source.texts)
        self._playing: tuple[str, float, float] | None = None

    def next(self, duration_s: float) -> Ambience:
        """The next so many seconds."""
        seed = self._chance.getrandbits(32)
        if self._source.noise is not None:
            return Ambience(duration_s, seed, noise=self._source.noise)
        if self._source.texts:
            return Ambience(duration_s, seed, sayings=tuple(self._said(duration_s)))
        return Ambience(duration_s, seed, pieces=tuple(self._pieces(duration_s)))

    def _pieces(self, duration_s: float) -> Iterator[RecordingPiece]:
        left_s = duration_s
        while left_s > 1e-6:
            if self._playing is None:
                path, length_s = next(self._recordings)
                self._playing = (path, length_s, 0.0)
            path, length_s, offset_s = self._playing
            taken_s = min(left_s, length_s - offset_s)
            yield RecordingPiece(path, round(offset_s, 6), round(taken_s, 6))
            left_s -= taken_s
            ended = offset_s + taken_s >= length_s - NOTHING_S
            self._playing = None if ended else (path, length_s, offset_s + taken_s)

    def _said(self, duration_s: float) -> Iterator[Saying]:
        left_s = duration_s
        voices = self._source.voices or (VoiceSpec(),)
        while left_s > 0:
            text = next(self._sayings)
            left_s -= len(text) / LETTERS_A_SECOND + PAUSE_S
            yield Saying(text, self._chance.choice(voices))

    def _shuffled(self, items: tuple[T, ...]) -> Iterator[T]:
        for loop in itertools.count():
            order = list(items)
            random.Random(f"{self._seed}:{loop}").shuffle(order)
            yield from order
