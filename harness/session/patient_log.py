"""The log as a run writes it: while the disk is full it stands still, tries again, and loses nothing acknowledged."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from harness.model.errors import DeviceError, LogFull
from harness.model.feed import Abort, Command, Hello, Resume, StateWord
from harness.model.record import Clip, Entry, Paused, Record, Resumed
from harness.model.stimulus import Waveform
from harness.session.event_clips import EventClips
from harness.session.inbox import Arrived
from harness.session.run import Run
from harness.session.stage import Stop

T = TypeVar("T")

ROOM_AGAIN_S = 3.0
"""How often a full disk is tried again (real seconds)."""


class PatientLog:
    """Commits rows and clips as soon as there is room; whoever follows the log is told of each row.

    was_full: set when something had to wait, for the attempt to be interrupted. Its methods raise LogError when the log
    cannot be written for another reason than a full disk; LogFull when the run is to end while the disk is full.
    """

    def __init__(self, run: Run, clips: EventClips) -> None:
        self.was_full = False
        self._run = run
        self._clips = clips

    def append(self, record: Record) -> Entry:
        """Commits a row."""
        entry = self._write(lambda: self._run.stage.log.append(record))
        self._run.standing.add(entry)
        self._clips.saw(entry)
        return entry

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        """Stores a sound, which a row may name from then on."""
        return self._write(lambda: self._run.stage.log.save_clip(waveform, start_s))

    def _write(self, write: Callable[[], T]) -> T:
        """Writes as soon as there is room; until then the run stands still, and says so."""
        try:
            return write()
        except LogFull as error:
            full = error
        self.was_full = True
        self._silence()
        reason = f"disk full: {full.what}"
        self._run.show(StateWord.PAUSED, reason)
        resumed: list[Resume] = []
        kept: list[Arrived] = []
        while True:
            self._until_room_may_be(full, resumed, kept)
            try:
                written = write()
                break
            except LogFull as error:
                full = error
        for row in (Paused(reason, "engine"), Resumed(resumed[-1].by if resumed else "engine")):
            self.append(row)
        self._run.arrivals.put_back(kept)
        for command in resumed:
            self._run.stage.answer(command.id, True, "")
        return written

    def _silence(self) -> None:
        """Ends what is playing; it cannot be noted now, and the interruption is noted later."""
        if self._run.machine is not None:
            for player in self._run.machine.trial.players:
                with contextlib.suppress(DeviceError):
                    self._run.stage.loudspeakers[player].stop()

    def _until_room_may_be(self, full: LogFull, resumed: list[Resume], kept: list[Arrived]) -> None:
        """Waits for the next try. Observations are kept for later; only resuming and giving up are answered now."""
        answer = self._run.stage.answer
        until_s = time.monotonic() + ROOM_AGAIN_S
        while (left_s := until_s - time.monotonic()) > 0:
            found = self._run.arrivals.get_new(left_s)
            match found:
                case None:
                    return
                case (Resume() as command, _):
                    resumed.append(command)
                    return
                case (Stop(), _):
                    raise full
                case (Abort(id=command_id), _):
                    answer(command_id, False, f"{full}; the session ends as it is on the disk")
                    raise full
                case (Hello(), _):
                    pass
                case (told, _) if isinstance(told, Command):
                    answer(told.id, False, f"the disk is full: {full.what}")
                case _:
                    kept.append(found)
