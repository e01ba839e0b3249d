"""The raters' site: each judges responses at a desk, and listens to those of their own queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.model.errors import HarnessError, InputError
from harness.model.judgment import RaterKeys
from harness.rating.rating_room import RatingRoom
from harness.web.invitations import Invitations
from harness.web.login import Visit
from harness.web.pages import CoordinatorPage, DeskPage, EarlierPage, pages
from harness.web.posts import Post, apply, comment_of, read_post
from harness.web.seated import NOT_YOURS, UNSAVED, SeatedSite
from harness.web.seats import WAITING_S, Seat
from harness.web.sounds import SoundShelf, picture, ranged
from harness.web.turns import Fate

COORDINATE = "/coordinate"
LONGEST_WORDS = 200


class Site(SeatedSite[Seat, Post]):
    """Answers requests. rater_names: adjudicators see who the raters are; the others as in `Entrance`."""

    PLACE = "/judge"
    INSTRUCTIONS, GUIDE = "instructions.html", "guide.html"
    STALE = (
        "Nothing was saved: that page was old, its response was dealt with in another window. This is the one open now."
    )
    NOT_INVITED = "You are invited to this site, but not to what is rated here now. Tell who invited you."

    def __init__(
        self,
        room: RatingRoom,
        invitations: Invitations,
        keys: RaterKeys,
        *,
        names: Collection[str] = ("localhost",),
        port: int = 0,
        secure: bool = False,
        rater_names: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = room
        self._shelf = SoundShelf()
        self._now_s = now_s
        routes = [
            Route("/earlier", self._earlier),
            Route(COORDINATE, self._progress, methods=["GET"]),
            Route(COORDINATE, self._reassign, methods=["POST"]),
            Route("/sound/{item}/{which}", self._sound),
            Route("/sound/{item}/{which}/picture", self._sound),
        ]
        templates = pages(keys, room.round, names=rater_names)
        super().__init__(room, invitations, templates, routes, names=names, port=port, secure=secure)

    def _place(self, visit: Visit) -> str:
        coordinates = visit.invitation is not None and visit.invitation.coordinator
        return COORDINATE if coordinates else super()._place(visit)

    def _new_seat(self, name: str, reading: int, *, adjudicating: bool) -> Seat:
        return Seat(self._room.adjudication(name) if adjudicating else self._room.desk(name), read=reading)

    def _take_in(self, seat: Seat, name: str, *, adjudicating: bool) -> None:
        seat.desk.refresh(self._room.items_for(name, adjudicating=adjudicating), self._room.rows)

    def _seat_page(self, seat: Seat, place: str, alert: str) -> DeskPage:
        return DeskPage(place, seat.new_page(self._now_s()), seat, seat.desk.view, self._room.round, alert)

    def _read(self, fields: Mapping[str, str], form: FormData) -> Post:
        return read_post(fields, tuple(str(one) for one in form.getlist("sub_flag")))

    def _apply(self, seat: Seat, post: Post) -> Fate:
        return apply(seat, post, self._now_s())

    def _earlier(self, request: Request) -> Response:
        visit = self._rater(request)
        seat = self._seat(visit)
        with seat.lock:
            page = EarlierPage(
                self._place(visit), seat, comment_of(request.query_params.get("words", ""))[:LONGEST_WORDS]
            )
            return self._page(page.template, visit, **page.values())

    def _progress(self, request: Request) -> Response:
        visit = self._coordinator(request)
        self.readings.maybe(WAITING_S)
        return self._coordinated(visit, giving=request.query_params.get("give", ""))

    async def _reassign(self, request: Request) -> Response:
        visit = self._coordinator(request)
        fields, form = await self._checked_form(request, visit)
        to = [str(one) for one in form.getlist("to")]
        return await run_in_threadpool(self._reassigned, visit, fields.get("rater", ""), to)

    def _reassigned(self, visit: Visit, rater: str, to: Sequence[str]) -> Response:
        assert visit.invitation is not None
        try:
            taken, left = self._room.reassign(rater, to, visit.invitation.rater)
        except InputError as error:
            return self._coordinated(visit, 400, alert=f"Nothing was moved: {error.what}.")
        except HarnessError:
            return self._coordinated(visit, 503, alert=UNSAVED)
        self.readings.number += 1  # everybody's desk takes in the new shares
        rest = f"; {left} stay with nobody, since all of them have these already" if left else ""
        return self._coordinated(visit, said=f"{taken} responses of {rater} now belong to {', '.join(to)}{rest}.")

    def _coordinator(self, request: Request) -> Visit:
        visit = self._rater(request)
        if self._place(visit) != COORDINATE:
            raise HTTPException(403, NOT_YOURS)
        return visit

    def _coordinated(
        self, visit: Visit, status: int = 200, *, giving: str = "", said: str = "", alert: str = ""
    ) -> Response:
        page = CoordinatorPage(self._room, time.time(), giving, said, alert)
        return self._page(page.template, visit, status, **page.values())

    def _sound(self, request: Request) -> Response:
        seat = self._seat(self._rater(request))
        which = request.path_params["which"]
        with seat.lock:
            item = seat.desk.item(request.path_params["item"])
        if item is None or which not in ("response", "query"):
            raise HTTPException(404, "There is no such sound among yours.")
        make = self._room.response_sound if which == "response" else self._room.query_sound
        try:
            content = self._shelf.get((item.id, which), lambda: make(item))
        except HarnessError as error:
            raise HTTPException(503, "This sound cannot be made or read. Tell who runs the site.") from error
        if request.url.path.endswith("/picture"):
            return Response(picture(content), media_type="image/svg+xml")
        return ranged(content, "audio/wav", request.headers.get("range"))
