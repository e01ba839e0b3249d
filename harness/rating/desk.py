"""One rater's sitting at a round: the current item, and the effect of each key. Does no I/O.

A key that labels an item saves a row and shows the next item. An exercise is explained first, until `go_on`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from harness.base.foreign import plain_text
from harness.base.presence import Presence
from harness.base.user_text import checked_text
from harness.model.effect import EffectEvidence, EffectOutcome
from harness.model.frozen import frozen
from harness.model.judgment import (
    SUB_FLAGS_OF,
    Category,
    Exercise,
    Flag,
    Judgment,
    JudgmentStatus,
    ProposalShown,
    RatingRound,
    SubFlag,
    TranscriptPolicy,
)
from harness.model.row_ids import RowIds
from harness.rating.aid import AidState, ResponseFacts
from harness.rating.guide import LABELS, SUB_FLAG_TEXTS, effect_text
from harness.rating.items import CategoryProposal, Item, SeenProposal, new_row, seen_in, withdrawal
from harness.rating.rater_queue import OwnRows, QueueCounts, RaterQueue, ReopenableItem


class SittingPhase(StrEnum):
    """What a rater does now. TRAINING: exercises, each explained. JUDGING: first responses. FINISHED: nothing more."""

    TRAINING = "training"
    JUDGING = "judging"
    FINISHED = "finished"


@frozen
class Draft:
    """Notes of a rater on the current item, saved with the category.

    heard_ms: sum over all plays. heard_to_end: whether a play was complete. transcript_shown: whether the rater saw it.
    """

    comment: str = ""
    confidence: int | None = None
    sub_flags: tuple[SubFlag, ...] = ()
    effect_claimed: bool | None = None
    transcript_shown: bool = False
    plays: int = 0
    heard_ms: int = 0
    heard_to_end: bool = False
    aid_path: tuple[str, ...] = ()
    program_confidence: float | None = None


@frozen
class ExerciseResult:
    """The explained answer to an exercise."""

    exercise: Exercise
    given: Category
    right: bool


@frozen
class SittingView:
    """What a front-end shows.

    own: the rater's row in force on the item. again: the rater reopened the item. can_go_back: items can be reopened.
    position: that of the item, from 1. exercises: (done, all). pace_s: median time to an answer. left_s: time left at
    that pace. explained: the explanation that waits for `go_on`. stopped: the rater failed known answers and gets no
    more items. break_due: the rater has judged for long without a rest. said: the effect of the last key, in words.
    proposal: the classifier's, if the rater may see it before choosing. hides_text: the round never shows the
    transcript. growing: items may still be added, which changes positions and counts."""

    phase: SittingPhase
    rater: str
    adjudicating: bool = False
    item: Item | None = None
    own: Judgment | None = None
    again: bool = False
    can_go_back: bool = False
    position: int = 0
    count: QueueCounts = field(default_factory=QueueCounts)
    exercises: tuple[int, int] = (0, 0)
    pace_s: float | None = None
    left_s: float | None = None
    draft: Draft = field(default_factory=Draft)
    explained: ExerciseResult | None = None
    can_undo: bool = False
    stopped: bool = False
    break_due: bool = False
    said: str = ""
    proposal: CategoryProposal | None = None
    hides_text: bool = False
    growing: bool = False


SaveJudgment = Callable[[Item, Judgment], None]
"""Saves a row on the disk, then returns; LogError, LogFull."""
Propose = Callable[[Item], CategoryProposal | None]
"""A classifier's proposal for an item; None for no proposal."""
END_SLACK_MS, END_SLACK_SHARE = 250, 0.3
"""A play that lacks less than both of these counts as complete, since sound devices report its end late. Chosen."""


