"""One annotator's sitting at a project: what is shown, and what each key does. It draws nothing and opens no file."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence

from harness.annotation.queue import group_by_batch, pace_s
from harness.annotation.view import (
    AnnotationInput,
    AnnotationPhase,
    AnnotationView,
    GroupView,
    LabellingItem,
    PageLine,
    labels_text,
    marked_text,
    slot_texts,
)
from harness.annotation.worklist import HandDraft, PageDraft, Worklist
from harness.base.presence import Presence
from harness.base.user_text import checked_text
from harness.model.annotation import (
    Accepted,
    Act,
    Adjudicated,
    AnnotationRow,
    Intents,
    Labelled,
    Skipped,
    Slots,
    Struck,
    Withdrawn,
    utterances_of,
)
from harness.model.row_ids import RowIds
from harness.model.understanding import Slot


class AnnotationDesk:
    """One annotator's sitting. A front-end calls `note_presence` and one method per key, then shows `view`.

    Not thread-safe.

    A call that writes returns after its rows are on the disk. If that fails, the error is raised, and the page or
    utterance keeps its changes. Each call returns whether something was done. Then `said` of the view gives the result,
    or why nothing was done.

    `ids` makes the ids of the rows to write. Some front-ends may get the same request twice. They begin each request
    in `ids`, and check `is_saved`.
    """

    def __init__(
        self, work: Worklist, *, now_s: Callable[[], float] = time.monotonic, wall_s: Callable[[], float] = time.time
    ) -> None:
        self.annotator, self.adjudicating, self.label_set = work.annotator, work.adjudicating, work.label_set
        self.ids = RowIds(work.annotator)
        self._text = {utterance.id: utterance.text for utterance in work.utterances}
        self._words = {utterance.id: utterance.words for utterance in work.utterances}
        self._work = work
        self._wall_s = wall_s
        self._presence = Presence(now_s)
        self._shown_wall_s = 0.0
        self._chosen_phase = AnnotationPhase.REVIEWING
        self._postponed_groups: list[Intents] = []
        self._page: PageDraft | None = None
        self._draft: HandDraft | None = None
        self._feedback = ""
        self._show_next()

    # What is shown

    @property
    def view(self) -> AnnotationView:
        """What to show now."""
        count = self._work.queue.count
        pace = pace_s(self._work.ledger.acts, self.annotator, adjudicating=self.adjudicating)
        return AnnotationView(
            phase=self._phase,
            adjudicating=self.adjudicating,
            group=self._group(),
            page=self._page_lines(),
            item=self._item(),
            count=count,
            pace_s=pace,
            left_s=None if pace is None else pace * count.left,
            said=self._feedback,
            can_undo=self._work.last_act is not None,
            estimate=self._work.estimate,
        )

    def is_saved(self, request: str) -> bool:
        """Whether the request was carried out before: its first row is on the disk.

        request: id of a request that was begun in `ids`.
        """
        return self.ids.first(request) in self._work.ledger

    # Reviewing a page

    def strike_number(self, number: int) -> bool:
        """Strikes an utterance of the page, or takes the strike back. The number counts from 1."""
        if self._page is None:
            return self._refuse(NO_PAGE)
        if not 1 <= number <= len(self._page.utterances):
            return self._refuse(f"the page shows utterances 1 to {len(self._page.utterances)}")
        self._page.struck ^= {self._page.utterances[number - 1]}
        self._feedback = ""
        return True

    def accept_page(self) -> bool:
        """Accepts all utterances of the page that are not struck, and shows the next page or utterance.

        The struck ones go to labelling by hand. All rows are written in one commit.
        """
        page = self._page
        if page is None:
            return self._refuse(NO_PAGE)
        page_id, rows = str(uuid.uuid4()), []
        for batch, utterances in group_by_batch(self._work.ledger, page.utterances):
            accepted = tuple(utterance for utterance in utterances if utterance not in page.struck)
            struck = tuple(utterance for utterance in utterances if utterance in page.struck)
            for kind, judged in ((Accepted, accepted), (Struck, struck)):
                if judged:
                    row = kind(
                        id=self.ids.next(),
                        annotator=self.annotator,
                        batch=batch,
                        page=page_id,
                        intents=page.intents,
                        utterances=judged,
                        shown_wall_s=self._shown_wall_s,
                        given_wall_s=self._wall_s(),
                        time_s=self._presence.time_to_answer_s,
                    )
                    rows.append(row)
        self._work.write(rows)
        struck_count = len(page.struck)
        self._feedback = f"accepted {len(page.utterances) - struck_count}"
        if struck_count:
            self._feedback += f", struck {struck_count}"
        self._show_next()
        return True

    # Labelling by hand

    def toggle(self, label_id: str) -> bool:
        """Gives the shown utterance a label, or takes the label away."""
        if self._draft is None:
            return self._refuse(NO_ITEM)
        if self.label_set.label(label_id) is None:
            return self._refuse(f"there is no label {label_id!r}")
        self._draft.chosen ^= {label_id}
        self._feedback = ""
        return True

    def mark(self, concept: str, start: int, end: int) -> bool:
        """Marks words of the shown utterance as a slot, or removes this slot if it is marked already.

        Words are numbered from 0, and `end` is exclusive. Other slots with one of these words are removed.
        """
        refusal = self._marking_refusal(start, end)
        if not refusal and all(known_concept.id != concept for known_concept in self.label_set.concepts):
            refusal = f"there is no concept {concept!r}"
        if refusal or self._draft is None:
            return self._refuse(refusal)
        is_marked = self._draft.mark(Slot(concept, None, start, end))
        words = " ".join(self._words[self._draft.utterance][start:end])
        self._feedback = f"{words!r} is {'' if is_marked else 'not '}{concept}"
        return True

    def clear_slots(self, start: int, end: int) -> bool:
        """Removes all slots that contain one of these words; they are numbered as for `mark`."""
        refusal = self._marking_refusal(start, end)
        if refusal or self._draft is None:
            return self._refuse(refusal)
        self._feedback = ""
        return self._draft.clear(start, end) or self._refuse("there is no slot here")

    def take_proposed_slots(self) -> bool:
        """Replaces the marked slots by those that the slot model proposes, if the annotator may see them already."""
        draft = self._draft
        proposed = self._work.proposed_slots(draft.utterance) if draft is not None and draft.proposal_seen else ()
        if draft is None or not proposed:
            return self._refuse("no slots are proposed here")
        draft.slots, self._feedback = proposed, "marked as proposed"
        return True

    def save(self) -> bool:
        """Writes the chosen labels, unless the rules of the label set forbid them, and shows the next utterance.

        If a hidden proposal differs from the choice, it is shown once the choice is on the disk, and the utterance
        stays. The annotator may then change the choice. A second `save` keeps the choice and moves on.
        """
        draft = self._draft
        if draft is None:
            return self._refuse(NO_ITEM)
        intents = tuple(sorted(draft.chosen))
        refusal = self.label_set.refusal(intents)
        if refusal:
            return self._refuse(refusal)
        label_words = self._labels_in_words(draft.utterance, intents, draft.slots)
        if draft.saved != (intents, self._slots(draft), draft.comment):
            self._work.write([self._label_row(draft, intents)])
            draft.saved = intents, self._slots(draft), draft.comment
            self._feedback = f"saved as {label_words}"
        else:
            self._feedback = f"kept as {label_words}"
        proposal, slots = self._work.proposal(draft.utterance), self._work.proposed_slots(draft.utterance)
        differs = proposal != intents or (bool(slots) and slots != draft.slots)
        if not self.adjudicating and proposal is not None and not draft.proposal_seen and differs:
            draft.proposal_seen = True
            proposed = self._labels_in_words(draft.utterance, proposal, slots)
            self._feedback += f"; the proposal is {proposed}: save again to keep yours, or change it"
            return True
        self._show_next_item()
        return True

    def skip(self) -> bool:
        """Leaves the shown utterance for the end. When reviewing, leaves the whole group, and writes no row."""
        if self._page is not None:
            self._postponed_groups.append(self._page.intents)
            self._feedback = "group left for later"
        elif self._draft is None:
            return self._refuse("no utterance is open")
        elif self._draft.saved is not None:
            self._feedback = "kept as it was saved"
        else:
            row = Skipped(
                id=self.ids.next(),
                annotator=self.annotator,
                utterance=self._draft.utterance,
                adjudicating=self.adjudicating,
                comment=self._draft.comment,
                shown_wall_s=self._shown_wall_s,
                given_wall_s=self._wall_s(),
            )
            self._work.write([row])
            self._feedback = "left for later"
        self._show_next_item()
        return True

    def comment(self, text: str) -> bool:
        """Sets the comment on the shown utterance, which is written with its labels. InputError (`checked_text`)."""
        if self._draft is None:
            return self._refuse(NO_ITEM)
        self._draft.comment, self._feedback = checked_text(text), ""
        return True

    # Both

    def undo(self) -> bool:
        """Takes back the annotator's latest act in this project, and shows its utterance or page again.

        A page is taken back as a whole.
        """
        last = self._work.last_act
        if last is None:
            return self._refuse("nothing is left to undo")
        withdrawn = self._work.rows_to_withdraw(last)
        self._work.write(
            [Withdrawn(self.ids.next(), self.annotator, tuple(row.id for row in withdrawn), self._wall_s())]
        )
        if isinstance(last, Accepted | Struck):
            self._restore_page(last.intents, withdrawn)
        else:
            self._restore_item(last)
        self._feedback = "taken back"
        return True

    def go_to(self, phase: AnnotationPhase) -> bool:
        """Changes to reviewing or labelling by hand. False if there is nothing to do of this kind."""
        if phase is AnnotationPhase.REVIEWING and not self._work.queue.count.to_review:
            return self._refuse("there is no proposal to review")
        if phase is AnnotationPhase.LABELLING and not self._work.queue.by_hand:
            return self._refuse("there is nothing to label by hand")
        if phase is AnnotationPhase.FINISHED:
            return self._refuse("choose reviewing or labelling")
        if phase is not self._phase:
            self._chosen_phase, self._feedback = phase, ""
            self._show_next()
        return True

    def note_presence(self) -> None:
        """Notes a sign that the annotator is present: a key, a page that is loaded, a window that gets the focus."""
        self._presence.note_activity()

    def note_return(self) -> None:
        """Notes that the annotator returns from work on another desk, whose time does not count here."""
        self._presence.note_return()

    def note_earlier_page(self) -> None:
        """Records that the annotator works on a page from before this sitting, so that its time is not known."""
        self._presence.began_earlier = True

    def refresh(self, rows: Iterable[AnnotationRow]) -> bool:
        """Adds rows that were written elsewhere. Returns whether any of them was new.

        The shown page or utterance stays, as far as it is still to be done.
        """
        if not self._work.add_rows(rows):
            return False
        draft = self._draft
        if self._page is not None:
            self._page = self._page.restricted_to(self._work.unreviewed_with(self._page.intents))
        elif draft is not None and draft.saved is None and draft.utterance not in self._work.queue.by_hand:
            self._draft = None
        if self._page is None and self._draft is None:
            self._show_next()
        return True

    # Inside

    def _marking_refusal(self, start: int, end: int) -> str:
        """Why these words cannot be marked; "" if they can."""
        if self._draft is None:
            return NO_ITEM
        if not self.label_set.concepts:
            return "the label set of this project has no concepts: only intents are labelled"
        word_count = len(self._words.get(self._draft.utterance, ()))
        return "" if 0 <= start < end <= word_count else f"the utterance has words 1 to {word_count}"

    def _slots(self, draft: HandDraft) -> Slots | None:
        """The slots to write; None if the project does not annotate slots."""
        return draft.slots if self.label_set.concepts else None

    def _labels_in_words(self, utterance: str, intents: Intents, slots: Slots) -> str:
        return labels_text(intents, slot_texts(self._words.get(utterance, ()), slots))

    def _restore_page(self, intents: Intents, withdrawn: Sequence[Act]) -> None:
        """Shows a page that was taken back, with its strikes, as far as it is still to be done.

        withdrawn: the rows of the page.
        """
        page_utterances = sorted(
            (utterance for row in withdrawn for utterance in utterances_of(row)),
            key=lambda id_: (self._text.get(id_, "").casefold(), id_),
        )
        struck = {utterance for row in withdrawn if isinstance(row, Struck) for utterance in row.utterances}
        self._chosen_phase = AnnotationPhase.REVIEWING
        page = PageDraft(intents, tuple(page_utterances), struck).restricted_to(self._work.unreviewed_with(intents))
        if page is None:
            self._show_next()
        else:
            self._show(page=page)

    def _restore_item(self, last: Labelled | Skipped | Adjudicated) -> None:
        """Shows an utterance that was taken back, with its labels and comment, if it is still to be done."""
        self._chosen_phase = AnnotationPhase.LABELLING
        self._work.reopen(last.utterance)
        if last.utterance not in self._work.queue.by_hand:
            self._show_next()
            return
        draft = self._work.new_draft(last.utterance)
        draft.comment = last.comment
        if isinstance(last, Labelled | Adjudicated):
            draft.chosen, draft.slots = set(last.intents), last.slots or ()
        self._show(draft=draft)

    @property
    def _phase(self) -> AnnotationPhase:
        if self._page is not None:
            return AnnotationPhase.REVIEWING
        return AnnotationPhase.FINISHED if self._draft is None else AnnotationPhase.LABELLING

    def _refuse(self, reason: str) -> bool:
        """Shows why nothing was done. Returns False."""
        self._feedback = reason
        return False

    def _show_next_item(self) -> None:
        """Leaves the shown utterance, if there is one, and shows what comes next."""
        if self._draft is not None:
            self._work.mark_done(self._draft.utterance)
        self._show_next()

    def _show_next(self) -> None:
        """Shows the next page or utterance: of the chosen phase, else of the other one."""
        page, by_hand = self._work.next_page(self._postponed_groups), self._work.queue.by_hand
        if page is not None and (self._chosen_phase is AnnotationPhase.REVIEWING or not by_hand):
            self._show(page=page)
        else:
            self._show(draft=self._work.new_draft(by_hand[0]) if by_hand else None)

    def _show(self, *, page: PageDraft | None = None, draft: HandDraft | None = None) -> None:
        self._page, self._draft = page, draft
        self._shown_wall_s = self._wall_s()
        self._presence.begin()

    def _label_row(self, draft: HandDraft, intents: Intents) -> Labelled | Adjudicated:
        """A new row with the labels, slots and comment of a draft."""
        if self.adjudicating:
            return Adjudicated(
                id=self.ids.next(),
                annotator=self.annotator,
                utterance=draft.utterance,
                intents=intents,
                inputs=tuple(row.id for row in self._work.ledger.choices(draft.utterance).values()),
                comment=draft.comment,
                shown_wall_s=self._shown_wall_s,
                given_wall_s=self._wall_s(),
                time_s=self._presence.time_to_answer_s,
                slots=self._slots(draft),
            )
        return Labelled(
            id=self.ids.next(),
            annotator=self.annotator,
            utterance=draft.utterance,
            intents=intents,
            batch=self._work.ledger.proposal(draft.utterance).batch,
            proposal_shown=draft.proposal_seen and self._work.proposal(draft.utterance) is not None,
            comment=draft.comment,
            shown_wall_s=self._shown_wall_s,
            given_wall_s=self._wall_s(),
            time_s=self._presence.time_to_answer_s,
            slots=self._slots(draft),
        )

    def _page_lines(self) -> tuple[PageLine, ...]:
        page = self._page
        if page is None:
            return ()
        return tuple(
            PageLine(
                number,
                utterance,
                marked_text(self._words.get(utterance, ()), self._work.proposed_slots(utterance)),
                utterance in page.struck,
            )
            for number, utterance in enumerate(page.utterances, 1)
        )

    def _group(self) -> GroupView | None:
        """The group of the shown page; None without a page.

        Its number is 0 if the queue no longer has this group. That can happen after an undo, if others wrote rows in
        the meantime.
        """
        page, groups = self._page, self._work.queue.groups
        if page is None:
            return None
        for number, group in enumerate(groups, 1):
            if group.intents == page.intents:
                return GroupView(page.intents, number, len(groups), len(group.open), group.total)
        return GroupView(page.intents, 0, len(groups), len(page.utterances), len(page.utterances))

    def _item(self) -> LabellingItem | None:
        """The utterance to label, as it is shown; None when reviewing."""
        draft = self._draft
        if draft is None:
            return None
        chosen = tuple(sorted(draft.chosen))
        ledger = self._work.ledger
        choices = ledger.choices(draft.utterance).values() if self.adjudicating else ()
        words = self._words.get(draft.utterance, ())
        inputs = [
            AnnotationInput(
                row.intents,
                row.comment if isinstance(row, Labelled) else "",
                slot_texts(words, ledger.slots(draft.utterance, row) or ()),
            )
            for row in choices
        ]
        return LabellingItem(
            utterance=draft.utterance,
            text=self._text.get(draft.utterance, ""),
            chosen=tuple(label for label in self.label_set.ids if label in draft.chosen),
            saved=draft.saved == (chosen, self._slots(draft), draft.comment),
            proposal=self._work.proposal(draft.utterance) if draft.proposal_seen else None,
            struck=ledger.has_struck(draft.utterance, self.annotator),
            refusal=self.label_set.refusal(chosen),
            comment=draft.comment,
            # Sorted, so that their order does not reveal which annotator gave which labels.
            inputs=tuple(
                sorted(inputs, key=lambda annotation: (annotation.intents, annotation.slots, annotation.comment))
            ),
            words=words,
            slots=draft.slots,
            proposed_slots=slot_texts(words, self._work.proposed_slots(draft.utterance)) if draft.proposal_seen else (),
        )


NO_PAGE = "there is no page of proposals here"
NO_ITEM = "there is no utterance to label here"
