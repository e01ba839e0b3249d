"""What raters sit in: the sessions of a round, their items, their sounds, and where judgments are kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.log.clips import read_clip
from harness.log.folder import SessionFolder
from harness.log.judgment_log import JudgmentLog
from harness.model.errors import InputError
from harness.model.judgment import Judgment
from harness.model.rating_round import RatingRound
from harness.model.record import EffectAnswered, JudgmentGiven
from harness.model.stimulus import Role, SpokenText, StimulusRecipe, VoiceSpec, Waveform
from harness.rating.desk import Desk
from harness.rating.items import Item, exercise_item
from harness.rating.queue import drawn
from harness.rig.assemble import renderer
from harness.rig.rating_items import SessionItems, disputed, session_items

RESPONSE_VOICE = VoiceSpec(engine="flite", name="slt")
"""Who speaks the responses of exercises."""


class RatingRoom:
    """Opens the sessions of a round; thread-safe. LogError when one is none, InputError when nothing is to be judged.

    round_.sessions: absolute paths of session folders; the first also keeps the rows of exercises.
    """

    def __init__(self, round_: RatingRound) -> None:
        self.round = round_
        self._lock = threading.RLock()
        self._logs: dict[Path, JudgmentLog] = {}
        self._sounds = renderer()
        self._found: tuple[SessionItems, ...] = ()
        self.refresh()
        if not self.items and not round_.exercises:
            raise InputError(
                "there is no first response to judge in what was asked for",
                remedy="Look at the trials with: harness show SESSION; or ask for less with the filter",
            )

    # What there is

    def refresh(self) -> None:
        """Reads again what the sessions and their judgments have come to; LogError."""
        found = tuple(session_items(Path(path), self.round) for path in self.round.sessions)
        twins = [one.session_id for one in found if [other.session_id for other in found].count(one.session_id) > 1]
        if twins:
            raise InputError(f"the session {twins[0]} is named twice", remedy="Name each session once")
        with self._lock:
            self._found = found

    @property
    def items(self) -> tuple[Item, ...]:
        """What the round is about, in a fixed order; each rater gets a share and an order of their own."""
        every = tuple(item for one in self._found for item in one.items)
        return drawn(every, self.round.items, self.round.seed)

    @property
    def exercises(self) -> tuple[Item, ...]:
        return tuple(exercise_item(one, self.round.seed) for one in self.round.exercises)

    @property
    def rows(self) -> tuple[Judgment, ...]:
        """All judgments of all sessions; of each session oldest first."""
        return tuple(row for one in self._found for row in one.rows)

    def desk(self, rater: str) -> Desk:
        """A sitting at the round."""
        return Desk(rater, self.round, self.items, self.exercises, self.rows, self.keep)

    def adjudication(self, rater: str) -> Desk:
        """A sitting at what raters disagree on, with their judgments as inputs."""
        settled = replace(self.round, id=f"{self.round.id}.adjudication", raters=(), raters_per_item=None, exercises=())
        return Desk(rater, settled, self.disputed, (), self.rows, self.keep)

    @property
    def disputed(self) -> tuple[Item, ...]:
        """Items of the round on which raters gave different categories."""
        return drawn(disputed(self._found), self.round.items, self.round.seed)

    # What is kept

    def keep(self, item: Item, judgment: Judgment) -> None:
        """Returns when the row is on the disk; LogError, LogFull."""
        self._log(self._session(item).folder).append(JudgmentGiven(judgment))

    def answer_effect(self, item: Item, answer: EffectAnswered) -> None:
        """Somebody says what the device did; returns when it is on the disk."""
        self._log(self._session(item).folder).append(answer)

    # Sounds

    def response_sound(self, item: Item) -> Waveform:
        """The first response as it was recorded; of an exercise, spoken by a voice. LogError, VoiceError."""
        if item.clip is None or item.exercise is not None:
            return self._spoken(item.exercise.response if item.exercise else "", RESPONSE_VOICE)
        return read_clip(SessionFolder(self._session(item).folder).clips, item.clip)

    def query_sound(self, item: Item) -> Waveform:
        """The query as it was said, without its wake phrase and noise, which would tell the device; VoiceError."""
        trial = self._session(item).trials.get(item.subject.trial_id)
        if trial is None:
            return self._spoken(item.query, VoiceSpec())
        plain = replace(trial.recipe, wake_phrase=None, noise=None, lead_in_s=0.0, tail_s=0.0)
        made = self._sounds.render(plain)
        start_s, end_s = made.span_s(Role.QUERY) or (0.0, made.waveform.duration_s)
        rate_hz = made.waveform.rate_hz
        return Waveform(made.waveform.samples[int(start_s * rate_hz) : int(end_s * rate_hz) + 1], rate_hz)

    def close(self) -> None:
        with self._lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()

    # Inside

    def _spoken(self, text: str, voice: VoiceSpec) -> Waveform:
        recipe = StimulusRecipe(
            query=SpokenText(text), wake_phrase=None, voice=voice, gap_ms=0, level_dbfs=-26.0, noise=None
        )
        return self._sounds.render(recipe).waveform

    def _session(self, item: Item) -> SessionItems:
        wanted = item.subject.session_id
        found = next((one for one in self._found if one.session_id == wanted), None)
        return found if found is not None else self._found[0]

    def _log(self, folder: Path) -> JudgmentLog:
        with self._lock:
            if folder not in self._logs:
                self._logs[folder] = JudgmentLog(folder)
            return self._logs[folder]


def open_room(sessions: Sequence[Path], round_: RatingRound | None = None) -> RatingRoom:
    """A room for these sessions, or for those that the round names."""
    named = tuple(str(path.resolve()) for path in sessions)
    wanted = round_ or RatingRound()
    return RatingRoom(replace(wanted, sessions=named or wanted.sessions))
