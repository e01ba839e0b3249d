"""Our own recogniser for people to read by: in the background, and never in the way of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable

from harness.base.plugins import Group, names
from harness.engines.recogniser_process import RecogniserProcess
from harness.model.errors import HarnessError
from harness.model.stimulus import Waveform


def installed_recogniser() -> str | None:
    """Name of the recogniser to use; None when no plug-in offers one."""
    found = names(Group.RECOGNISERS)
    return found[0] if found else None


class Transcriber:
    """Transcribes responses; what goes wrong is said once, by `on_trouble`, and the run goes on without."""

    def __init__(self, name: str, on_trouble: Callable[[str], None]) -> None:
        self.name = name
        self._process = RecogniserProcess(name)
        self._on_trouble = on_trouble
        self._lock = threading.Lock()
        self._said = False

    def transcribe(self, waveform: Waveform, told: Callable[[str], None]) -> None:
        """Returns at once; told gets the words later, on another thread, or "" when there is no transcription."""

        def done(answer: str | HarnessError) -> None:
            self.name = self._process.name
            if isinstance(answer, HarnessError):
                self._complain(answer)
                answer = ""
            told(answer)

        self._process.transcribe_later(waveform, done)

    def close(self) -> None:
        self._quiet()
        self._process.close()

    def _quiet(self) -> bool:
        """Marks that no complaint is wanted any more; whether that was so already."""
        with self._lock:
            before, self._said = self._said, True
        return before

    def _complain(self, error: HarnessError) -> None:
        if not self._quiet():
            self._on_trouble(f"responses are not transcribed for people: {error}")
