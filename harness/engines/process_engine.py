"""Any engine that runs as a program: sound on stdin, detections on stdout (docs/how-to/measure-a-program.md)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.foreign import plain_text
from harness.base.grouping import group_by
from harness.base.program_lines import ProtocolFault
from harness.base.program_pipe import ProgramPipe, program_command, show_command
from harness.base.refractory import RefractoryFilter
from harness.engines import process_protocol as protocol
from harness.engines.framed import FrameCutter
from harness.engines.offline_loading import fingerprint
from harness.engines.process_protocol import (
    DeclaredScores,
    EngineEvent,
    EngineHello,
    EngineScores,
    FileCompletion,
    FileRefusal,
)
from harness.engines.settings import LEAD_IN, OF_SCORES, REFRACTORY, SPOT_DURATION, number, operating_points, spot_rule
from harness.model.errors import EngineError, InputError
from harness.model.numbers import seconds
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

_LINE_ALLOWANCE = 1000
"""Number of lines that a program may write for any file, beside those for each second of its sound."""
_MAX_LINES_PER_SECOND = 200
"""Number of further lines per second of sound: twice as many as an engine writes that reports each 10 ms."""
_BLOCKS_PER_SECOND = 10
"""Blocks in which sound is sent. Always the same, so that results do not depend on how the file is read."""
_REMEDY = "docs/how-to/measure-a-program.md lists the lines that an engine may write"
_START_REMEDY = "Check whether the engine is waiting for something. For a longer limit: -s start-limit-s=N"
_SERVED_REMEDY = (
    "The first line must be a hello (docs/how-to/measure-a-program.md). For a program without a hello: -s mode=once"
)


class Mode(Enum):
    """How the program runs. SERVED: one process for many files, with lines of JSON between the pieces of sound.

    ONCE: one process for each file, which gets only the sound.
    """

    SERVED = "served"
    ONCE = "once"


class EngineConnection:
    """One engine, started when needed and restarted after a fault.

    - hello: what the engine declared about itself (SERVED), or `default_hello`, which is made from the settings (ONCE).
    - start_limit_s: time limit for the hello.
    - hang_limit_s: time limit without any progress.
    - current_exchange: the file that was begun last; None before the first, and after `close`.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        mode: Mode,
        default_hello: EngineHello,
        *,
        start_limit_s: float,
        hang_limit_s: float,
    ) -> None:
        self.command = command
        self._mode = mode
        self._start_limit_s, self._hang_limit_s = start_limit_s, hang_limit_s
        self._pipe: ProgramPipe | None = None
        self._file_number = 0
        self.current_exchange: FileExchange | None = None
        self.hello = default_hello
        if mode is Mode.SERVED:
            _, self.hello = self._start()

    @property
    def pid(self) -> int | None:
        """Process id of the leader of the engine's process group; None when none runs."""
        return self._pipe.pid if self._pipe is not None and self._pipe.alive else None

    def begin_file(self) -> FileExchange:
        """Begins a file; abandons one that has not ended."""
        if self.current_exchange is not None:
            self.current_exchange.abandon()
        self._file_number += 1
        if self._mode is Mode.ONCE:
            self._close()
            pipe = self._pipe = ProgramPipe(self.command, self._hang_limit_s)
        else:
            pipe = self._running_pipe()
            pipe.send(protocol.begin(self._file_number))
        self.current_exchange = FileExchange(pipe, self._mode, self._hang_limit_s, self._file_number, self.hello)
        return self.current_exchange

    def close(self) -> None:
        """Ends the engine."""
        self.current_exchange = None
        self._close()

    def _running_pipe(self) -> ProgramPipe:
        """The pipe of the running process, or of a new one. Raises EngineError if that declares something else."""
        if self._pipe is not None and self._pipe.alive:
            return self._pipe
        pipe, hello = self._start()
        if hello != self.hello:
            raise pipe.fault("sent a hello that differs from its first one", "Use the same engine for the whole task")
        return pipe

    def _start(self) -> tuple[ProgramPipe, EngineHello]:
        """Starts a process, and reads its hello. Raises EngineError if it sends none."""
        self._close()
        pipe = self._pipe = ProgramPipe(self.command, self._hang_limit_s)
        text = pipe.read_line(self._start_limit_s, "has not sent its hello", _START_REMEDY)
        if text is None:
            raise pipe.early_end_error("before its hello")
        try:
            return pipe, protocol.parse_hello(text)
        except ProtocolFault as fault:
            raise pipe.fault(str(fault), _SERVED_REMEDY) from None

    def _close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None


