"""Pausing, from whatever screen is open."""

from __future__ import annotations

import uuid

from harness.dashboard.messages import CommandWanted
from harness.dashboard.watch import View
from harness.model.feed import Pause, Resume, StateWord


def pause_or_go_on(view: View | None, by: str) -> CommandWanted:
    """What the key p asks for: the opposite of what is."""
    state = view.state if view else None
    paused = view is not None and view.progress.paused is not None
    if paused or (state is not None and state.word is StateWord.PAUSED):
        return CommandWanted(Resume(str(uuid.uuid4()), by), "go on")
    return CommandWanted(Pause(str(uuid.uuid4()), by), "pause")
