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
from harness.annotation.view import AnnotationPhase
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
from harness.web.seats import BaseSeat, PostResult, SeatedSite, SubmittedForm, content_mark, search_words


@dataclass(slots=True)
class UtteranceSearch:
    """An annotator's search among their utterances. words: the words to find; "" before the first search.

    opened: id of the utterance that was opened last. again: the sitting at it, until its labels are saved or left
    unchanged; None without one.
    """

    words: str = ""
    opened: str = ""
    again: AnnotationDesk | None = None

    @property
    def is_open(self) -> bool:
        """Whether a found utterance is shown, not the list."""
        return self.again is not None and self.again.view.phase is not AnnotationPhase.FINISHED


@dataclass(slots=True)
class AnnotationSeat(BaseSeat):
    """An annotator's seat. own: their sitting at open utterances, which waits during a search. finding: the search;
    None if none is open."""

    room: AnnotationRoom
    own: AnnotationDesk
    finding: UtteranceSearch | None = None

    @property
    def desk(self) -> AnnotationDesk:
        """The desk on which the keys of the page act."""
        return self.own if self.finding is None or self.finding.again is None else self.finding.again

    @property
    def is_listing(self) -> bool:
        """Whether the list of found utterances is shown."""
        return self.finding is not None and not self.finding.is_open

    @property
    def sight(self) -> str:
        """Identifies the utterances of a group's page, the one to label, or the search."""
        view = self.desk.view
        if self.finding is not None and self.is_listing:
            parts = ["found", self.finding.words]
        else:
            parts = [view.phase.value, *(line.utterance for line in view.page)]
            parts += [view.item.utterance, str(view.item.saved)] if view.item is not None else []
            parts += ["again"] if self.finding is not None else []
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def comment(self) -> str:
        item = self.desk.view.item
        return "" if item is None else item.comment

    @property
    def waits(self) -> bool:
        return self.finding is None and self.own.view.phase is AnnotationPhase.FINISHED

    def present(self) -> None:
        self.desk.present()

    def is_saved(self, request: str) -> bool:
        return self.own.is_saved(request) or self.desk.is_saved(request)

    def refresh(self) -> None:
        """Adds labels that were given elsewhere."""
        for desk in {id(desk): desk for desk in (self.own, self.desk)}.values():
            desk.refresh(self.room.rows)

    # Find and relabel

    def found_utterances(self) -> tuple[FoundUtterance, ...]:
        """The utterances with these words that the annotator may label again."""
        if self.finding is None or not self.finding.words:
            return ()
        room, annotator = self.room, self.own.annotator
        words, settles = self.finding.words, self.own.adjudicating
        return find(room.utterances, words, room.ledger, room.assignment, annotator, adjudicating=settles)

    def open(self, utterance: str) -> bool:
        """Opens an utterance with its labels; False if it must not be labelled again."""
        room, annotator, settles = self.room, self.own.annotator, self.own.adjudicating
        if self.finding is None or all(candidate.id != utterance for candidate in room.utterances):
            return False
        if not may_label_again(room.ledger, room.assignment, annotator, utterance, adjudicating=settles):
            return False
        sitting = room.adjudication if settles else room.desk
        self.finding.opened, self.finding.again = utterance, sitting(annotator, (utterance,))
        return True

    def back(self) -> bool:
        """Goes back from an utterance to the list, or from the list to the open work; False if that is already
        shown."""
        if self.finding is None:
            return False
        if self.finding.is_open:
            self.finding.again = None
        else:
            self.finding = None
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
"""Most results of a search that are shown."""
WORDS = SiteWords(
    name="Annotating",
    welcome="Annotating utterances",
    kept="which labels you give, and when, under your pseudonym",
    go_on="Continue annotating",
    rest="Everything that you accepted, struck and labelled is saved. You may close this window.",
)


def pages(labels: LabelSet, project: AnnotationProject) -> Templates:
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


def annotation_page(seat: AnnotationSeat, labels: LabelSet) -> Mapping[str, Any]:
    """The values for the page of a seat."""
    view = seat.desk.view
    item = view.item
    return {
        "page": seat.name_page(),
        "view": view,
        "item": item,
        "reviewing": view.phase is AnnotationPhase.REVIEWING,
        "labelling": view.phase is AnnotationPhase.LABELLING,
        "again": seat.finding is not None,
        "finished": view.phase is AnnotationPhase.FINISHED,
        "guide_of": [(intent, labels.label(intent)) for intent in (view.group.intents if view.group else ())],
        "done_share": view.count.done / view.count.total if view.count.total else None,
    }


