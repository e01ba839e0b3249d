"""A site where each visitor works at a seat: the page of a seat, the effect of its buttons, and its alerts.

    GET:  visit → seat → updates from elsewhere → page

    POST: visit → check of the form → seat → the button's action, once, on the disk → redirect to the page

If the action fails, the response is the current page with an alert.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Generic, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from harness.base.foreign import JOINERS
from harness.base.user_text import name_key, to_nfc
from harness.model.errors import HarnessError, InputError, LogFull
from harness.web.base_site import BaseSite, Templates, Visit
from harness.web.invitations import Invitations, SiteReach


class PostResult(Enum):
    """The result of a post.

    - DONE: it was carried out.
    - REPEATED: nothing was done, since the same post was already carried out.
    - STALE: nothing was done, since the page does not show the current item, is of an earlier turn, or may have an
      older comment.
    - UNKNOWN: nothing was done, since the page has no such button.
    """

    DONE = "done"
    REPEATED = "repeated"
    STALE = "stale"
    UNKNOWN = "unknown"


MAX_PAGES = 20
"""Number of pages of one turn whose comments are remembered: those that were sent or that posted last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedForm:
    """A form that a browser has sent.

    - button: name of the pressed button. The script of the page sends `draft.quiet`.
    - turn, item_key: `turn` and `item_key` of the seat when the page was sent.
    - page: name of the page.
    - comment: as the browser sent it; None if the form has no such field.
    - has_draft: whether the form has the fields of a draft.
    - content_hash: hash of its content, from `hash_content`.
    """

    button: str
    turn: str
    item_key: str
    page: str
    comment: str | None
    has_draft: bool
    content_hash: str

    @property
    def post_id(self) -> str:
        """Identifies this post. The ids of its rows derive from it."""
        return f"{self.turn}\n{self.content_hash}"


