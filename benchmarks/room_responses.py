"""Responses that travel through the virtual room: played by the device's mouth, heard by the harness' microphone."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import tempfile
import time
from bisect import bisect_right
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from responses import (
    HEADER,
    LEVELS_DBFS,
    RATE_HZ,
    SETS,
    SNRS,
    WITHIN_S,
    Errors,
    Placed,
    compare,
    noise,
    row,
    scene,
    sixteen_bits,
    utterances_of,
)

from harness.base.plugins import Group, load
from harness.lab.sound_server import LabSoundServer
from harness.model.errors import SoundError
from harness.model.observation import Observation
from harness.model.stimulus import Waveform
from harness.sound.capture import Block, Capture
from harness.sound.hearing import Hearing
from harness.sound.path_check import find
from harness.sound.playback import Playback

LAB = "virtual_lab"
ROOMS_AT_ONCE = 3
"""Each with a sound server of its own, so that a quarter of an hour of sound takes some minutes."""
_AROUND_S = 0.2
_AFTER_S = 1.5
_WHOLE = 0.85
"""Least correlation of a sound that arrived whole; pink noise at 10 dB SNR leaves 0.90 to 0.94."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One condition."""

    set_name: str
    level_dbfs: float
    snr_db: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """correlation: the least, of what was played with what was heard. overruns: of all streams.

    lost: utterances that did not arrive whole, which a computer without time to spare does; they are left out.
    """

    cell: Cell
    errors: Errors
    correlation: float
    overruns: int
    lost: int


class Listener:
    """The real capture and hearing; keeps the blocks, and what was told and when."""

    def __init__(self, detector: str) -> None:
        self.hearing = Hearing("mic", load(Group.SPEECH_DETECTORS, detector)())
        self.blocks: list[Block] = []
        self.told: list[tuple[Observation, float]] = []
        self.overruns = 0

    def take(self, block: Block) -> None:
        self.blocks.append(block)
        self.told += [(seen, time.monotonic()) for seen in self.hearing.feed(block)]

    def overran(self, count: int) -> None:
        self.overruns += count

    def place(self, played: Placed, near_s: float) -> tuple[float, float] | None:
        """Host time of its first sample, by matched filter, and the correlation; None: it did not arrive whole."""
        times = [block.at_s for block in self.blocks]
        low = max(0, bisect_right(times, near_s - _AROUND_S) - 1)
        high = bisect_right(times, near_s + len(played.samples) / RATE_HZ + _AROUND_S)
        heard = self.blocks[low:high]
        if len({block.epoch for block in heard}) != 1:
            return None
        if sum(len(block.samples) for block in heard) < len(played.samples):
            return None
        found = find(np.concatenate([block.samples for block in heard]), played.samples)
        starts = np.cumsum([0, *(len(block.samples) for block in heard)])
        if found.correlation < _WHOLE:
            return None
        index = int(bisect_right(list(starts[1:]), found.sample))
        return heard[index].at_s + (found.sample - float(starts[index])) / RATE_HZ, found.correlation


def _fault(_at: object, what: str) -> None:
    raise SoundError(f"the sound path was lost: {what}")


def _nothing(*_: object) -> None:
    """Not of interest here."""


def run_cell(cell: Cell, detector: str, count: int) -> Outcome:
    seed = SETS[cell.set_name][2]
    samples, placed = scene(utterances_of(cell.set_name, count), cell.level_dbfs, seed)
    listener = Listener(detector)
    started: list[float] = []

    def mouth(device: str, stack: ExitStack) -> Playback:
        playback = Playback(
            device,
            LAB,
            on_started=lambda _, at: started.append(at.at_s),
            on_ended=_nothing,
            on_fault=_fault,
            on_back=_nothing,
            on_overrun=listener.overran,
        )
        playback.open()
        stack.callback(playback.close)
        return playback

    with ExitStack() as stack:
        if cell.snr_db is not None:
            # The microphone opens into the noise: how fast a floor follows noise that sets in is another question.
            around = noise(len(samples) + 3 * RATE_HZ, cell.level_dbfs, cell.snr_db, seed)
            mouth("harness_speaker_far", stack).play("noise", Waveform(sixteen_bits(around), RATE_HZ))
            while not started:
                time.sleep(0.01)
            started.clear()
        capture = Capture(
            "harness_mic", LAB, on_block=listener.take, on_fault=_fault, on_back=_nothing, on_overrun=listener.overran
        )
        capture.open()
        stack.callback(capture.close)
        mouth("dut_speaker", stack).play("responses", Waveform(samples, RATE_HZ))
        time.sleep(len(samples) / RATE_HZ + _AFTER_S)
    spans, correlations, told, lost = [], [], listener.told, 0
    for one in placed:
        near_s = started[0] + one.first / RATE_HZ
        found = listener.place(one, near_s)
        if found is None:
            lost += 1
            over_s = near_s + len(one.samples) / RATE_HZ + WITHIN_S
            told = [(seen, when) for seen, when in told if not near_s - WITHIN_S < seen.at.at_s < over_s]
            continue
        spans.append((found[0] + one.onset_s, found[0] + one.end_s))
        correlations.append(found[1])
    return Outcome(cell, compare(told, spans), min(correlations, default=0.0), listener.overruns, lost)


def run_room(cells: list[Cell], detector: str, count: int) -> list[Outcome]:
    """Several conditions in a room of their own; every process that it starts has ended when it returns."""
    folder = Path(tempfile.mkdtemp(prefix="vh-"))
    os.environ["HARNESS_LAB"] = str(folder)
    server = LabSoundServer(folder)
    try:
        state = {"environment": server.start(), "mqtt_host": "127.0.0.1", "mqtt_port": 0, "pids": {}}
        (folder / "lab.json").write_text(json.dumps(state), encoding="utf-8")
        server.set_path_gain("spk_far", "ear_h", 0.0)
        return [run_cell(cell, detector, count) for cell in cells]
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def sound(detector: str, set_names: tuple[str, ...], count: int) -> None:
    cells = [Cell(name, level, snr_db) for name in set_names for level in LEVELS_DBFS for snr_db in SNRS]
    begun_s = time.monotonic()
    rooms = min(ROOMS_AT_ONCE, len(cells))
    with ProcessPoolExecutor(rooms, multiprocessing.get_context("spawn")) as pool:
        running = [pool.submit(run_room, cells[first::rooms], detector, count) for first in range(rooms)]
        outcomes = [outcome for one in running for outcome in one.result()]
    print(HEADER + "  corr  xruns lost")
    for outcome in sorted(outcomes, key=lambda outcome: cells.index(outcome.cell)):
        cell = outcome.cell
        line = row(detector, cell.set_name, cell.level_dbfs, cell.snr_db, outcome.errors)
        print(f"{line}  {outcome.correlation:.3f}  {outcome.overruns:4}  {outcome.lost:4}")
    print(f"{count} utterances a row, each through the room, in {time.monotonic() - begun_s:.0f} s")
