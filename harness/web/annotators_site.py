"""The annotators' site: each annotator's desk, and the search for utterances to label again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.annotation.view import AnnotationPhase, LabellingItem
from harness.annotation.worklist import FoundUtterance, find, may_label_again
from harness.model.annotation import (
    LINE_KEYS,
    MAX_ON_A_PAGE,
    AnnotationAction,
    AnnotationProject,
    LabelSet,
    action_key,
    keys_of,
    label_keys,
)
from harness.web.base_site import SiteWords, Templates
from harness.web.invitations import HERE, Invitations, SiteReach
from harness.web.seats import BaseSeat, PostResult, SeatedSite, SubmittedForm, clean_search, hash_content


@dataclass(slots=True)
class UtteranceSearch:
    """An annotator's search among their utterances.

    - words: the words to find; "" before the first search.
    - opened: id of the utterance that was opened last; "" if none was.
    - relabelling: the desk for the opened utterance, until its labels are saved or left unchanged; None without one.
    """

    words: str = ""
    opened: str = ""
    relabelling: AnnotationDesk | None = None

    @property
    def shows_utterance(self) -> bool:
        """Whether a found utterance is shown, not the list."""
        return self.relabelling is not None and self.relabelling.view.phase is not AnnotationPhase.FINISHED


@dataclass(slots=True)
class AnnotationSeat(BaseSeat):
    """An annotator's seat.

    - own_desk: their desk for open utterances, which waits during a search.
    - search: the open search; None without one.
    """

    room: AnnotationRoom
    own_desk: AnnotationDesk
    search: UtteranceSearch | None = None

    @property
    def desk(self) -> AnnotationDesk:
        """The desk on which the keys of the page act."""
        if self.search is None or self.search.relabelling is None:
            return self.own_desk
        return self.search.relabelling

    @property
    def shows_list(self) -> bool:
        """Whether the list of found utterances is shown."""
        return self.search is not None and not self.search.shows_utterance

    @property
    def item_key(self) -> str:
        """Identifies a group's page or the utterance to label, with the proposals that are shown, or the search."""
        view = self.desk.view
        if self.search is not None and self.shows_list:
            parts = ["found", self.search.words]
        else:
            parts = [view.phase.value]
            if view.group is not None:
                # A later batch may propose other labels or slots for the same utterances.
                parts += [*view.group.intents, *(f"{line.utterance}\0{line.text}" for line in view.page)]
            if view.item is not None:
                parts += [view.item.utterance, str(view.item.proposal)]
            if self.search is not None:
                parts.append("again")
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def comment(self) -> str:
        item = self.desk.view.item
        return "" if item is None else item.comment

    @property
    def is_waiting(self) -> bool:
        return self.search is None and self.own_desk.view.phase is AnnotationPhase.FINISHED

    def note_presence(self) -> None:
        self.desk.note_presence()

    def note_earlier_page(self) -> None:
        self.desk.note_earlier_page()

    def is_saved(self, post_id: str) -> bool:
        return self.own_desk.is_saved(post_id) or self.desk.is_saved(post_id)

    def refresh(self) -> None:
        """Adds labels that were given elsewhere."""
        self.own_desk.refresh(self.room.rows)
        if self.desk is not self.own_desk:
            self.desk.refresh(self.room.rows)

    # Find and relabel

    def found_utterances(self) -> tuple[FoundUtterance, ...]:
        """The utterances with these words that the annotator may label again."""
        if self.search is None or not self.search.words:
            return ()
        room, desk = self.room, self.own_desk
        return find(
            room.utterances,
            self.search.words,
            room.ledger,
            room.assignment,
            desk.annotator,
            adjudicating=desk.adjudicating,
        )

    def open(self, utterance: str) -> bool:
        """Opens an utterance with its labels. Returns False if it must not be labelled again."""
        room, annotator, adjudicating = self.room, self.own_desk.annotator, self.own_desk.adjudicating
        if self.search is None or all(candidate.id != utterance for candidate in room.utterances):
            return False
        if not may_label_again(room.ledger, room.assignment, annotator, utterance, adjudicating=adjudicating):
            return False
        make_desk = room.adjudication if adjudicating else room.desk
        self.search.opened = utterance
        self.search.relabelling = make_desk(annotator, (utterance,))
        return True

    def back(self) -> bool:
        """Goes back from an utterance to the list, or from the list to the open work. Returns False if that is already
        shown."""
        if self.search is None:
            return False
        if self.search.relabelling is not None:
            self.own_desk.note_return()
        if self.search.shows_utterance:
            self.search.relabelling = None
        else:
            self.search = None
            self.refresh()
        return True


