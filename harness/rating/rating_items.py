"""A session's first responses as items for raters, from its log and from the rows that raters added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.base.folder import SessionFolder
from harness.model.effect import EffectEvidence
from harness.model.judgment import GoldItem, Judgment, RatingRound
from harness.model.observation import ResponseText
from harness.model.record import EffectAnswered, Entry, JudgmentGiven, Observed, SharesMoved, chronological
from harness.model.trial import Recognition, Trial
from harness.rating.blinding import blinded
from harness.rating.figures.judged import JudgedResponse, judged_in
from harness.rating.items import Hidden, Item, blind_id
from harness.rating.judgments import Subject
from harness.session.figures.effects import Key
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.database import open_for_reading, rows
from harness.session.log.reader import LogReader


@dataclass(frozen=True, slots=True)
class SessionItems:
    """What one session folder gives raters. rows: all its judgments, oldest first. trials: by id, for their sounds.

    moves: what coordinators have given to other raters, oldest first; they stand with the first session of a round.
    """

    folder: Path
    session_id: str
    items: tuple[Item, ...]
    rows: tuple[Judgment, ...]
    responses: tuple[JudgedResponse, ...]
    trials: Mapping[str, Trial]
    moves: tuple[SharesMoved, ...] = ()


class RatingSource:
    """A session folder as raters see it; reads only what was added since it was last asked. Not thread-safe."""

    def __init__(self, folder: Path, round_: RatingRound) -> None:
        self._folder = folder
        self._seed = round_.seed
        self._gold = round_.gold
        self._figures = SessionFigures()
        self._said: dict[Key, list[str]] = {}
        self._seq = self._judgments_seq = 0
        self._at_bench: list[Entry] = []
        self._later: list[Entry] = []
        self._moves: list[SharesMoved] = []
        self._profiles = frozenset(one.stem for one in (SessionFolder(folder).inputs / "profiles").glob("*.yaml"))
        self._found: SessionItems | None = None

    def read(self) -> SessionItems:
        """Its responses that could be judged, not yet filtered or shuffled; LogError. Works while the session runs."""
        before = self._seq, self._judgments_seq
        with LogReader(self._folder) as reader:
            for entry in reader.entries(self._seq):
                self._seq = entry.seq
                self._take(entry)
            judgments = reader.folder.judgments
        if judgments.is_file():
            connection = open_for_reading(judgments, may_be_blank=True)
            try:
                for entry in rows(connection, judgments, self._judgments_seq):
                    self._judgments_seq = entry.seq
                    self._take_rating(entry)
            finally:
                connection.close()
        if self._found is None or before != (self._seq, self._judgments_seq):
            self._found = self._items()
        return self._found

    def _take(self, entry: Entry) -> None:
        self._figures.add(entry)
        match entry.record:
            case Observed(ResponseText(text=text), str(trial_id), int(take), int(attempt)):
                self._said.setdefault((trial_id, take, attempt), []).append(text)
            case JudgmentGiven():
                self._at_bench.append(entry)
            case _:
                pass

    def _take_rating(self, entry: Entry) -> None:
        if isinstance(entry.record, JudgmentGiven):
            self._later.append(entry)
        elif isinstance(entry.record, EffectAnswered):
            self._figures.add_later(entry)
        elif isinstance(entry.record, SharesMoved):
            self._moves.append(entry.record)

    def _items(self) -> SessionItems:
        progress = self._figures.snapshot()
        session_id = progress.session.session_id if progress.session else ""
        given = tuple(
            entry.record.judgment
            for entry in chronological(self._at_bench, self._later)
            if isinstance(entry.record, JudgmentGiven)
        )
        responses = judged_in(progress, given)
        gold = {one.trial: one for one in self._gold if one.session == session_id}
        names = self._profiles | _names_of_devices(progress)
        items = tuple(
            blinded(_item(one, self._seed, self._said, progress.effects, gold), names)
            for one in responses
            if one.trial.trial.memory is None
        )
        return SessionItems(self._folder, session_id, items, given, responses, _trials(progress), tuple(self._moves))


def _trials(progress: Progress) -> dict[str, Trial]:
    return {one.trial.id: one.trial for one in progress.trials}


def _names_of_devices(progress: Progress) -> frozenset[str]:
    """What texts of evidence may call a device: its own id, or that of what it tells us by."""
    trials = [one.trial for one in progress.trials]
    targets = [target for one in trials if one.listening is not None for target in one.listening.targets]
    ids = [(one.device, one.connection) for one in trials] + [(one.device, one.connection) for one in targets]
    return frozenset(name for pair in ids for name in pair)


def to_adjudicate(found: Sequence[SessionItems], rater: str | None = None) -> tuple[Item, ...]:
    """The items that raters have judged, each with their judgments as inputs; `agreed` are those on which none differs.

    Those that the rater has settled stay, so that they see how far they are and may take one back; those that somebody
    else has settled do not. rater None: all of them.
    """
    items = []
    for one in found:
        judged = {(each.response.trial.id, each.response.clip.sha256): each for each in one.responses}
        for item in one.items:
            each = judged[item.subject.trial_id, item.subject.clip_sha256]
            done = rater is not None and each.settled is not None and each.settled.rater != rater
            if each.submitted and not done:
                agreed = len({row.category for row in each.submitted}) == 1
                items.append(replace(item, inputs=each.submitted, agreed=agreed))
    return tuple(items)


def _item(
    judged: JudgedResponse,
    seed: int,
    said: Mapping[Key, Sequence[str]],
    effects: Mapping[Key, EffectEvidence],
    gold: Mapping[str, GoldItem],
) -> Item:
    response, trial = judged.response, judged.response.trial
    take = judged.trial.counting
    attempts = () if take is None else tuple(one for one in take.attempts if one.attempt <= response.attempt)
    frozen = next((one.frozen for one in attempts if one.attempt == response.attempt), None)
    told = said.get((trial.id, response.take, response.attempt))
    recognition = next((one.recognition for one in attempts if one.attempt == response.attempt), None)
    return Item(
        id=blind_id(seed, judged.session_id, trial.id, response.clip.sha256),
        query=trial.reference,
        subject=Subject(
            trial.id,
            response.attempt,
            response.clip.sha256,
            judged.session_id,
            response.take,
            (frozen.starts.at_s, frozen.ends.at_s) if frozen else None,
        ),
        clip=response.clip,
        attempts=len(attempts),
        waits_s=tuple(one.waited_s for one in attempts[1:]),
        recognition=recognition or Recognition.UNKNOWN,
        latency=response.latency,
        length=response.length,
        truncated=response.truncated,
        transcript=response.transcript if response.transcript is not None else told[0] if told else None,
        core_capability=trial.core_capability,
        effect=effects.get((trial.id, response.take, response.attempt)),
        note=trial.note,
        hidden=Hidden(
            judged.session_id,
            trial.id,
            trial.device,
            trial.query_id,
            trial.query_class,
            trial.conditions,
            gold.get(trial.id),
        ),
    )
