"""A site where each visitor works at a seat: its page, the effect of its buttons, and its alerts.

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

from harness.base.user_text import name_key, to_nfc
from harness.model.errors import HarnessError, InputError, LogFull
from harness.web.base_site import BaseSite, Templates, Visit
from harness.web.invitations import Invitations, SiteReach


class PostResult(Enum):
    """The result of a post. REPEATED: the same post was already carried out. STALE: the page was old, and nothing was
    done.

    UNKNOWN: the page has no such button.
    """

    DONE = "done"
    REPEATED = "repeated"
    STALE = "stale"
    UNKNOWN = "unknown"


MAX_PAGES = 20
"""Number of pages of one turn whose comments are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedForm:
    """A form that a browser has sent.

    - do: name of the pressed button. The script of the page sends `draft.quiet`.
    - turn, sight: turn and sight of the seat when the page was sent.
    - page: name of the page.
    - comment: as the browser sent it; None if the form has no such field.
    - draft: whether the form has the fields of a draft.
    - mark: hash of its content, from `content_mark`.
    """

    do: str
    turn: str
    sight: str
    page: str
    comment: str | None
    draft: bool
    mark: str

    @property
    def request(self) -> str:
        """A text that identifies this post. The ids of its rows derive from it."""
        return f"{self.turn}\n{self.mark}"


@dataclass(slots=True, kw_only=True)
class BaseSeat(ABC):
    """A seat: its current item, and whether a page still shows that item. Callers must hold `lock`.

    - turn: changes with the item, so that posts from old pages can be recognised. It consists of start and number.
    - done: the last post that changed the turn, so that a repetition can be recognised.
    - read: number of the last reading of files that the desk knows.
    - change: the latest form that arrived: the document, and the number that its script gave the form.
    - comments: the last known comment in each page of this turn.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    start: str = field(default_factory=lambda: secrets.token_hex(4))
    number: int = 0
    done: str = ""
    read: int = 0
    change: tuple[str, int] = ("", 0)
    comments: dict[str, str] = field(default_factory=dict)

    @property
    @abstractmethod
    def sight(self) -> str:
        """Identifies the current item, also after a restart of the site; "" without one."""

    @property
    @abstractmethod
    def comment(self) -> str:
        """The comment of the draft."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether all work is done."""

    @abstractmethod
    def present(self) -> None:
        """Records that the person is present, shown by a page or a button."""

    @abstractmethod
    def is_saved(self, request: str) -> bool:
        """Whether the rows of a request are on the disk, also after a restart of the site."""

    @property
    def turn(self) -> str:
        return f"{self.start}.{self.number}"

    def next_turn(self, done: str = "") -> None:
        self.number += 1
        self.done = done
        self.comments.clear()

    def name_page(self) -> str:
        """Makes the name of a page before it is sent."""
        while len(self.comments) >= MAX_PAGES:
            del self.comments[next(iter(self.comments))]
        name = secrets.token_hex(4)
        self.comments[name] = self.comment
        return name

    def take_comment(self, post: SubmittedForm, write: Callable[[str], object]) -> None:
        """Writes the comment of a form if the page has changed it; errors of `write`.

        A page on which nothing was typed must not undo what was typed on another page of the same item.
        """
        if post.comment is None:
            return
        comment, page_comment = to_nfc(post.comment), self.comments.get(post.page)
        if comment not in (page_comment, to_nfc(self.comment)):
            write(post.comment)
        if page_comment is not None:
            self.comments[post.page] = comment

    def is_stale(self, change: str) -> bool:
        """Whether a later form of the same document has already arrived. change: `DOCUMENT.NUMBER` of the form; "" if
        it has none."""
        document, _, digits = change.partition(".")
        if not re.fullmatch(r"[0-9]{1,9}", digits):
            return False
        number = int(digits)
        if document == self.change[0] and number < self.change[1]:
            return True
        self.change = document, number
        return False

    def standing(self, post: SubmittedForm, *, outlasts: bool) -> PostResult:
        """Whether a post may be carried out: its page must have this turn and sight.

        outlasts: whether the post is also valid from a page that was sent before a restart of the site, if that shows
        the same item.
        """
        if post.request == self.done or self.is_saved(post.request):
            return PostResult.REPEATED
        if (post.turn, post.sight) == (self.turn, self.sight):
            return PostResult.DONE
        start, _, _ = post.turn.partition(".")
        return PostResult.DONE if outlasts and start != self.start and post.sight == self.sight else PostResult.STALE


def content_mark(fields: dict[str, str]) -> str:
    """A hash of a post's content."""
    ignored = ("plays", "heard_ms", "heard_end", "page", "change")  # these differ if a button is pressed again
    content = "\n".join(f"{name}={fields[name]}" for name in sorted(fields) if name not in ignored)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


REFRESH_S = 60.0
"""Interval at which files are read again while a visitor works."""
WAITING_S = 5.0
"""The same interval while a visitor has finished and waits for more work."""


AnySeat = TypeVar("AnySeat", bound=BaseSeat)


class RefreshableRoom(Protocol):
    """A room of raters or annotators. `refresh` reads its files again; HarnessError if they cannot be read."""

    def refresh(self) -> object: ...


class RoomRefresher:
    """Reads updates from elsewhere at intervals, in a thread, so that no request waits for it."""

    def __init__(self, room: RefreshableRoom, now_s: Callable[[], float] = time.monotonic) -> None:
        self._room = room
        self._now_s = now_s
        self._lock = threading.Lock()
        self._read_s = now_s()
        self._reading_thread: threading.Thread | None = None
        self.number = 0
        self.failed = ""

    def read_if_due(self, after_s: float = REFRESH_S) -> None:
        """Begins a reading if the last one was at least after_s ago."""
        with self._lock:
            if self._reading_thread is not None and self._reading_thread.is_alive():
                return
            if self._now_s() - self._read_s < after_s:
                return
            self._read_s = self._now_s()
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
        except HarnessError as error:
            # The last reading stays valid. The next attempt to save reports the same fault.
            self.failed = str(error)
            return
        self.failed = ""
        self.number += 1


