"""Any engine that runs as a program: sound on its stdin, what it found on its stdout. docs/engine-process.md."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from harness.engines.offline_loading import fingerprint
from harness.engines.process_protocol import DeclaredScores, Event, Hello, Scores
from harness.engines.process_talk import FileTalk, Limits, Mode, Talk
from harness.engines.settings import LEAD_IN, OF_SCORES, SPOT_DURATION, number, operating_points, spot_rule
from harness.model.errors import InputError
from harness.model.offline import (
    EngineFacts,
    EngineKind,
    OfflineModel,
    OfflineSpot,
    OperatingPoint,
    Said,
    ScoreTrack,
    Setting,
    SettingKind,
    SpotRule,
)

MODE = Setting(
    "mode", SettingKind.CHOICE, "served", "served: one process takes many files; once: a process a file, bare sound on "
    "stdin", choices=("served", "once"),
)  # fmt: skip
KIND = Setting(
    "kind", SettingKind.CHOICE, "wake", "of an engine in mode once, which says no hello",
    choices=tuple(kind.value for kind in EngineKind),
)  # fmt: skip
RATE = Setting(
    "rate-hz", SettingKind.WHOLE, "16000", "of an engine in mode once, which says no hello", low=4000, high=192_000
)
START_LIMIT = Setting("start-limit-s", SettingKind.NUMBER, "30", "for the hello", low=0.1, high=3600)
HANG_LIMIT = Setting(
    "hang-limit-s", SettingKind.NUMBER, "60", "how long it may neither take sound nor answer at the end of a file",
    low=0.1, high=86_400,
)  # fmt: skip


class ProcessEngine:
    """A program of anybody's: what it is of inside is its own affair.

    model: the command line, split as a shell splits it; no shell runs. The object is a `ScoresSound`, a `SpotsPhrases`
    or an `Understands`, as the engine's hello says. InputError for a program that is not there, EngineError with the
    command and its last words for whatever it does wrong.
    """

    kind: ClassVar[EngineKind | None] = None
    settings: ClassVar[tuple[Setting, ...]] = (MODE, KIND, RATE, START_LIMIT, HANG_LIMIT, *OF_SCORES)
    facts: EngineFacts
    _talk: Talk

    def __new__(cls, model: str, settings: Mapping[str, str]) -> ProcessEngine:
        command = _command(model)
        mode = Mode(settings.get(MODE.name, MODE.default))
        once = Hello(
            Path(command[0]).name,
            "not stated",
            EngineKind(settings.get(KIND.name, KIND.default)),
            round(number(settings, RATE)),
        )
        limits = Limits(number(settings, START_LIMIT), number(settings, HANG_LIMIT))
        talk = Talk(command, mode, limits, once)
        if talk.hello.kind is not EngineKind.WAKE:
            chosen: type[ProcessEngine] = UnderstandingProcess
        else:
            chosen = ScoringProcess if talk.hello.scores else SpottingProcess
        engine = object.__new__(chosen)
        engine._talk = talk
        return engine

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        hello = self._talk.hello
        self._spot_samples = round(number(settings, SPOT_DURATION) / 1000 * hello.rate_hz)
        try:
            _agree(settings, hello)
            rule, point, points = _rule(settings, hello.scores, hello.rate_hz)
        except InputError:
            self.close()
            raise
        lead_in_ms = number(settings, LEAD_IN)
        if LEAD_IN.name not in settings and hello.lead_in_ms is not None:
            lead_in_ms = hello.lead_in_ms
        version = f"{hello.name} {hello.version}"
        self.facts = EngineFacts(
            hello.kind,
            version,
            hello.rate_hz,
            hello.phrases,
            fingerprint(ProcessEngine, version, _hash(self._talk.command), settings),
            licence=hello.licence,
            lead_in_ms=lead_in_ms if hello.kind is EngineKind.WAKE else 0.0,
            rule=rule,
            operating_point=point,
            operating_points=points,
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """One entry that says how a model is named: the command is the model."""
        return (OfflineModel("COMMAND", (), "the program's own", "any program: process:'./their-engine --model x'"),)

    @property
    def pid(self) -> int | None:
        """Of the process that leads the engine's group, while there is one."""
        return self._talk.pid

    def close(self) -> None:
        """Ends the program and whatever it started."""
        self._talk.close()


