"""A program as a rater: one item at a time through a desk, with restarts, a time limit and a rate limit."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from harness.base.program_lines import ProtocolFault
from harness.base.program_pipe import ProgramPipe
from harness.model.errors import EngineError, LogError
from harness.model.frozen import frozen
from harness.rating.desk import Desk
from harness.rating.items import Item
from harness.rating.program_protocol import ProgramAnswer, RatingDeclined, item_line, parse_answer, parse_hello
from harness.rating.rating_room import RatingRoom

MAX_TRIES = 2
"""Number of times that an item is sent before it is left open."""
MAX_FAILED_IN_A_ROW = 3
"""After this many failed items in a row, the program gets no more."""
_START_TIMEOUT_S = 60.0
"""Least time limit for the first line: a program may have to load a model."""
_PAUSE_SLICE_S = 0.25
"""While the program must wait, its end is noticed within this time."""
_REMEDY = "docs/reference/rating-programs.md lists the lines that a program may write"
_SLOW_REMEDY = "Check whether the program is waiting for something. To wait longer: --timeout SECONDS"


class ProgramRater:
    """A rating program. It is started at once, and again after a fault.

    - command: program and arguments.
    - timeout_s: time limit for an answer; its first line may take a minute.
    - per_minute: most items sent in a minute, including repeated ones; None for no limit.

    The constructor raises EngineError if the program cannot be started.
    """

    def __init__(self, command: tuple[str, ...], *, timeout_s: float, per_minute: float | None = None) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._pause_s = 0.0 if per_minute is None else 60 / per_minute
        self._next_request_s = time.monotonic()
        self._pipe, self.rater = self._start()

    def ask(self, line: bytes) -> ProgramAnswer:
        """Sends the line of an item, and returns the answer.

        Raises RatingDeclined if the program cannot judge the item, and EngineError after a fault, which ends the
        process.
        """
        if not self._pipe.alive:
            self._pipe.end()
            self._pipe, rater = self._start()
            if rater != self.rater:
                problem = f"calls itself {rater!r} after a restart, no longer {self.rater!r}"
                raise self._pipe.fault(problem, "Keep the name and the version the same during a sitting")
        # The pauses read everything that the program writes in the meantime, so that it never blocks.
        while self._pipe.alive and (left_s := self._next_request_s - time.monotonic()) > 0:
            self._pipe.pause(min(left_s, _PAUSE_SLICE_S))
        unasked_lines = self._pipe.read_arrived()
        if unasked_lines:
            raise self._pipe.fault(f"wrote a line without being asked: {unasked_lines[0][:200]!r}", _REMEDY)
        self._next_request_s = time.monotonic() + self._pause_s
        self._pipe.send(line)
        text = self._pipe.read_line(self._timeout_s, "has not sent its answer")
        if text is None:
            raise self._pipe.early_end_error("before its answer")
        try:
            return parse_answer(text)
        except ProtocolFault as fault:
            raise self._pipe.fault(str(fault), _REMEDY) from None

    def close(self) -> None:
        """Ends the program and all that it has started."""
        self._pipe.close()

    def _start(self) -> tuple[ProgramPipe, str]:
        """Starts the program, and returns its pipe and the name under which it rates."""
        pipe = ProgramPipe(self._command, self._timeout_s, who="program", fed="items", remedy=_SLOW_REMEDY)
        try:
            text = pipe.read_line(max(self._timeout_s, _START_TIMEOUT_S), "has not sent its hello")
            if text is None:
                raise pipe.early_end_error("before its hello")
            return pipe, parse_hello(text)
        except ProtocolFault as fault:
            raise pipe.fault(str(fault), _REMEDY) from None
        except BaseException:
            pipe.end()
            raise


@frozen
class ProgramJudged:
    """An item that the program judged. position: number of the item among all of the round, from 1."""

    item: Item
    position: int
    answer: ProgramAnswer


@frozen
class UnjudgedItem:
    """An item without a judgment.

    - why: the reason.
    - last: whether it is the last item that is sent, since too many failed in a row.
    """

    item: Item
    why: str
    last: bool = False


def judge_all(room: RatingRoom, desk: Desk, program: ProgramRater) -> Generator[ProgramJudged | UnjudgedItem]:
    """Lets a program judge each open item of the desk. A judgment is on the disk before it is yielded.

    Raises LogError if a row cannot be saved.
    """
    failed_in_a_row = 0
    with tempfile.TemporaryDirectory(prefix="harness-rating-") as folder:
        while (item := desk.view.item) is not None:
            desk.show_transcript()
            position = desk.view.position
            try:
                answer = _request_answer(room, desk, item, program, Path(folder))
            except (EngineError, RatingDeclined, _NoSound) as error:
                failed_in_a_row = failed_in_a_row + 1 if isinstance(error, EngineError) else 0
                desk.postpone()
                is_last = failed_in_a_row >= MAX_FAILED_IN_A_ROW
                yield UnjudgedItem(item, str(error), is_last)
                if is_last:
                    return
                continue
            failed_in_a_row = 0
            if not desk.judge_as_program(answer.category, answer.confidence, answer.reason):
                desk.postpone()
                yield UnjudgedItem(item, desk.view.message)
                continue
            yield ProgramJudged(item, position, answer)


class _NoSound(Exception):
    """The recording of an item cannot be read."""


def _request_answer(room: RatingRoom, desk: Desk, item: Item, program: ProgramRater, folder: Path) -> ProgramAnswer:
    """The answer to the current item, after at most MAX_TRIES tries. If all fail, raises the last EngineError.

    Raises RatingDeclined or _NoSound at once. folder: for the response as a WAV file, which is deleted afterwards.
    """
    clip = folder / f"{item.id}.wav"
    _write_response(room, item, clip)
    try:
        line = item_line(desk.view, str(clip))
        for _ in range(MAX_TRIES - 1):
            try:
                return program.ask(line)
            except EngineError:
                continue
        return program.ask(line)
    finally:
        clip.unlink(missing_ok=True)


def _write_response(room: RatingRoom, item: Item, clip: Path) -> None:
    """Writes the response as raters hear it, since the rate and level of the stored clip would reveal the device.

    Raises _NoSound.
    """
    import soundfile

    try:
        sound = room.response_sound(item)
    except LogError as error:
        raise _NoSound(f"cannot read the recording: {error}") from error
    soundfile.write(clip, sound.samples, sound.rate_hz, format="WAV", subtype="PCM_16")
