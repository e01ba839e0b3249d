"""What a button of an annotator's page does: a form becomes calls of the desk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.understanding.annotation.desk import AnnotationDesk
from harness.understanding.annotation.view import AnnotationPhase
from harness.web.annotation.seats import AnnotationSeat
from harness.web.posts import Fate, comment_of
from harness.web.seats import content_mark


@dataclass(frozen=True, slots=True)
class AnnotationPost:
    """do: what is asked, e.g. `accept`. turn, sight: of the page it came from.

    struck: numbers of lines; labels: ids; comment: None without a field for it. draft: the page has these fields.
    """

    do: str
    turn: str = ""
    sight: str = ""
    struck: frozenset[int] = frozenset()
    labels: frozenset[str] = frozenset()
    comment: str | None = None
    draft: bool = False
    mark: str = ""


def read_post(fields: Mapping[str, str], struck: Sequence[str], labels: Sequence[str]) -> AnnotationPost:
    """A form's fields; what is no answer to them is left out."""
    lists = {"struck": ",".join(sorted(struck)), "label": "\0".join(sorted(labels))}
    return AnnotationPost(
        do=fields.get("do", ""),
        turn=fields.get("turn", ""),
        sight=fields.get("sight", ""),
        struck=frozenset(int(one) for one in struck if re.fullmatch(r"[0-9]{1,3}", one)),
        labels=frozenset(labels),
        comment=comment_of(fields["comment"]) if "comment" in fields else None,
        draft="has_draft" in fields,
        mark=content_mark({**fields, **lists}),
    )


def apply(seat: AnnotationSeat, post: AnnotationPost) -> Fate:
    """Does what is asked, under the seat's lock; LogError, LogFull when it could not be saved."""
    fate = _standing(seat, post)
    if fate is not Fate.DONE:
        return fate
    if post.draft:
        _take_draft(seat.desk, post)
    if post.do.startswith("draft"):
        return Fate.DONE
    done = _writes(seat.desk, post.do)
    if done is None:
        return Fate.UNKNOWN
    if done:
        seat.next_turn((post.turn, post.mark))
    return Fate.DONE


def _standing(seat: AnnotationSeat, post: AnnotationPost) -> Fate:
    """Whether the page that a post comes from shows what is in sight now."""
    if post.turn == seat.turn and post.sight == seat.sight:
        return Fate.DONE
    if seat.done == (post.turn, post.mark):
        return Fate.REPEATED
    start, _, _ = post.turn.partition(".")
    if start != seat.start and post.sight == seat.sight and post.do != "undo":
        # The site was started again; the same is in sight as before.
        return Fate.DONE
    return Fate.STALE


def _take_draft(desk: AnnotationDesk, post: AnnotationPost) -> None:
    view = desk.view
    cursor = view.cursor
    for line in view.page:
        if line.struck != (line.number in post.struck):
            desk.strike_number(line.number)
    if view.page:
        desk.move(cursor - desk.view.cursor)
    if view.item is None:
        return
    for id_ in desk.label_set.ids:
        if (id_ in view.item.chosen) != (id_ in post.labels):
            desk.toggle(id_)
    if post.comment is not None and post.comment.strip() != view.item.comment:
        desk.comment(post.comment)


def _writes(desk: AnnotationDesk, do: str) -> bool | None:
    """Calls the desk: whether something was done; None when there is no such button. LogError, LogFull."""
    match do:
        case "accept":
            return desk.accept_page()
        case "save":
            return desk.save()
        case "skip":
            return desk.skip()
        case "undo":
            return desk.undo()
        case "go.reviewing" | "go.labelling":
            return desk.go_to(AnnotationPhase(do.removeprefix("go.")))
    return None