TEMPLATES = (
    "annotation_desk.html",
    "annotation_found.html",
    "annotation_guide.html",
    "annotation_guide_text.html",
    "annotation_instructions.html",
)
MAX_FOUND = 50
WORDS = SiteWords(
    name="Annotating",
    welcome="Annotating utterances",
    kept="which labels you give, and when, under your pseudonym",
    go_on="Continue annotating",
    rest="Everything that you accepted, struck or labelled is saved. You may close this window.",
)


def annotator_templates(labels: LabelSet, project: AnnotationProject) -> Templates:
    """The templates of the annotators' pages."""
    keys = label_keys(labels)
    exclusive = [label.id for label in labels.labels if label.alone]
    return Templates(
        TEMPLATES,
        WORDS,
        {
            "project": project,
            "labels": labels,
            "label_key": keys,
            "concept_key": keys_of(labels.concepts),
            "line_keys": (*LINE_KEYS, *[""] * max(MAX_ON_A_PAGE, MAX_FOUND)),
            "alone": exclusive,
            "never": [list(pair) for pair in labels.never_together],
            "review_key": {action.value: action_key(action) for action in AnnotationAction},
            "hand_key": {action.value: action_key(action, labels) for action in AnnotationAction},
        },
    )


SlotSpan = tuple[int, int, str]
"""A slot: its first word (from 0), the word after its last, and its concept."""
_SLOT = re.compile(r"([0-9]{1,6}):([0-9]{1,6}):(\S+)")


def desk_values(seat: AnnotationSeat, labels: LabelSet) -> Mapping[str, Any]:
    """The values for the page of a seat."""
    view = seat.desk.view
    item = view.item
    return {
        "page": seat.add_page(),
        "view": view,
        "item": item,
        "reviewing": view.phase is AnnotationPhase.REVIEWING,
        "labelling": view.phase is AnnotationPhase.LABELLING,
        "again": seat.search is not None,
        "finished": view.phase is AnnotationPhase.FINISHED,
        "guide_of": [(intent, labels.label(intent)) for intent in (view.group.intents if view.group else ())],
        "done_share": view.count.done / view.count.total if view.count.total else None,
        "slots": "" if item is None else " ".join(f"{start}:{end}:{concept}" for start, end, concept in _spans(item)),
    }


def _spans(item: LabellingItem) -> tuple[SlotSpan, ...]:
    """The slots marked so far."""
    return tuple((slot.start or 0, slot.end or 0, slot.concept) for slot in item.slots)


