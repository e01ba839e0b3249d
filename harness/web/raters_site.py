"""The raters' site: each rater listens to the responses of their own queue, and judges them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.base.user_text import name_key
from harness.model.errors import HarnessError, InputError
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
)
from harness.model.numbers import NOTHING, counted, fixed, seconds
from harness.model.trial import Recognition
from harness.rating.aid import AidState
from harness.rating.desk import Desk
from harness.rating.guide import CUT_OFF, FLAG_TEXTS, GUIDE, LABELS, OTHER_WORDS, RULES, SUB_FLAG_TEXTS, effect_text
from harness.rating.items import Item
from harness.rating.rater_queue import has_partial_assignment
from harness.rating.rating_room import RatingRoom
from harness.rating.view import SittingPhase, repetition_text, visible_latency_s
from harness.web.base_site import SiteWords, Templates, Visit
from harness.web.invitations import HERE, Invitations, SiteReach
from harness.web.seats import (
    ADJUDICATE,
    NOT_YOURS,
    UNSAVED,
    WAITING_INTERVAL_S,
    BaseSeat,
    PostResult,
    SeatedSite,
    SubmittedForm,
    clean_search,
    hash_content,
)
from harness.web.sounds import SoundCache, clip_version, draw_picture, serve_range

MAX_NEW_PLAYS = 50
"""Most new plays that are accepted from one report of a page."""
CLOCK_SLACK_MS = 2000
"""A page may report this much more playing time than has passed since it was sent."""


@dataclass(slots=True)
class PagePlays:
    """The plays of the response that a page has reported. sent_s: time at which the page was sent."""

    sent_s: float
    plays: int = 0
    heard_ms: int = 0


@dataclass(slots=True)
class Seat(BaseSeat):
    """A rater's seat, shared by all of their windows.

    - aid: state of the decision aid; None if it is not open.
    - pages: the pages that were sent, which may report plays, by name.
    """

    desk: Desk
    aid: AidState | None = None
    pages: dict[str, PagePlays] = field(default_factory=dict)

    @property
    def item_key(self) -> str:
        """The id of the current item; "" if there is none."""
        item = self.desk.view.item
        return item.id if item else ""

    @property
    def comment(self) -> str:
        return self.desk.view.draft.comment

    @property
    def is_waiting(self) -> bool:
        return not self.item_key

    def note_presence(self) -> None:
        self.desk.note_presence()

    def note_earlier_page(self) -> None:
        self.desk.note_earlier_page()

    def is_saved(self, post_id: str) -> bool:
        return self.desk.is_saved(post_id)

    def begin_turn(self, post_id: str = "") -> None:
        BaseSeat.begin_turn(self, post_id)  # super() does not work in a class with slots
        self.aid = None
        self.pages.clear()

    def add_playing_page(self, now_s: float) -> str:
        """Makes the name of a page before it is sent. The page reports plays under this name."""
        name = self.add_page()
        self.pages[name] = PagePlays(now_s)
        for forgotten in self.pages.keys() - self.comments.keys():
            del self.pages[forgotten]
        return name

    def report_plays(self, page: str, plays: int, heard_ms: int, now_s: float, *, to_end: bool = False) -> None:
        """Passes plays to the desk. Ignores a report of a page that is no longer remembered.

        - plays, heard_ms: all plays since the page was sent; together they cannot be longer than the time since then.
        - to_end: whether one of them went from the start to the end.
        """
        sent_page = self.pages.get(page)
        if sent_page is None:
            return
        limit_ms = int((now_s - sent_page.sent_s) * 1000) + CLOCK_SLACK_MS
        new_ms = max(0, min(heard_ms, limit_ms) - sent_page.heard_ms)
        new_plays = max(0, min(plays - sent_page.plays, MAX_NEW_PLAYS))
        sent_page.heard_ms += new_ms
        sent_page.plays += new_plays
        if new_ms or new_plays or to_end:
            self.desk.record_play(new_ms, began=new_plays > 0, to_end=to_end)
        for _ in range(new_plays - 1):  # the desk counts one play for each call
            self.desk.record_play(0, began=True, to_end=False)


TEMPLATES = ("instructions.html", "desk.html", "guide.html", "earlier.html", "coordinate.html")
MAX_FOUND = 200
"""Most earlier responses that are listed."""
_UNFINISHED_TEXTS = {
    JudgmentStatus.SKIPPED: "you left it for later",
    JudgmentStatus.HELD: "you held it until its effect is known",
}
MENU_KEYS = "abcdefghij"
WORDS = SiteWords(
    name="Rating",
    welcome="Rating first responses",
    kept="what you judge, when, and how often and how long you listened, under your pseudonym",
    go_on="Continue rating",
    rest="Everything that you judged is saved. You may close this window.",
)


def rater_templates(keys: RaterKeys, round_: RatingRound, *, show_names: bool) -> Templates:
    """The templates of the raters' pages. show_names: whether adjudicators see the names of raters."""
    values = {
        "round": round_,
        "exercises": len(round_.exercises),
        "names": show_names,
        "categories": [
            {
                "id": category.value,
                "label": LABELS[category],
                "key": keys.categories[category],
                "guide": GUIDE[category],
            }
            for category in Category
        ],
        "labels": LABELS,
        "given_text": judgment_text,
        "rules": RULES,
        "key": {action.value: key for action, key in keys.actions.items()},
        "action_of": RaterAction,
    }
    return Templates(TEMPLATES, WORDS, values)


