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
    chronological,
)
from harness.model.trial import Outcome, Recognition, Trial
from harness.rating.figures.judged_responses import JudgedResponse, judged_in, with_one_name
from harness.rating.items import HiddenDetails, Item, Subject, blind_id
from harness.session.figures.effects import AttemptKey, EffectRows
from harness.session.figures.trials import SessionTrials
from harness.session.log.reader import LogReader


@frozen
class SessionItems:
    """One session folder, for raters. rows: all its judgments, oldest first. trials: trials by id, for their sounds.

    moves: responses that coordinators moved, oldest first; stored with the first session of a round. finished: whether
    no more responses will come. inconclusive: number of trials with an answer, but no evidence of recognition.
    """

    folder: Path
    session_id: str
    items: tuple[Item, ...]
    rows: tuple[Judgment, ...]
    responses: tuple[JudgedResponse, ...]
    trials: Mapping[str, Trial]
    moves: tuple[SharesMoved, ...] = ()
    finished: bool = True
    inconclusive: int = 0


class RatingSource:
    """Reads a session folder for raters, each time only what is new. Not thread-safe."""

    def __init__(self, folder: Path, round_: RatingRound, names: dict[str, str] | None = None) -> None:
        self._names = {} if names is None else names
        self._folder = folder
        self._seed = round_.seed
        self._gold = round_.gold
        self._session_trials = SessionTrials()
        self._effects = EffectRows()
        self._effects_said: list[Entry] = []
        self._texts: dict[AttemptKey, list[str]] = {}
        self._answered_wall_s: dict[str, float] = {}
        self._latest_wall_s = 0.0
        self._seq = self._judgments_seq = 0
        self._items_of = (0, 0)
        self._bench_rows: list[Entry] = []
        self._later_rows: list[Entry] = []
        self._moves: list[SharesMoved] = []
        self._profiles = frozenset(path.stem for path in (SessionFolder(folder).inputs / "profiles").glob("*.yaml"))
        self._session_items: SessionItems | None = None
        self._session_has_finished = False

    def read(self) -> SessionItems:
        """All responses that can be judged, unfiltered and in order; LogError. Works while the session runs."""
        with LogReader(self._folder) as reader:
            for entry in reader.entries(self._seq):
                self._seq = entry.seq
                self._add_row(entry)
            judgments = reader.folder.judgments
        if judgments.is_file():
            for entry in read_entries(judgments, self._judgments_seq, may_be_blank=True):
                self._judgments_seq = entry.seq
                self._add_later_row(entry)
        last = self._seq, self._judgments_seq
        if self._session_items is None or self._items_of != last:  # rows may also be those of a reading that failed
            self._session_items, self._items_of = self._items(), last
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
                self._session_has_finished = isinstance(entry.record, SessionFinished)
            case _:
                pass

    def _add_later_row(self, entry: Entry) -> None:
        if isinstance(entry.record, JudgmentGiven):
            self._later_rows.append(entry)
        elif isinstance(entry.record, EffectAnswered):
            self._effects_said.append(entry)
        elif isinstance(entry.record, SharesMoved):
            self._moves.append(entry.record)

    def _items(self) -> SessionItems:
        session_id = self._session_trials.session.session_id if self._session_trials.session else ""
        trials = [trial.trial for trial in self._session_trials.trials]
        effects = self._effects.evidence(self._effects_said)
        entries = chronological(self._bench_rows, self._later_rows)
        rows = (entry.record.judgment for entry in entries if isinstance(entry.record, JudgmentGiven))
        judgments = tuple(with_one_name(rows, self._names))
        responses = judged_in(session_id, self._session_trials.trials, judgments)
        gold = {gold_item.trial: gold_item for gold_item in self._gold if gold_item.session == session_id}
        names = self._profiles | _names_of_devices(trials)
        items = tuple(
            blinded(_item(response, self._seed, self._texts, effects, gold, self._answered_wall_s), names)
            for response in responses
            if response.trial.trial.memory is None
        )
        by_id = {trial.id: trial for trial in trials}
        return SessionItems(
            folder=self._folder,
            session_id=session_id,
            items=items,
            rows=judgments,
            responses=responses,
            trials=by_id,
            moves=tuple(self._moves),
            finished=self._session_has_finished,
            inconclusive=sum(trial.outcome is Outcome.INCONCLUSIVE for trial in self._session_trials.trials),
        )