def finding_page(seat: AnnotationSeat) -> Mapping[str, Any]:
    """The values for the search page."""
    hits, finding = seat.found_utterances(), seat.finding
    view = finding.again.view if finding is not None and finding.again is not None else None
    return {
        "words": finding.words if finding is not None else "",
        "found": hits[:MAX_FOUND],
        "opened": finding.opened if finding is not None else "",
        "many": len(hits),
        "said": view.said if view is not None else "",
        "can_undo": view is not None and view.can_undo,
        "adjudicating": seat.own.adjudicating,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationPost(SubmittedForm):
    """A form of the annotators' pages. struck: numbers of the struck lines. labels: ids of the chosen labels. words:
    the words to find.

    span: first word of a slot (from 0), and the word after its last; (0, 0) for none.
    """

    struck: frozenset[int]
    labels: frozenset[str]
    words: str
    span: tuple[int, int]


def _span(first: str, last: str) -> tuple[int, int]:
    """The span of words that two numbers name, counted from 1. The last number may be "", for a single word."""
    if not re.fullmatch(r"[0-9]{1,6}", first) or not re.fullmatch(r"[0-9]{0,6}", last):
        return 0, 0
    return int(first) - 1, int(last or first)


def _fill_draft(seat: AnnotationSeat, post: AnnotationPost) -> None:
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
    seat.take_comment(post, desk.comment)


def _finds(seat: AnnotationSeat, post: AnnotationPost) -> bool | None:
    """Searches, opens an utterance, or goes back. Returns the same as `_writes`."""
    do, _, utterance = post.do.partition(".")
    match do:
        case "find":
            seat.finding = UtteranceSearch(post.words)
            return True
        case "again":
            return seat.open(utterance) or None
        case "undo" if seat.finding is not None and seat.finding.again is not None:
            return seat.finding.again.undo()
        case "back":
            return seat.back()
    return None


def _writes(desk: AnnotationDesk, post: AnnotationPost) -> bool | None:
    """Carries out a button of the desk. Returns whether that had an effect; None for an unknown button. LogError,
    LogFull."""
    action, _, detail = post.do.partition(".")
    match action:
        case "mark" if detail:
            return desk.mark(detail, *post.span)
        case "clear" if not detail:
            return desk.clear_slots(*post.span)
        case "go" if detail in ("reviewing", "labelling"):
            return desk.go_to(AnnotationPhase(detail))
    methods = {"accept": desk.accept_page, "save": desk.save, "skip": desk.skip, "undo": desk.undo,
            "take": desk.take_proposed_slots}  # fmt: skip
    return methods[post.do]() if post.do in methods else None


OTHER_FIELDS = 20  # Chosen: more fields than a form has, apart from those of its lines or labels.


class AnnotationSite(SeatedSite[AnnotationSeat, AnnotationPost]):
    """Answers requests; parameters as in `BaseSite`."""

    PLACE = "/annotate"
    INSTRUCTIONS, GUIDE = "annotation_instructions.html", "annotation_guide.html"
    STALE = "Nothing was saved: you finished that page in another window. This is the page that is open now."
    NOT_INVITED = (
        "You are invited to this site, but you are not an annotator of this project. Ask the person who invited you."
    )

    def __init__(self, room: AnnotationRoom, invitations: Invitations, *, reached: SiteReach = HERE) -> None:
        self._room = room
        templates = pages(room.label_set, room.project)
        most_fields = OTHER_FIELDS + max(MAX_ON_A_PAGE, len(room.label_set.labels))
        super().__init__(room, invitations, templates, reached=reached, most_fields=most_fields)

    def _new_seat(self, name: str, reading: int, *, adjudicating: bool) -> AnnotationSeat:
        desk = self._room.adjudication(name) if adjudicating else self._room.desk(name)
        return AnnotationSeat(self._room, desk, read=reading)

    def _take_in(self, seat: AnnotationSeat) -> None:
        seat.refresh()

    def _seat_page(self, seat: AnnotationSeat) -> tuple[str, Mapping[str, object]]:
        if seat.is_listing:
            return "annotation_found.html", finding_page(seat)
        return "annotation_desk.html", annotation_page(seat, self._room.label_set)

    def _read(self, fields: Mapping[str, str], form: FormData) -> AnnotationPost:
        struck, labels = (sorted(str(text) for text in form.getlist(name)) for name in ("struck", "label"))
        return AnnotationPost(
            do=fields.get("do", ""),
            turn=fields.get("turn", ""),
            sight=fields.get("sight", ""),
            page=fields.get("page", ""),
            struck=frozenset(int(number) for number in struck if re.fullmatch(r"[0-9]{1,3}", number)),
            labels=frozenset(labels),
            comment=fields.get("comment"),
            draft="has_draft" in fields,
            words=search_words(fields.get("words", "")),
            mark=content_mark({**fields, "struck": ",".join(struck), "label": "\0".join(labels)}),
            span=_span(fields.get("from", ""), fields.get("to", "")),
        )

    def _apply(self, seat: AnnotationSeat, post: AnnotationPost) -> PostResult:
        result = seat.standing(post, outlasts=post.do != "undo")
        if result is not PostResult.DONE:
            return result
        if post.draft and not seat.is_listing:
            _fill_draft(seat, post)
        if post.do.startswith("draft"):
            return PostResult.DONE
        seat.desk.ids.begin(post.request)
        outcome = _finds(seat, post) if seat.is_listing or post.do in ("find", "back") else _writes(seat.desk, post)
        if outcome is None:
            return PostResult.UNKNOWN
        if outcome:
            seat.next_turn(post.request)
        return PostResult.DONE
