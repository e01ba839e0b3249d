"""What raters sit in: the sessions of a round, their items, their sounds, and where judgments are kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.base.places import SessionFolder
from harness.model.errors import InputError
from harness.model.judgment import GoldItem, Judgment, ProposalRule, RatingRound
from harness.model.record import EffectAnswered, JudgmentGiven, SharesMoved
from harness.model.stimulus import Role, SpokenText, StimulusRecipe, VoiceSpec, Waveform
from harness.rating.desk import Desk
from harness.rating.items import Item, exercise_item
from harness.rating.judgment_log import JudgmentLog
from harness.rating.rating_items import Proposer, RatingSource, SessionItems, to_adjudicate
from harness.rating.standing import Count, OwnRows, RaterStanding, drawn, hand_over, is_shared_out
from harness.session.log.clips import read_clip
from harness.sound.recordings import at_rate
from harness.sound.stimuli.level import at_level_unclipped
from harness.sound.stimuli.renderer import renderer


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """exercises: (done, all). pace_s: median time to an answer. known: (right, answered) of the known answers.

    stopped: by the round's rule. open: what others could do for them. last_wall_s: of their last row, a Unix time.
    """

    rater: str
    count: Count
    exercises: tuple[int, int]
    pace_s: float | None
    known: tuple[int, int]
    stopped: bool
    open: int
    last_wall_s: float | None

    @property
    def left_s(self) -> float | None:
        """What is left at that pace."""
        return None if self.pace_s is None else self.pace_s * self.count.left

    @property
    def known_share(self) -> float | None:
        """Right ones of the known answers; None before the first."""
        right, answered = self.known
        return right / answered if answered else None


RATE_HZ, LEVEL_DBFS = 16_000, -26.0
"""Of every sound that a rater hears: its own rate and level would tell which device it is of."""
RESPONSE_VOICE = VoiceSpec(engine="flite", name="slt")
"""Who speaks the responses of exercises."""


class RatingRoom:
    """Opens the sessions of a round; thread-safe. LogError when one is none, InputError when nothing is to be judged.

    A round with proposals also reads what they are learnt from, and trains: the errors of `Proposer`.

    round_.sessions: absolute paths of session folders; the first also keeps the rows of exercises.
    """

    def __init__(self, round_: RatingRound) -> None:
        self.round = round_
        self._lock = threading.RLock()
        self._logs: dict[Path, JudgmentLog] = {}
        self._sounds = renderer()
        self._sessions = tuple(RatingSource(Path(path), round_) for path in round_.sessions)
        self._found: tuple[SessionItems, ...] = ()
        self._items: tuple[Item, ...] = ()
        self._kept: dict[str, Judgment] = {}
        self.refresh()
        if not self.items:
            raise InputError(
                "there is no first response to judge in what was asked for",
                remedy="Look at the trials with: harness show SESSION; or ask for less with the filter",
            )
        self._propose = None if round_.proposals is None else self._proposer(round_.proposals)

    # What there is

    def refresh(self) -> None:
        """Reads what was added to the sessions and their judgments since it was last asked; LogError."""
        with self._lock:
            found = tuple(one.read() for one in self._sessions)
            ids = [one.session_id for one in found]
            twin = next((one for one in ids if ids.count(one) > 1), None)
            if twin is not None:
                raise InputError(f"the session {twin} is named twice", remedy="Name each session once")
            if found != self._found:
                every = tuple(item for one in found for item in one.items)
                self._items = _with_moves(drawn(every, self.round.items, self.round.seed), found, self.round.id)
            self._found = found
            for row in self._all_rows():
                self._kept.pop(row.id, None)

    @property
    def items(self) -> tuple[Item, ...]:
        """What the round is about, in a fixed order; each rater gets a share and an order of their own."""
        return self._items

    @property
    def exercises(self) -> tuple[Item, ...]:
        return tuple(exercise_item(one, self.round.seed) for one in self.round.exercises)

    @property
    def rows(self) -> tuple[Judgment, ...]:
        """All judgments of all sessions; of each session oldest first, and last those that were given just now."""
        with self._lock:
            return (*self._all_rows(), *self._kept.values())

    @property
    def unmatched_gold(self) -> tuple[GoldItem, ...]:
        """Gold items that are no first response of the round."""
        met = {(item.hidden.session_id, item.hidden.trial_id) for item in self.items}
        return tuple(one for one in self.round.gold if (one.session, one.trial) not in met)

    def desk(self, rater: str) -> Desk:
        """A sitting at the round; InputError when the round names its raters and this is none of them."""
        if self.round.raters and rater not in self.round.raters:
            raise InputError(
                f"{rater!r} is no rater of the round {self.round.id!r}",
                remedy=f"Its raters: {', '.join(self.round.raters)}",
            )
        return Desk(rater, self.round, self.items, self.exercises, self.rows, self.keep, propose=self._propose)

    def adjudication(self, rater: str) -> Desk:
        """A sitting at what raters disagree on, with their judgments as inputs; less what others have settled.

        What they agree on can be opened there, too.
        """
        self.refresh()
        settled = replace(
            self.round, id=f"{self.round.id}.adjudication", raters=(), raters_per_item=None, exercises=(), stop=None
        )
        return Desk(rater, settled, self.items_for(rater, adjudicating=True), (), self.rows, self.keep)

    @property
    def disputed(self) -> tuple[Item, ...]:
        """Items of the round on which raters gave different categories."""
        return tuple(item for item in self._judged(None) if not item.agreed)

    def items_for(self, rater: str, *, adjudicating: bool) -> tuple[Item, ...]:
        """What a desk of `desk`, or of `adjudication`, is refreshed with."""
        return self._judged(rater) if adjudicating else self.items

    # For coordinators

    @property
    def progress(self) -> tuple[RaterProgress, ...]:
        """How far every rater is, as of the last `refresh`."""
        rows = self.rows
        others = {row.rater for row in rows if row.round == self.round.id} - set(self.round.raters)
        found = []
        for rater in (*self.round.raters, *sorted(others)):
            one = self._standing(rater, rows)
            found.append(
                RaterProgress(
                    rater=rater,
                    count=one.count,
                    exercises=one.exercises,
                    pace_s=one.rows.pace_s,
                    known=one.known_answers,
                    stopped=one.stopped,
                    open=len(one.not_done),
                    last_wall_s=one.rows.last_wall_s,
                )
            )
        return tuple(found)

    def reassign(self, rater: str, to: Sequence[str], by: str) -> tuple[int, int]:
        """Gives what a rater has not judged to these raters, and returns when that is on the disk; LogError, LogFull.

        (how many they got, how many nobody got, since all of them have them already). InputError when the round is
        not shared out, or one of them is none of its raters.
        """
        if not is_shared_out(self.round):
            raise InputError("everybody judges every response of this round, so there is no share to give to others")
        others = [one for one in self.round.raters if one in to and one != rater]
        if rater not in self.round.raters or not others or len(others) < len(set(to)):
            raise InputError("shares move between the raters of the round only")
        with self._lock:
            self.refresh()
            items = hand_over(self.items, self.round, self._standing(rater, self.rows).not_done, others)
            if items:
                record = SharesMoved(self.round.id, rater, items, by)
                self._log(self._found[0].folder).append(record)
                self.refresh()
        taken = sum(bool(one) for _, one in items)
        return taken, len(items) - taken

    # What is kept

    def keep(self, item: Item, judgment: Judgment) -> None:
        """Returns when the row is on the disk; LogError, LogFull."""
        self._log(self._session(item).folder).append(JudgmentGiven(judgment))
        with self._lock:
            self._kept[judgment.id] = judgment

    def answer_effect(self, item: Item, answer: EffectAnswered) -> None:
        """Somebody says what the device did; returns when it is on the disk."""
        self._log(self._session(item).folder).append(answer)

    # Sounds

    def response_sound(self, item: Item) -> Waveform:
        """The first response as it was recorded; of an exercise, spoken by a voice. LogError, VoiceError."""
        if item.clip is None or item.exercise is not None:
            return _alike(self._spoken(item.exercise.response if item.exercise else "", RESPONSE_VOICE))
        return _alike(read_clip(SessionFolder(self._session(item).folder).clips, item.clip))

    def query_sound(self, item: Item) -> Waveform:
        """The query as it was said, without its wake phrase and noise, which would tell the device; VoiceError."""
        trial = self._session(item).trials.get(item.subject.trial_id)
        if trial is None:
            return _alike(self._spoken(item.query, VoiceSpec()))
        plain = replace(trial.recipe, wake_phrase=None, noise=None, lead_in_s=0.0, tail_s=0.0)
        made = self._sounds.render(plain)
        start_s, end_s = made.span_s(Role.QUERY) or (0.0, made.waveform.duration_s)
        rate_hz = made.waveform.rate_hz
        return _alike(Waveform(made.waveform.samples[int(start_s * rate_hz) : int(end_s * rate_hz) + 1], rate_hz))

    def close(self) -> None:
        with self._lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()

    # Inside

    def _standing(self, rater: str, rows: Sequence[Judgment]) -> RaterStanding:
        return RaterStanding(rater, self.round, self.items, self.exercises, OwnRows(rater, self.round, rows))

    def _judged(self, rater: str | None) -> tuple[Item, ...]:
        wanted = {item.id for item in self.items}
        return tuple(item for item in to_adjudicate(self._found, rater) if item.id in wanted)

    def _proposer(self, rule: ProposalRule) -> Proposer:
        return Proposer(rule, {one.session_id for one in self._found}, seed=self.round.seed, path=self.round.path)

    def _all_rows(self) -> tuple[Judgment, ...]:
        return tuple(row for one in self._found for row in one.rows)

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


def _with_moves(items: Sequence[Item], found: Sequence[SessionItems], round_id: str) -> tuple[Item, ...]:
    moves: dict[str, list[tuple[str, str]]] = {}
    for move in (move for one in found for move in one.moves if move.round == round_id):
        for item_id, to in move.items:
            moves.setdefault(item_id, []).append((move.rater, to))
    return tuple(
        replace(item, hidden=replace(item.hidden, moves=tuple(moves[item.id]))) if item.id in moves else item
        for item in items
    )


def _alike(sound: Waveform) -> Waveform:
    return at_level_unclipped(at_rate(sound, RATE_HZ), LEVEL_DBFS)


def open_room(sessions: Sequence[Path], round_: RatingRound | None = None) -> RatingRoom:
    """A room for these sessions, or for those that the round names."""
    named = tuple(str(path.resolve()) for path in sessions)
    wanted = round_ or RatingRound()
    return RatingRoom(replace(wanted, sessions=named or wanted.sessions))