MAX_SEARCH_CHARS = 200


def search_words(text: str) -> str:
    """The words of a search, cleaned. The page shows them again; they are not stored."""
    visible = "".join(sign for sign in " ".join(text.split()) if sign.isprintable() or sign in "\u200c\u200d")
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
    def _new_seat(self, name: str, reading: int, *, adjudicating: bool) -> AnySeat:
        """Makes the seat of a visitor; InputError if they have no work here. reading: number of the last reading of
        files, for its `read`."""

    @abstractmethod
    def _take_in(self, seat: AnySeat) -> None:
        """Passes updates from elsewhere to the desk of a seat."""

    @abstractmethod
    def _seat_page(self, seat: AnySeat) -> tuple[str, Mapping[str, object]]:
        """The template of a seat's page, and its values in addition to those of `_render_seat`."""

    @abstractmethod
    def _read(self, fields: Mapping[str, str], form: FormData) -> AnyPost:
        """The post that a form contains. fields: the fields that occur once in it."""

    @abstractmethod
    def _apply(self, seat: AnySeat, post: AnyPost) -> PostResult:
        """Carries out a post. InputError for a comment that is not valid; LogFull or another HarnessError if saving
        fails."""

    # What all these sites have in common

    def __init__(
        self,
        room: RefreshableRoom,
        invitations: Invitations,
        templates: Templates,
        routes: Sequence[Route] = (),
        *,
        reached: SiteReach,
        most_fields: int,
    ) -> None:
        self.readings = RoomRefresher(room)
        self._seats: dict[tuple[str, str], AnySeat] = {}
        """Seats by path and name of the visitor. A seat is made at the first request, from the rows on the disk."""
        self._making = threading.Lock()
        shared = [
            Route("/instructions", self._text(self.INSTRUCTIONS)),
            Route("/guide", self._text(self.GUIDE)),
            *(Route(place, self._desk, methods=["GET"]) for place in (self.PLACE, ADJUDICATE)),
            *(Route(place, self._post, methods=["POST"]) for place in (self.PLACE, ADJUDICATE)),
        ]
        super().__init__(invitations, templates, [*shared, *routes], reached, most_fields)

    def close(self) -> None:
        """Waits until no reading is in progress."""
        self.readings.wait()

    def _place(self, visit: Visit) -> str:
        return ADJUDICATE if visit.invitation is not None and visit.invitation.adjudicator else self.PLACE

    def _text(self, template: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            visit = self._rater(request)
            place = self._place(visit)
            if place in (self.PLACE, ADJUDICATE):
                self._new_seat_of(visit)  # refuses visitors without work before they read; the seat is not kept yet
            return self._page(template, visit, place=place)

        return endpoint

    def _desk(self, request: Request) -> Response:
        visit = self._rater(request)
        if request.url.path != self._place(visit):
            return RedirectResponse(self._place(visit), 303)
        seat = self._seat(visit)
        with seat.lock:
            return self._render_seat(visit, seat)

    async def _post(self, request: Request) -> Response:
        visit = self._rater(request)
        fields, form = await self._checked_form(request, visit)
        post = self._read(fields, form)
        if request.url.path != self._place(visit):
            raise HTTPException(403, NOT_YOURS)
        return await run_in_threadpool(self._apply_post, visit, post, fields.get("change", ""))

    def _apply_post(self, visit: Visit, post: AnyPost, change: str) -> Response:
        seat = self._seat(visit)
        with seat.lock:
            if seat.is_stale(change) and post.do == "draft.quiet":
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
        if post.do == "draft.quiet":
            return Response(status_code=204)
        return RedirectResponse(self._place(visit), 303)

    def _seat(self, visit: Visit) -> AnySeat:
        """The seat of a visitor, with updates from elsewhere."""
        assert visit.invitation is not None
        name, place = name_key(visit.invitation.rater), self._place(visit)
        if place not in (self.PLACE, ADJUDICATE):
            raise HTTPException(403, NOT_YOURS)
        with self._making:
            if (place, name) not in self._seats:
                self._seats[place, name] = self._new_seat_of(visit)
            seat = self._seats[place, name]
        self.readings.read_if_due()
        with seat.lock:
            number = self.readings.number
            if seat.read != number:
                sight = seat.sight
                self._take_in(seat)
                seat.read = number
                if seat.sight != sight:
                    seat.next_turn()
            seat.present()
            if seat.waits:
                self.readings.read_if_due(WAITING_S)
        return seat

    def _new_seat_of(self, visit: Visit) -> AnySeat:
        assert visit.invitation is not None
        adjudicating = self._place(visit) == ADJUDICATE
        try:
            return self._new_seat(visit.invitation.rater, self.readings.number, adjudicating=adjudicating)
        except InputError as error:
            raise HTTPException(403, self.NOT_INVITED) from error

    def _render_seat(
        self, visit: Visit, seat: AnySeat, status: int = 200, alert: str = "", comment: str | None = None
    ) -> Response:
        """The page of a seat, whose lock the caller holds.

        alert: what went wrong with the last post; "" for nothing. comment: a refused comment, shown instead of that of
        the draft; None without one.
        """
        template, values = self._seat_page(seat)
        of_seat = {"place": self._place(visit), "turn": seat.turn, "sight": seat.sight, "alert": alert}
        return self._page(template, visit, status, **of_seat, **values, refused_comment=comment)