def desk_values(page: str, seat: Seat) -> Mapping[str, Any]:
    """The values for the page of a seat. page: name of the page, from `add_playing_page`."""
    view = seat.desk.view
    item = view.item
    return {
        "page": page,
        "view": view,
        "item": item,
        "training": view.phase is SittingPhase.TRAINING,
        "repeated": repetition_text(view),
        "finished": view.phase is SittingPhase.FINISHED,
        "aid": seat.aid,
        "written": item.transcript or "" if item and view.draft.transcript_shown else None,
        "may_ask_written": item is not None and not view.draft.transcript_shown and not view.hides_text,
        "facts": _facts(item) if item else (),
        "effect": item.effect if item else None,
        "effect_text": effect_text,
        "own": _UNFINISHED_TEXTS.get(view.own_row.status, "") if view.own_row is not None else "",
        "flags": [(key, flag.value, FLAG_TEXTS[flag]) for key, flag in zip(MENU_KEYS, Flag, strict=False)],
        "sub_flags": [
            (key, flag.value, SUB_FLAG_TEXTS[flag], _categories_with(flag))
            for key, flag in zip(MENU_KEYS, SubFlag, strict=False)
        ],
        "sub_flag_texts": {flag.value: text for flag, text in SUB_FLAG_TEXTS.items()},
        "flag_texts": {flag.value: text for flag, text in FLAG_TEXTS.items()},
        "done_share": view.count.done / view.count.total if view.count.total else None,
    }


def coordinator_values(room: RatingRoom, giver: str, invited: Collection[str]) -> Mapping[str, Any]:
    """The values for the progress page. giver: the rater whose open share is about to be moved; "" for none."""
    raters, now_s = room.progress(invited), time.time()
    round_raters = room.round.raters
    keys = {name_key(name) for name in round_raters}
    giving = next((progress for progress in raters if progress.rater == giver and giver in round_raters), None)
    return {
        "raters": raters,
        "responses": len(room.items),
        "disputed": len(room.disputed),
        "settled": room.settled_count,
        "known": sum(item.hidden.gold is not None for item in room.items),
        "shared_out": has_partial_assignment(room.round),
        "outside": sorted(name for name in invited if round_raters and name_key(name) not in keys),
        "giving": giving,
        "others": [progress for progress in raters if progress.rater in round_raters and progress is not giving],
        "ago": [_age_s(progress.rows.last_wall_s, now_s) for progress in raters],
    }


def _age_s(wall_s: float | None, now_s: float) -> float | None:
    return None if wall_s is None else max(0.0, now_s - wall_s)  # the clock may have been set back


