"""Which wake events want a clip, and what is in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.model.errors import DeviceError, LogFull
from harness.model.observation import Observation, StimulusEnded, StimulusStarted, Wake
from harness.model.record import Clip, Entry, Observed
from harness.model.scenario import TrialKind
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.model.trial import Target
from harness.session.event_clips import ClipResult, EventClips
from harness.session.run import Arrival
from tests.seen import until
from tests.unit.session.listening_material import BY_AIR, WIRED, listening_trial
from tests.unit.session.material import MemoryLog

RATE = 16_000


class Hand:
    """A clock that is set by hand."""

    speed = 1.0

    def __init__(self) -> None:
        self.at_s = 1000.0

    def now_s(self) -> float:
        return self.at_s

    def wall_s(self) -> float:
        return self.at_s

    def real_s(self, duration_s: float) -> float:
        return duration_s


class Ear:
    """A microphone that hears its own clock: each sample is its time."""

    id = "mic"

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        raise AssertionError("nobody tells it here")

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        if start_s < 900.0:
            raise DeviceError("that is long gone")
        return Waveform(np.arange(start_s, end_s, 0.001).astype(np.float32), 1000), start_s

    def level_dbfs(self) -> float | None:
        return None

    def noise_floor_dbfs(self) -> float | None:
        return None


class Table:
    """EventClips with a log, and what it told."""

    def __init__(
        self, *targets: Target, kind: TrialKind = TrialKind.WAKE, room: Callable[[], bool] = lambda: True
    ) -> None:
        self.clock = Hand()
        self.log = MemoryLog(self.clock, room)
        self.arrived: list[Arrival] = []
        self.explained: dict[int, bool | None] = {}
        self.clips = EventClips(
            self.log, Ear(), self.clock, self.arrived.append, lambda seq: self.explained.get(seq, False)
        )
        self.trial = listening_trial(*targets, kind=kind)
        self.seq = 0

    def plays(
        self, player: str, play_id: str, value: float, duration_s: float = 4.0, audio_s: float | None = None
    ) -> None:
        samples = np.full(round(duration_s * RATE), value, dtype=np.float32)
        self.clips.announce_stimulus(self.trial, play_id, Waveform(samples, RATE))
        self.sees(StimulusStarted(player, Stamp(self.clock.at_s), play_id, audio_s))

    def sees(self, observation: Observation) -> int:
        self.seq += 1
        self.clips.add_row(Entry(self.seq, 1, self.clock.at_s, self.clock.at_s, Observed(observation)))
        return self.seq

    def wakes(self, source: str, at_s: float, audio_s: float | None = None) -> int:
        return self.sees(Wake(source, Stamp(at_s), "alexa", 0.9, audio_s))

    def stored(self, count: int, *, hurry: bool = False) -> dict[int, Clip]:
        self.clips.tick(self.clock.at_s, hurry=hurry)
        until(lambda: len(self.arrived) >= count)
        return {
            arrival.event_seq: arrival.clip
            for arrival in self.arrived
            if isinstance(arrival, ClipResult) and arrival.clip
        }


def test_over_a_wire_a_clip_is_what_the_device_was_given_across_stimuli() -> None:
    table = Table(WIRED, kind=TrialKind.AMBIENT)
    for number, play_id in enumerate(("a", "b", "c", "d")):
        table.plays("wired", play_id, value=(number + 1) / 10, audio_s=100.0 + 4.0 * number)
        if play_id == "b":
            seq = table.wakes("wired", 1000.5, audio_s=106.0)
            table.clips.tick(table.clock.at_s)
            assert not table.arrived, "the sound after it is not there yet"
    clip = table.stored(1)[seq]
    assert clip.duration_s == pytest.approx(10.0)
    assert clip.start_s == pytest.approx(1000.5 - 5.0), "the event lies 5 s into its clip"
    samples = table.log.clips[clip.name].samples
    assert [round(float(samples[round(s * RATE)]), 1) for s in (0.5, 2.9, 3.1, 6.9, 7.1, 9.9)] == [
        0.1,
        0.1,
        0.2,
        0.2,
        0.3,
        0.3,
    ]


def test_over_a_wire_without_positions_a_clip_is_what_the_device_was_given_at_that_time() -> None:
    table = Table(WIRED, kind=TrialKind.AMBIENT)
    table.plays("wired", "a", 0.3, duration_s=30.0)
    seq = table.wakes("wired", 1010.0)
    table.clock.at_s += 30.0
    clip = table.stored(1)[seq]
    assert (clip.start_s, clip.duration_s) == (pytest.approx(1005.0), pytest.approx(10.0))
    assert table.log.clips[clip.name].samples == pytest.approx(0.3)


def test_an_event_that_counting_explains_wants_no_clip() -> None:
    table = Table(WIRED)
    table.plays("wired", "a", 0.1, 10.0, audio_s=50.0)
    clip = table.wakes("wired", 1000.0, 50.5)
    table.explained[table.wakes("wired", 1000.0, 52.6)] = True
    table.clock.at_s += 5.0
    assert sorted(table.stored(1)) == [clip]
    table.clips.clip_finished(clip)
    assert not table.clips.pending


def test_a_clip_waits_until_counting_has_decided() -> None:
    table = Table(WIRED)
    table.plays("wired", "a", 0.1, 10.0, audio_s=50.0)
    table.explained[seq := table.wakes("wired", 1000.0, 52.6)] = None
    table.clock.at_s += 5.0
    table.clips.tick(table.clock.at_s)
    assert table.clips.pending
    assert not table.arrived
    table.explained[seq] = False
    assert sorted(table.stored(1)) == [seq]


def test_by_air_the_microphone_is_cut_when_the_sound_after_the_event_is_there() -> None:
    table = Table(BY_AIR, kind=TrialKind.AMBIENT)
    table.plays("speaker", "a", 0.1, 30.0)
    seq = table.wakes("shelf_link", 1003.0)
    table.clock.at_s = 1008.0
    table.clips.tick(table.clock.at_s)
    assert table.clips.pending
    assert not table.arrived
    table.clock.at_s = 1008.4
    clip = table.stored(1)[seq]
    assert (clip.start_s, clip.duration_s) == (998.0, pytest.approx(10.0))
    table.clips.clip_finished(seq)
    assert not table.clips.pending


def test_end_of_run_saves_the_available_sound_of_a_clip() -> None:
    table = Table(BY_AIR, kind=TrialKind.AMBIENT)
    table.plays("speaker", "a", 0.1, 30.0)
    table.clock.at_s = 1004.0
    seq = table.wakes("shelf_link", 1003.0)
    clip = table.stored(1, hurry=True)[seq]
    assert (clip.start_s, clip.duration_s) == (998.0, pytest.approx(6.0))


def test_a_stimulus_that_was_cut_ends_there() -> None:
    table = Table(WIRED, kind=TrialKind.AMBIENT)
    table.plays("wired", "a", 0.1, 30.0, audio_s=0.0)
    seq = table.wakes("wired", 1000.0, 6.0)
    table.sees(StimulusEnded("wired", Stamp(1000.0), "a", False, 7.0))
    clip = table.stored(1, hurry=True)[seq]
    assert clip.duration_s == pytest.approx(6.0)


def test_unavailable_clip_is_reported() -> None:
    gone = Table(BY_AIR, kind=TrialKind.AMBIENT)
    gone.plays("speaker", "a", 0.1)
    gone.wakes("shelf_link", 200.0)
    assert gone.stored(1) == {}
    full = Table(WIRED, kind=TrialKind.AMBIENT, room=lambda: False)
    full.plays("wired", "a", 0.1, 30.0, audio_s=0.0)
    full.wakes("wired", 1000.0, 9.0)
    assert full.stored(1) == {}
    whys = [arrival.why for table in (gone, full) for arrival in table.arrived if isinstance(arrival, ClipResult)]
    assert whys == [str(DeviceError("that is long gone")), str(LogFull("no space left on the device"))]


def test_unknown_sources_and_early_events_get_no_clip() -> None:
    table = Table(WIRED, kind=TrialKind.AMBIENT)
    table.wakes("wired", 1000.0, 0.0)
    table.plays("wired", "a", 0.1, audio_s=0.0)
    table.wakes("somebody", 1000.0, 1.0)
    assert not table.clips.pending
