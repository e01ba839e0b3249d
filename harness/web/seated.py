"""A site where everybody works at a seat of their own: its page, what its buttons do, and what is said when they fail.

A request goes this way. GET of a place: who is it → their seat → what was read elsewhere is taken in → the page.
POST to it: who is it → a form of this visit → their seat → what its button says is done, once, and is on the disk →
back to the page; or the page as it stands now, with an alert.
"""

from __future__ import annotations

import hashlib
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

from harness.model.errors import HarnessError, InputError, LogFull
from harness.web.entrance import Entrance, Templates, Visit
from harness.web.invitations import Invitations, SiteReach


class PostFate(Enum):
    """DONE: as asked. REPEATED: it was done before, by the same post. STALE: the page was old, and nothing was done.

    UNKNOWN: its page has no such button.
    """

    DONE = "done"
    REPEATED = "repeated"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(slots=True, kw_only=True)
class Turns(ABC):
    """A seat: what is in sight at it, and whether a page still shows that. `lock` is held whenever it is asked or used.

    turn: changes whenever something else comes in sight, so that a page of before is known as old. done: the turn and
    the content of the last post that changed the turn, so that its repetition is known as one. read: the number of the
    reading of what comes from elsewhere that the desk has taken in.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    start: str = field(default_factory=lambda: secrets.token_hex(4))
    number: int = 0
    done: tuple[str, str] | None = None
    read: int = 0

    @property
    @abstractmethod
    def sight(self) -> str:
        """Names what is in sight, the same whenever the site is started; "" when nothing is."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether all is done that there is to do."""

    @abstractmethod
    def present(self) -> None:
        """Whoever sits here is there: they asked for a page, or pressed a button."""

    @abstractmethod
    def wrote(self, request: str) -> bool:
        """Whether the rows of a request are on the disk, also from before the site was started again."""

    @property
    def turn(self) -> str:
        return f"{self.start}.{self.number}"

    def next_turn(self, done: tuple[str, str] | None = None) -> None:
        self.number += 1
        self.done = done

    def standing(self, turn: str, sight: str, mark: str, *, outlasts: bool) -> PostFate:
        """Whether a post may be done: it comes from a page of this turn and sight, and is told from others by its mark.

        outlasts: it means the same on a page of before the site was started again, when the same is in sight.
        """
        if (turn, mark) == self.done or self.wrote(request_name(turn, mark)):
            return PostFate.REPEATED
        if (turn, sight) == (self.turn, self.sight):
            return PostFate.DONE
        start, _, _ = turn.partition(".")
        return PostFate.DONE if outlasts and start != self.start and sight == self.sight else PostFate.STALE


def request_name(turn: str, mark: str) -> str:
    """Names a post: the ids of its rows follow from this."""
    return f"{turn}\n{mark}"


def content_mark(fields: dict[str, str]) -> str:
    """Tells one post from another."""
    whole = "\n".join(
        f"{name}={fields[name]}" for name in sorted(fields) if name not in ("plays", "heard_ms", "heard_end", "page")
    )
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()


REFRESH_S = 60.0
"""So often what comes from elsewhere is read again while somebody works."""
WAITING_S = 5.0
"""… and while somebody has judged all and waits for more."""


AnySeat = TypeVar("AnySeat", bound=Turns)


class RefreshedRoom(Protocol):
    """A room: it reads again what it is made of. HarnessError when that cannot be read."""

    def refresh(self) -> object: ...


class Readings:
    """Reads what came from elsewhere now and then, beside the requests, so that nobody waits for it."""

    def __init__(self, room: RefreshedRoom, now_s: Callable[[], float] = time.monotonic) -> None:
        self._room = room
        self._now_s = now_s
        self._lock = threading.Lock()
        self._read_s = now_s()
        self._running: threading.Thread | None = None
        self.number = 0
        self.failed = ""

    def maybe(self, after_s: float = REFRESH_S) -> None:
        """Begins a reading when the last one is so long ago."""
        with self._lock:
            if self._running is not None and self._running.is_alive():
                return
            if self._now_s() - self._read_s < after_s:
                return
            self._read_s = self._now_s()
            self._running = threading.Thread(target=self._read, name="reading sessions", daemon=True)
            self._running.start()

    def wait(self) -> None:
        """Returns when no reading is under way."""
        with self._lock:
            running = self._running
        if running is not None:
            running.join()

    def _read(self) -> None:
        try:
            self._room.refresh()
        except HarnessError as error:
            # What was read before stands; saving would tell of the same fault.
            self.failed = str(error)
            return
        self.failed = ""
        self.number += 1


LONGEST_COMMENT = 2000


def comment_of(text: str) -> str:
    """A comment as it is kept: without what cannot be printed, and not too long."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(sign for sign in lines if sign == "\n" or sign.isprintable())[:LONGEST_COMMENT]


ADJUDICATE = "/adjudicate"
FULL = "Not saved, the disk of this site is full. Tell who runs it, and press the key again; nothing else is lost."
UNSAVED = "Not saved, this site could not write it. Tell who runs it, and press the key again; nothing else is lost."
NOT_YOURS = "That page is not for you."
NO_BUTTON = "Nothing was saved: this site has no such button."


class Pressed(Protocol):
    """A form that was sent. do: which of its buttons was pressed; `draft.quiet` is sent by the page's script."""

    @property
    def do(self) -> str: ...


AnyPost = TypeVar("AnyPost", bound=Pressed)