def judgment_text(row: Judgment) -> str:
    """A rater's judgment in one line."""
    match row.status:
        case JudgmentStatus.SKIPPED:
            return "left for later"
        case JudgmentStatus.HELD:
            return "held until its effect is known"
        case JudgmentStatus.FLAGGED:
            return f"put aside, {', '.join(FLAG_TEXTS.get(Flag(flag), flag) for flag in row.flags)}"
        case _:
            flags = "".join(f", {SUB_FLAG_TEXTS[SubFlag(flag)]}" for flag in row.sub_flags)
            return f"{LABELS[row.category]}{flags}" if row.category is not None else ""


def _categories_with(flag: SubFlag) -> str:
    return ", ".join(LABELS[category] for category, flags in SUB_FLAGS_OF.items() if flag in flags)


def _facts(item: Item) -> tuple[str, ...]:
    """What the rater may know about a response beside its sound, as short texts."""
    waits = ", ".join(seconds(wait) for wait in item.waits_s) or NOTHING
    latency_s = visible_latency_s(item)
    began = "" if latency_s is None else f"began {fixed(latency_s, 1, 's')} after the query"
    is_played = item.exercise is None
    facts = (
        (is_played, f"asked {item.attempts} times, repeated after {waits}" if item.attempts > 1 else "asked once"),
        (is_played and item.recognition is Recognition.NO, OTHER_WORDS),
        (is_played and bool(began), began),
        (is_played and item.truncated, CUT_OFF),
        (item.core_capability, "a core capability: every device must be able to do this"),
    )
    return tuple(words for applies, words in facts if applies)


MAX_JUDGING_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Post(SubmittedForm):
    """A form of the raters' pages.

    - plays, heard_ms, heard_end: the page's report of plays, for `Seat.report_plays`.
    - confidence, sub_flags, claimed: fields of the draft. claimed: "yes", "no", or another text for unknown.
    """

    plays: int
    heard_ms: int
    heard_end: bool
    confidence: int | None
    sub_flags: tuple[SubFlag, ...]
    claimed: str


def _fill_draft(seat: Seat, post: Post) -> None:
    """Changes the draft of the desk to that of the form. Raises InputError for a comment that is not valid."""
    desk = seat.desk
    draft = desk.view.draft
    seat.save_comment(post, desk.set_comment)
    if post.confidence != draft.confidence:
        desk.set_confidence(post.confidence)
    if set(post.sub_flags) != set(draft.sub_flags):
        desk.set_sub_flags(post.sub_flags)
    claimed = {"yes": True, "no": False}.get(post.claimed)
    if claimed != draft.effect_claimed:
        desk.set_effect_claimed(claimed)


def _press_button(seat: Seat, action: str, detail: str) -> bool:
    """Carries out a button of the desk. Returns False for an unknown one. Raises LogError or LogFull."""
    desk = seat.desk
    match action:
        case "label" if detail in _CATEGORIES:
            desk.judge(Category(detail))
        case "flag" if detail in _FLAGS:
            desk.flag(Flag(detail))
        case "open":
            desk.open(detail)
        case "skip" | "hold" | "undo" | "earlier" | "later" | "leave" | "go_on" | "release_held":
            getattr(desk, action)()
        case "take" if seat.aid is not None and seat.aid.ending is not None:
            desk.conclude(seat.aid)
        case _:
            return False
    return True


def _press_aid_button(seat: Seat, detail: str) -> None:
    """Carries out a button of the decision aid, which writes nothing. Unknown buttons have no effect."""
    action, _, answer = detail.partition(".")
    match action:
        case "open":
            seat.aid = seat.desk.begin_aid() or seat.aid
        case "close":
            seat.aid = None
        case "back" if seat.aid is not None:
            seat.aid = seat.aid.back()
        case "answer" if seat.aid is not None and seat.aid.question is not None:
            # The button names its question, since an answer to another question comes from an old page.
            question, _, choice = answer.partition(".")
            if seat.aid.question.id == question and seat.aid.question.answer(choice) is not None:
                seat.aid = seat.aid.answer(choice)
        case _:
            pass


