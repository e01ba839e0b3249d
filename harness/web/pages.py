"""What the templates are given: texts and words for a rater's pages, made safe here or escaped there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.model.judgment import (
    SUB_FLAGS_OF,
    Category,
    Flag,
    Judgment,
    JudgmentStatus,
    RaterAction,
    RaterKeys,
    RatingRound,
    SubFlag,
    TranscriptPolicy,
)
from harness.model.trial import Recognition
from harness.rating.categories import LABELS
from harness.rating.guide import FLAG_TEXTS, GUIDE, RULES, SUB_FLAG_TEXTS, effect_text
from harness.rating.items import Item
from harness.rating.queue import is_shared_out
from harness.rating.rating_room import RatingRoom
from harness.rating.sitting_view import Phase, SittingView
from harness.web.rendering import SiteWords, Templates
from harness.web.seats import Seat

TEMPLATES = ("instructions.html", "desk.html", "guide.html", "earlier.html", "coordinate.html")
MOST_FOUND = 200
"""So many earlier responses are listed at once."""
MENU_KEYS = "abcdefghij"
WORDS = SiteWords(
    name="Rating",
    welcome="Rating first responses",
    main="Go to the response",
    kept="what you judge, when, and how often and how long you listened, under your pseudonym",
    go_on="Go on rating",
    rest="All that you judged is saved. You may close this window.",
)


def pages(keys: RaterKeys, round_: RatingRound, *, names: bool) -> Templates:
    """The raters' pages. names: adjudicators see those of raters."""
    values = {
        "round": round_,
        "exercises": len(round_.exercises),
        "names": names,
        "categories": [
            {"id": one.value, "label": LABELS[one], "key": keys.categories[one], "guide": GUIDE[one]}
            for one in Category
        ],
        "labels": LABELS,
        "given_text": given_text,
        "rules": RULES,
        "key": {action.value: key for action, key in keys.actions.items()},
        "action_of": RaterAction,
    }
    return Templates(TEMPLATES, WORDS, values)


@dataclass(frozen=True, slots=True)
class DeskPage:
    """A seat as it stands, for the template. place: path of the page. alert: what went wrong with the last post."""

    place: str
    page: str
    seat: Seat
    view: SittingView
    round_: RatingRound
    alert: str = ""
    template: ClassVar[str] = "desk.html"

    def values(self) -> Mapping[str, Any]:
        view, item = self.view, self.view.item
        return {
            "place": self.place,
            "page": self.page,
            "turn": self.seat.turn,
            "view": view,
            "item": item,
            "alert": self.alert,
            "training": view.phase is Phase.TRAINING,
            "finished": view.phase is Phase.FINISHED,
            "adjudicating": bool(item and item.inputs) or self.place == "/adjudicate",
            "aid": self.seat.aid,
            "written": item.transcript or "" if item and view.draft.transcript_shown else None,
            "may_ask_written": _may_ask(view, self.round_),
            "facts": _facts(item) if item else (),
            "effect": item.effect if item else None,
            "effect_text": effect_text,
            "own": _own(view),
            "flags": [(key, one.value, FLAG_TEXTS[one]) for key, one in zip(MENU_KEYS, Flag, strict=False)],
            "sub_flags": [
                (key, one.value, SUB_FLAG_TEXTS[one], _goes_with(one))
                for key, one in zip(MENU_KEYS, SubFlag, strict=False)
            ],
            "sub_flag_texts": {one.value: text for one, text in SUB_FLAG_TEXTS.items()},
            "flag_texts": {one.value: text for one, text in FLAG_TEXTS.items()},
            "done_share": view.count.done / view.count.total if view.count.total else None,
        }


@dataclass(frozen=True, slots=True)
class EarlierPage:
    """What a rater may open again, for the template. words: what it was looked for by."""

    place: str
    seat: Seat
    words: str
    template: ClassVar[str] = "earlier.html"

    def values(self) -> Mapping[str, Any]:
        found = self.seat.desk.given(self.words)
        return {
            "place": self.place,
            "turn": self.seat.turn,
            "words": self.words,
            "many": len(found),
            "found": found[:MOST_FOUND],
            "adjudicating": self.place == "/adjudicate",
        }


@dataclass(frozen=True, slots=True)
class CoordinatorPage:
    """How far the raters are, for the template. giving: whose open share is to be given to others, "" for nobody's."""

    room: RatingRoom
    now_s: float
    giving: str = ""
    said: str = ""
    alert: str = ""
    template: ClassVar[str] = "coordinate.html"

    def values(self) -> Mapping[str, Any]:
        found = self.room.progress
        giving = next((one for one in found if one.rater == self.giving and one.rater in self.room.round.raters), None)
        return {
            "raters": found,
            "responses": len(self.room.items),
            "disputed": len(self.room.disputed),
            "known": sum(item.hidden.gold is not None for item in self.room.items),
            "shared_out": is_shared_out(self.room.round),
            "giving": giving,
            "others": [one for one in found if one.rater in self.room.round.raters and one is not giving],
            "ago": [None if one.last_wall_s is None else max(0.0, self.now_s - one.last_wall_s) for one in found],
            "said": self.said,
            "alert": self.alert,
        }


def given_text(row: Judgment) -> str:
    """What a rater gave, in a line."""
    match row.status:
        case JudgmentStatus.SKIPPED:
            return "left for the end"
        case JudgmentStatus.HELD:
            return "held until its effect is known"
        case JudgmentStatus.FLAGGED:
            return f"put aside, {', '.join(FLAG_TEXTS.get(Flag(one), one) for one in row.flags)}"
        case _:
            flags = "".join(f", {SUB_FLAG_TEXTS[SubFlag(one)]}" for one in row.sub_flags)
            return f"{LABELS[row.category]}{flags}" if row.category is not None else ""


def _goes_with(flag: SubFlag) -> str:
    return ", ".join(LABELS[one] for one, allowed in SUB_FLAGS_OF.items() if flag in allowed)


def _may_ask(view: SittingView, round_: RatingRound) -> bool:
    allowed = round_.transcript is not TranscriptPolicy.NEVER or view.phase is Phase.TRAINING
    return allowed and not view.draft.transcript_shown and view.item is not None


def _facts(item: Item) -> tuple[str, ...]:
    facts = []
    if item.exercise is None:
        if item.attempts > 1:
            waits = [f"{wait:.0f} s" if wait is not None else "n/a" for wait in item.waits_s]
            facts.append(f"asked {item.attempts} times; waits before: {', '.join(waits) or 'n/a'}")
        else:
            facts.append("asked once")
        if item.recognition is Recognition.NO:
            facts.append("other words were heard")
        if item.latency is not None:
            facts.append(f"began {item.latency.value_s:.1f} s after the query")
        if item.truncated:
            facts.append("it went on when the recording was cut")
    if item.core_capability:
        facts.append("a core capability: every device must be able to do this")
    return tuple(facts)


def _own(view: SittingView) -> str:
    match view.own.status if view.own is not None else None:
        case JudgmentStatus.SKIPPED:
            return "you left it for the end"
        case JudgmentStatus.HELD:
            return "you held it until its effect is known"
        case _:
            return ""
