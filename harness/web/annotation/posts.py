"""What a button of an annotator's page does: a form becomes calls of the desk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.annotation.desk import AnnotationDesk
from harness.annotation.view import AnnotationPhase
from harness.web.annotation.seats import AnnotationSeat
from harness.web.posts import comment_of
from harness.web.turns import Fate, content_mark, request_name

LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class AnnotationPost:
    """do: what is asked, e.g. `accept`. turn, sight: of the page it came from.

    struck: numbers of lines; labels: ids; comment: None without a field for it. draft: the page has these fields.
    words: of what is to be found.
    """

    do: str
    turn: str = ""
    sight: str = ""
    struck: frozenset[int] = frozenset()
    labels: frozenset[str] = frozenset()
    comment: str | None = None
    draft: bool = False
    words: str = ""
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
        words=comment_of(fields.get("words", ""))[:LONGEST_WORDS].strip(),
        mark=content_mark({**fields, **lists}),
    )


def apply(seat: AnnotationSeat, post: AnnotationPost) -> Fate:
    """Does what is asked, under the seat's lock; LogError, LogFull when it could not be saved."""
    fate = seat.standing(post.turn, post.sight, post.mark, outlasts=post.do != "undo")
    if fate is not Fate.DONE:
        return fate
    if post.draft and not seat.is_listing:
        _take_draft(seat.desk, post)
    if post.do.startswith("draft"):
        return Fate.DONE
    seat.desk.ids.begin(request_name(post.turn, post.mark))
    done = _finds(seat, post) if seat.is_listing or post.do in ("find", "back") else _writes(seat.desk, post.do)
    if done is None:
        return Fate.UNKNOWN
    if done:
        seat.next_turn((post.turn, post.mark))
    return Fate.DONE


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


def _finds(seat: AnnotationSeat, post: AnnotationPost) -> bool | None:
    """Looks for utterances, opens one, and goes back: as `_writes`."""
    do, _, utterance = post.do.partition(".")
    match do:
        case "find":
            seat.find(post.words)
            return True
        case "again":
            return seat.open(utterance) or None
        case "undo" if seat.finding is not None and seat.finding.again is not None:
            return seat.finding.again.undo()
        case "back":
            return seat.back()
    return None


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
