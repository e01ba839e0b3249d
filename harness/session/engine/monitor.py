"""Replays of stored clips on the bench's monitor, which the device under test does not hear."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from harness.base.ports import Stimulates
from harness.model.errors import HarnessError
from harness.model.record import Clip
from harness.session.log.clips import read_clip


class Monitor:
    """Plays clips that rows of the log name.

    clips: file name → clip, of every row so far (filled by the engine as rows are committed).
    """

    def __init__(self, loudspeaker: Stimulates | None, folder: Path, clips: Mapping[str, Clip]) -> None:
        self._loudspeaker = loudspeaker
        self._folder = folder
        self._clips = clips

    def replay(self, name: str) -> str:
        """Begins to play it, in place of what it plays; "" or why that cannot be done."""
        if self._loudspeaker is None:
            return "the bench has no monitor; add `monitor: {driver: loudspeaker, …}` to it"
        clip = self._clips.get(name)
        if clip is None:
            return "no row of this session names such a clip"
        try:
            waveform = read_clip(self._folder, clip)
            self._loudspeaker.stop()
            self._loudspeaker.play(f"replay-{uuid4().hex[:8]}", waveform)
        except HarnessError as error:
            return str(error)
        return ""
