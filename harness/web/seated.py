"""A site where everybody works at a seat of their own: its page, what its buttons do, and what is said when they fail.

A request goes this way. GET of a place: who is it → their seat → what was read elsewhere is taken in → the page.
POST to it: who is it → a form of this visit → their seat → what its button says is done, once, and is on the disk →
back to the page; or the page as it stands now, with an alert.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from harness.model.errors import HarnessError, InputError, LogFull
from harness.web.entrance import Entrance
from harness.web.invitations import Invitations
from harness.web.login import Visit
from harness.web.rendering import Templates
from harness.web.seats import WAITING_S, Readings, Refreshes, Seats
from harness.web.turns import Fate, Turns

ADJUDICATE = "/adjudicate"
FULL = "Not saved, the disk of this site is full. Tell who runs it, and press the key again; nothing else is lost."
UNSAVED = "Not saved, this site could not write it. Tell who runs it, and press the key again; nothing else is lost."
NOT_YOURS = "That page is not for you."
NO_BUTTON = "Nothing was saved: this site has no such button."


class Pressed(Protocol):
    """A form that was sent. do: which of its buttons was pressed; `draft.quiet` is sent by the page's script."""

    @property
    def do(self) -> str: ...


class SeatPage(Protocol):
    """A seat as it stands."""

    @property
    def template(self) -> str: ...

    def values(self) -> Mapping[str, object]:
        """What the template is given."""


AnySeat = TypeVar("AnySeat", bound=Turns)
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
    def _seat_page(self, seat: AnySeat, place: str, alert: str) -> SeatPage:
        """What is sent to show the seat. alert: what went wrong with the last post, or ""."""

    @abstractmethod
    def _read(self, fields: Mapping[str, str], form: FormData) -> AnyPost:
        """What a form asks for. fields: those that stand once in it."""

    @abstractmethod
    def _apply(self, seat: AnySeat, post: AnyPost) -> Fate:
        """Does it; LogFull, or another HarnessError, when it could not be saved."""

    # What all of them do

    def __init__(
        self,
        room: Refreshes,
        invitations: Invitations,
        templates: Templates,
        routes: Sequence[Route] = (),
        *,
        names: Collection[str],
        port: int,
        secure: bool,
        most_fields: int = 40,
    ) -> None:
        self.readings = Readings(room)
        self._seats = {
            self.PLACE: Seats(lambda name, reading: self._new_seat(name, reading, adjudicating=False)),
            ADJUDICATE: Seats(lambda name, reading: self._new_seat(name, reading, adjudicating=True)),
        }
        shared = [
            Route("/instructions", self._text(self.INSTRUCTIONS)),
            Route("/guide", self._text(self.GUIDE)),
            *(Route(place, self._desk, methods=["GET"]) for place in self._seats),
            *(Route(place, self._post, methods=["POST"]) for place in self._seats),
        ]
        super().__init__(
            invitations,
            templates,
            [*shared, *routes],
            names=names,
            port=port,
            secure=secure,
            most_fields=most_fields,
        )

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
            if fate is Fate.STALE:
                return self._shown(visit, seat, 409, self.STALE)
            if fate is Fate.UNKNOWN:
                return self._shown(visit, seat, 400, NO_BUTTON)
        if post.do == "draft.quiet":
            return Response(status_code=204)
        return RedirectResponse(self._place(visit), 303)

    def _seat(self, visit: Visit) -> AnySeat:
        """The visitor's, with what came from elsewhere."""
        assert visit.invitation is not None
        name, place = visit.invitation.rater, self._place(visit)
        if place not in self._seats:
            raise HTTPException(403, NOT_YOURS)
        try:
            seat = self._seats[place].of(name, self.readings.number)
        except InputError as error:
            raise HTTPException(403, self.NOT_INVITED) from error
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
        page = self._seat_page(seat, self._place(visit), alert)
        return self._page(page.template, visit, status, **page.values())
