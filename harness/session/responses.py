"""What becomes of a response's sound: it is cut, stored, named in the log, and transcribed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.model.errors import DeviceError
from harness.model.record import FaultMet, ResponseFrozen, ResponseTranscribed
from harness.session.actions import Action, FreezeResponse
from harness.session.priming import is_transcribed
from harness.session.screen import Machine
from harness.session.stage import Transcribed

if TYPE_CHECKING:
    from harness.session.conductor import Conductor

MARGIN_S = 0.2
"""Sound that a clip keeps before and after the response."""


class Responses:
    """The responses of a conductor's run. transcribing: trial, take and attempt of those that our recogniser has."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self.transcribing: set[tuple[str, int, int]] = set()

    def freeze(self, freeze: FreezeResponse, machine: Machine) -> Sequence[Action]:
        """Cuts, stores and names the clip, in this order, and has it transcribed for people."""
        conductor = self._conductor
        microphone, clock = conductor.stage.microphone, conductor.stage.clock
        if microphone is None:
            return machine.response_lost(clock.now_s(), "there is no microphone")
        try:
            waveform, start_s = microphone.cut(freeze.starts.at_s - MARGIN_S, freeze.ends.at_s + MARGIN_S)
        except DeviceError as error:
            conductor.append(FaultMet(microphone.id, str(error)))
            return machine.response_lost(clock.now_s(), error.what)
        trial_id, take, attempt = machine.trial.id, machine.take, freeze.attempt
        clip = conductor.room.write(lambda: conductor.stage.log.save_clip(waveform, start_s))
        conductor.append(ResponseFrozen(trial_id, take, attempt, clip, freeze.starts, freeze.ends, freeze.truncated))
        transcribe = conductor.stage.transcribe if is_transcribed(machine.trial) else None
        if transcribe is not None:
            self.transcribing.add((trial_id, take, attempt))
            transcribe(waveform, lambda text: conductor.arrivals.put(Transcribed(trial_id, take, attempt, text)))
        return machine.response_frozen(clock.now_s(), transcribing=transcribe is not None)

    def transcribed(self, told: Transcribed) -> None:
        """Our recogniser is done with one."""
        self.transcribing.discard((told.trial_id, told.take, told.attempt))
        row = ResponseTranscribed(
            told.trial_id, told.take, told.attempt, told.text, self._conductor.stage.recogniser_name
        )
        self._conductor.append(row)
