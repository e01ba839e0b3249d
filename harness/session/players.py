"""What brings a trial's sound to its devices: loudspeakers, and connections that inject it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.model.errors import DeviceError
from harness.model.record import Entry, FaultMet, Record
from harness.model.stimulus import Waveform
from harness.session.actions import Action
from harness.session.listening_trial import ListeningMachine
from harness.session.screen import Machine
from harness.session.stage import Stage


class Players:
    """The players of a stage; what they refuse is noted by `append`."""

    def __init__(self, stage: Stage, append: Callable[[Record], Entry]) -> None:
        self._stage = stage
        self._append = append

    def play(self, machine: Machine, play_id: str, waveform: Waveform) -> Sequence[Action]:
        """Begins on every player of the machine's trial, or tells the machine who refused."""
        sounding: list[str] = []
        for player in machine.trial.players:
            try:
                self._stage.loudspeakers[player].play(play_id, waveform)
            except DeviceError as error:
                self._append(FaultMet(player, str(error)))
                now_s = self._stage.clock.now_s()
                if isinstance(machine, ListeningMachine):
                    return machine.play_refused(now_s, play_id, error.what, sounding)
                return machine.play_refused(now_s, play_id, error.what)
            sounding.append(player)
        return ()

    def stop(self, machine: Machine) -> None:
        """Ends what the trial's players play."""
        for player in machine.trial.players:
            try:
                self._stage.loudspeakers[player].stop()
            except DeviceError as error:
                self._append(FaultMet(player, str(error)))