@dataclass(slots=True, kw_only=True)
class BaseSeat(ABC):
    """A seat: its current item, and whether a page still shows that item. Callers must hold `lock`.

    - start_id, turn_number: they make up the `turn`. start_id is random, so it differs after a restart of the site.
    - last_post_id: id of the last post that changed the turn, so that a repetition can be recognised.
    - known_reading: number of the last reading of files that the desk knows.
    - latest_form: the latest form that arrived: the document, and the number that its script gave the form.
    - comments: the last known comment in each page of this turn, by name of the page.
    - comment_changed: whether a page has changed the comment in this turn.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    start_id: str = field(default_factory=lambda: secrets.token_hex(4))
    turn_number: int = 0
    last_post_id: str = ""
    known_reading: int = 0
    latest_form: tuple[str, int] = ("", 0)
    comments: dict[str, str] = field(default_factory=dict)
    comment_changed: bool = False

    @property
    @abstractmethod
    def item_key(self) -> str:
        """Identifies the current item, also after a restart of the site; "" without one."""

    @property
    @abstractmethod
    def comment(self) -> str:
        """The comment of the draft."""

    @property
    @abstractmethod
    def is_waiting(self) -> bool:
        """Whether the visitor has finished, and waits for new work."""

    @abstractmethod
    def note_presence(self) -> None:
        """Records that the person is present, shown by a page or a button."""

    @abstractmethod
    def note_earlier_page(self) -> None:
        """Records that the current item was shown on a page from before a restart of the site."""

    @abstractmethod
    def is_saved(self, post_id: str) -> bool:
        """Whether the rows of a post are on the disk, also after a restart of the site."""

    @property
    def turn(self) -> str:
        """Changes with the item, so that posts from old pages can be recognised."""
        return f"{self.start_id}.{self.turn_number}"

    def begin_turn(self, post_id: str = "") -> None:
        """Begins the next turn, and forgets the pages of this one. post_id: the post that ended it; "" for none."""
        self.turn_number += 1
        self.last_post_id = post_id
        self.comments.clear()
        self.comment_changed = False

    def add_page(self) -> str:
        """Makes the name of a page before it is sent, and remembers the comment that the page shows."""
        name = secrets.token_hex(4)
        self._remember(name, self.comment)
        return name

    def _remember(self, page: str, comment: str) -> None:
        self.comments.pop(page, None)
        self.comments[page] = comment
        while len(self.comments) > MAX_PAGES:
            del self.comments[next(iter(self.comments))]

    def save_comment(self, post: SubmittedForm, write: Callable[[str], object]) -> None:
        """Calls `write` with the comment of a form if the page has changed it. Raises what `write` raises.

        A page on which nothing was typed must not undo what was typed on another page of the same item.
        """
        if post.comment is None:
            return
        comment = to_nfc(post.comment)
        if comment not in (self.comments.get(post.page), to_nfc(self.comment)):
            write(post.comment)
            self.comment_changed = True
        self._remember(post.page, comment)

    def note_form(self, form_number: str) -> bool:
        """Records that a form arrived, and returns whether a later form of its document had arrived before.

        form_number: `DOCUMENT.NUMBER` from the page's script; "" for a form without one, which is never late.
        """
        document, _, digits = form_number.partition(".")
        if not re.fullmatch(r"[0-9]{1,9}", digits):
            return False
        number = int(digits)
        latest_document, latest_number = self.latest_form
        if document == latest_document and number < latest_number:
            return True
        self.latest_form = document, number
        return False

    def refusal(self, post: SubmittedForm, *, outlasts_restart: bool) -> PostResult | None:
        """Why a post may not be carried out; None if it may, since its page has this turn and item.

        outlasts_restart: whether a page that was sent before a restart of the site may also post, if it shows the same
        item.
        """
        if post.post_id == self.last_post_id or self.is_saved(post.post_id):
            return PostResult.REPEATED
        if post.item_key != self.item_key or self._may_undo_comment(post):
            return PostResult.STALE
        if post.turn == self.turn:
            return None
        start_id, _, _ = post.turn.partition(".")
        if not outlasts_restart or start_id == self.start_id:
            return PostResult.STALE
        self.note_earlier_page()
        return None

    def _may_undo_comment(self, post: SubmittedForm) -> bool:
        """Whether the comment has changed in this turn, perhaps after the page of this post was sent.

        The comment with which the page was sent is no longer known, so it may be one that the page only repeats.
        """
        if post.comment is None or post.page in self.comments or not self.comment_changed:
            return False
        return to_nfc(post.comment) != to_nfc(self.comment)


def hash_content(fields: dict[str, str]) -> str:
    """The hash of a post's content, which is equal if the same button of the same page is pressed again."""
    ignored = ("plays", "heard_ms", "heard_end", "page", "change")  # these differ at the second press
    content = "\n".join(f"{name}={fields[name]}" for name in sorted(fields) if name not in ignored)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


REFRESH_INTERVAL_S = 60.0
"""Interval at which files are read again while a visitor works."""
WAITING_INTERVAL_S = 5.0
"""The same interval while a visitor has finished and waits for more work."""


AnySeat = TypeVar("AnySeat", bound=BaseSeat)


class RefreshableRoom(Protocol):
    """A room of raters or annotators. `refresh` reads its files again. Raises HarnessError if they cannot be read."""

    def refresh(self) -> object: ...


class RoomRefresher:
    """Reads updates from elsewhere at intervals, in a thread, so that no request waits for it; thread-safe."""

    def __init__(self, room: RefreshableRoom, now_s: Callable[[], float] = time.monotonic) -> None:
        self._room = room
        self._now_s = now_s
        self._lock = threading.Lock()
        """Held while a field below is written."""
        self._last_started_s = now_s()
        self._reading_thread: threading.Thread | None = None
        self.number = 0
        """Number of the last reading that succeeded. Seats that know an earlier one update their desks."""

    def read_if_due(self, interval_s: float = REFRESH_INTERVAL_S) -> None:
        """Begins a reading if the last one began at least interval_s ago, and has ended."""
        with self._lock:
            if self._reading_thread is not None and self._reading_thread.is_alive():
                return
            if self._now_s() - self._last_started_s < interval_s:
                return
            self._last_started_s = self._now_s()
            self._reading_thread = threading.Thread(target=self._read, name="reading sessions", daemon=True)
            self._reading_thread.start()

    def wait(self) -> None:
        """Waits until no reading is in progress."""
        with self._lock:
            running = self._reading_thread
        if running is not None:
            running.join()

    def _read(self) -> None:
        try:
            self._room.refresh()
        except HarnessError:
            return  # The last reading stays valid. The next attempt to save reports the same fault.
        self.announce_change()

    def announce_change(self) -> None:
        """Makes all seats update their desks at their next request."""
        with self._lock:
            self.number += 1