class FileExchange:
    """One file: `feed` any number of samples, `take` the results so far.

    Sound is sent in blocks of 100 ms, whatever the pieces fed, so that an engine sees the same blocks every time.
    """

    def __init__(
        self, pipe: ProgramPipe, mode: Mode, hang_limit_s: float, file_number: int, hello: EngineHello
    ) -> None:
        self._pipe = pipe
        self._mode = mode
        self._hang_limit_s = hang_limit_s
        self._number = file_number
        self._hello = hello
        self._block_cutter = FrameCutter(max(1, hello.rate_hz // _BLOCKS_PER_SECOND))
        self._sent_samples = 0
        self._line_count = 0
        self._last_end_sample = 0
        self._next_score_sample: dict[str, int] = {}
        """Phrase → the sample at which its next score is due."""
        self._reports: list[EngineEvent | EngineScores] = []
        self._ended = False

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Takes samples, shape (n,), at the engine's rate."""
        for block in self._block_cutter.cut(samples):
            self._send(block)
        self._read_arrived_lines()

    def take(self, *, flush: bool) -> list[EngineEvent | EngineScores]:
        """Events and scores since the last take. flush: ends the file and waits for the rest."""
        if flush and not self._ended:
            if len(self._block_cutter.rest):
                self._send(self._block_cutter.rest)
            self._end()
        elif not self._ended:
            self._read_arrived_lines()
        reports, self._reports = self._reports, []
        return reports

    def abandon(self) -> None:
        """Gives up the file and ends the process, since it may have read any part of the file."""
        if not self._ended:
            self._ended = True
            self._pipe.end()

    def _send(self, block: npt.NDArray[np.int16]) -> None:
        self._sent_samples += len(block)
        is_served = self._mode is Mode.SERVED
        self._pipe.send(protocol.sound(block) if is_served else block.astype("<i2", copy=False).tobytes())

    def _read_arrived_lines(self) -> None:
        for text in self._pipe.read_arrived():
            if self._handle_line(text):
                raise self._end_with_fault("reported that the file is done before its end")

    def _end(self) -> None:
        """Signals the end of the file to the engine, and reads its lines until it is done (SERVED) or exits (ONCE)."""
        self._ended = True
        if self._mode is Mode.SERVED:
            self._pipe.send(protocol.end(self._number))
            waiting = "has not reported that the file is done"
            while (text := self._pipe.read_line(self._hang_limit_s, waiting)) is not None:
                if self._handle_line(text):
                    return
            raise self._pipe.early_end_error("before it reported that the file is done")
        self._pipe.end_input()
        waiting = "has neither written a line nor exited"
        while (text := self._pipe.read_line(self._hang_limit_s, waiting)) is not None:
            self._handle_line(text)
        if self._pipe.exit_status() != 0:
            raise self._pipe.early_end_error("after the last of the sound")

    def _handle_line(self, text: str) -> bool:
        """Adds the content of a line to the reports. Returns whether it says that the file is done.

        Raises EngineError for a line that must not come here.
        """
        if not text.strip():
            return False
        self._line_count += 1
        sent_s = self._sent_samples / self._hello.rate_hz
        if self._line_count > _LINE_ALLOWANCE + _MAX_LINES_PER_SECOND * sent_s:
            raise self._end_with_fault(f"wrote {self._line_count} lines in {seconds(sent_s)} of sound")
        try:
            if self._mode is Mode.ONCE and self._line_count == 1 and protocol.is_hello(text):
                self._check_same_kind(protocol.parse_hello(text))
                return False
            expects_frames = self._hello.kind is EngineKind.FRAME
            line = protocol.parse_line(text, self._hello.rate_hz, self._sent_samples, frames=expects_frames)
        except ProtocolFault as fault:
            raise self._end_with_fault(str(fault)) from None
        match line:
            case FileCompletion(file_number):
                # Numbers count the files of one process, so they depend on the number of workers. Their difference does
                # not, and the same run writes the same log.
                if (difference := file_number - self._number) != 0:
                    raise self._end_with_fault(f"reported that another file is done ({difference:+d})")
                return True
            case FileRefusal(why):
                raise self._end_with_refusal(why)
            case EngineScores():
                self._add_scores(line)
            case EngineEvent():
                self._add_event(line)
        return False

    def _add_event(self, event: EngineEvent) -> None:
        """Adds a detection or a text to the reports.

        Raises EngineError if the hello excludes it, or it is out of order.
        """
        if self._hello.scores is not None:
            raise self._end_with_fault(
                f"sent a detection of {event.text!r}, but its hello declares scores, so only scores count"
            )
        if self._hello.kind is EngineKind.WAKE and self._hello.phrases and event.text not in self._hello.phrases:
            raise self._end_with_fault(
                f"detected {event.text!r}, which is not in its hello: {', '.join(self._hello.phrases)}"
            )
        if event.end is None and self._hello.kind is EngineKind.WAKE:
            raise self._end_with_fault(f"did not report where {event.text!r} ends, as end (samples) or end_s")
        if event.end is not None:
            if event.end < self._last_end_sample:
                raise self._end_with_fault(
                    f"sent an event at sample {event.end} after one at sample {self._last_end_sample}"
                )
            self._last_end_sample = event.end
        self._reports.append(event)

    def _add_scores(self, scores: EngineScores) -> None:
        """Adds scores to the reports.

        Raises EngineError if the hello excludes them, or they do not continue the previous ones.
        """
        declaration = self._hello.scores
        if declaration is None or scores.phrase not in self._hello.phrases:
            raise self._end_with_fault(f"sent scores of {scores.phrase!r}, which its hello does not declare")
        due_sample = self._next_score_sample.get(scores.phrase)
        if due_sample is not None and scores.end != due_sample:
            raise self._end_with_fault(f"sent scores at sample {scores.end} that do not continue the previous ones")
        last_sample = scores.end + (len(scores.scores) - 1) * declaration.step
        if last_sample > self._sent_samples:
            raise self._end_with_fault(f"sent scores beyond the {self._sent_samples} samples that it was given")
        self._next_score_sample[scores.phrase] = last_sample + declaration.step
        self._reports.append(scores)

    def _check_same_kind(self, hello: EngineHello) -> None:
        if (hello.kind, hello.rate_hz) != (self._hello.kind, self._hello.rate_hz):
            raise self._end_with_fault(
                f"is of kind {hello.kind.value} at {hello.rate_hz} Hz",
                f"Use -s kind={hello.kind.value} -s rate-hz={hello.rate_hz}",
            )

    def _end_with_refusal(self, why: str) -> EngineError:
        """Ends the process, and returns the engine's own error. The next file gets a fresh process."""
        self._ended = True
        self._pipe.end()
        return EngineError(f"the engine {show_command(self._pipe.command)} reported an error: {plain_text(why)}")

    def _end_with_fault(self, problem: str, remedy: str = _REMEDY) -> EngineError:
        """Ends the process, and returns an error with its command and its last output."""
        self._ended = True
        return self._pipe.fault(problem, remedy)


MODE = Setting(
    "mode", SettingKind.CHOICE, "served", "served: one process for all files; once: one process per file, raw sound "
    "on stdin", choices=("served", "once"),
)  # fmt: skip
KIND = Setting(
    "kind", SettingKind.CHOICE, "wake", "kind of engine; used only with mode=once, where there is no hello",
    choices=tuple(kind.value for kind in EngineKind),
)  # fmt: skip
RATE = Setting(
    "rate-hz",
    SettingKind.WHOLE,
    "16000",
    "sample rate of the engine, Hz; used only with mode=once, where there is no hello",
    low=4000,
    high=192_000,
)
START_LIMIT = Setting("start-limit-s", SettingKind.NUMBER, "30", "time limit for the hello", low=0.1, high=3600)
HANG_LIMIT = Setting(
    "hang-limit-s", SettingKind.NUMBER, "60", "time limit for accepting sound, and for answering at the end of a file",
    low=0.1, high=86_400,
)  # fmt: skip


class ProcessEngine:
    """Any program with the protocol of docs/how-to/measure-a-program.md.

    model: the command line, split as a shell splits it; no shell runs. The hello decides whether the object is a
    `ScoresSound`, a `SpotsPhrases` or an `Understands`.

    Raises InputError if the program does not exist. Raises EngineError, with the command and its last output, for any
    fault.
    """

    kind: ClassVar[EngineKind | None] = None
    settings: ClassVar[tuple[Setting, ...]] = (MODE, KIND, RATE, START_LIMIT, HANG_LIMIT, *OF_SCORES)
    facts: EngineFacts
    _connection: EngineConnection

    def __new__(cls, model: str, settings: Mapping[str, str]) -> ProcessEngine:
        command = program_command("process", model, "-t 'process:./their-engine --model x'", "process:'python3 …'")
        mode = Mode(settings.get(MODE.name, MODE.default))
        default_hello = EngineHello(
            Path(command[0]).name,
            "not stated",
            EngineKind(settings.get(KIND.name, KIND.default)),
            round(number(settings, RATE)),
        )
        start_limit_s, hang_limit_s = number(settings, START_LIMIT), number(settings, HANG_LIMIT)
        connection = EngineConnection(
            command, mode, default_hello, start_limit_s=start_limit_s, hang_limit_s=hang_limit_s
        )
        if connection.hello.kind is not EngineKind.WAKE:
            engine_class: type[ProcessEngine] = UnderstandingProcess
        else:
            engine_class = ScoringProcess if connection.hello.scores else SpottingProcess
        # Only the hello of the running program says which of these it is. Python calls `__init__` afterwards, since the
        # object is a ProcessEngine.
        engine = object.__new__(engine_class)
        engine._connection = connection
        return engine

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        hello = self._connection.hello
        self._spot_samples = round(number(settings, SPOT_DURATION) / 1000 * hello.rate_hz)
        self._refractory_samples = round(number(settings, REFRACTORY) / 1000 * hello.rate_hz)
        try:
            _check_settings(settings, hello)
            rule, point, points = _rule_and_points(settings, hello.scores, hello.rate_hz)
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
            fingerprint(ProcessEngine, version, _command_hash(self._connection.command), settings),
            licence=hello.licence,
            lead_in_ms=lead_in_ms if hello.kind is EngineKind.WAKE else 0.0,
            rule=rule,
            operating_point=point,
            operating_points=points,
            settings=tuple(sorted(settings.items())),
            carries_state=hello.carries_state,
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """One entry that shows how a model is named: the command is the model."""
        return (OfflineModel("COMMAND", (), "the program's own", "any program: process:'./their-engine --model x'"),)

    @property
    def pid(self) -> int | None:
        """Process id of the leader of the engine's process group; None when none runs."""
        return self._connection.pid

    def close(self) -> None:
        """Ends the program and all processes that it started."""
        self._connection.close()


class SpottingProcess(ProcessEngine):
    """A program that reports detections."""

    def listen(self) -> _SpotStream:
        return _SpotStream(self._connection.begin_file(), self._spot_samples, self._refractory_samples)


class ScoringProcess(ProcessEngine):
    """A program that reports its scores continuously."""

    def begin(self) -> _TrackStream:
        scores = self._connection.hello.scores
        assert scores is not None
        return _TrackStream(self._connection.begin_file(), scores.step)


class UnderstandingProcess(ProcessEngine):
    """A program that reports transcripts or frames."""

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        """All events of a file as one answer; None if there are none."""
        exchange = self._connection.begin_file()
        exchange.feed(samples)
        reports = [report for report in exchange.take(flush=True) if isinstance(report, EngineEvent)]
        # A text without words says that nothing was understood, unless the engine reports frames.
        events = [event for event in reports if event.text.strip() or event.intents is not None]
        frames = [event for event in events if event.intents is not None]
        if not events:
            return None
        start = next((event.start for event in events if event.start is not None), 0)
        end = next((event.end for event in reversed(events) if event.end is not None), len(samples))
        start = min(start, end)  # they may belong to different events, and come in any order
        score = events[0].score if len(events) == 1 else None
        text = " ".join(event.text.strip() for event in events if event.text.strip())
        if not frames:
            return Said(text, start, end, score)
        intents = tuple(sorted({intent for frame in frames for intent in frame.intents or ()}))
        slots = tuple(slot for frame in frames for slot in frame.slots or ())
        return Said(text, start, end, score, intents, slots)


class _SpotStream:
    """The detections of one file. spot_samples: length of one whose start is not reported."""

    def __init__(self, exchange: FileExchange, spot_samples: int, refractory_samples: int) -> None:
        self._exchange = exchange
        self._spot_samples = spot_samples
        self._refractory_filter = RefractoryFilter(refractory_samples)

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self._exchange.feed(samples)

    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        spots = []
        for event in self._exchange.take(flush=flush):
            if not isinstance(event, EngineEvent) or event.end is None:
                continue
            if self._refractory_filter.accept(event.text, event.end):
                start = max(0, event.end - self._spot_samples) if event.start is None else event.start
                spots.append(OfflineSpot(event.text, start, event.end, event.score))
        return tuple(spots)


class _TrackStream:
    """The scores of one file. step: samples from one score to the next."""

    def __init__(self, exchange: FileExchange, step: int) -> None:
        self._exchange = exchange
        self._step = step

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self._exchange.feed(samples)

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        parts_by_phrase = group_by(
            (report.phrase, report) for report in self._exchange.take(flush=flush) if isinstance(report, EngineScores)
        )
        return tuple(
            ScoreTrack(phrase, np.concatenate([part.scores for part in parts]), parts[0].end, self._step)
            for phrase, parts in parts_by_phrase.items()
        )


def _check_settings(settings: Mapping[str, str], hello: EngineHello) -> None:
    """Raises InputError if settings for mode once contradict the hello."""
    for setting, value in ((KIND, hello.kind.value), (RATE, str(hello.rate_hz))):
        if settings.get(setting.name, value) != value:
            raise InputError(
                f"{setting.name} is {settings[setting.name]}, but the engine reports {value}",
                remedy=f"Remove `{setting.name}`, which applies only with mode=once",
            )


def _rule_and_points(
    settings: Mapping[str, str], scores: DeclaredScores | None, rate_hz: int
) -> tuple[SpotRule | None, int | None, tuple[OperatingPoint, ...]]:
    """The rule that turns scores into detections, the operating point in use, and all operating points. None and () for
    an engine that reports detections.

    Raises InputError for settings that such an engine does not have.
    """
    if scores is not None:
        return (*spot_rule(settings, scores.threshold, rate_hz), operating_points(scores.threshold))
    score_settings = {setting.name for setting in OF_SCORES} - {LEAD_IN.name, SPOT_DURATION.name, REFRACTORY.name}
    unusable_settings = sorted(score_settings & settings.keys())
    if unusable_settings:
        raise InputError(
            f"{', '.join(unusable_settings)} cannot be set: this engine reports detections, not scores",
            remedy="If the engine has such an option, set it on the engine's command line",
        )
    return None, None, ()


def _command_hash(command: tuple[str, ...]) -> str:
    """SHA-256 over the command and the files that it names, so that a changed program or model is another engine.

    A part of the command may also name a file as OPTION=FILE.
    """
    digest = hashlib.sha256()
    for part in command:
        digest.update(part.encode() + b"\0")
        for name in (part, part.partition("=")[2]):
            if os.path.isfile(name):
                with open(name, "rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
