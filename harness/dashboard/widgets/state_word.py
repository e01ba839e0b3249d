"""The word that can be read from across the room, and what it is about."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.watch import View
from harness.dashboard.widgets import letters
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.wording import query_text
from harness.model.feed import StateChanged, StateWord
from harness.model.scenario import TrialKind

COUNTED = frozenset({StateWord.LISTENING, StateWord.ASKING, StateWord.INTERRUPTED})
"""States whose end a person waits for; others end by themselves long before their time is up."""


def state_words(view: View) -> tuple[str, str]:
    """The word as it stands in large letters, and its colour."""
    if view.gone is not None:
        return "ENGINE GONE", palette.RED
    if view.state is None:
        return "CONNECTING", palette.QUIET
    word = view.state.word
    colour = palette.STATES[word]
    if word is StateWord.WAITING and view.remaining_s is not None:
        return f"{word.value} {min(999, round(view.remaining_s))} s", colour
    return word.value, colour


def state_line(view: View) -> str:
    """Trial, attempt, query and reason, harmless."""
    state = view.state
    if view.gone is not None:
        return view.gone
    if state is None:
        return "waiting for the engine to say hello"
    parts = list(_calls(view, state))
    waits = state.word is StateWord.INTERRUPTED
    if waits and state.reason:
        parts.append(plain_text(state.reason, 120))
    trial = view.progress.trial(state.trial_id) if state.trial_id else None
    if trial is not None:
        parts.append(f"trial {trial.trial.number} of {len(view.progress.trials)}")
        listening = trial.trial.listening
        if listening is not None and listening.kind is not TrialKind.AMBIENT:
            parts.append(listening.kind.value)
        elif listening is None and state.attempt is not None:
            parts.append(f"attempt {state.attempt} of {trial.trial.reprompt.max_attempts}")
        said = query_text(trial.trial)
        parts.append(said if listening is not None and listening.kind is TrialKind.AMBIENT else f"“{said}”")
    if view.remaining_s is not None and state.word in COUNTED:
        parts.append(f"{view.remaining_s:.0f} s left")
    if state.reason and not waits and state.word not in (StateWord.ASKING, StateWord.PAUSED):
        parts.append(plain_text(state.reason, 120))
    return " · ".join(parts)


def _calls(view: View, state: StateChanged) -> Iterator[str]:
    """What wants a person; it goes first, for it must not be cut off."""
    if state.word is StateWord.ASKING:
        yield "o shows the question"
    elif state.word is StateWord.PAUSED:
        why = plain_text(state.reason, 60)
        yield f"{'paused ' if why.startswith('by ') else ''}{why}, p goes on"
    elif view.progress.paused is not None:
        yield "pauses after this attempt"


class StateWordBanner(Painted):
    """Three lines of letters where there is little room, five where there is more."""

    DEFAULT_CSS = "StateWordBanner { height: 3; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._word, self._colour = "CONNECTING", palette.QUIET

    def show(self, view: View) -> None:
        shown = state_words(view)
        if shown != (self._word, self._colour):
            self._word, self._colour = shown
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        rows = letters.large(self._word)
        if height < len(rows) or len(rows[0]) > width:
            rows = letters.small(self._word)
        if len(rows[0]) > width:
            rows = [self._word]
        return Text("\n".join(rows), style=self._colour)