MAX_SEARCH_CHARS = 200


def clean_search(text: str) -> str:
    """The words of a search, without invisible characters. The page shows them again; they are not stored."""
    # Joiners do not count as printable.
    visible = "".join(char for char in " ".join(text.split()) if char.isprintable() or char in JOINERS)
    return to_nfc(visible)[:MAX_SEARCH_CHARS]


ADJUDICATE = "/adjudicate"
FULL = "Not saved: the disk is full. Report it to the person who runs the site, then press the key again."
UNSAVED = "Not saved: the site cannot write. Report it to the person who runs the site, then press the key again."
NOT_YOURS = "You do not have access to that page."
NO_BUTTON = "Nothing was saved: this site has no such button."


AnyPost = TypeVar("AnyPost", bound=SubmittedForm)


class SeatedSite(BaseSite, Generic[AnySeat, AnyPost]):
    """A site with seats at two paths: its own, and that of adjudicators.

    Adjudicators see all answers, so they only settle disputes. A site defines the members under "What a site defines".
    The desks of its seats save rows.
    """

    # What a site defines

    PLACE: ClassVar[str]
    """The path for visitors who are not adjudicators."""
    INSTRUCTIONS: ClassVar[str]
    GUIDE: ClassVar[str]
    """Names of the templates of the two pages without a form: instructions and guide."""
    STALE: ClassVar[str]
    """The alert after a post from an old page."""
    NOT_INVITED: ClassVar[str]
    """The text for a visitor who has no work here."""

    @abstractmethod
    def _new_seat(self, name: str, known_reading: int, *, adjudicating: bool) -> AnySeat:
        """Makes the seat of a visitor. Raises InputError if they have no work here."""

    @abstractmethod
    def _update_desk(self, seat: AnySeat) -> None:
        """Passes updates from elsewhere to the desk of a seat."""

    @abstractmethod
    def _seat_page(self, seat: AnySeat) -> tuple[str, Mapping[str, object]]:
        """The template of a seat's page, and its values in addition to those of `_render_seat`."""

    @abstractmethod
    def _parse_form(self, fields: Mapping[str, str], form: FormData) -> AnyPost:
        """The post that a form contains, without invalid values. fields: the fields that occur once in the form."""

    @abstractmethod
    def _apply(self, seat: AnySeat, post: AnyPost) -> PostResult:
        """Carries out a post. Raises InputError for a comment that is not valid, and LogFull or another HarnessError if
        saving fails."""

    # What all these sites have in common

    def __init__(
        self,
        room: RefreshableRoom,
        invitations: Invitations,
        templates: Templates,
        routes: Sequence[Route] = (),
        *,
        reached: SiteReach,
        max_fields: int,
    ) -> None:
        self.refresher = RoomRefresher(room)
        self._seats: dict[tuple[str, str], AnySeat] = {}
        """Seats by path and name of the visitor. A seat is made at the first request, from the rows on the disk."""
        self._seats_lock = threading.Lock()
        """Protects `_seats`. It is held while a seat is made, so first visits wait for each other."""
        shared = [
            Route("/instructions", self._static_page_endpoint(self.INSTRUCTIONS)),
            Route("/guide", self._static_page_endpoint(self.GUIDE)),
            *(Route(place, self._show_seat, methods=["GET"]) for place in (self.PLACE, ADJUDICATE)),
            *(Route(place, self._receive_post, methods=["POST"]) for place in (self.PLACE, ADJUDICATE)),
        ]
        super().__init__(invitations, templates, [*shared, *routes], reached, max_fields)

    def close(self) -> None:
        """Waits until no reading is in progress."""
        self.refresher.wait()

    def _place(self, visit: Visit) -> str:
        # A subclass can send a visitor elsewhere (coordinators), where there is no seat.
        return ADJUDICATE if visit.invitation is not None and visit.invitation.adjudicator else self.PLACE

    def _static_page_endpoint(self, template: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            visit = self._rater(request)
            place = self._place(visit)
            if place in (self.PLACE, ADJUDICATE):
                self._make_seat(visit)  # refuses visitors without work before they read; the seat is not kept yet
            return self._page(template, visit, place=place)

        return endpoint

    def _show_seat(self, request: Request) -> Response:
        visit = self._rater(request)
        if request.url.path != self._place(visit):
            return RedirectResponse(self._place(visit), 303)
        seat = self._seat(visit)
        with seat.lock:
            return self._render_seat(visit, seat)

    async def _receive_post(self, request: Request) -> Response:
        visit = self._rater(request)
        fields, form = await self._checked_form(request, visit)
        post = self._parse_form(fields, form)
        if request.url.path != self._place(visit):
            raise HTTPException(403, NOT_YOURS)
        return await run_in_threadpool(self._answer_post, visit, post, fields.get("change", ""))

    def _answer_post(self, visit: Visit, post: AnyPost, form_number: str) -> Response:
        seat = self._seat(visit)
        with seat.lock:
            is_late = seat.note_form(form_number)
            if is_late and post.button == "draft.quiet":
                return Response(status_code=204)
            try:
                result = self._apply(seat, post)
            except InputError as error:  # the comment is not valid, and the page shows it again
                refused = None if post.comment is None else to_nfc(post.comment)
                return self._render_seat(visit, seat, 422, f"Not saved: {error}.", comment=refused)
            except LogFull:
                return self._render_seat(visit, seat, 503, FULL)
            except HarnessError:
                return self._render_seat(visit, seat, 503, UNSAVED)
            if result is PostResult.STALE:
                return self._render_seat(visit, seat, 409, self.STALE)
            if result is PostResult.UNKNOWN:
                return self._render_seat(visit, seat, 400, NO_BUTTON)
        if post.button == "draft.quiet":
            return Response(status_code=204)
        return RedirectResponse(self._place(visit), 303)

    def _seat(self, visit: Visit) -> AnySeat:
        """The seat of a visitor, with updates from elsewhere."""
        assert visit.invitation is not None
        name, place = name_key(visit.invitation.rater), self._place(visit)
        if place not in (self.PLACE, ADJUDICATE):
            raise HTTPException(403, NOT_YOURS)
        with self._seats_lock:
            if (place, name) not in self._seats:
                self._seats[place, name] = self._make_seat(visit)
            seat = self._seats[place, name]
        self.refresher.read_if_due()
        with seat.lock:
            reading = self.refresher.number
            if seat.known_reading != reading:
                previous_key = seat.item_key
                self._update_desk(seat)
                seat.known_reading = reading
                if seat.item_key != previous_key:
                    seat.begin_turn()
            seat.note_presence()
            if seat.is_waiting:
                self.refresher.read_if_due(WAITING_INTERVAL_S)
        return seat

    def _make_seat(self, visit: Visit) -> AnySeat:
        """A new seat for a visitor. Refuses visitors without work here (403)."""
        assert visit.invitation is not None
        adjudicating = self._place(visit) == ADJUDICATE
        try:
            return self._new_seat(visit.invitation.rater, self.refresher.number, adjudicating=adjudicating)
        except InputError as error:
            raise HTTPException(403, self.NOT_INVITED) from error

    def _render_seat(
        self, visit: Visit, seat: AnySeat, status: int = 200, alert: str = "", comment: str | None = None
    ) -> Response:
        """The page of a seat, whose lock the caller holds.

        - alert: what went wrong with the last post; "" for nothing.
        - comment: a refused comment, shown instead of that of the draft; None without one.
        """
        template, values = self._seat_page(seat)
        seat_values = {"place": self._place(visit), "turn": seat.turn, "sight": seat.item_key, "alert": alert}
        return self._page(template, visit, status, **seat_values, **values, refused_comment=comment)