class SeatedSite(Entrance, Generic[AnySeat, AnyPost]):
    """Seats, and the two places at which they are: the site's own, and that of adjudicators.

    Adjudicators see what others gave, and so give nothing of their own. A site says what stands under "What a site
    says"; saving is done by the desks of its seats.
    """

    # What a site says

    PLACE: ClassVar[str]
    """The path at which whoever is no adjudicator works."""
    INSTRUCTIONS: ClassVar[str]
    GUIDE: ClassVar[str]
    """Templates of the two pages that only tell something."""
    STALE: ClassVar[str]
    """The alert for a post of an old page."""
    NOT_INVITED: ClassVar[str]
    """For who may log in, but has nothing to do with what is worked on here."""

    @abstractmethod
    def _new_seat(self, name: str, reading: int, *, adjudicating: bool) -> AnySeat:
        """Made when somebody comes first; InputError when they have nothing to do here. reading: its `read`."""

    @abstractmethod
    def _take_in(self, seat: AnySeat, name: str, *, adjudicating: bool) -> None:
        """Gives the seat's desk what came from elsewhere."""

    @abstractmethod
    def _seat_page(self, seat: AnySeat, place: str, alert: str) -> tuple[str, Mapping[str, object]]:
        """The template that shows the seat, and what it is given. alert: what went wrong with the last post, or ""."""

    @abstractmethod
    def _read(self, fields: Mapping[str, str], form: FormData) -> AnyPost:
        """What a form asks for. fields: those that stand once in it."""

    @abstractmethod
    def _apply(self, seat: AnySeat, post: AnyPost) -> PostFate:
        """Does it; LogFull, or another HarnessError, when it could not be saved."""

    # What all of them do

    def __init__(
        self,
        room: RefreshedRoom,
        invitations: Invitations,
        templates: Templates,
        routes: Sequence[Route] = (),
        *,
        reached: SiteReach,
        most_fields: int = 40,
    ) -> None:
        self.readings = Readings(room)
        self._seats: dict[tuple[str, str], AnySeat] = {}
        """By place and name; made at the first request from the rows on the disk."""
        self._making = threading.Lock()
        shared = [
            Route("/instructions", self._text(self.INSTRUCTIONS)),
            Route("/guide", self._text(self.GUIDE)),
            *(Route(place, self._desk, methods=["GET"]) for place in (self.PLACE, ADJUDICATE)),
            *(Route(place, self._post, methods=["POST"]) for place in (self.PLACE, ADJUDICATE)),
        ]
        super().__init__(invitations, templates, [*shared, *routes], reached, most_fields)

    def close(self) -> None:
        """Returns when nothing is being read."""
        self.readings.wait()

    def _place(self, visit: Visit) -> str:
        return ADJUDICATE if visit.invitation is not None and visit.invitation.adjudicator else self.PLACE

    def _text(self, template: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            visit = self._rater(request)
            return self._page(template, visit, place=self._place(visit))

        return endpoint

    def _desk(self, request: Request) -> Response:
        visit = self._rater(request)
        if request.url.path != self._place(visit):
            return RedirectResponse(self._place(visit), 303)
        seat = self._seat(visit)
        with seat.lock:
            return self._shown(visit, seat)

    async def _post(self, request: Request) -> Response:
        visit = self._rater(request)
        fields, form = await self._checked_form(request, visit)
        post = self._read(fields, form)
        if request.url.path != self._place(visit):
            raise HTTPException(403, NOT_YOURS)
        return await run_in_threadpool(self._done, visit, post)

    def _done(self, visit: Visit, post: AnyPost) -> Response:
        seat = self._seat(visit)
        with seat.lock:
            try:
                fate = self._apply(seat, post)
            except LogFull:
                return self._shown(visit, seat, 503, FULL)
            except HarnessError:
                return self._shown(visit, seat, 503, UNSAVED)
            if fate is PostFate.STALE:
                return self._shown(visit, seat, 409, self.STALE)
            if fate is PostFate.UNKNOWN:
                return self._shown(visit, seat, 400, NO_BUTTON)
        if post.do == "draft.quiet":
            return Response(status_code=204)
        return RedirectResponse(self._place(visit), 303)

    def _seat(self, visit: Visit) -> AnySeat:
        """The visitor's, with what came from elsewhere."""
        assert visit.invitation is not None
        name, place = visit.invitation.rater, self._place(visit)
        if place not in (self.PLACE, ADJUDICATE):
            raise HTTPException(403, NOT_YOURS)
        with self._making:
            if (place, name) not in self._seats:
                try:
                    seat = self._new_seat(name, self.readings.number, adjudicating=place == ADJUDICATE)
                except InputError as error:
                    raise HTTPException(403, self.NOT_INVITED) from error
                self._seats[place, name] = seat
            seat = self._seats[place, name]
        self.readings.maybe()
        with seat.lock:
            number = self.readings.number
            if seat.read != number:
                before = seat.sight
                self._take_in(seat, name, adjudicating=place == ADJUDICATE)
                seat.read = number
                if seat.sight != before:
                    seat.next_turn()
            seat.present()
            if seat.waits:
                self.readings.maybe(WAITING_S)
        return seat

    def _shown(self, visit: Visit, seat: AnySeat, status: int = 200, alert: str = "") -> Response:
        """The seat's page; under its lock."""
        template, values = self._seat_page(seat, self._place(visit), alert)
        return self._page(template, visit, status, **values)
