"""What becomes of a response's sound: it is cut, stored, named in the log, and transcribed."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.errors import DeviceError
from harness.model.record import FaultMet, ResponseFrozen, ResponseTranscribed
from harness.model.trial import Trial
from harness.session.actions import Action, FreezeResponse
from harness.session.patient_log import PatientLog
from harness.session.run import Run
from harness.session.screen import Machine
from harness.session.stage import Transcribed

MARGIN_S = 0.2
"""Sound that a clip keeps before and after the response."""


class Responses:
    """The responses of a run. transcribing: trial, take and attempt of those that our recogniser has."""

    def __init__(self, run: Run, log: PatientLog) -> None:
        self._run = run
        self._log = log
        self.transcribing: set[tuple[str, int, int]] = set()

    def freeze(self, freeze: FreezeResponse, machine: Machine) -> Sequence[Action]:
        """Cuts, stores and names the clip, in this order, and has it transcribed for people."""
        stage, arrivals = self._run.stage, self._run.arrivals
        if stage.microphone is None:
            return machine.response_lost(stage.clock.now_s(), "there is no microphone")
        try:
            waveform, start_s = stage.microphone.cut(freeze.starts.at_s - MARGIN_S, freeze.ends.at_s + MARGIN_S)
        except DeviceError as error:
            self._log.append(FaultMet(stage.microphone.id, str(error)))
            return machine.response_lost(stage.clock.now_s(), error.what)
        trial_id, take, attempt = machine.trial.id, machine.take, freeze.attempt
        clip = self._log.save_clip(waveform, start_s)
        self._log.append(ResponseFrozen(trial_id, take, attempt, clip, freeze.starts, freeze.ends, freeze.truncated))
        transcribe = stage.transcribe if _is_transcribed(machine.trial) else None
        if transcribe is not None:
            self.transcribing.add((trial_id, take, attempt))
            transcribe(waveform, lambda text: arrivals.put(Transcribed(trial_id, take, attempt, text)))
        return machine.response_frozen(stage.clock.now_s(), transcribing=transcribe is not None)

    def transcribed(self, told: Transcribed) -> None:
        """Our recogniser is done with one."""
        trial_id, take, attempt = told.trial_id, told.take, told.attempt
        self.transcribing.discard((trial_id, take, attempt))
        self._log.append(ResponseTranscribed(trial_id, take, attempt, told.text, self._run.stage.recogniser_name))


def _is_transcribed(trial: Trial) -> bool:
    """Whether our recogniser hears the response: not that of a prime, since it would work during the wait."""
    return trial.memory is None or bool(trial.memory.primed_by)
