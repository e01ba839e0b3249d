"""A plug-in as a third party would write it: engines that find loud places, and that go wrong where a sound says so.

A block that begins with MARK and a number does what WRONGS says of the number. Installed for a test by
`loudness_plugin`, with a dist-info folder on PYTHONPATH.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from harness.engines.settings import LEAD_IN, OF_SCORES, spot_rule
from harness.model.errors import DeviceError, EngineError, InputError
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, OfflineSpot, Said, ScoreTrack, Setting
from harness.model.offline import SettingKind as Kind

RATE_HZ = 16000
STEP = 160
MARK = (12345, -12345, 12345)


class Wrong(IntEnum):
    """What a marked sound does to the engine."""

    ABORT = 1
    HANG = 2
    REFUSE = 3
    CHATTER = 4
    RAISE = 5
    LEAVE = 6
    SEGFAULT = 7
    HANG_DEAF = 8
    ABORT_ONCE = 9
    PARENT_OF_SLEEPER = 10
    HANG_ONCE = 11
    GONE = 12
    KILL_PARENT = 13


FLAG = Setting("flag", Kind.TEXT, "", "a file that says that the engine has gone wrong once")
START = Setting("start", Kind.CHOICE, "well", "how loading goes", choices=("well", "refuse", "abort", "leave", "hang"))


def go_wrong(samples: npt.NDArray[np.int16], flag: str) -> None:
    if tuple(samples[: len(MARK)].tolist()) != MARK:
        return
    match Wrong(int(samples[len(MARK)])):
        case Wrong.ABORT:
            os.abort()
        case Wrong.HANG:
            while True:
                time.sleep(60)
        case Wrong.REFUSE:
            raise EngineError("the sound is too loud for this engine")
        case Wrong.GONE:
            raise DeviceError("the board is gone", remedy="Plug it in")
        case Wrong.KILL_PARENT:
            os.kill(os.getppid(), signal.SIGKILL)
        case Wrong.CHATTER:
            os.write(1, b"chatter \x1b[31m on a stream that is not the engine's\n" * 2000)
            sys.stdout.write("more chatter\n")
            sys.stdout.flush()
        case Wrong.RAISE:
            raise RuntimeError("a fault of the plug-in's")
        case Wrong.LEAVE:
            os._exit(0)
        case Wrong.SEGFAULT:
            ctypes.string_at(0)
        case Wrong.HANG_DEAF:
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
            ctypes.PyDLL(None).sleep(3600)
        case Wrong.ABORT_ONCE:
            if not Path(flag).exists():
                Path(flag).touch()
                os.abort()
        case Wrong.HANG_ONCE:
            if not Path(flag).exists():
                Path(flag).touch()
                time.sleep(3600)
        case Wrong.PARENT_OF_SLEEPER:
            if not Path(flag).exists():
                Path(flag).write_text(str(os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600")))
                os.abort()


class Loudness:
    """Scores are the RMS of 10 ms, 0–1."""

    settings: ClassVar[tuple[Setting, ...]] = (*OF_SCORES, FLAG, START)
    kind: ClassVar[EngineKind] = EngineKind.WAKE

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        match settings.get(START.name):
            case "refuse":
                raise InputError(f"there is no model {model!r}", remedy="It has: boom")
            case "abort":
                sys.stderr.write("no licence was found\n")
                sys.stderr.flush()
                os.abort()
            case "leave":
                os._exit(7)
            case "hang":
                time.sleep(600)
        self._flag = settings.get(FLAG.name, "")
        rule, point = spot_rule(settings, 0.25, RATE_HZ)
        self.facts = EngineFacts(
            self.kind, "1.0", RATE_HZ, ("boom",), hashlib.sha256(model.encode()).hexdigest(), "Apache-2.0",
            float(settings.get(LEAD_IN.name, LEAD_IN.default)), rule, point, settings=tuple(sorted(settings.items())),
        )  # fmt: skip

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        return (OfflineModel("boom", ("boom",), "Apache-2.0"),)

    def close(self) -> None:
        pass


class LoudnessScores(Loudness):
    def begin(self) -> LoudnessStream:
        return LoudnessStream(self._flag)


class LoudnessStream:
    def __init__(self, flag: str) -> None:
        self._flag = flag
        self._rest = np.zeros(0, np.int16)
        self._scores: list[npt.NDArray[np.float32]] = []
        self._taken = 0

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        go_wrong(samples, self._flag)
        sound = np.concatenate([self._rest, samples])
        whole = len(sound) // STEP * STEP
        frames = sound[:whole].astype(np.float32).reshape(-1, STEP) / 32768
        self._scores.append(np.sqrt(np.mean(frames**2, axis=1)))
        self._rest = sound[whole:]

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        scores = np.concatenate([*self._scores, np.zeros(0, np.float32)])
        self._scores = []
        first_end = (self._taken + 1) * STEP
        self._taken += len(scores)
        return (ScoreTrack("boom", scores, first_end, STEP),)


class LoudnessSpots(Loudness):
    """Tells spots alone, and each of them with the next block."""

    def listen(self) -> SpotStream:
        return SpotStream(self._flag, self.facts.rule.threshold)  # type: ignore[union-attr]


class SpotStream:
    def __init__(self, flag: str, threshold: float) -> None:
        self._inner = LoudnessStream(flag)
        self._threshold = threshold
        self._late: tuple[OfflineSpot, ...] = ()
        self._last = -RATE_HZ

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self._inner.feed(samples)

    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        late, spots = self._late, []
        for track in self._inner.take(flush=flush):
            for index in np.flatnonzero(track.scores > self._threshold):
                end = track.first_end + int(index) * STEP
                if end - self._last >= RATE_HZ:
                    spots.append(OfflineSpot("boom", max(0, end - 1600), end))
                self._last = end
        self._late = tuple(spots)
        return late + self._late if flush else late


class LoudnessWords(Loudness):
    """Understands how many loud places there are."""

    kind = EngineKind.TRANSCRIPT

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        stream = SpotStream(self._flag, 0.25)
        stream.feed(samples)
        spots = stream.take(flush=True)
        return Said("boom " * (len(spots) - 1) + "boom", spots[0].start, spots[-1].end) if spots else None
