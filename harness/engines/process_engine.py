"""Any engine that runs as a program: sound on its stdin, what it found on its stdout. docs/engine-process.md."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.foreign import plain_text
from harness.engines import process_protocol as protocol
from harness.engines.offline_loading import fingerprint
from harness.engines.process_pipe import START_REMEDY, EnginePipe, shown
from harness.engines.process_protocol import (
    DeclaredScores,
    Done,
    EngineEvent,
    EngineHello,
    EngineScores,
    ProtocolFault,
    Refused,
)
from harness.engines.settings import LEAD_IN, OF_SCORES, SPOT_DURATION, number, operating_points, spot_rule
from harness.model.errors import EngineError, InputError
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

_LINES_AT_ONCE = 1000
_LINES_A_SECOND = 200
_BLOCKS_A_SECOND = 10
_REMEDY = "docs/engine-process.md says what it may write"
_SERVED_REMEDY = "Its first line is a hello (docs/engine-process.md); a program that knows of none: -s mode=once"


class Mode(Enum):
    """SERVED: one process takes many files, with heads around the sound. ONCE: a process a file, bare sound."""

    SERVED = "served"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class TalkLimits:
    """Seconds: to the hello, and without anything moving."""

    start_s: float
    hang_s: float


class Talk:
    """One engine, started when it is needed and started again after a fault.

    hello: of the engine (SERVED) or what the settings say of it (ONCE).
    """

    def __init__(self, command: tuple[str, ...], mode: Mode, limits: TalkLimits, once: EngineHello) -> None:
        self.command = command
        self._mode = mode
        self._limits = limits
        self._pipe: EnginePipe | None = None
        self._file = 0
        self.open_file: FileTalk | None = None
        self.hello = once
        if mode is Mode.SERVED:
            self.hello = self._start()[1]

    @property
    def pid(self) -> int | None:
        """Of the process that leads the engine's group, while there is one."""
        return self._pipe.pid if self._pipe is not None and self._pipe.alive else None

    def file(self) -> FileTalk:
        """A file begins; one that has not ended is left."""
        if self.open_file is not None:
            self.open_file.leave()
        self._file += 1
        if self._mode is Mode.ONCE:
            self._close()
            pipe = self._pipe = EnginePipe(self.command, self._limits.hang_s)
        else:
            pipe = self._served()
            pipe.send(protocol.begin(self._file))
        self.open_file = FileTalk(pipe, self._mode, self._limits.hang_s, self._file, self.hello)
        return self.open_file

    def close(self) -> None:
        """Ends the engine."""
        self.open_file = None
        self._close()

    def _served(self) -> EnginePipe:
        if self._pipe is not None and self._pipe.alive:
            return self._pipe
        pipe, hello = self._start()
        if hello != self.hello:
            raise pipe.fault("says another hello than when it was started first", "One task measures one engine")
        return pipe

    def _start(self) -> tuple[EnginePipe, EngineHello]:
        self._close()
        pipe = self._pipe = EnginePipe(self.command, self._limits.hang_s)
        text = pipe.line(self._limits.start_s, "has not said its hello", START_REMEDY)
        if text is None:
            raise pipe.ended("before its hello")
        try:
            return pipe, protocol.hello_of(text)
        except ProtocolFault as fault:
            raise pipe.fault(str(fault), _SERVED_REMEDY) from None

    def _close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None


