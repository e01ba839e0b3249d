"""What the templates of an annotator's pages are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.annotation.view import AnnotationPhase, AnnotationView
from harness.model.annotation import (
    LINE_KEYS,
    MOST_ON_A_PAGE,
    AnnotationAction,
    AnnotationProject,
    LabelSet,
    action_key,
    label_keys,
)
from harness.web.annotation.seats import AnnotationSeat
from harness.web.rendering import SiteWords, Templates

TEMPLATES = (
    "annotation_desk.html",
    "annotation_found.html",
    "annotation_guide.html",
    "annotation_guide_text.html",
    "annotation_instructions.html",
)
MOST_FOUND = 50
"""So many of what was found are shown."""
WORDS = SiteWords(
    name="Annotating",
    welcome="Annotating utterances",
    main="Go to the utterances",
    kept="which labels you give, and when, under your pseudonym",
    go_on="Go on annotating",
    rest="All that you accepted, struck and labelled is saved. You may close this window.",
)


def pages(labels: LabelSet, project: AnnotationProject) -> Templates:
    """The annotators' pages."""
    keys = label_keys(labels)
    alone = [label.id for label in labels.labels if label.alone]
    return Templates(
        TEMPLATES,
        WORDS,
        {
            "project": project,
            "labels": labels,
            "label_key": keys,
            "line_keys": (*LINE_KEYS, *[""] * max(MOST_ON_A_PAGE, MOST_FOUND)),
            "alone": alone,
            "never": [list(pair) for pair in labels.never_together],
            "review_key": {action.value: action_key(action) for action in AnnotationAction},
            "hand_key": {action.value: action_key(action, labels) for action in AnnotationAction},
        },
    )


@dataclass(frozen=True, slots=True)
class AnnotationPage:
    """A seat as it stands, for the template. place: path of the page. alert: what went wrong with the last post."""

    place: str
    seat: AnnotationSeat
    view: AnnotationView
    labels: LabelSet
    alert: str = ""
    template: ClassVar[str] = "annotation_desk.html"

    def values(self) -> Mapping[str, Any]:
        view, item = self.view, self.view.item
        shared = set.intersection(*(set(one.intents) for one in item.inputs)) if item and item.inputs else set()
        return {
            "place": self.place,
            "turn": self.seat.turn,
            "sight": self.seat.sight,
            "view": view,
            "item": item,
            "alert": self.alert,
            "reviewing": view.phase is AnnotationPhase.REVIEWING,
            "labelling": view.phase is AnnotationPhase.LABELLING,
            "again": self.seat.finding is not None,
            "finished": view.phase is AnnotationPhase.FINISHED,
            "guide_of": [(one, self.labels.label(one)) for one in (view.group.intents if view.group else ())],
            "shared": shared,
            "differs": item is not None and item.proposal is not None and set(item.proposal) != set(item.chosen),
            "done_share": view.count.done / view.count.total if view.count.total else None,
        }


@dataclass(frozen=True, slots=True)
class FindingPage:
    """What an annotator looks for and what was found, for the template; the rest as of `AnnotationPage`."""

    place: str
    seat: AnnotationSeat
    alert: str = ""
    template: ClassVar[str] = "annotation_found.html"

    def values(self) -> Mapping[str, Any]:
        found, finding = self.seat.found(), self.seat.finding
        again = finding.again.view if finding is not None and finding.again is not None else None
        return {
            "place": self.place,
            "turn": self.seat.turn,
            "sight": self.seat.sight,
            "alert": self.alert,
            "words": finding.words if finding is not None else "",
            "found": found[:MOST_FOUND],
            "opened": finding.opened if finding is not None else "",
            "many": len(found),
            "said": again.said if again is not None else "",
            "can_undo": again is not None and again.can_undo,
            "adjudicating": self.seat.own.adjudicating,
        }
