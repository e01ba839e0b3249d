"""What a button of a rater's page does: a form becomes one call of the desk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.model.judgment import Category, Flag, SubFlag
from harness.web.seats import Seat
from harness.web.turns import Fate, content_mark, request_name

LONGEST_COMMENT = 2000
MOST_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Post:
    """do: what is asked, e.g. `label.correct`. item, turn, page: of the page it came from. draft: has its fields."""

    do: str
    item: str = ""
    turn: str = ""
    page: str = ""
    plays: int = 0
    heard_ms: int = 0
    heard_end: bool = False
    comment: str | None = None
    confidence: int | None = None
    sub_flags: tuple[SubFlag, ...] = ()
    claimed: str = ""
    draft: bool = False
    mark: str = field(default="", compare=False)


def read_post(fields: Mapping[str, str], sub_flags: tuple[str, ...]) -> Post:
    """A form's fields; what is no answer to them is left out."""
    confidence = fields.get("confidence", "")
    return Post(
        do=fields.get("do", ""),
        item=fields.get("item", ""),
        turn=fields.get("turn", ""),
        page=fields.get("page", ""),
        plays=_count(fields.get("plays", "")),
        heard_ms=_count(fields.get("heard_ms", "")),
        heard_end=fields.get("heard_end", "") == "1",
        comment=comment_of(fields["comment"]) if "comment" in fields else None,
        confidence=int(confidence) if confidence in ("1", "2", "3") else None,
        sub_flags=tuple(flag for flag in SubFlag if flag.value in sub_flags),
        claimed=fields.get("claimed", ""),
        draft="has_draft" in fields,
        mark=content_mark({**fields, "sub_flags": ",".join(sorted(sub_flags))}),
    )


def apply(seat: Seat, post: Post, now_s: float) -> Fate:
    """Does what is asked, under the seat's lock; LogError, LogFull when it could not be saved."""
    what, _, detail = post.do.partition(".")
    outlasts = what not in ("undo", "aid", "go_on", "earlier", "later", "leave")
    fate = seat.standing(post.turn, post.item, post.mark, outlasts=outlasts)
    if fate is Fate.STALE and post.do == "go_on":
        return Fate.REPEATED  # an explanation that is no longer in sight has been left already
    if fate is Fate.STALE and what == "open":
        fate = Fate.DONE  # from a list, which may be of any age: nothing is judged by it
    if fate is not Fate.DONE:
        return fate
    seat.heard(post.page, post.plays, post.heard_ms, now_s, to_end=post.heard_end)
    if post.draft:
        _take_draft(seat, post)
    match what:
        case "draft":
            return Fate.DONE
        case "aid":
            _aid(seat, detail)
            return Fate.DONE
        case "transcript":
            seat.desk.show_transcript()
            return Fate.DONE
    seat.desk.ids.begin(request_name(post.turn, post.mark))
    if not _writes(seat, what, detail):
        return Fate.UNKNOWN
    seat.next_turn((post.turn, post.mark))
    return Fate.DONE


def _take_draft(seat: Seat, post: Post) -> None:
    desk = seat.desk
    draft = desk.view.draft
    if post.comment is not None and post.comment.strip() != draft.comment:
        desk.comment(post.comment)
    if post.confidence != draft.confidence:
        desk.confidence(post.confidence)
    for flag in draft.sub_flags:
        if flag not in post.sub_flags:
            desk.toggle(flag)
    for flag in post.sub_flags:
        if flag not in draft.sub_flags:
            desk.toggle(flag)
    claimed = {"yes": True, "no": False}.get(post.claimed)
    if claimed != draft.effect_claimed:
        desk.effect_claimed(claimed)


def _writes(seat: Seat, what: str, detail: str) -> bool:
    """Calls the desk; False when there is no such button. LogError, LogFull."""
    desk = seat.desk
    match what:
        case "label" if detail in _CATEGORIES:
            desk.judge(Category(detail))
        case "flag" if detail in _FLAGS:
            desk.flag(Flag(detail))
        case "skip":
            desk.skip()
        case "hold":
            desk.hold()
        case "undo":
            desk.undo()
        case "earlier":
            desk.earlier()
        case "later":
            desk.later()
        case "leave":
            desk.leave()
        case "open":
            desk.open(detail)
        case "go_on":
            desk.go_on()
        case "release_held":
            desk.release_held()
        case "take" if seat.aid is not None and seat.aid.ending is not None:
            desk.conclude(seat.aid)
        case _:
            return False
    return True


def _aid(seat: Seat, detail: str) -> None:
    what, _, answer = detail.partition(".")
    match what:
        case "open":
            seat.open_aid()
        case "close":
            seat.aid = None
        case "back" if seat.aid is not None:
            seat.aid = seat.aid.back()
        case "answer" if seat.aid is not None and seat.aid.question is not None:
            # The question is named too: an answer to another one is of an old page.
            question, _, word = answer.partition(".")
            if seat.aid.question.id == question and seat.aid.question.answer(word) is not None:
                seat.aid = seat.aid.answer(word)
        case _:
            pass


def _count(text: str) -> int:
    return min(int(text), MOST_MS) if re.fullmatch(r"[0-9]{1,9}", text) else 0


def comment_of(text: str) -> str:
    """A comment as it is kept: without what cannot be printed, and not too long."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(sign for sign in lines if sign == "\n" or sign.isprintable())[:LONGEST_COMMENT]


_CATEGORIES = frozenset(one.value for one in Category)
_FLAGS = frozenset(one.value for one in Flag)
