"""A rater's sitting in labelled lines: for screen readers and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.foreign import plain_text
from harness.dashboard.rating_words import effect_words, found_words, given_words
from harness.model.judgment import RaterKeys, TranscriptPolicy
from harness.model.trial import Recognition
from harness.rating.categories import LABELS
from harness.rating.guide import GUIDE, RULES
from harness.rating.items import Item
from harness.rating.sitting_view import Explained, Given, Phase, SittingView

LONGEST = 1000
MOST_FOUND = 50


def item_lines(view: SittingView, policy: TranscriptPolicy, *, names: bool = False) -> Iterator[str]:
    """The item in sight; where there is none, why."""
    item, count = view.item, view.count
    if item is None and view.stopped:
        yield "you get no more responses in this round: too many of your answers differ from known ones"
        return
    if item is None:
        yield f"nothing is left to judge: {count.done} of {count.total} done, {count.held} held"
        if count.held:
            yield "held: waits until it is known what the device did; `held` judges it all the same"
        return
    if item.exercise is not None:
        yield f"exercise {view.exercises[0] + 1} of {view.exercises[1]}"
    else:
        yield f"response {view.position} of {count.total}{' again' if view.again else ''}, {progress(view)}"
    yield f"query: {plain_text(item.query, LONGEST)}"
    if item.exercise is None:
        yield f"attempts: {item.attempts}{_waits(item)}"
        yield f"response: {_response(item)}"
        if item.recognition is Recognition.NO:
            yield "recognised: no, other words were heard"
    if item.effect is not None:
        wanted, known = effect_words(item.effect)
        yield f"wanted effect: {wanted}"
        yield f"effect: {known}"
    if item.note:
        yield f"{'what it did' if item.exercise is not None else 'note'}: {plain_text(item.note, LONGEST)}"
    if item.core_capability:
        yield "core capability: every such device must be able to do this"
    yield from text_lines(view, policy)
    if view.proposal is not None:
        yield f"the classifier says: {view.proposal.words}"
    for number, row in enumerate(item.inputs, 1):
        whose = f" of {plain_text(row.rater, 60)}" if names else ""
        yield f"judgment {number}{whose}: {given_words(row)}"
    if view.own is not None:
        yield f"yours so far: {given_words(view.own)}"
    if view.break_due:
        yield "you have judged for long: a break would do you good"


def found_lines(found: Sequence[Given]) -> Iterator[str]:
    """What may be opened again."""
    for one in found[:MOST_FOUND]:
        yield f"{one.item.id}: {found_words(one)}"
    if len(found) > MOST_FOUND:
        yield f"and {len(found) - MOST_FOUND} more; `find` with more words"
    if not found:
        yield "nothing that you have judged has these words"


def text_lines(view: SittingView, policy: TranscriptPolicy) -> Iterator[str]:
    """What was said in writing, where it may be seen."""
    item = view.item
    if item is None:
        return
    if not view.draft.transcript_shown:
        if view.phase is Phase.TRAINING or policy is TranscriptPolicy.ON_REQUEST:
            yield "transcript: hidden; `text` shows it"
        return
    words = "there is none" if item.transcript is None else plain_text(item.transcript, LONGEST)
    yield f"transcript: {words}"


def progress(view: SittingView) -> str:
    """How much is left, and how long it takes at the rater's pace."""
    count = view.count
    parts = [f"{count.left} left"]
    if count.held:
        parts.append(f"{count.held} held")
    if view.left_s is not None:
        parts.append(f"about {max(1, round(view.left_s / 60))} min at your pace")
    return ", ".join(parts)


def status_lines(view: SittingView) -> Iterator[str]:
    """Where the rater stands."""
    count = view.count
    yield f"rater: {plain_text(view.rater)}"
    if view.exercises[1]:
        yield f"exercises: {view.exercises[0]} of {view.exercises[1]} done"
    yield (
        f"responses: {count.total}, {count.done} done, {count.left} left, {count.skipped} of them left for the end, "
        f"{count.held} held, {count.flagged} put aside"
    )
    pace = "n/a, nothing is judged yet" if view.pace_s is None else f"{view.pace_s:.1f} s a response"
    yield f"pace: {pace}" + ("" if view.left_s is None else f", about {max(1, round(view.left_s / 60))} min left")
    draft = view.draft
    said = [f"sure {draft.confidence}"] if draft.confidence else []
    said += [flag.value for flag in draft.sub_flags]
    said += [f"comment {plain_text(draft.comment, 200)}"] if draft.comment else []
    if said:
        yield f"kept for the judgment that follows: {', '.join(said)}"


def explained_lines(explained: Explained) -> Iterator[str]:
    """The answer to an exercise."""
    exercise = explained.exercise
    also = "".join(f" or {LABELS[one]}" for one in exercise.accept)
    verdict = "right" if explained.right else "not so"
    yield f"{verdict}: it is {LABELS[exercise.category]}{also}; you said {LABELS[explained.given]}"
    yield f"why: {plain_text(exercise.why, LONGEST)}"


def guide_lines(keys: RaterKeys) -> Iterator[str]:
    """Categories with their keys, and the rules."""
    for category, text in GUIDE.items():
        yield f"{keys.categories[category]} {LABELS[category]}: {text.short}. {text.test}"
    for rule in RULES:
        yield f"rule: {rule}"


def _waits(item: Item) -> str:
    if not item.waits_s:
        return ""
    waited = ", ".join("unknown" if one is None else f"{one:.1f} s" for one in item.waits_s)
    return f"; waited {waited}"


def _response(item: Item) -> str:
    parts = ["length unknown" if item.length is None else f"{item.length.value_s:.1f} s long"]
    if item.latency is not None:
        parts.append(f"{item.latency.value_s:.1f} s after the query")
    if item.truncated:
        parts.append("cut at the time limit, it went on")
    return ", ".join(parts)