def _names_of_devices(trials: Sequence[Trial]) -> frozenset[str]:
    """Names that evidence may use for a device: its id, or that of one of its sources."""
    targets = [target for trial in trials if trial.listening is not None for target in trial.listening.targets]
    ids = [(trial.device, *trial.sources) for trial in trials] + [
        (target.device, *target.sources) for target in targets
    ]
    return frozenset(name for names in ids for name in names)


def to_adjudicate(sessions: Sequence[SessionItems], rater: str | None = None) -> tuple[Item, ...]:
    """Judged items, with their judgments as inputs. `agreed`: all judgments are equal.

    Items that this adjudicator settled stay, so that they see their progress and can undo. Items that others settled
    are left out. rater None: all items.
    """
    items = []
    for session in sessions:
        responses = {
            (response.response.trial.id, response.response.clip.sha256): response for response in session.responses
        }
        for item in session.items:
            judged_response = responses[item.subject.trial_id, item.subject.clip_sha256]
            settled = judged_response.settled
            is_adjudicated = rater is not None and settled is not None and settled.rater != rater
            if judged_response.submitted and not is_adjudicated:
                agreed = len({row.category for row in judged_response.submitted}) == 1
                items.append(replace(item, inputs=judged_response.submitted, agreed=agreed))
    return tuple(items)


def _item(
    judged: JudgedResponse,
    seed: int,
    transcripts: Mapping[AttemptKey, Sequence[str]],
    effects: Mapping[AttemptKey, EffectEvidence],
    gold: Mapping[str, GoldItem],
    answered_wall_s: Mapping[str, float],
) -> Item:
    response, trial = judged.response, judged.response.trial
    take = judged.trial.counting
    attempts = (
        () if take is None else tuple(attempt for attempt in take.attempts if attempt.attempt <= response.attempt)
    )
    freeze = next((attempt.frozen for attempt in attempts if attempt.attempt == response.attempt), None)
    texts = transcripts.get((trial.id, response.take, response.attempt))
    recognition = next((attempt.recognition for attempt in attempts if attempt.attempt == response.attempt), None)
    transcript = response.transcript
    if transcript is None and texts:
        transcript = texts[0]
    if trial.until_understood:
        # Its frame decides whether it is repeated. Only an understood query has a response to judge.
        recognition = Recognition.YES
    return Item(
        id=blind_id(seed, judged.session_id, trial.id, response.clip.sha256),
        query=trial.reference,
        subject=Subject(
            trial.id,
            response.attempt,
            response.clip.sha256,
            judged.session_id,
            response.take,
            (freeze.starts.at_s, freeze.ends.at_s) if freeze else None,
        ),
        clip=response.clip,
        attempts=len(attempts),
        waits_s=tuple(attempt.waited_s for attempt in attempts[1:]),
        recognition=recognition or Recognition.UNKNOWN,
        latency=response.latency,
        length=response.length,
        truncated=response.truncated,
        transcript=transcript,
        core_capability=trial.core_capability,
        effect=effects.get((trial.id, response.take, response.attempt)),
        note=trial.note,
        hidden=HiddenDetails(
            session_id=judged.session_id,
            trial_id=trial.id,
            device=trial.device,
            query_id=trial.query_id,
            query_class=trial.query_class,
            conditions=trial.conditions,
            gold=gold.get(trial.id),
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
    of_devices = _pattern(tuple(sorted(set(devices))))
    note = item.note if of_devices is None else of_devices.sub(DEVICE, item.note)
    return replace(item, note=note, effect=item.effect and _neutral(item.effect))


def _neutral(evidence: EffectEvidence) -> EffectEvidence:
    source = EffectSource.NONE if evidence.is_open else EffectSource.OPERATOR
    return EffectEvidence(EffectCheck(evidence.check.wanted), evidence.word, source)


@lru_cache(maxsize=64)
def _pattern(names: Sequence[str]) -> re.Pattern[str] | None:
    """Any of the names as a whole word, with an article in front; the longest first. None without names."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    if not longest:
        return None
    return re.compile(rf"(?<!\w)(?:the\s+)?(?:{'|'.join(map(re.escape, longest))})(?!\w)", re.IGNORECASE)