class SpottingProcess(ProcessEngine):
    """A program that says where phrases are."""

    def listen(self) -> _Spots:
        return _Spots(self._talk.file(), self._spot_samples)


class ScoringProcess(ProcessEngine):
    """A program that says its scores all the time."""

    def begin(self) -> _Tracks:
        scores = self._talk.hello.scores
        assert scores is not None
        return _Tracks(self._talk.file(), scores.step)


class UnderstandingProcess(ProcessEngine):
    """A program that says what was said."""

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        file = self._talk.file()
        file.feed(samples)
        events = [one for one in file.take(flush=True) if isinstance(one, Event) and one.text.strip()]
        if not events:
            return None
        start = next((one.start for one in events if one.start is not None), 0)
        end = next((one.end for one in reversed(events) if one.end is not None), len(samples))
        score = events[0].score if len(events) == 1 else None
        return Said(" ".join(one.text.strip() for one in events), min(start, end), end, score)


class _Spots:
    def __init__(self, file: FileTalk, spot_samples: int) -> None:
        self._file = file
        self._spot_samples = spot_samples

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self._file.feed(samples)

    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        return tuple(self._spot(one) for one in self._file.take(flush=flush) if isinstance(one, Event))

    def _spot(self, event: Event) -> OfflineSpot:
        end = event.end or 0
        start = max(0, end - self._spot_samples) if event.start is None else event.start
        return OfflineSpot(event.text, start, end, event.score)


class _Tracks:
    def __init__(self, file: FileTalk, step: int) -> None:
        self._file = file
        self._step = step

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self._file.feed(samples)

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        found: dict[str, list[Scores]] = {}
        for one in self._file.take(flush=flush):
            if isinstance(one, Scores):
                found.setdefault(one.phrase, []).append(one)
        return tuple(
            ScoreTrack(phrase, np.concatenate([one.scores for one in parts]), parts[0].end, self._step)
            for phrase, parts in found.items()
        )


def _command(model: str) -> tuple[str, ...]:
    """Program, by its full path, and arguments."""
    example = "Name it, as in -t 'process:./their-engine --model x'"
    try:
        parts = [model] if Path(model).is_file() else shlex.split(model)
    except ValueError as error:
        raise InputError(f"the command of the engine cannot be read: {error}", remedy=example) from None
    if not parts:
        raise InputError("process is given no command", remedy=example)
    program = shutil.which(parts[0])
    if program is None:
        if Path(parts[0]).is_file():
            raise InputError(
                f"{parts[0]} may not be run", remedy=f"chmod +x {parts[0]}, or name what runs it: process:'python3 …'"
            )
        raise InputError(f"there is no program {parts[0]!r}", remedy=f"{example}; paths are from the current folder")
    return (os.path.abspath(program), *parts[1:])


def _agree(settings: Mapping[str, str], hello: Hello) -> None:
    """Settings that are for mode once must not contradict a hello."""
    for setting, said in ((KIND, hello.kind.value), (RATE, str(hello.rate_hz))):
        if settings.get(setting.name, said) != said:
            raise InputError(
                f"{setting.name} is {settings[setting.name]}, and the engine says {said} itself",
                remedy=f"Leave {setting.name} out; it is for engines in mode once",
            )


def _rule(
    settings: Mapping[str, str], scores: DeclaredScores | None, rate_hz: int
) -> tuple[SpotRule | None, int | None, tuple[OperatingPoint, ...]]:
    if scores is not None:
        return (*spot_rule(settings, scores.threshold, rate_hz), operating_points(scores.threshold))
    of_scores = {one.name for one in OF_SCORES} - {LEAD_IN.name, SPOT_DURATION.name}
    vain = sorted(of_scores & settings.keys())
    if vain:
        raise InputError(
            f"{', '.join(vain)} cannot be set: this engine says spots, and no scores that they could apply to",
            remedy="Set it in the engine's own command line, if it has it",
        )
    return None, None, ()


def _hash(command: tuple[str, ...]) -> str:
    """sha256 over the command and the files that it names: a program or model that changed is another engine."""
    digest = hashlib.sha256()
    for part in command:
        digest.update(part.encode() + b"\0")
        if Path(part).is_file():
            with open(part, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
