"""Responses that travel through the virtual room: played by the device's mouth, heard by the harness' microphone."""

from __future__ import annotations

import multiprocessing
import time
from bisect import bisect_right
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from private_lab import lab_sound_server
from responses import (
    HEADER,
    LEVELS_DBFS,
    RATE_HZ,
    SETS,
    SNRS,
    WITHIN_S,
    Errors,
    PlacedResponse,
    Report,
    compare,
    noise,
    row,
    scene,
    sixteen_bits,
    utterances_of,
)

from harness.base.plugins import Group, load
from harness.model.errors import SoundError
from harness.model.stimulus import Waveform
from harness.sound.capture import Block, Capture
from harness.sound.hearing import Hearing
from harness.sound.path_check import find
from harness.sound.playback import Playback

LAB = "virtual_lab"
ROOMS_AT_ONCE = 3
"""Each with a sound server of its own, so that a quarter of an hour of sound takes some minutes."""
_SEARCH_MARGIN_S = 0.2
"""A response is searched for this long before and after the time at which it should arrive."""
_AFTER_S = 1.5
_MIN_CORRELATION = 0.85
"""Of a sound that arrived whole; pink noise at 10 dB SNR leaves 0.90 to 0.94."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row of the table is measured in; without noise if snr_db is None."""

    set_name: str
    level_dbfs: float
    snr_db: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result in a condition.

    - correlation: the least one of a response as it was played with the same as it was heard.
    - overruns: of all streams.
    - lost: responses that did not arrive whole, as happens on a busy computer; they are left out of `errors`.
    """

    condition: Condition
    errors: Errors
    correlation: float
    overruns: int
    lost: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """When the first sample of a response was heard, and how like it was to the one that was played."""

    at_s: float
    correlation: float


class Listener:
    """Feeds what the microphone captures to the harness' hearing; keeps the blocks, and what was reported when."""

    def __init__(self, detector: str) -> None:
        self.hearing = Hearing("mic", load(Group.SPEECH_DETECTORS, detector)())
        self.blocks: list[Block] = []
        self.reports: list[Report] = []
        self.overruns = 0

    def feed(self, block: Block) -> None:
        self.blocks.append(block)
        self.reports += [Report(observation, time.monotonic()) for observation in self.hearing.feed(block)]

    def count_overruns(self, count: int) -> None:
        self.overruns += count

    def find_arrival(self, response: PlacedResponse, near_s: float) -> Arrival | None:
        """Searches for a response around a time, by matched filter; None if it did not arrive whole."""
        times = [block.at_s for block in self.blocks]
        low = max(0, bisect_right(times, near_s - _SEARCH_MARGIN_S) - 1)
        high = bisect_right(times, near_s + len(response.samples) / RATE_HZ + _SEARCH_MARGIN_S)
        blocks = self.blocks[low:high]
        if len({block.epoch for block in blocks}) != 1:
            return None
        if sum(len(block.samples) for block in blocks) < len(response.samples):
            return None
        match = find(np.concatenate([block.samples for block in blocks]), response.samples)
        if match.correlation < _MIN_CORRELATION:
            return None
        starts = np.cumsum([0, *(len(block.samples) for block in blocks)])
        index = int(bisect_right(list(starts[1:]), match.start))
        return Arrival(blocks[index].at_s + (match.start - float(starts[index])) / RATE_HZ, match.correlation)


def _raise_fault(_at: object, reason: str) -> None:
    raise SoundError(f"the sound path was lost: {reason}")


def _ignore(*_: object) -> None:
    """A callback for what does not matter here."""


def measure_condition(condition: Condition, detector: str, count: int) -> Outcome:
    seed = SETS[condition.set_name].seed
    samples, responses = scene(utterances_of(condition.set_name, count), condition.level_dbfs, seed)
    listener = Listener(detector)
    started_s: list[float] = []

    def open_speaker(device: str, stack: ExitStack) -> Playback:
        playback = Playback(
            device,
            LAB,
            on_started=lambda _, at: started_s.append(at.at_s),
            on_ended=_ignore,
            on_fault=_raise_fault,
            on_back=_ignore,
            on_overrun=listener.count_overruns,
        )
        playback.open()
        stack.callback(playback.close)
        return playback

    with ExitStack() as stack:
        if condition.snr_db is not None:
            # The microphone opens into the noise: how fast a floor follows noise that sets in is another question.
            background = noise(len(samples) + 3 * RATE_HZ, condition.level_dbfs, condition.snr_db, seed)
            open_speaker("harness_speaker_far", stack).play("noise", Waveform(sixteen_bits(background), RATE_HZ))
            while not started_s:
                time.sleep(0.01)
            started_s.clear()
        capture = Capture(
            "harness_mic",
            LAB,
            on_block=listener.feed,
            on_fault=_raise_fault,
            on_back=_ignore,
            on_overrun=listener.count_overruns,
        )
        capture.open()
        stack.callback(capture.close)
        open_speaker("dut_speaker", stack).play("responses", Waveform(samples, RATE_HZ))
        time.sleep(len(samples) / RATE_HZ + _AFTER_S)
    return _outcome(condition, responses, started_s[0], listener)


def _outcome(condition: Condition, responses: list[PlacedResponse], started_s: float, listener: Listener) -> Outcome:
    """Compares what was reported with where each response arrived; nothing reported about a lost one counts."""
    spans, correlations, reports, lost = [], [], listener.reports, 0
    for response in responses:
        near_s = started_s + response.first / RATE_HZ
        arrival = listener.find_arrival(response, near_s)
        if arrival is None:
            lost += 1
            over_s = near_s + len(response.samples) / RATE_HZ + WITHIN_S
            reports = [report for report in reports if not near_s - WITHIN_S < report.observation.at.at_s < over_s]
            continue
        spans.append((arrival.at_s + response.onset_s, arrival.at_s + response.end_s))
        correlations.append(arrival.correlation)
    return Outcome(condition, compare(reports, spans), min(correlations, default=0.0), listener.overruns, lost)


def measure_in_room(conditions: list[Condition], detector: str, count: int) -> list[Outcome]:
    """Measures conditions in a room of their own; every process that it starts has ended when it returns."""
    with lab_sound_server() as server:
        server.set_path_gain("spk_far", "ear_h", 0.0)
        return [measure_condition(condition, detector, count) for condition in conditions]


def measure_through_rooms(detector: str, set_names: tuple[str, ...], count: int) -> None:
    """Prints the table of all conditions, `count` responses in each."""
    conditions = [Condition(name, level, snr_db) for name in set_names for level in LEVELS_DBFS for snr_db in SNRS]
    began_s = time.monotonic()
    rooms = min(ROOMS_AT_ONCE, len(conditions))
    with ProcessPoolExecutor(rooms, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(measure_in_room, conditions[first::rooms], detector, count) for first in range(rooms)]
        outcomes = [outcome for future in futures for outcome in future.result()]
    print(HEADER + "  corr  xruns lost")
    for outcome in sorted(outcomes, key=lambda outcome: conditions.index(outcome.condition)):
        condition = outcome.condition
        line = row(detector, condition.set_name, condition.level_dbfs, condition.snr_db, outcome.errors)
        print(f"{line}  {outcome.correlation:.3f}  {outcome.overruns:4}  {outcome.lost:4}")
    print(f"{count} utterances a row, each through the room, in {time.monotonic() - began_s:.0f} s")
