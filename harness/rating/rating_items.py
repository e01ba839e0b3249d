"""A session's first responses as items for raters, from its log and from the rows that raters added."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from harness.base.places import SessionFolder
from harness.model.effect import EffectCheck, EffectEvidence, EffectSource
from harness.model.errors import InputError, Place
from harness.model.judgment import Category, GoldItem, Judgment, ProposalRule, RatingRound
from harness.model.observation import ResponseText
from harness.model.record import EffectAnswered, Entry, JudgmentGiven, Observed, SharesMoved, chronological
from harness.model.trial import Recognition, Trial
from harness.rating.figures.judged import JudgedResponse, judged_in
from harness.rating.items import CategoryProposal, Hidden, Item, Subject, blind_id
from harness.session.figures.effects import EffectRows, Key
from harness.session.figures.trials import SessionTrials
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
        self._played = SessionTrials()
        self._effects = EffectRows()
        self._effects_said: list[Entry] = []
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
        self._played.take(entry.record)
        self._effects.add(entry)
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
            self._effects_said.append(entry)
        elif isinstance(entry.record, SharesMoved):
            self._moves.append(entry.record)

    def _items(self) -> SessionItems:
        session_id = self._played.session.session_id if self._played.session else ""
        trials = [one.trial for one in self._played.trials]
        effects = self._effects.evidence(self._effects_said)
        given = tuple(
            entry.record.judgment
            for entry in chronological(self._at_bench, self._later)
            if isinstance(entry.record, JudgmentGiven)
        )
        responses = judged_in(session_id, self._played.trials, given)
        gold = {one.trial: one for one in self._gold if one.session == session_id}
        names = self._profiles | _names_of_devices(trials)
        items = tuple(
            blinded(_item(one, self._seed, self._said, effects, gold), names)
            for one in responses
            if one.trial.trial.memory is None
        )
        by_id = {one.id: one for one in trials}
        return SessionItems(self._folder, session_id, items, given, responses, by_id, tuple(self._moves))


def _names_of_devices(trials: Sequence[Trial]) -> frozenset[str]:
    """What texts of evidence may call a device: its own id, or that of what it tells us by."""
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


DEVICE = "the device"


def blinded(item: Item, devices: Iterable[str]) -> Item:
    """The item with `the device` in place of every name of a device in its note, and with neutral evidence.

    devices: ids and names of all devices of the session, since another one's name tells whose response it is not.
    Names count as whole words, in capitals or not. What was said to the device and by it stays as it was: that is
    what is judged. Of an effect stays what was wanted, and what became of it: one device tells of its state in its own
    words, at another one somebody looks.
    """
    of_devices = _pattern(tuple(sorted(set(devices))))
    note = item.note if of_devices is None else of_devices.sub(DEVICE, item.note)
    return replace(item, note=note, effect=item.effect and _neutral(item.effect))


def _neutral(found: EffectEvidence) -> EffectEvidence:
    source = EffectSource.NONE if found.is_open else EffectSource.OPERATOR
    return EffectEvidence(EffectCheck(found.check.wanted), found.word, source)


@lru_cache(maxsize=64)
def _pattern(names: Sequence[str]) -> re.Pattern[str] | None:
    """Any of the names as a whole word with an article before it, the longest first; None of no names."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    if not longest:
        return None
    return re.compile(rf"(?<!\w)(?:the\s+)?(?:{'|'.join(map(re.escape, longest))})(?!\w)", re.IGNORECASE)


LEAST_RESPONSES = 20
LEAST_CATEGORIES = 2


class Proposer:
    """Says what it would give an item; thread-safe. The same rule, rows and seed give the same.

    own: ids of the sessions that are judged. LogError; PluginError when there is no such classifier or it cannot run;
    InputError when a source is one of `own` under another path, or has too little to learn from.
    """

    def __init__(self, rule: ProposalRule, own: Collection[str], *, seed: int, path: str = "") -> None:
        from harness.understanding.models.tritraining import classifier_maker  # here, since arrays are slow to import

        self._classifier = classifier_maker(rule.classifier, rule.settings)(seed)
        self._lock = threading.Lock()
        self._known: dict[str, CategoryProposal] = {}
        learnt = [one for folder in rule.sessions for one in _learnt(Path(folder), own)]
        given = {category for _, category in learnt}
        self._labels = tuple(one for one in Category if one in given)
        if len(learnt) < LEAST_RESPONSES or len(given) < LEAST_CATEGORIES:
            raise InputError(
                f"proposals have too little to learn from: {len(learnt)} responses with a category and a "
                f"text, of {len(given)} kinds",
                place=Place(path) if path else None,
                remedy=f"Name in `proposals: from:` sessions with {LEAST_RESPONSES} of them, of {LEAST_CATEGORIES} "
                "kinds at least: judged with `harness rate`, with a transcript or the device's own text; what raters "
                "disagree on does not count until it is settled",
            )
        texts, categories = zip(*learnt, strict=True)
        self._classifier.fit(texts, [(one.value,) for one in categories], [one.value for one in self._labels])

    def __call__(self, item: Item) -> CategoryProposal | None:
        """The likeliest category; None without a text of the response."""
        text = _text(item)
        if text is None:
            return None
        with self._lock:
            if text not in self._known:
                shares = self._classifier.probabilities([text])[0]
                best = int(shares.argmax())
                self._known[text] = CategoryProposal(self._labels[best], round(float(shares[best]), 4))
            return self._known[text]


def _learnt(folder: Path, own: Collection[str]) -> Iterator[tuple[str, Category]]:
    """Texts with the category that stands: the adjudication, else the one that all raters gave."""
    found = RatingSource(folder, RatingRound()).read()
    if found.session_id in own:
        raise InputError(
            f"{folder} is the session {found.session_id}, which this round judges: raters would be told their labels",
            remedy="Name in `proposals: from:` judged sessions that are none of `sessions`",
        )
    standing = {(one.response.trial.id, one.response.clip.sha256): one.agreed for one in found.responses}
    for item in found.items:
        text, category = _text(item), standing[item.subject.trial_id, item.subject.clip_sha256]
        if text is not None and category is not None:
            yield text, category


def _text(item: Item) -> str | None:
    """The query and what was answered."""
    return None if item.transcript is None else f"{item.query}\n{item.transcript}"
