"""One rater's sitting at a round: the current item, and the effect of each key. Does no I/O.

A key that labels an item saves a row and shows the next item. An exercise is explained first, until `go_on`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from harness.base.presence import Presence
from harness.base.user_text import checked_text
from harness.model.effect import EffectOutcome
from harness.model.judgment import (
    SUB_FLAGS_OF,
    Category,
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
from harness.rating.guide import LABELS
from harness.rating.items import CategoryProposal, Item, SeenProposal, last_seen_proposal, new_row, withdrawal
from harness.rating.rater_queue import OwnRows, RaterQueue, ReopenableItem
from harness.rating.view import Draft, ExerciseResult, SittingPhase, SittingView

SaveJudgment = Callable[[Item, Judgment], None]
"""Saves a row on the disk, then returns. Raises LogError or LogFull."""
Propose = Callable[[Item], CategoryProposal | None]
"""A classifier's proposal for an item; None for no proposal."""
END_SLACK_MS, END_SLACK_SHARE = 250, 0.3
"""A play that lacks less than both of these counts as complete, since sound devices report its end late."""


class Desk:
    """A sitting. A front-end calls one method for each key, then shows `view`. Not thread-safe.

    A call that writes returns after the row is on the disk. If that fails, the error is raised, and the item keeps its
    draft. `ids` makes the ids of rows; a request that may arrive twice begins there (`is_saved`).

    - items, exercises: all of the round; the desk selects and orders the rater's share.
    - rows: judgments so far, in any order.
    - program: whether the rater is a program.
    - adjudicating, growing: as in `SittingView`.
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
        self._set_aside_draft: tuple[str, Draft] | None = None
        """Id of the item to judge, and its draft, while another item is shown again."""
        self._shown_explanation: ExerciseResult | None = None
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
            own_row=None if self._item is None else queue.rows.in_force_on(self._item),
            is_reopened=self._is_reopened,
            can_go_back=queue.can_go_back,
            position=0 if self._item is None else queue.position(self._item) or 0,
            count=queue.count,
            exercises=queue.exercises,
            pace_s=queue.rows.pace_s,
            left_s=queue.left_s,
            draft=self._draft,
            explanation=self._shown_explanation,
            can_undo=queue.last is not None,
            stopped=queue.stopped,
            break_due=bool(minutes) and self._presence.busy_s > minutes * 60,
            message=self._message,
            proposal=self._visible_proposal(self._item),
            hides_text=self._hides_text,
            growing=self._may_grow,
        )

    def item(self, item_id: str) -> Item | None:
        """An item of this rater's queue, by its blind id."""
        return self._queue.item(item_id)

    def is_saved(self, request_id: str) -> bool:
        """Whether the row of a request begun in `ids` is on the disk."""
        return self.ids.first(request_id) in self._queue.rows

    def begin_aid(self) -> AidState | None:
        """The decision aid for the current item, after the answers of the harness; None without an item."""
        item = self._item
        if item is None:
            return None
        return AidState.begin(ResponseFacts.of(item.recognition, item.truncated, item.effect, item.core_capability))

    # Keys that write

    def judge(self, category: Category, *, sub_flags: Iterable[SubFlag] = (), aid_path: tuple[str, ...] = ()) -> bool:
        """Labels the current item, and shows the next or the explanation of an exercise.

        Returns False without an item, while an explanation is shown, or if the rater must hear the response first.

        - sub_flags: added to those of the draft, as far as the category allows them.
        - aid_path: path in the decision aid.
        """
        item = self._item_to_label()
        if item is None:
            return False
        if self._round.must_hear and item.exercise is None and not self._draft.heard_to_end:
            self._message = "listen to the whole response first, or put it aside if you cannot"
            return False
        allowed = SUB_FLAGS_OF.get(category, ())
        aid_flags = tuple(sub_flags)  # may contain two opposites: one thing is missing, another superfluous
        excluded = {*aid_flags, *map(_OPPOSITE.get, aid_flags)}
        flags = (*(flag for flag in self._draft.sub_flags if flag not in excluded), *aid_flags)
        notice = self._difference_message(item, category)
        row = self._make_row(
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
        if left_out:
            message += f"; without {', '.join(left_out)}"
        self._save_row(item, row, message)
        if item.exercise is not None:
            self._shown_explanation = ExerciseResult(item.exercise, category, item.exercise.is_right(category))
        else:
            self._show_next()
        return True

    def judge_as_program(self, category: Category, confidence: float, reason: str) -> bool:
        """Labels the current item as `judge` does, with a program's confidence (0–1) and reason."""
        self._change_draft(comment=checked_text(reason, "the reason"), program_confidence=confidence)
        return self.judge(category)

    def postpone(self) -> None:
        """Leaves the current item open without a row, and shows the next. It does not return in this sitting."""
        if self._item is not None:
            self._queue.postpone(self._item)
            self._show_next()

    def conclude(self, aid: AidState) -> bool:
        """Carries out the ending of the decision aid. Returns False before its end, or as `judge` does."""
        ending = aid.ending
        if ending is None:
            return False
        if ending.category is not None:
            return self.judge(ending.category, sub_flags=ending.sub_flags, aid_path=aid.path)
        if ending.flag is not None:
            return self.flag(ending.flag, aid_path=aid.path)
        return self.hold(aid_path=aid.path)

    def skip(self) -> bool:
        """Leaves the item for the end. A reopened item is left unchanged."""
        if self._is_reopened:
            return self.leave()
        return self._save_without_category(JudgmentStatus.SKIPPED, "left for later")

    def hold(self, *, aid_path: tuple[str, ...] = ()) -> bool:
        """Holds the item until its effect is known. Refused if it is known, since nothing would release the item."""
        item = self._item_to_label()
        if item is not None and item.effect is not None and item.effect.word is not EffectOutcome.UNKNOWN:
            self._message = "the effect is known; judge the response, or put it aside if you doubt it"
            return False
        return self._save_without_category(JudgmentStatus.HELD, "held until the effect is known", aid_path=aid_path)

    def flag(self, flag: Flag, *, aid_path: tuple[str, ...] = ()) -> bool:
        """Puts the item aside, with the reason."""
        message = f"put aside: {flag.value.replace('_', ' ')}"
        return self._save_without_category(JudgmentStatus.FLAGGED, message, aid_path=aid_path, flags=(flag.value,))

    def undo(self) -> bool:
        """Takes back the rater's latest row in this round, however old, and shows its item. Returns False if none is
        left."""
        self._presence.note_activity()
        latest = self._queue.last
        if latest is None:
            self._message = "nothing is left to undo"
            return False
        withdrawn, item = latest
        row = withdrawal(withdrawn, self._wall_s(), id_=self.ids.next())
        self._save(item, row)
        self._queue.add(row)
        if self._shown_explanation is None:
            self._set_draft_aside()
        self._shown_explanation = None
        self._show_item(item, withdrawn, reopened=not self._queue.is_open(item))
        self._message = "taken back; judge it again"
        return True

    # Reopened items: a new row replaces the one in force

    def reopenable_items(self, words: str = "") -> tuple[ReopenableItem, ...]:
        """Items that can be reopened and contain all the words, latest first; see `RaterQueue.reopenable_items`."""
        return self._queue.reopenable_items(words)

    def open(self, item_id: str) -> bool:
        """Reopens an item of `reopenable_items`. Returns False for other items, or while an explanation is shown."""
        self._presence.note_activity()
        reopenable = next((choice for choice in self.reopenable_items() if choice.item.id == item_id), None)
        if reopenable is None or self._shown_explanation is not None:
            self._message = "you cannot open that response again"
            return False
        self._reopen(reopenable)
        return True

    def earlier(self) -> bool:
        """Opens the item judged before the current one. Returns False at the first."""
        return self._go_to_neighbour(1)

    def later(self) -> bool:
        """Opens the item judged after the reopened one; after the last, the item to judge.

        Returns False if that is the current one.
        """
        return self._go_to_neighbour(-1)

    def leave(self) -> bool:
        """Leaves a reopened item unchanged, and shows the item to judge. Returns False if no item is reopened."""
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
        if self._shown_explanation is not None:
            self._shown_explanation, self._message = None, ""
            self._show_next()

    def release_held(self) -> None:
        """Puts held items into the queue without evidence of their effect."""
        self._presence.note_activity()
        self._queue.release_held()
        if self._item is None:
            self._show_next()

    def set_comment(self, text: str) -> None:
        """Sets the comment, which the next judgment saves. Raises InputError if it is not valid (`checked_text`)."""
        self._change_draft(comment=checked_text(text))

    def set_confidence(self, level: int | None) -> None:
        """Sets the confidence: 1 is unsure, 3 is sure. The current level clears it."""
        self._change_draft(confidence=None if level == self._draft.confidence else level)

    def set_sub_flags(self, flags: tuple[SubFlag, ...]) -> None:
        """Sets these sub-flags and no others. Two opposites may be among them, as in `judge`."""
        self._change_draft(sub_flags=flags)

    def toggle_sub_flag(self, flag: SubFlag) -> None:
        """Sets or clears a sub-flag; setting one clears its opposite."""
        flags = self._draft.sub_flags
        if flag in flags:
            new_flags = tuple(other for other in flags if other is not flag)
        else:
            opposite = _OPPOSITE.get(flag)
            new_flags = (*(other for other in flags if other is not opposite), flag)
        self._change_draft(sub_flags=new_flags)

    def set_effect_claimed(self, claimed: bool | None) -> None:
        """Sets whether the response claims that an action was done."""
        self._change_draft(effect_claimed=claimed)

    def show_transcript(self) -> bool:
        """Shows the transcript; the judgment stores that. Returns False if the round does not allow it."""
        if self._hides_text:
            self._message = "this round hides transcripts"
            return False
        self._change_draft(transcript_shown=True)
        return True

    def record_play(
        self, played_ms: int, *, began: bool, to_end: bool | None = None, item_id: str | None = None
    ) -> None:
        """Adds a played part of the response to the draft. began: whether it begins a new play.

        item_id: the item whose response was played; None for the current one. A play of another one does not count: a
        `refresh` may have replaced the item meanwhile.
        to_end: whether the front-end reports a complete play, which is accepted if all plays together last long enough.
        None: it does not report this, and played_ms is one play from the start, whose length decides.
        """
        if item_id is not None and (self._item is None or self._item.id != item_id):
            return
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

    def note_presence(self) -> None:
        """Records that the rater is present: a key, a loaded page, or a window that regained the focus."""
        if self._item is not None:  # without an item, pages reload without the rater
            self._presence.note_activity()

    def note_earlier_page(self) -> None:
        """Records that the rater judges the current item on a page from before this sitting.

        Its plays and times, and whether the transcript was shown, are then not fully known.
        """
        self._presence.began_earlier = True

    def refresh(self, items: Sequence[Item], rows: Iterable[Judgment], *, growing: bool = False) -> None:
        """Adds new responses, evidence and rows from elsewhere. The current item stays if it can."""
        self._may_grow = growing
        all_rows, gives_held = self._queue.rows.with_rows(rows), self._queue.gives_held
        self._queue = RaterQueue(self.rater, self._round, items, self._exercises, all_rows, gives_held=gives_held)
        if self._shown_explanation is not None:
            return
        refreshed = None if self._item is None else self.item(self._item.id)
        if refreshed is not None and (self._is_reopened or self._queue.is_open(refreshed)):
            self._item, self._is_reopened = refreshed, not self._queue.is_open(refreshed)
        else:
            self._show_next()

    # Inside

    @property
    def _hides_text(self) -> bool:
        return self._round.transcript is TranscriptPolicy.NEVER and self._phase() is not SittingPhase.TRAINING

    def _item_to_label(self) -> Item | None:
        """The item that a key labels, which also shows that the rater is present; None if no item can be labelled."""
        self._presence.note_activity()
        return None if self._shown_explanation is not None else self._item

    def _save_without_category(self, status: JudgmentStatus, message: str, **fields: Any) -> bool:
        """Saves a row without a category, and shows the next item. Returns False without an item or for an exercise.

        fields: further fields of the row.
        """
        item = self._item_to_label()
        if item is None or item.exercise is not None:
            self._message = "" if item is None else "an exercise needs a category"
            return False
        self._save_row(item, self._make_row(item, status, **fields), message)
        self._show_next()
        return True

    def _make_row(
        self, item: Item, status: JudgmentStatus, category: Category | None = None, **fields: Any
    ) -> Judgment:
        """A row for an item from the draft and its plays. fields: further fields of the row."""
        earlier = self._queue.rows.in_force_on(item)
        unaided_view = self._seen_proposal(item)
        shown = self._visible_proposal(item) or (None if unaided_view is None else unaided_view.proposal)
        proposal = shown or self._proposal_for(item)
        draft, is_known = self._draft, not self._presence.began_earlier
        return new_row(
            item.subject,
            self.rater,
            status,
            category,
            id_=self.ids.next(),
            replaces=earlier.id if earlier else None,
            comment=draft.comment,
            plays=draft.plays if is_known else None,
            time_to_answer_s=self._presence.time_to_answer_s,
            item_id=item.id,
            round=self._round.id,
            position=self._queue.position(item),
            confidence=draft.confidence,
            heard_ms=draft.heard_ms if is_known and not self._program else None,
            transcript_shown=draft.transcript_shown if is_known or draft.transcript_shown else None,
            effect_claimed=draft.effect_claimed,
            effect=None if item.effect is None or item.waits_for_effect else item.effect.word,
            shown_wall_s=self._shown_wall_s if is_known else None,
            given_wall_s=self._wall_s(),
            adjudicates=tuple(judgment.id for judgment in item.inputs),
            proposed=None if proposal is None else proposal.category,
            proposed_probability=None if proposal is None else proposal.probability,
            proposal_shown=ProposalShown.NEVER if shown is None else ProposalShown.BEFORE,
            unaided=None if unaided_view is None or category is None else unaided_view.unaided,
            program=self._program,
            program_confidence=draft.program_confidence,
            **fields,
        )

    # Proposals of a classifier: not for exercises, and not for adjudicators

    def _proposal_for(self, item: Item) -> CategoryProposal | None:
        """The classifier's proposal for an item, whether the rater may see it or not; None without one."""
        if self._propose is None or item.exercise is not None or item.inputs:
            return None
        return self._propose(item)

    def _seen_proposal(self, item: Item) -> SeenProposal | None:
        """The proposal that the rater has already seen, even if the choice was taken back since; None without one."""
        return None if item.exercise is not None or item.inputs else last_seen_proposal(self._queue.rows.all_on(item))

    def _visible_proposal(self, item: Item | None) -> CategoryProposal | None:
        """The proposal shown before the choice: if the round says so, or if the rater has seen it."""
        rule = self._round.proposals
        if item is None or rule is None or rule.show is ProposalShown.NEVER:
            return None
        if rule.show is ProposalShown.BEFORE:
            return self._proposal_for(item)
        unaided_view = self._seen_proposal(item)
        return None if unaided_view is None else unaided_view.proposal

    def _difference_message(self, item: Item, category: Category) -> str:
        """The message after a choice that differs from the proposal; "" if the rater had already seen that."""
        rule, proposal = self._round.proposals, self._proposal_for(item)
        if rule is None or rule.show is not ProposalShown.AFTER or proposal is None:
            return ""
        if self._seen_proposal(item) is not None:
            return ""
        return "" if proposal.category is category else f"the classifier would have proposed {proposal.words}; "

    def _save_row(self, item: Item, row: Judgment, message: str) -> None:
        self._save(item, row)
        self._queue.add(row)
        self._message = message

    def _change_draft(self, **changes: object) -> None:
        self._presence.note_activity()
        self._draft = replace(self._draft, **changes)  # type: ignore[arg-type]
        self._message = ""

    def _go_to_neighbour(self, step: int) -> bool:
        """Steps through the rater's own rows, backwards for 1, forwards for −1. Returns False at an end."""
        self._presence.note_activity()
        # Number 0 is the latest row. The item to judge, which follows it, has number −1.
        judged = [reopenable for reopenable in self.reopenable_items() if reopenable.row is not None]
        items = [reopenable.item for reopenable in judged]
        current = items.index(self._item) if self._is_reopened and self._item in items else -1
        target = current + step
        is_first_reached = target >= len(judged)
        is_last_reached = target < -1 or (target == -1 and not self._is_reopened)
        if self._shown_explanation is not None or is_first_reached or is_last_reached:
            self._message = "there is no earlier response" if step > 0 else "this is the response to judge"
            return False
        if target == -1:
            return self.leave()
        self._reopen(judged[target])
        return True

    def _reopen(self, reopenable: ReopenableItem) -> None:
        """Shows an item with its row."""
        self._set_draft_aside()
        self._show_item(reopenable.item, reopenable.row, reopened=not self._queue.is_open(reopenable.item))
        self._message = ""

    def _set_draft_aside(self) -> None:
        """Keeps the draft of the item to judge for `_show_next`, before another item is shown."""
        if self._item is not None and not self._is_reopened:
            self._set_aside_draft = self._item.id, self._draft

    def _show_next(self) -> None:
        """Shows the item to judge, with its draft if that was set aside."""
        item = self._queue.next
        self._show_item(item)
        if item is not None and self._set_aside_draft is not None:
            item_id, draft = self._set_aside_draft
            if item_id == item.id:
                self._draft = draft
        self._set_aside_draft = None

    def _show_item(self, item: Item | None, row: Judgment | None = None, *, reopened: bool = False) -> None:
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
        if self._shown_explanation is not None or (self._item is not None and self._item.exercise is not None):
            return SittingPhase.TRAINING
        return SittingPhase.JUDGING if self._item is not None else SittingPhase.FINISHED


_OPPOSITE = {
    SubFlag.TOO_LITTLE: SubFlag.TOO_MUCH,
    SubFlag.TOO_MUCH: SubFlag.TOO_LITTLE,
    SubFlag.RECOVERABLE: SubFlag.UNRECOVERABLE,
    SubFlag.UNRECOVERABLE: SubFlag.RECOVERABLE,
}
