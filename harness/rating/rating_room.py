"""The sessions of a round for raters: items, sounds and the storage of judgments."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from harness.base.places import SessionFolder
from harness.base.user_text import name_key
from harness.model.errors import InputError, Place
from harness.model.judgment import Category, GoldItem, Judgment, ProposalRule, RatingRound
from harness.model.numbers import counted
from harness.model.record import JudgmentGiven, SharesMoved
from harness.model.row_times import chronological
from harness.model.stimulus import Role, SpokenText, StimulusRecipe, VoiceSpec, Waveform
from harness.rating.desk import Desk
from harness.rating.items import CategoryProposal, Item, exercise_item
from harness.rating.judgment_log import JudgmentLog
from harness.rating.rater_queue import OwnRows, RaterQueue, has_partial_assignment, reassignments, sampled_items
from harness.rating.session_items import RatingSource, SessionItems, items_to_adjudicate
from harness.session.log.reader import read_clip
from harness.sound.level import at_level_unclipped
from harness.sound.recordings import at_rate
from harness.sound.stimuli.renderer import Renderer, renderer

MIN_RESPONSES = 20
"""Least number of responses from which a classifier learns."""
MIN_CATEGORIES = 2  # With one category there is nothing to distinguish.


class Proposer:
    """Proposes a category for an item; thread-safe. The same rule, rows and seed give the same proposals.

    The constructor trains the classifier. It raises LogError for a bad session, and PluginError if the classifier is
    missing or cannot run. It raises InputError if the rule names one of own_sessions (ids of the judged sessions), or
    if its sessions hold too little to learn from. path: file of the rule, for errors.
    """

    def __init__(self, rule: ProposalRule, own_sessions: Collection[str], *, seed: int, path: str = "") -> None:
        from harness.understanding.models.tritraining import classifier_maker  # here, since arrays are slow to import

        self._classifier = classifier_maker(rule.classifier, rule.settings)(seed)
        self._lock = threading.Lock()
        self._proposals: dict[str, CategoryProposal] = {}
        examples = [example for folder in rule.sessions for example in _training_examples(Path(folder), own_sessions)]
        known_categories = {category for _, category in examples}
        self._categories = tuple(category for category in Category if category in known_categories)
        if len(examples) < MIN_RESPONSES or len(known_categories) < MIN_CATEGORIES:
            raise InputError(
                f"the classifier has too few examples: {counted(len(examples), 'response')} with a category and "
                f"a text, in {counted(len(known_categories), 'category', 'categories')}",
                place=Place(path) if path else None,
                remedy=f"In `proposals: from:`, list sessions with at least {MIN_RESPONSES} such responses, in at "
                f"least {MIN_CATEGORIES} categories. Disputed responses count only after an adjudication",
            )
        texts, categories = zip(*examples, strict=True)
        self._classifier.fit(
            texts, [(category.value,) for category in categories], [category.value for category in self._categories]
        )

    def __call__(self, item: Item) -> CategoryProposal | None:
        """The most probable category; None for a response without text."""
        text = _classified_text(item)
        if text is None:
            return None
        with self._lock:
            if text not in self._proposals:
                probabilities = self._classifier.probabilities([text])[0]
                best = int(probabilities.argmax())
                self._proposals[text] = CategoryProposal(self._categories[best], round(float(probabilities[best]), 4))
            return self._proposals[text]


def _training_examples(folder: Path, own_sessions: Collection[str]) -> Iterator[tuple[str, Category]]:
    """Texts with their category: that of the adjudication, or else the one that all raters gave.

    Raises InputError for one of the own sessions.
    """
    session = RatingSource(folder, RatingRound()).read()
    if session.session_id in own_sessions:
        raise InputError(
            f"{folder} is the session {session.session_id}, which this round judges: the classifier would repeat its "
            "raters' labels",
            remedy="In `proposals: from:`, list judged sessions that are not in `sessions`",
        )
    categories = {
        (response.response.trial.id, response.response.clip.sha256): response.agreed for response in session.responses
    }
    for item in session.items:
        text, category = _classified_text(item), categories[item.subject.trial_id, item.subject.clip_sha256]
        if text is not None and category is not None:
            yield text, category


def _classified_text(item: Item) -> str | None:
    """The query and the transcript of the response; None without a transcript."""
    return None if item.transcript is None else f"{item.query}\n{item.transcript}"


RATE_HZ, LEVEL_DBFS = 16_000, -26.0
"""Rate and level of every sound that a rater hears; the original ones would reveal the device."""
RESPONSE_VOICE = VoiceSpec(engine="flite", name="slt")
"""The voice that speaks the responses of exercises."""


class RatingRoom:
    """The open sessions of a round; thread-safe.

    round_.sessions: absolute paths of session folders. The first also holds the rows of exercises. A round with
    proposals trains its classifier here.

    The constructor raises LogError for a bad session, InputError if there is nothing to judge, and what `Proposer`
    raises.
    """

    def __init__(self, round_: RatingRound) -> None:
        self.round = round_
        self._lock = threading.RLock()
        self._logs: dict[Path, JudgmentLog] = {}
        self._names = {name_key(name): name for name in round_.raters}
        """Every rater's name by its key, in its first spelling."""
        self._sessions = tuple(RatingSource(Path(path), round_, self._names) for path in round_.sessions)
        self._session_items: tuple[SessionItems, ...] = ()
        self._items: tuple[Item, ...] = ()
        self._unread_judgments: dict[str, Judgment] = {}
        """Judgments by id that this room has written since the last `refresh`."""
        self.refresh()
        if not self.items:
            raise self._no_items_error()
        self._propose = None if round_.proposals is None else self._make_proposer(round_.proposals)

    # Items and rows

    def refresh(self) -> None:
        """Reads new rows of the sessions and their judgments. Raises LogError."""
        with self._lock:
            sessions = tuple(source.read() for source in self._sessions)
            ids = [session.session_id for session in sessions]
            repeated = [session_id for session_id in ids if ids.count(session_id) > 1]
            if repeated:
                raise InputError(f"the session {repeated[0]} is listed twice", remedy="List each session only once")
            if sessions != self._session_items:
                # In the order of answering: shares stay when a session goes on, or a trial is run again.
                all_items = sorted(
                    (item for session in sessions for item in session.items),
                    key=lambda item: item.hidden.answered_wall_s,
                )
                sample = sampled_items(all_items, self.round.items, self.round.seed)
                self._items = _apply_moves(sample, sessions, self.round.id)
            self._session_items = sessions
            for row in self._read_rows():
                self._unread_judgments.pop(row.id, None)

    @property
    def items(self) -> tuple[Item, ...]:
        """The items of the round, in a fixed order. Desks select and shuffle them for each rater."""
        return self._items

    @property
    def exercises(self) -> tuple[Item, ...]:
        return tuple(exercise_item(exercise, self.round.seed) for exercise in self.round.exercises)

    @property
    def rows(self) -> tuple[Judgment, ...]:
        """All judgments: by session, oldest first, then those written since the last `refresh`."""
        with self._lock:
            return (*self._read_rows(), *self._unread_judgments.values())

    @property
    def unmatched_gold(self) -> tuple[GoldItem, ...]:
        """Known answers that match no first response of the round."""
        known = {(item.subject.session_id, item.subject.trial_id) for item in self.items}
        return tuple(gold_item for gold_item in self.round.gold if (gold_item.session, gold_item.trial) not in known)

    def desk(self, rater: str, *, program: bool = False) -> Desk:
        """A sitting at the round. Raises InputError if the round names raters, but not this one.

        program: the rater is a program, not a person.
        """
        rater = self._rater_name(rater)
        if self.round.raters and rater not in self.round.raters:
            raise InputError(
                f"{rater!r} is not a rater in the round {self.round.id!r}",
                remedy=f"Its raters: {', '.join(self.round.raters)}",
            )
        return Desk(
            rater,
            self.round,
            self.items,
            self.exercises,
            self.rows,
            self.save,
            propose=self._propose,
            program=program,
            growing=self.growing,
        )

    def adjudication(self, rater: str) -> Desk:
        """A sitting at disputed items, with the judgments as inputs. Items that others have settled are left out.

        Items on which raters agree can be opened there too.
        """
        self.refresh()
        rater = self._rater_name(rater)
        round_ = replace(
            self.round, id=f"{self.round.id}.adjudication", raters=(), raters_per_item=None, exercises=(), stop=None
        )
        items = self._judged_items(rater)
        return Desk(rater, round_, items, (), self.rows, self.save, adjudicating=True, growing=self.growing)

    @property
    def growing(self) -> bool:
        """Whether a session of the round has not finished, so that items may be added."""
        return not all(session.finished for session in self._session_items)

    @property
    def disputed(self) -> tuple[Item, ...]:
        """Items of the round on which raters gave different categories, including those settled since."""
        return tuple(item for item in self._judged_items(None) if not item.agreed)

    @property
    def settled_count(self) -> int:
        """Number of disputed items that an adjudicator has settled."""
        settled = {
            (session.session_id, response.response.trial.id)
            for session in self._session_items
            for response in session.responses
            if response.settled is not None
        }
        return sum((item.subject.session_id, item.subject.trial_id) in settled for item in self.disputed)

    def update(self, desk: Desk) -> None:
        """Passes what the last `refresh` has read to a desk of this room."""
        items = self._judged_items(desk.rater) if desk.adjudicating else self.items
        desk.refresh(items, self.rows, growing=self.growing)

    # For coordinators

    def progress(self, invited: Iterable[str] = ()) -> tuple[RaterQueue, ...]:
        """The progress of every rater, as of the last `refresh`.

        invited: raters to include before they begin, if the round does not name its raters.
        """
        rows = self.rows
        other_raters = {row.rater for row in rows if row.round == self.round.id and not row.program}
        if self.round.raters:
            other_raters -= set(self.round.raters)
        else:
            other_raters |= {self._rater_name(name) for name in invited}
        return tuple(self._queue_of(rater, rows) for rater in (*self.round.raters, *sorted(other_raters)))

    def reassign(self, rater: str, to: Sequence[str], by: str) -> tuple[int, int]:
        """Moves the unjudged items of a rater to other raters, and stores that on the disk. by: the coordinator.

        Returns the number of items that moved, and of those that go to nobody because all of the others have them.
        Raises InputError if all raters judge all items, or if one of them is not a rater of the round. Raises LogError
        or LogFull if saving fails.
        """
        if not has_partial_assignment(self.round):
            raise InputError("every rater judges every response of this round, so there is nothing to move")
        other_raters = [other for other in self.round.raters if other in to and other != rater]
        if rater not in self.round.raters or not other_raters or len(other_raters) < len(set(to)):
            raise InputError("responses can be moved only between raters of the round")
        with self._lock:
            self.refresh()
            items = reassignments(self.items, self.round, self._queue_of(rater, self.rows).not_done, other_raters)
            if items:
                record = SharesMoved(self.round.id, rater, items, by)
                self._log(self._session_items[0].folder).append(record)
                self.refresh()
        moved_count = sum(bool(new_rater) for _, new_rater in items)
        return moved_count, len(items) - moved_count

    # What is saved

    def save(self, item: Item, judgment: Judgment) -> None:
        """Saves a row. Returns once it is on the disk. Raises LogError or LogFull."""
        self._log(self._session(item).folder).append(JudgmentGiven(judgment))
        with self._lock:
            if all(row.id != judgment.id for row in self._read_rows()):  # another thread may already have read it
                self._unread_judgments[judgment.id] = judgment

    # Sounds

    def response_sound(self, item: Item) -> Waveform:
        """The recorded first response; a voice speaks those of exercises. Raises LogError or VoiceError."""
        if item.clip is None or item.exercise is not None:
            return _adjust(self._synthesise(item.exercise.response if item.exercise else "", RESPONSE_VOICE))
        return _adjust(read_clip(SessionFolder(self._session(item).folder).clips, item.clip))

    def clip_path(self, item: Item) -> Path | None:
        """The file of the recorded response; None for an exercise."""
        return None if item.clip is None else SessionFolder(self._session(item).folder).clips / item.clip.name

    def query_sound(self, item: Item) -> Waveform:
        """The query without wake phrase and noise, which would reveal the device. Raises VoiceError."""
        trial = self._session(item).trials.get(item.subject.trial_id)
        if trial is None or trial.talker:
            return _adjust(self._synthesise(item.query, VoiceSpec()))
        recipe = replace(trial.recipe, wake_phrase=None, noise=None, lead_in_s=0.0, tail_s=0.0)
        stimulus = self._renderer.render(recipe)
        waveform = stimulus.waveform
        start_s, end_s = stimulus.span_s(Role.QUERY) or (0.0, waveform.duration_s)
        start, end = int(start_s * waveform.rate_hz), int(end_s * waveform.rate_hz) + 1
        return _adjust(Waveform(waveform.samples[start:end], waveform.rate_hz))

    def close(self) -> None:
        with self._lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()

    # Inside

    def _no_items_error(self) -> InputError:
        inconclusive = sum(session.inconclusive for session in self._session_items)
        if inconclusive and not any(session.items for session in self._session_items):
            return InputError(
                "there is no first response to judge: nothing shows whether the device recognised the query, so "
                f"{counted(inconclusive, 'trial is', 'trials are')} inconclusive",
                remedy="Run again with `evidence: none` in the scenario, so that every answer counts, or with an "
                "operator who says what was recognised",
            )
        return InputError(
            "there is no first response to judge",
            remedy="List the trials with: harness report show SESSION --trials. If you use filters, remove one",
        )

    def _rater_name(self, rater: str) -> str:
        """The first spelling of a rater's name."""
        return self._names.get(name_key(rater), rater)

    def _queue_of(self, rater: str, rows: Sequence[Judgment]) -> RaterQueue:
        return RaterQueue(rater, self.round, self.items, self.exercises, OwnRows(rater, self.round, rows))

    def _judged_items(self, rater: str | None) -> tuple[Item, ...]:
        """The judged items of the round, as from `items_to_adjudicate`."""
        ids = {item.id for item in self.items}
        return tuple(item for item in items_to_adjudicate(self._session_items, rater) if item.id in ids)

    def _make_proposer(self, rule: ProposalRule) -> Proposer:
        own_sessions = {session.session_id for session in self._session_items}
        return Proposer(rule, own_sessions, seed=self.round.seed, path=self.round.path)

    def _read_rows(self) -> tuple[Judgment, ...]:
        return tuple(row for session in self._session_items for row in session.rows)

    def _synthesise(self, text: str, voice: VoiceSpec) -> Waveform:
        recipe = StimulusRecipe(
            query=SpokenText(text), wake_phrase=None, voice=voice, gap_ms=0, level_dbfs=-26.0, noise=None
        )
        return self._renderer.render(recipe).waveform

    @cached_property
    def _renderer(self) -> Renderer:
        return renderer()

    def _session(self, item: Item) -> SessionItems:
        """The session of an item; the first one for exercises."""
        for session in self._session_items:
            if session.session_id == item.subject.session_id:
                return session
        return self._session_items[0]

    def _log(self, folder: Path) -> JudgmentLog:
        with self._lock:
            if folder not in self._logs:
                self._logs[folder] = JudgmentLog(folder)
            return self._logs[folder]


def _apply_moves(items: Sequence[Item], sessions: Sequence[SessionItems], round_id: str) -> tuple[Item, ...]:
    """The items with the moves of coordinators in this round, also those of the responses before a re-run."""
    moves: dict[str, list[tuple[str, str]]] = defaultdict(list)
    current_ids = {earlier_id: item.id for item in items for earlier_id in item.hidden.earlier_ids}
    # The first session of a round may be another one by now, so moves may be in several.
    for entry in chronological(*(session.moves for session in sessions)):
        move = entry.record
        if isinstance(move, SharesMoved) and move.round == round_id:
            for item_id, new_rater in move.items:
                moves[current_ids.get(item_id, item_id)].append((move.rater, new_rater))
    return tuple(replace(item, hidden=replace(item.hidden, moves=tuple(moves.get(item.id, ())))) for item in items)


def _adjust(sound: Waveform) -> Waveform:
    """A sound at the rate and level of all sounds for raters."""
    return at_level_unclipped(at_rate(sound, RATE_HZ), LEVEL_DBFS)