def _parse_count(text: str) -> int:
    """A number that a page reports, limited to a plausible value; 0 if it is not valid."""
    return min(int(text), MAX_JUDGING_MS) if re.fullmatch(r"[0-9]{1,9}", text) else 0


_CATEGORIES = frozenset(category.value for category in Category)
_FLAGS = frozenset(flag.value for flag in Flag)


COORDINATE = "/coordinate"
MAX_OTHER_FIELDS = 40
"""More fields than a form has, apart from the raters to whom responses move."""


class RatersSite(SeatedSite[Seat, Post]):
    """The site. show_names: whether adjudicators see the names of raters. Other parameters are as in `BaseSite`."""

    PLACE = "/judge"
    INSTRUCTIONS, GUIDE = "instructions.html", "guide.html"
    STALE = "Nothing was saved: you have worked in another window since. This is the response that is open now."
    NOT_INVITED = "You are invited to this site, but not to this round. Ask the person who invited you."

    def __init__(
        self,
        room: RatingRoom,
        invitations: Invitations,
        keys: RaterKeys,
        *,
        reached: SiteReach = HERE,
        show_names: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = room
        self._sounds = SoundCache()
        self._now_s = now_s
        routes = [
            Route("/earlier", self._earlier_page),
            Route(COORDINATE, self._show_progress, methods=["GET"]),
            Route(COORDINATE, self._reassign, methods=["POST"]),
            Route("/sound/{item}/{which}", self._sound),
            Route("/sound/{item}/{which}/picture", self._sound),
        ]
        templates = rater_templates(keys, room.round, show_names=show_names)
        max_fields = MAX_OTHER_FIELDS + len(room.round.raters)
        super().__init__(room, invitations, templates, routes, reached=reached, max_fields=max_fields)

    def _place(self, visit: Visit) -> str:
        coordinates = visit.invitation is not None and visit.invitation.coordinator
        return COORDINATE if coordinates else super()._place(visit)

    def _new_seat(self, name: str, known_reading: int, *, adjudicating: bool) -> Seat:
        desk = self._room.adjudication(name) if adjudicating else self._room.desk(name)
        return Seat(desk, known_reading=known_reading)

    def _update_desk(self, seat: Seat) -> None:
        self._room.update(seat.desk)

    def _seat_page(self, seat: Seat) -> tuple[str, Mapping[str, object]]:
        return "desk.html", desk_values(seat.add_playing_page(self._now_s()), seat)

    def _parse_form(self, fields: Mapping[str, str], form: FormData) -> Post:
        confidence = fields.get("confidence", "")
        sub_flags = sorted(str(text) for text in form.getlist("sub_flag"))
        return Post(
            button=fields.get("do", ""),
            item_key=fields.get("item", ""),
            turn=fields.get("turn", ""),
            page=fields.get("page", ""),
            plays=_parse_count(fields.get("plays", "")),
            heard_ms=_parse_count(fields.get("heard_ms", "")),
            heard_end=fields.get("heard_end", "") == "1",
            comment=fields.get("comment"),
            confidence=int(confidence) if confidence in ("1", "2", "3") else None,
            sub_flags=tuple(flag for flag in SubFlag if flag.value in sub_flags),
            claimed=fields.get("claimed", ""),
            has_draft="has_draft" in fields,
            content_hash=hash_content({**fields, "sub_flags": ",".join(sub_flags)}),
        )

    def _apply(self, seat: Seat, post: Post) -> PostResult:
        action, _, detail = post.button.partition(".")
        outlasts_restart = action not in ("undo", "aid", "go_on", "earlier", "later", "leave")
        refusal = seat.refusal(post, outlasts_restart=outlasts_restart)
        if refusal is PostResult.STALE and action == "open":  # it judges nothing, so a list of any age may open
            refusal = None
        if refusal is not None:
            # A stale "go_on" is a repetition: the explanation was already ended.
            return PostResult.REPEATED if post.button == "go_on" else refusal
        seat.report_plays(post.page, post.plays, post.heard_ms, self._now_s(), to_end=post.heard_end)
        if post.has_draft:
            _fill_draft(seat, post)
        match action:
            case "draft":
                return PostResult.DONE
            case "aid":
                _press_aid_button(seat, detail)
                return PostResult.DONE
            case "transcript":
                seat.desk.show_transcript()
                return PostResult.DONE
        seat.desk.ids.begin(post.post_id)
        if not _press_button(seat, action, detail):
            return PostResult.UNKNOWN
        seat.begin_turn(post.post_id)
        return PostResult.DONE

    def _earlier_page(self, request: Request) -> Response:
        visit = self._rater(request)
        seat = self._seat(visit)
        words = clean_search(request.query_params.get("words", ""))
        place = self._place(visit)
        with seat.lock:
            hits = seat.desk.reopenable_items(words)
            return self._page(
                "earlier.html",
                visit,
                place=place,
                turn=seat.turn,
                words=words,
                many=len(hits),
                found=hits[:MAX_FOUND],
                adjudicating=place == ADJUDICATE,
            )

    def _show_progress(self, request: Request) -> Response:
        visit = self._coordinator_visit(request)
        self.refresher.read_if_due(WAITING_INTERVAL_S)
        return self._coordination_page(visit, giver=request.query_params.get("give", ""))

    async def _reassign(self, request: Request) -> Response:
        visit = self._coordinator_visit(request)
        fields, form = await self._checked_form(request, visit)
        recipients = [str(rater) for rater in form.getlist("to")]
        return await run_in_threadpool(self._move_responses, visit, fields.get("rater", ""), recipients)

    def _move_responses(self, visit: Visit, rater: str, recipients: Sequence[str]) -> Response:
        assert visit.invitation is not None
        try:
            moved, unassigned = self._room.reassign(rater, recipients, visit.invitation.rater)
        except InputError as error:
            return self._coordination_page(visit, 400, alert=f"Nothing was moved: {error.what}.")
        except HarnessError:
            return self._coordination_page(visit, 503, alert=UNSAVED)
        self.refresher.announce_change()  # so that all desks get the new shares
        rest, left = "", "that all of these raters have already"
        if unassigned:
            rest = f"; {counted(unassigned, f'response {left} goes', f'responses {left} go')} to nobody"
        return self._coordination_page(
            visit, notice=f"{counted(moved, 'response')} of {rater} moved to {', '.join(recipients)}{rest}."
        )

    def _coordinator_visit(self, request: Request) -> Visit:
        """The visit of a coordinator. Refuses others (403)."""
        visit = self._rater(request)
        if self._place(visit) != COORDINATE:
            raise HTTPException(403, NOT_YOURS)
        return visit

    def _coordination_page(
        self, visit: Visit, status: int = 200, *, giver: str = "", notice: str = "", alert: str = ""
    ) -> Response:
        now_s = time.time()
        invited = [
            invitation.rater
            for invitation in self.invitations.everyone
            if invitation.is_valid(now_s) and not invitation.adjudicator and not invitation.coordinator
        ]
        values = coordinator_values(self._room, giver, invited)
        return self._page("coordinate.html", visit, status, said=notice, alert=alert, **values)

    def _sound(self, request: Request) -> Response:
        """The response or the query of an item of this rater: as WAV, or its picture."""
        seat = self._seat(self._rater(request))
        kind = request.path_params["which"]
        with seat.lock:
            item = seat.desk.item(request.path_params["item"])
        if item is None or kind not in ("response", "query"):
            raise HTTPException(404, "You do not have access to this sound.")
        make_sound = self._room.response_sound if kind == "response" else self._room.query_sound
        fault = "This sound cannot be made or read. Report it to the person who runs the site."
        path = self._room.clip_path(item)
        name = item.id, kind, "" if path is None else clip_version(path)
        content = self._sounds.get(name, lambda: make_sound(item), fault)
        if request.url.path.endswith("/picture"):
            return Response(draw_picture(content), media_type="image/svg+xml")
        return serve_range(content, "audio/wav", request.headers.get("range"))
