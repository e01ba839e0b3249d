"""What one session holds for raters: its first responses as blind items, and its judgments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from harness.base.places import SessionFolder
from harness.base.row_store import read_entries
from harness.model.effect import EffectCheck, EffectEvidence, EffectSource
from harness.model.frozen import frozen
from harness.model.judgment import GoldItem, Judgment, RatingRound
from harness.model.observation import ResponseText
from harness.model.record import (
    EffectAnswered,
    EngineStarted,
    Entry,
    JudgmentGiven,
    Observed,
    SessionFinished,
    SharesMoved,
    TrialFinished,
)
from harness.model.row_times import chronological
from harness.model.trial import Outcome, Recognition, Trial
from harness.rating.figures.judged_responses import JudgedResponse, complete_rows, judged_responses_of
from harness.rating.items import HiddenDetails, Item, Subject, blind_id
from harness.session.figures.effects import AttemptKey, EffectRows
from harness.session.figures.trials import SessionTrials
from harness.session.log.reader import LogReader


@frozen
class SessionItems:
    """One session folder, for raters.

    - items: its first responses.
    - rows: all its judgments, oldest first.
    - responses: the same responses with their judgments.
    - trials: trials by id, for their sounds.
    - moves: rows of responses that coordinators moved, oldest first; stored with the first session of a round.
    - finished: whether no more responses will come.
    - inconclusive: number of trials with an answer, but no evidence of recognition.
    """

    folder: Path
    session_id: str
    items: tuple[Item, ...]
    rows: tuple[Judgment, ...]
    responses: tuple[JudgedResponse, ...]
    trials: Mapping[str, Trial]
    moves: tuple[Entry, ...] = ()
    finished: bool = True
    inconclusive: int = 0


class RatingSource:
    """Reads a session folder for raters, each time only what is new. Not thread-safe.

    names: every rater's first spelling of their name, by its key. `read` adds those that it meets.
    """

    def __init__(self, folder: Path, round_: RatingRound, names: dict[str, str] | None = None) -> None:
        self._names = {} if names is None else names
        self._folder = folder
        self._seed = round_.seed
        self._gold = round_.gold
        self._session_trials = SessionTrials()
        self._effects = EffectRows()
        self._effect_answers: list[Entry] = []
        self._texts: dict[AttemptKey, list[str]] = {}
        self._answered_wall_s: dict[str, float] = {}
        self._latest_wall_s = 0.0
        self._log_seq = self._judgments_seq = 0
        """Numbers of the last rows read from the log, and from the file of judgments."""
        self._items_seqs = (0, 0)
        """The same at the time when `_session_items` was made."""
        self._bench_rows: list[Entry] = []
        self._later_rows: list[Entry] = []
        self._moves: list[Entry] = []
        self._profiles = frozenset(path.stem for path in (SessionFolder(folder).inputs / "profiles").glob("*.yaml"))
        self._session_items: SessionItems | None = None
        self._session_has_finished = False

    def read(self) -> SessionItems:
        """All responses that can be judged, unfiltered and in order. Works while the session runs. Raises LogError."""
        with LogReader(self._folder) as reader:
            for entry in reader.entries(self._log_seq):
                self._log_seq = entry.seq
                self._add_row(entry)
            judgments = reader.folder.judgments
        if judgments.is_file():
            for entry in read_entries(judgments, self._judgments_seq, may_be_blank=True):
                self._judgments_seq = entry.seq
                self._add_later_row(entry)
        seqs = self._log_seq, self._judgments_seq
        if self._session_items is None or self._items_seqs != seqs:  # new rows may be from a reading that failed later
            self._session_items = self._make_items()
            self._items_seqs = seqs
        return self._session_items

    def _add_row(self, entry: Entry) -> None:
        self._session_trials.add(entry.record)
        self._effects.add(entry)
        self._latest_wall_s = max(self._latest_wall_s, entry.wall_s)  # the clock may be set back
        match entry.record:
            case TrialFinished(trial_id=trial_id, outcome=outcome) if outcome.answered:
                self._answered_wall_s.setdefault(trial_id, self._latest_wall_s)
            case Observed(ResponseText(text=text), str(trial_id), int(take), int(attempt)):
                self._texts.setdefault((trial_id, take, attempt), []).append(text)
            case JudgmentGiven():
                self._bench_rows.append(entry)
            case EngineStarted() | SessionFinished():
                self._session_has_finished = isinstance(entry.record, SessionFinished)  # it may be resumed
            case _:
                pass

    def _add_later_row(self, entry: Entry) -> None:
        if isinstance(entry.record, JudgmentGiven):
            self._later_rows.append(entry)
        elif isinstance(entry.record, EffectAnswered):
            self._effect_answers.append(entry)
        elif isinstance(entry.record, SharesMoved):
            self._moves.append(entry)

    def _make_items(self) -> SessionItems:
        session_id = self._session_trials.session.session_id if self._session_trials.session else ""
        trials = [trial.trial for trial in self._session_trials.trials]
        effects = self._effects.evidence(self._effect_answers)
        entries = chronological(self._bench_rows, self._later_rows)
        rows = (entry.record.judgment for entry in entries if isinstance(entry.record, JudgmentGiven))
        judgments = tuple(complete_rows(rows, session_id, self._names))
        responses = judged_responses_of(session_id, self._session_trials.trials, judgments)
        gold = {gold_item.trial: gold_item for gold_item in self._gold if gold_item.session == session_id}
        device_names = self._profiles | _device_names(trials)
        items = tuple(
            blinded(_make_item(response, self._seed, self._texts, effects, gold, self._answered_wall_s), device_names)
            for response in responses
            if response.trial.trial.memory is None
        )
        return SessionItems(
            folder=self._folder,
            session_id=session_id,
            items=items,
            rows=judgments,
            responses=responses,
            trials={trial.id: trial for trial in trials},
            moves=tuple(self._moves),
            finished=self._session_has_finished,
            inconclusive=sum(trial.outcome is Outcome.INCONCLUSIVE for trial in self._session_trials.trials),
        )


def _device_names(trials: Sequence[Trial]) -> frozenset[str]:
    """Names that evidence may use for a device: its id, or that of one of its sources."""
    names: set[str] = set()
    for trial in trials:
        names.update((trial.device, *trial.sources))
        for target in trial.listening.targets if trial.listening is not None else ():
            names.update((target.device, *target.sources))
    return frozenset(names)


def items_to_adjudicate(sessions: Sequence[SessionItems], rater: str | None = None) -> tuple[Item, ...]:
    """Judged items, with their judgments as inputs.

    rater: an adjudicator, for whom items that others settled are left out. Those that they settled stay, so that they
    see their progress and can undo. None: all items.
    """
    items = []
    for session in sessions:
        responses = {
            (response.response.trial.id, response.response.clip.sha256): response for response in session.responses
        }
        for item in session.items:
            judged_response = responses[item.subject.trial_id, item.subject.clip_sha256]
            settled = judged_response.settled
            is_settled_by_other = rater is not None and settled is not None and settled.rater != rater
            if judged_response.submitted and not is_settled_by_other:
                agreed = len({row.category for row in judged_response.submitted}) == 1
                items.append(replace(item, inputs=judged_response.submitted, agreed=agreed))
    return tuple(items)


def _make_item(
    judged: JudgedResponse,
    seed: int,
    transcripts: Mapping[AttemptKey, Sequence[str]],
    effects: Mapping[AttemptKey, EffectEvidence],
    gold: Mapping[str, GoldItem],
    answered_wall_s: Mapping[str, float],
) -> Item:
    """An item that is not blinded yet. The mappings are by attempt, or by id of the trial."""
    response, trial = judged.response, judged.response.trial
    take = judged.trial.counting
    all_attempts = () if take is None else take.attempts
    attempts = [attempt for attempt in all_attempts if attempt.attempt <= response.attempt]
    answered = next((attempt for attempt in attempts if attempt.attempt == response.attempt), None)
    span_s, recognition = None, Recognition.UNKNOWN
    if answered is not None:
        recognition = answered.recognition or Recognition.UNKNOWN
        if answered.frozen:
            span_s = answered.frozen.starts.at_s, answered.frozen.ends.at_s
    if trial.until_understood:
        # Its frame decides whether it is repeated. Only an understood query has a response to judge.
        recognition = Recognition.YES
    key = (trial.id, response.take, response.attempt)
    earlier_hashes = (
        attempt.frozen.clip.sha256
        for earlier_take in judged.trial.takes
        if earlier_take.take < response.take
        for attempt in earlier_take.attempts
        if attempt.frozen
    )
    transcript = response.transcript
    if transcript is None and transcripts.get(key):
        transcript = transcripts[key][0]
    return Item(
        id=blind_id(seed, judged.session_id, trial.id, response.clip.sha256),
        query=trial.reference,
        subject=Subject(
            trial_id=trial.id,
            attempt=response.attempt,
            clip_sha256=response.clip.sha256,
            session_id=judged.session_id,
            take=response.take,
            span_s=span_s,
        ),
        clip=response.clip,
        attempts=len(attempts),
        waits_s=tuple(attempt.waited_s for attempt in attempts[1:]),
        recognition=recognition,
        latency=response.latency,
        length=response.length,
        truncated=response.truncated,
        transcript=transcript,
        core_capability=trial.core_capability,
        effect=effects.get(key),
        note=trial.note,
        hidden=HiddenDetails(
            device=trial.device,
            query_id=trial.query_id,
            query_class=trial.query_class,
            conditions=trial.conditions,
            gold=gold.get(trial.id),
            earlier_ids=tuple(blind_id(seed, judged.session_id, trial.id, sha256) for sha256 in earlier_hashes),
            answered_wall_s=answered_wall_s.get(trial.id, 0.0),
        ),
    )


DEVICE = "the device"


def blinded(item: Item, devices: Iterable[str]) -> Item:
    """The item with neutral evidence, and `the device` for every device name in its note.

    devices: ids and names of all devices of the session, since each name reveals something. Names match as whole words
    in any case. Query and response stay unchanged, since they are what is judged. An effect keeps what was wanted and
    what became of it, but not its source, in which devices differ.
    """
    pattern = _names_pattern(tuple(sorted(set(devices))))
    note = item.note if pattern is None else pattern.sub(DEVICE, item.note)
    effect = None if item.effect is None else _without_source(item.effect)
    return replace(item, note=note, effect=effect)


def _without_source(evidence: EffectEvidence) -> EffectEvidence:
    source = EffectSource.NONE if evidence.is_open else EffectSource.OPERATOR
    return EffectEvidence(EffectCheck(evidence.check.wanted), evidence.word, source)


@lru_cache(maxsize=64)
def _names_pattern(names: Sequence[str]) -> re.Pattern[str] | None:
    """Any of the names as a whole word, with an article in front if there is one. None without names."""
    longest_first = sorted(filter(None, names), key=len, reverse=True)  # a regular expression takes the first that fits
    if not longest_first:
        return None
    return re.compile(rf"(?<!\w)(?:the\s+)?(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
