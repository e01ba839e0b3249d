"""Two small drivers, so that reading a bench is tested without a sound card; `entry_points` makes them known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from harness.base.ports import Sink, Surroundings
from harness.model.errors import InputError
from harness.model.stimulus import Waveform

ENTRY_POINTS = """\
[harness.drivers]
test_speaker = tests.unit.scenario.bench_drivers:Speaker
test_ears = tests.unit.scenario.bench_drivers:Ears
test_lost = tests.unit.library.no_such_module:Lost
test_plain = tests.unit.scenario.bench_drivers:Plain
test_function = tests.unit.scenario.bench_drivers:write_entry_points
"""


@dataclass(frozen=True, slots=True)
class SpeakerOptions:
    """sound_device: which card. volume: share of full scale, 0-1. channel: the side. rooms: where it is heard."""

    sound_device: str
    volume: float = 1.0
    channel: Literal["left", "right"] = "left"
    rooms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.volume <= 1:
            raise ValueError("volume is 0 to 1")


class Speaker:
    """Counts the seconds that it was given to play."""

    Options = SpeakerOptions

    def __init__(self, id: str, options: SpeakerOptions, surroundings: Surroundings) -> None:
        self.id = id
        self.options = options
        self.played_s = 0.0

    def open(self, sink: Sink) -> None:
        self.played_s = 0.0

    def close(self) -> None:
        self.played_s = 0.0

    def play(self, play_id: str, waveform: Waveform) -> None:
        self.played_s += waveform.duration_s


@dataclass(frozen=True, slots=True)
class EarsOptions:
    speech_detector: str = "webrtcvad"
    keep_s: float = 180.0

    def __post_init__(self) -> None:
        if self.keep_s < 30:
            raise InputError(f"keep_s is {self.keep_s:g}", remedy="Choose at least 30")


class Ears:
    """Hears silence."""

    Options = EarsOptions

    def __init__(self, id: str, options: EarsOptions, surroundings: Surroundings) -> None:
        self.id = id

    def open(self, sink: Sink) -> None:
        return

    def close(self) -> None:
        return

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        return Waveform(np.zeros(round((end_s - start_s) * 16000), np.float32), 16000), start_s


class Plain:
    """Has options that are no dataclass."""

    Options = dict


def write_entry_points(folder: Path) -> None:
    """Makes `folder`, once it is on the path, a place where these drivers are installed."""
    installed = folder / "bench_drivers-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-drivers\nVersion: 1.0\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
