"""A session's first responses as items for raters, from its log and from the rows that raters added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.evaluate.judged import JudgedResponse, judged_in
from harness.evaluate.progress import SessionFigures
from harness.log.judgment_log import rating_rows
from harness.log.reader import LogReader
from harness.model.judgment import Judgment
from harness.model.observation import ResponseText
from harness.model.rating_round import GoldItem, RatingRound
from harness.model.record import JudgmentGiven, Observed
from harness.model.trial import Recognition, Trial
from harness.rating.items import Hidden, Item, blind_id
from harness.rating.judgments import Subject

Attempt = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class SessionItems:
    """What one session folder gives raters. rows: all its judgments, oldest first. trials: by id, for their sounds."""

    folder: Path
    session_id: str
    items: tuple[Item, ...]
    rows: tuple[Judgment, ...]
    responses: tuple[JudgedResponse, ...]
    trials: Mapping[str, Trial]


def session_items(folder: Path, round_: RatingRound) -> SessionItems:
    """The session's responses that could be judged, not yet filtered or shuffled; LogError. Works while it runs."""
    figures = SessionFigures()
    said: dict[Attempt, list[str]] = {}
    with LogReader(folder) as reader:
        for entry in reader.entries():
            figures.add(entry)
            match entry.record:
                case Observed(ResponseText(text=text), str(trial_id), int(take), int(attempt)):
                    said.setdefault((trial_id, take, attempt), []).append(text)
                case _:
                    pass
    progress = figures.snapshot()
    session_id = progress.session.session_id if progress.session else ""
    given = tuple(e.record.judgment for e in rating_rows(folder) if isinstance(e.record, JudgmentGiven))
    responses = judged_in(progress, given)
    gold = {one.trial: one for one in round_.gold if one.session == session_id}
    items = tuple(_item(one, round_.seed, said, gold) for one in responses if one.trial.trial.memory is None)
    return SessionItems(
        folder, session_id, items, given, responses, {one.trial.id: one.trial for one in progress.trials}
    )


def disputed(found: Sequence[SessionItems]) -> tuple[Item, ...]:
    """The items on which raters differ, each with their judgments as inputs.

    Those that were settled stay, so that an adjudicator sees how far they are and may take one back.
    """
    inputs = {
        (one.session_id, each.response.trial.id, each.response.clip.sha256): each
        for one in found
        for each in one.responses
    }
    items = []
    for one in found:
        for item in one.items:
            judged = inputs[one.session_id, item.subject.trial_id, item.subject.clip_sha256]
            if len({row.category for row in judged.submitted}) > 1:
                items.append(replace(item, inputs=judged.submitted))
    return tuple(items)


def _item(
    judged: JudgedResponse, seed: int, said: Mapping[Attempt, Sequence[str]], gold: Mapping[str, GoldItem]
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
        said=told[0] if told else None,
        transcript=response.transcript,
        recogniser=response.recogniser,
        core_capability=trial.core_capability,
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