def search_values(seat: AnnotationSeat) -> Mapping[str, Any]:
    """The values for the search page."""
    hits = seat.found_utterances()
    search = seat.search or UtteranceSearch()
    view = search.relabelling.view if search.relabelling is not None else None
    return {
        "words": search.words,
        "found": hits[:MAX_FOUND],
        "opened": search.opened,
        "many": len(hits),
        "said": view.said if view is not None else "",
        "can_undo": view is not None and view.can_undo,
        "adjudicating": seat.own_desk.adjudicating,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationPost(SubmittedForm):
    """A form of the annotators' pages.

    - struck: numbers of the struck lines.
    - labels: ids of the chosen labels.
    - words: the words to find.
    - span: first word of a slot (from 0), and the word after its last; (0, 0) for none.
    - slots: the slots that its page shows.
    """

    struck: frozenset[int]
    labels: frozenset[str]
    words: str
    span: tuple[int, int]
    slots: tuple[SlotSpan, ...]


def _parse_span(first: str, last: str) -> tuple[int, int]:
    """The span of words that two numbers name, counted from 1. The last number may be "", for a single word.

    Returns (0, 0) for numbers that are not valid.
    """
    if not re.fullmatch(r"[0-9]{1,6}", first) or not re.fullmatch(r"[0-9]{0,6}", last):
        return 0, 0
    return int(first) - 1, int(last or first)


def _fill_draft(seat: AnnotationSeat, post: AnnotationPost) -> None:
    """Changes the draft of the desk to that of the form. Raises InputError for a comment that is not valid."""
    desk = seat.desk
    view = desk.view
    for line in view.page:
        if line.struck != (line.number in post.struck):
            desk.strike_number(line.number)
    if view.item is None:
        return
    for id_ in desk.label_set.ids:
        if (id_ in view.item.chosen) != (id_ in post.labels):
            desk.toggle(id_)
    if post.slots != _spans(view.item):  # the page is from before a restart of the site
        desk.clear_slots(0, len(view.item.words))
        for start, end, concept in post.slots:
            desk.mark(concept, start, end)
    seat.save_comment(post, desk.comment)


def _press_search_button(seat: AnnotationSeat, post: AnnotationPost) -> bool | None:
    """Searches, opens an utterance, or goes back. Returns the same as `_press_desk_button`."""
    action, _, utterance = post.button.partition(".")
    match action:
        case "find":
            seat.search = UtteranceSearch(post.words)
            return True
        case "again":
            return seat.open(utterance) or None
        case "undo" if seat.search is not None and seat.search.relabelling is not None:
            return seat.search.relabelling.undo()
        case "back":
            return seat.back()
    return None


def _press_desk_button(desk: AnnotationDesk, post: AnnotationPost) -> bool | None:
    """Carries out a button of the desk. Returns whether that had an effect; None for an unknown button.

    Raises LogError or LogFull if saving fails.
    """
    action, _, detail = post.button.partition(".")
    match action:
        case "mark" if detail:
            return desk.mark(detail, *post.span)
        case "clear" if not detail:
            return desk.clear_slots(*post.span)
        case "go" if detail in ("reviewing", "labelling"):
            return desk.go_to(AnnotationPhase(detail))
    methods = {"accept": desk.accept_page, "save": desk.save, "skip": desk.skip, "undo": desk.undo,
            "take": desk.take_proposed_slots}  # fmt: skip
    return methods[post.button]() if post.button in methods else None


MAX_OTHER_FIELDS = 20
"""More fields than a form has, apart from those of its lines or labels."""


class AnnotationSite(SeatedSite[AnnotationSeat, AnnotationPost]):
    """The site. Parameters are as in `BaseSite`."""

    PLACE = "/annotate"
    INSTRUCTIONS, GUIDE = "annotation_instructions.html", "annotation_guide.html"
    STALE = "Nothing was saved: you have worked in another window since. This is the page that is open now."
    NOT_INVITED = (
        "You are invited to this site, but you are not an annotator of this project. Ask the person who invited you."
    )

    def __init__(self, room: AnnotationRoom, invitations: Invitations, *, reached: SiteReach = HERE) -> None:
        self._room = room
        templates = annotator_templates(room.label_set, room.project)
        max_fields = MAX_OTHER_FIELDS + max(MAX_ON_A_PAGE, len(room.label_set.labels))
        super().__init__(room, invitations, templates, reached=reached, max_fields=max_fields)

    def _new_seat(self, name: str, known_reading: int, *, adjudicating: bool) -> AnnotationSeat:
        desk = self._room.adjudication(name) if adjudicating else self._room.desk(name)
        return AnnotationSeat(self._room, desk, known_reading=known_reading)

    def _update_desk(self, seat: AnnotationSeat) -> None:
        seat.refresh()

    def _seat_page(self, seat: AnnotationSeat) -> tuple[str, Mapping[str, object]]:
        if seat.shows_list:
            return "annotation_found.html", search_values(seat)
        return "annotation_desk.html", desk_values(seat, self._room.label_set)

    def _parse_form(self, fields: Mapping[str, str], form: FormData) -> AnnotationPost:
        struck = sorted(str(number) for number in form.getlist("struck"))
        labels = sorted(str(label) for label in form.getlist("label"))
        return AnnotationPost(
            button=fields.get("do", ""),
            turn=fields.get("turn", ""),
            item_key=fields.get("sight", ""),
            page=fields.get("page", ""),
            struck=frozenset(int(number) for number in struck if re.fullmatch(r"[0-9]{1,3}", number)),
            labels=frozenset(labels),
            comment=fields.get("comment"),
            has_draft="has_draft" in fields,
            words=clean_search(fields.get("words", "")),
            content_hash=hash_content({**fields, "struck": ",".join(struck), "label": "\0".join(labels)}),
            span=_parse_span(fields.get("from", ""), fields.get("to", "")),
            slots=tuple(
                (int(start), int(end), concept) for start, end, concept in _SLOT.findall(fields.get("slots", ""))
            ),
        )

    def _apply(self, seat: AnnotationSeat, post: AnnotationPost) -> PostResult:
        refusal = seat.refusal(post, outlasts_restart=post.button != "undo")
        if refusal is not None:
            return refusal
        if post.has_draft and not seat.shows_list:
            _fill_draft(seat, post)
        if post.button.startswith("draft"):
            return PostResult.DONE
        seat.desk.ids.begin(post.post_id)
        if seat.shows_list or post.button in ("find", "back"):
            had_effect = _press_search_button(seat, post)
        else:
            had_effect = _press_desk_button(seat.desk, post)
        if had_effect is None:
            return PostResult.UNKNOWN
        if had_effect:
            seat.begin_turn(post.post_id)
        return PostResult.DONE