class FileTalk:
    """One file: `feed` any number of samples, `take` what the engine has said so far.

    Sound is sent in blocks of 100 ms whatever it comes in, so that an engine sees the same blocks every time.
    """

    def __init__(self, pipe: EnginePipe, mode: Mode, hang_s: float, number: int, hello: EngineHello) -> None:
        self._pipe = pipe
        self._mode = mode
        self._hang_s = hang_s
        self._number = number
        self._hello = hello
        self._block = max(1, hello.rate_hz // _BLOCKS_A_SECOND)
        self._rest: npt.NDArray[np.int16] = np.zeros(0, np.int16)
        self._sent = 0
        self._lines = 0
        self._last_end = 0
        self._next_score: dict[str, int] = {}
        self._said: list[EngineEvent | EngineScores] = []
        self._ended = False

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Shape (n,), int16 at the engine's rate."""
        rest = np.concatenate([self._rest, samples.astype(np.int16, copy=False)])
        whole = len(rest) - len(rest) % self._block
        for start in range(0, whole, self._block):
            self._send(rest[start : start + self._block])
        self._rest = rest[whole:].copy()
        self._look()

    def take(self, *, flush: bool) -> list[EngineEvent | EngineScores]:
        """Events and scores since the last take; flush: ends the file, and waits for the last of them."""
        if flush and not self._ended:
            if len(self._rest):
                self._send(self._rest)
            self._end()
        elif not self._ended:
            self._look()
        found, self._said = self._said, []
        return found

    def leave(self) -> None:
        """The file is given up, and the process with it: nobody knows how much of the file it has read."""
        if not self._ended:
            self._ended = True
            self._pipe.end()

    def _send(self, block: npt.NDArray[np.int16]) -> None:
        self._sent += len(block)
        framed = self._mode is Mode.SERVED
        self._pipe.send(protocol.sound(block) if framed else block.astype("<i2", copy=False).tobytes())

    def _look(self) -> None:
        for text in self._pipe.arrived():
            if self._hear(text):
                raise self._fault("says that the file is done before its end")

    def _end(self) -> None:
        self._ended = True
        if self._mode is Mode.SERVED:
            self._pipe.send(protocol.end(self._number))
            while (text := self._pipe.line(self._hang_s, "has not said that the file is done")) is not None:
                if self._hear(text):
                    return
            raise self._pipe.ended("before it said that the file is done")
        self._pipe.end_input()
        while (text := self._pipe.line(self._hang_s, "has said nothing and not ended")) is not None:
            self._hear(text)
        if self._pipe.exit_status() != 0:
            raise self._pipe.ended("after the last of the sound")

    def _hear(self, text: str) -> bool:
        """Keeps what a line says; True when it says that the file is done."""
        if not text.strip():
            return False
        self._lines += 1
        if self._lines > _LINES_AT_ONCE + _LINES_A_SECOND * self._sent / self._hello.rate_hz:
            raise self._fault(f"wrote {self._lines} lines in {self._sent / self._hello.rate_hz:.1f} s of sound")
        try:
            if self._mode is Mode.ONCE and self._lines == 1 and protocol.is_hello(text):
                self._agrees(protocol.hello_of(text))
                return False
            line = protocol.line_of(text, self._hello.rate_hz, self._sent)
        except ProtocolFault as fault:
            raise self._fault(str(fault)) from None
        match line:
            case Done(file):
                if file != self._number:
                    raise self._fault(f"says that another file is done ({file - self._number:+d})")
                return True
            case Refused(why):
                raise self._refused(why)
            case EngineScores():
                self._keep_scores(line)
            case EngineEvent():
                self._keep_event(line)
        return False

    def _keep_event(self, event: EngineEvent) -> None:
        if self._hello.kind is EngineKind.WAKE and self._hello.phrases and event.text not in self._hello.phrases:
            raise self._fault(f"found {event.text!r}, and its phrases are: {', '.join(self._hello.phrases)}")
        if event.end is not None:
            if event.end < self._last_end:
                raise self._fault(f"goes back from sample {self._last_end} to {event.end}")
            self._last_end = event.end
        self._said.append(event)

    def _keep_scores(self, scores: EngineScores) -> None:
        declared = self._hello.scores
        if declared is None or scores.phrase not in self._hello.phrases:
            raise self._fault(f"writes scores of {scores.phrase!r} that its hello does not declare")
        if scores.end != self._next_score.get(scores.phrase, scores.end):
            raise self._fault(f"writes scores that do not follow on those before, at sample {scores.end}")
        self._next_score[scores.phrase] = scores.end + len(scores.scores) * declared.step
        if self._next_score[scores.phrase] - declared.step > self._sent:
            raise self._fault(f"writes scores beyond the {self._sent} samples that were sent")
        self._said.append(scores)

    def _agrees(self, hello: EngineHello) -> None:
        if (hello.kind, hello.rate_hz) != (self._hello.kind, self._hello.rate_hz):
            raise self._fault(
                f"is of kind {hello.kind.value} at {hello.rate_hz} Hz",
                f"Say so: -s kind={hello.kind.value} -s rate-hz={hello.rate_hz}",
            )

    def _refused(self, why: str) -> EngineError:
        """The engine's own words; the next file gets a fresh process."""
        self._ended = True
        self._pipe.end()
        return EngineError(f"the engine {shown(self._pipe.command)} says: {plain_text(why)}")

    def _fault(self, what: str, remedy: str = _REMEDY) -> EngineError:
        self._ended = True
        return self._pipe.fault(what, remedy)


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
        once = EngineHello(
            Path(command[0]).name,
            "not stated",
            EngineKind(settings.get(KIND.name, KIND.default)),
            round(number(settings, RATE)),
        )
        limits = TalkLimits(number(settings, START_LIMIT), number(settings, HANG_LIMIT))
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
        events = [one for one in file.take(flush=True) if isinstance(one, EngineEvent) and one.text.strip()]
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
        return tuple(self._spot(one) for one in self._file.take(flush=flush) if isinstance(one, EngineEvent))

    def _spot(self, event: EngineEvent) -> OfflineSpot:
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
        found: dict[str, list[EngineScores]] = {}
        for one in self._file.take(flush=flush):
            if isinstance(one, EngineScores):
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


def _agree(settings: Mapping[str, str], hello: EngineHello) -> None:
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
