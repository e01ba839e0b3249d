"""What a run does while the disk is full: it stands still, tries again, and loses nothing that it acknowledged."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harness.model.errors import DeviceError, LogFull
from harness.model.feed import Abort, Resume, StateWord
from harness.model.record import Paused, Resumed
from harness.session.inbox import Arrived
from harness.session.stage import Stop

if TYPE_CHECKING:
    from harness.session.conductor import Conductor

T = TypeVar("T")

ROOM_AGAIN_S = 3.0
"""How often a full disk is tried again (real seconds)."""


class FullDisk:
    """Writes of a conductor. was_full: set when one had to wait, for the conductor to interrupt its attempt."""

    def __init__(self, conductor: Conductor) -> None:
        self.was_full = False
        self._conductor = conductor

    def write(self, write: Callable[[], T]) -> T:
        """Writes as soon as there is room; until then the run stands still, and says so."""
        conductor = self._conductor
        try:
            return write()
        except LogFull as error:
            full = error
        self.was_full = True
        if conductor.machine is not None:
            for player in conductor.machine.trial.players:
                with contextlib.suppress(DeviceError):  # it cannot be noted now, and the interruption is noted later
                    conductor.stage.loudspeakers[player].stop()
        reason = f"disk full: {full.what}"
        conductor.show(StateWord.PAUSED, reason)
        resumed: list[Resume] = []
        kept: list[Arrived] = []
        while True:
            self._until_room_may_be(full, resumed, kept)
            try:
                written = write()
                for row in (Paused(reason, "engine"), Resumed(resumed[-1].by if resumed else "engine")):
                    conductor.standing.add(conductor.stage.log.append(row))
                break
            except LogFull as error:
                full = error
        conductor.arrivals.put_back(kept)
        for command in resumed:
            conductor.stage.answer(command.id, True, "")
        return written

    def _until_room_may_be(self, full: LogFull, resumed: list[Resume], kept: list[Arrived]) -> None:
        """Waits for the next try. Observations are kept for later; only resuming and giving up are answered now."""
        conductor = self._conductor
        until_s = time.monotonic() + ROOM_AGAIN_S
        while (left_s := until_s - time.monotonic()) > 0:
            found = conductor.arrivals.get_new(left_s)
            match found:
                case None:
                    return
                case (Resume() as command, _):
                    resumed.append(command)
                    return
                case (Stop(), _):
                    raise full
                case (Abort(id=command_id), _):
                    conductor.stage.answer(command_id, False, f"{full}; the session ends as it is on the disk")
                    raise full
                case (told, _) if conductor.desk.takes(told):
                    conductor.desk.refuse(told, f"the disk is full: {full.what}")
                case _:
                    kept.append(found)