class Desk:
    """A sitting. A front-end calls one method for each key, then shows `view`. Not thread-safe.

    A call that writes returns after the row is on the disk. If that fails, the error is raised, and the item keeps its
    draft. items, exercises: all of the round; the desk selects and orders the rater's share. rows: judgments so far, in
    any order. program: the rater is a program. adjudicating: the rater settles items on which raters differ. growing:
    items may still be added. `ids` makes the ids of rows; a request that may arrive twice begins there (`is_saved`).
    """

    def __init__(
        self,
        rater: str,
        round_: RatingRound,
        items: Sequence[Item],
        exercises: Sequence[Item],
        rows: Iterable[Judgment],
        save: SaveJudgment,
        *,
        propose: Propose | None = None,
        program: bool = False,
        adjudicating: bool = False,
        growing: bool = False,
        now_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self.rater = rater
        self.adjudicating = adjudicating
        self._may_grow = growing
        self.ids = RowIds(rater)
        self._round = round_
        self._save = save
        self._propose = propose
        self._program = program
        self._wall_s = wall_s
        self._exercises = tuple(exercises)
        self._queue = RaterQueue(rater, round_, items, self._exercises, OwnRows(rater, round_, rows))
        self._item: Item | None = None
        self._is_reopened = False  # the current item
        self._draft = Draft()
        self._set_aside: tuple[str, Draft] | None = None  # the item to judge, and its draft, while another is reopened
        self._explained: ExerciseResult | None = None
        self._shown_wall_s = 0.0
        self._presence = Presence(now_s)
        self._message = ""
        self._show_next()

    # What is shown

    @property
    def view(self) -> SittingView:
        """The current state of the sitting."""
        queue = self._queue
        minutes = self._round.break_after_min
        return SittingView(
            phase=self._phase(),
            rater=self.rater,
            adjudicating=self.adjudicating,
            item=self._item,
            own=None if self._item is None else queue.rows.standing(self._item),
            again=self._is_reopened,
            can_go_back=queue.can_go_back,
            position=0 if self._item is None else queue.position(self._item) or 0,
            count=queue.count,
            exercises=queue.exercises,
            pace_s=queue.rows.pace_s,
            left_s=queue.left_s,
            draft=self._draft,
            explained=self._explained,
            can_undo=queue.last is not None,
            stopped=queue.stopped,
            break_due=bool(minutes) and self._presence.busy_s > minutes * 60,
            said=self._message,
            proposal=self._shown_proposal(self._item),
            hides_text=self._hides_text,
            growing=self._may_grow,
        )

    def item(self, item_id: str) -> Item | None:
        """An item of this rater's queue, by its blind id."""
        return self._queue.item(item_id)

    def is_saved(self, request: str) -> bool:
        """Whether the row of a request begun in `ids` is on the disk."""
        return self.ids.first(request) in self._queue.rows

    def begin_aid(self) -> AidState | None:
        """The decision aid for the current item, after the answers of the harness; None without an item."""
        item = self._item
        if item is None:
            return None
        return AidState.begin(ResponseFacts.of(item.recognition, item.truncated, item.effect, item.core_capability))

    # Keys that write

    def judge(self, category: Category, *, sub_flags: Iterable[SubFlag] = (), aid_path: tuple[str, ...] = ()) -> bool:
        """Labels the current item and shows the next; False without an item, or while an explanation is shown.

        sub_flags: added to those of the draft, as far as the category allows them. aid_path: path in the decision aid.
        """
        item = self._item_to_label()
        if item is None:
            return False
        if self._round.must_hear and item.exercise is None and not self._draft.heard_to_end:
            self._message = "listen to the whole response first, or put it aside if you cannot"
            return False
        allowed = SUB_FLAGS_OF.get(category, ())
        noted = tuple(sub_flags)  # the aid may note both of two opposites: one thing is missing, another superfluous
        excluded = {*noted, *map(_OPPOSITE.get, noted)}
        flags = (*(flag for flag in self._draft.sub_flags if flag not in excluded), *noted)
        notice = self._difference_message(item, category)
        row = self._row(
            item,
            JudgmentStatus.SUBMITTED,
            category,
            sub_flags=tuple(flag.value for flag in flags if flag in allowed),
            aid_path=aid_path or self._draft.aid_path,
        )
        if notice:
            row = replace(row, proposal_shown=ProposalShown.AFTER)
        left_out = [flag.value.replace("_", " ") for flag in flags if flag not in allowed]
        message = f"{notice}saved as {LABELS[category]}"
        self._save_row(item, row, f"{message}; without {', '.join(left_out)}" if left_out else message)
        if item.exercise is not None:
            self._explained = ExerciseResult(item.exercise, category, item.exercise.is_right(category))
        else:
            self._show_next()
        return True

    def judge_as_program(self, category: Category, confidence: float, reason: str) -> bool:
        """`judge`, with a program's confidence (0–1) and reason."""
        self._change(comment=checked_text(reason, "the reason"), program_confidence=confidence)
        return self.judge(category)

    def postpone(self) -> None:
        """Leaves the current item open without a row, and shows the next. It does not return in this sitting."""
        if self._item is not None:
            self._queue.postpone(self._item)
            self._show_next()

    def conclude(self, aid: AidState) -> bool:
        """Carries out the ending of the decision aid; False before its end."""
        ending = aid.ending
        if ending is None:
            return False
        if ending.category is not None:
            return self.judge(ending.category, sub_flags=ending.sub_flags, aid_path=aid.path)
        if ending.flag is not None:
            return self.flag(ending.flag, aid_path=aid.path)
        return self.hold(aid_path=aid.path)

    def skip(self) -> bool:
        """Leaves the item for the end; leaves a reopened item unchanged."""
        if self._is_reopened:
            return self.leave()
        return self._put_aside(JudgmentStatus.SKIPPED, "left for later")

    def hold(self, *, aid_path: tuple[str, ...] = ()) -> bool:
        """Holds the item until its effect is known. Refused if it is known, since nothing would release the item."""
        item = self._item_to_label()
        if item is not None and item.effect is not None and item.effect.word is not EffectOutcome.UNKNOWN:
            self._message = "the effect is known; judge the response, or put it aside if you doubt the effect"
            return False
        return self._put_aside(JudgmentStatus.HELD, "held until the effect is known", aid_path=aid_path)

    def flag(self, flag: Flag, *, aid_path: tuple[str, ...] = ()) -> bool:
        """Puts the item aside, with the reason."""
        message = f"put aside: {flag.value.replace('_', ' ')}"
        return self._put_aside(JudgmentStatus.FLAGGED, message, aid_path=aid_path, flags=(flag.value,))

    def undo(self) -> bool:
        """Takes back the rater's latest row in this round, whatever its day, and shows its item."""
        self._presence.note_activity()
        latest = self._queue.last
        if latest is None:
            self._message = "nothing is left to undo"
            return False
        withdrawn, item = latest
        row = withdrawal(withdrawn, self._wall_s(), id_=self.ids.next())
        self._save(item, row)
        self._queue.add(row)
        self._explained = None
        self._show(item, withdrawn, reopened=not self._queue.open(item))
        self._message = "taken back; judge it again"
        return True

    # Reopened items: a new row replaces the one in force

    def reopenable_items(self, words: str = "") -> tuple[ReopenableItem, ...]:
        """Items that can be reopened and contain all the words, latest first; see `RaterQueue.reopenable_items`."""
        return self._queue.reopenable_items(words)

    def open(self, item_id: str) -> bool:
        """Reopens an item of `reopenable_items`; False for other items, or while an explanation is shown."""
        self._presence.note_activity()
        entry = next((candidate for candidate in self.reopenable_items() if candidate.item.id == item_id), None)
        if entry is None or self._explained is not None:
            self._message = "you cannot open that response again"
            return False
        self._reopen(entry)
        return True

    def earlier(self) -> bool:
        """Opens the item judged before the current one; False at the first."""
        return self._step(1)

    def later(self) -> bool:
        """Opens the item judged after the reopened one; after the last, the item to judge."""
        return self._step(-1)

    def leave(self) -> bool:
        """Leaves a reopened item unchanged, and shows the item to judge."""
        self._presence.note_activity()
        if not self._is_reopened:
            return False
        self._show_next()
        self._message = "left unchanged"
        return True

    # Keys that only change the draft

    def go_on(self) -> None:
        """Ends the explanation of an exercise."""
        self._presence.note_activity()
        if self._explained is not None:
            self._explained, self._message = None, ""
            self._show_next()

    def release_held(self) -> None:
        """Puts held items into the queue without evidence of their effect."""
        self._presence.note_activity()
        self._queue.release_held()
        if self._item is None:
            self._show_next()

    def comment(self, text: str) -> None:
        """Sets the comment, which the next judgment saves; InputError if it is not valid (`checked_text`)."""
        self._change(comment=checked_text(text))

    def confidence(self, level: int | None) -> None:
        """Sets the confidence: 1 is unsure, 3 is sure. The current level clears it."""
        self._change(confidence=None if level == self._draft.confidence else level)

    def toggle(self, flag: SubFlag) -> None:
        """Sets or clears a sub-flag; setting one clears its opposite."""
        flags = self._draft.sub_flags
        removed = flag if flag in flags else _OPPOSITE.get(flag)
        rest = tuple(other for other in flags if other is not removed)
        self._change(sub_flags=rest if flag in flags else (*rest, flag))

    def effect_claimed(self, claimed: bool | None) -> None:
        """Sets whether the response claims that an action was done."""
        self._change(effect_claimed=claimed)

    def show_transcript(self) -> bool:
        """Shows the transcript if the round allows it. The judgment stores that it was shown."""
        if self._hides_text:
            self._message = "this round hides transcripts"
            return False
        self._change(transcript_shown=True)
        return True

    def heard(self, played_ms: int, *, began: bool, to_end: bool | None = None) -> None:
        """Adds a played part of the response. began: whether it begins a new play.

        to_end: whether the front-end reports a complete play; accepted if all plays together last long enough. None: it
        does not report this, and played_ms is one play from the start, which decides.
        """
        self._presence.note_activity(max(0, played_ms) / 1000)
        draft, clip = self._draft, None if self._item is None else self._item.clip
        heard_ms = draft.heard_ms + max(0, played_ms)
        length_ms = 0.0 if clip is None else clip.duration_s * 1000
        complete_ms = length_ms - min(END_SLACK_MS, END_SLACK_SHARE * length_ms)
        is_complete = played_ms >= complete_ms if to_end is None else to_end and heard_ms >= complete_ms
        plays = draft.plays + 1 if began else draft.plays
        heard_to_end = draft.heard_to_end or is_complete
        self._draft = replace(draft, heard_ms=heard_ms, plays=plays, heard_to_end=heard_to_end)

    # From outside

    def present(self) -> None:
        """Records that the rater is present: a key, a loaded page, or a window that regained the focus."""
        if self._item is not None:  # without an item, pages reload without the rater
            self._presence.note_activity()

    def refresh(self, items: Sequence[Item], rows: Iterable[Judgment], *, growing: bool = False) -> None:
        """Adds new responses, evidence and rows from elsewhere. The current item stays if it can."""
        self._may_grow = growing
        all_rows, with_held = self._queue.rows.with_rows(rows), self._queue.with_held
        self._queue = RaterQueue(self.rater, self._round, items, self._exercises, all_rows, with_held=with_held)
        if self._explained is not None:
            return
        refreshed = None if self._item is None else self.item(self._item.id)
        if refreshed is not None and (self._is_reopened or self._queue.open(refreshed)):
            self._item, self._is_reopened = refreshed, not self._queue.open(refreshed)
        else:
            self._show_next()

    @property
    def _hides_text(self) -> bool:
        return self._round.transcript is TranscriptPolicy.NEVER and self._phase() is not SittingPhase.TRAINING

    def _item_to_label(self) -> Item | None:
        self._presence.note_activity()
        return None if self._explained is not None else self._item

    def _put_aside(self, status: JudgmentStatus, message: str, **more: Any) -> bool:
        item = self._item_to_label()
        if item is None or item.exercise is not None:
            self._message = "" if item is None else "an exercise needs a category"
            return False
        self._save_row(item, self._row(item, status, **more), message)
        self._show_next()
        return True

    def _row(self, item: Item, status: JudgmentStatus, category: Category | None = None, **more: Any) -> Judgment:
        earlier = self._queue.rows.standing(item)
        unaided_view = self._seen_for(item)
        shown = self._shown_proposal(item) or (None if unaided_view is None else unaided_view.proposal)
        proposal = shown or self._proposal(item)
        return new_row(
            item.subject,
            self.rater,
            status,
            category,
            id_=self.ids.next(),
            replaces=earlier.id if earlier else None,
            comment=self._draft.comment,
            plays=self._draft.plays,
            time_to_answer_s=self._presence.time_to_answer_s,
            item_id=item.id,
            round=self._round.id,
            position=self._queue.position(item),
            confidence=self._draft.confidence,
            heard_ms=None if self._program else self._draft.heard_ms,
            transcript_shown=self._draft.transcript_shown,
            effect_claimed=self._draft.effect_claimed,
            effect=None if item.effect is None or item.waits_for_effect else item.effect.word,
            shown_wall_s=self._shown_wall_s,
            given_wall_s=self._wall_s(),
            adjudicates=tuple(judgment.id for judgment in item.inputs),
            proposed=None if proposal is None else proposal.category,
            proposed_probability=None if proposal is None else proposal.probability,
            proposal_shown=ProposalShown.NEVER if shown is None else ProposalShown.BEFORE,
            unaided=None if unaided_view is None or category is None else unaided_view.unaided,
            program=self._program,
            program_confidence=self._draft.program_confidence,
            **more,
        )

    # Proposals of a classifier: not for exercises, and not for adjudicators

    def _proposal(self, item: Item) -> CategoryProposal | None:
        if self._propose is None or item.exercise is not None or item.inputs:
            return None
        return self._propose(item)

    def _seen_for(self, item: Item) -> SeenProposal | None:
        """The proposal that the rater has already seen, even if the choice was taken back since; None without one."""
        return None if item.exercise is not None or item.inputs else seen_in(self._queue.rows.all_of(item))

    def _shown_proposal(self, item: Item | None) -> CategoryProposal | None:
        """The proposal shown before the choice: if the round says so, or if the rater has seen it."""
        rule = self._round.proposals
        if item is None or rule is None or rule.show is ProposalShown.NEVER:
            return None
        if rule.show is ProposalShown.BEFORE:
            return self._proposal(item)
        unaided_view = self._seen_for(item)
        return None if unaided_view is None else unaided_view.proposal

    def _difference_message(self, item: Item, category: Category) -> str:
        """The message after a choice that differs from the proposal; "" if the rater had already seen that."""
        rule, proposal = self._round.proposals, self._proposal(item)
        if rule is None or proposal is None or rule.show is not ProposalShown.AFTER or self._seen_for(item) is not None:
            return ""
        return "" if proposal.category is category else f"the classifier would have proposed {proposal.words}; "

    def _save_row(self, item: Item, row: Judgment, message: str) -> None:
        self._save(item, row)
        self._queue.add(row)
        self._message = message

    def _change(self, **changes: object) -> None:
        self._presence.note_activity()
        self._draft = replace(self._draft, **changes)  # type: ignore[arg-type]
        self._message = ""

    def _step(self, step: int) -> bool:
        """Steps through the rater's own rows, backwards for 1, forwards for −1."""
        self._presence.note_activity()
        # Number 0 is the latest row. The item to judge, which follows it, has number −1.
        judged = [entry for entry in self.reopenable_items() if entry.row is not None]
        items = [entry.item for entry in judged]
        current = items.index(self._item) if self._is_reopened and self._item in items else -1
        goal = current + step
        if self._explained is not None or not -1 <= goal < len(judged) or (goal < 0 and not self._is_reopened):
            self._message = "there is no earlier response" if step > 0 else "this is the response to judge"
            return False
        if goal < 0:
            return self.leave()
        self._reopen(judged[goal])
        return True

    def _reopen(self, entry: ReopenableItem) -> None:
        if self._item is not None and not self._is_reopened:
            self._set_aside = self._item.id, self._draft
        self._show(entry.item, entry.row, reopened=not self._queue.open(entry.item))
        self._message = ""

    def _show_next(self) -> None:
        item = self._queue.next
        self._show(item)
        if item is not None and self._set_aside is not None and self._set_aside[0] == item.id:
            self._draft = self._set_aside[1]
        self._set_aside = None

    def _show(self, item: Item | None, row: Judgment | None = None, *, reopened: bool = False) -> None:
        """Shows an item, with the notes of a row. reopened: whether it is judged again."""
        self._draft = Draft(transcript_shown=self._round.transcript is TranscriptPolicy.SHOWN)
        if row is not None:
            self._draft = Draft(
                comment=row.comment,
                confidence=row.confidence,
                sub_flags=tuple(SubFlag(name) for name in row.sub_flags),
                effect_claimed=row.effect_claimed,
                transcript_shown=self._draft.transcript_shown or bool(row.transcript_shown),
                plays=row.plays or 0,
                heard_ms=row.heard_ms or 0,
                heard_to_end=row.category is not None,
            )
        self._item, self._is_reopened = item, reopened
        self._shown_wall_s = self._wall_s()
        self._presence.begin()

    def _phase(self) -> SittingPhase:
        if self._explained is not None or (self._item is not None and self._item.exercise is not None):
            return SittingPhase.TRAINING
        return SittingPhase.JUDGING if self._item is not None else SittingPhase.FINISHED


_OPPOSITE = {
    SubFlag.TOO_LITTLE: SubFlag.TOO_MUCH,
    SubFlag.TOO_MUCH: SubFlag.TOO_LITTLE,
    SubFlag.RECOVERABLE: SubFlag.UNRECOVERABLE,
    SubFlag.UNRECOVERABLE: SubFlag.RECOVERABLE,
}


SURE: dict[int, str] = {1: "unsure", 2: "fairly sure", 3: "sure"}


def effect_words(evidence: EffectEvidence) -> tuple[str, str]:
    return plain_text(evidence.check.wanted, 200) or "an effect", effect_text(evidence)


def found_words(entry: ReopenableItem) -> str:
    """An item that can be reopened, as one line of escaped text."""
    answer = "agreed" if entry.row is None else given_words(entry.row)
    return f"{plain_text(entry.item.query, 120)}: {answer}"


def given_words(row: Judgment) -> str:
    """A row as one line of escaped text: category, sub-flags, confidence, comment, path in the decision aid."""
    if row.category is None:
        return {
            JudgmentStatus.SKIPPED: "left for later",
            JudgmentStatus.HELD: "held until the effect is known",
            JudgmentStatus.FLAGGED: "put aside",
        }.get(row.status, row.status.value)
    parts = [LABELS[row.category]]
    flag_texts = {flag.value: words for flag, words in SUB_FLAG_TEXTS.items()}
    if row.sub_flags:
        parts[0] += f" ({', '.join(flag_texts.get(name, plain_text(name, 40)) for name in row.sub_flags)})"
    if row.confidence is not None:
        parts.append(SURE[row.confidence])
    if row.comment:
        parts.append(f"“{plain_text(row.comment, 300)}”")
    if row.aid_path:
        parts.append(f"aid: {plain_text(', '.join(row.aid_path), 300)}")
    return " · ".join(parts)
