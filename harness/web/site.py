"""The raters' site: routes, and what each of them answers. No I/O of its own; saving is done by the desks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from harness.model.errors import HarnessError, InputError, LogFull
from harness.model.rater_keys import RaterKeys
from harness.rig.rating_room import RatingRoom
from harness.web.entrance import FULL, UNSAVED, Entrance
from harness.web.invitations import Invitations
from harness.web.login import Visit
from harness.web.pages import DeskPage, pages
from harness.web.posts import Fate, Post, apply, read_post
from harness.web.seats import WAITING_S, Readings, Seat, Seats
from harness.web.sounds import SoundShelf, picture, ranged

JUDGE, ADJUDICATE = "/judge", "/adjudicate"
STALE = "Nothing was saved: that page was old, its response was dealt with in another window. This is the one open now."
NOT_OF_ROUND = "You are invited to this site, but not to what is rated here now. Tell who invited you."


class Site(Entrance):
    """Answers requests. rater_names: adjudicators see who the raters are; the others as in `Entrance`."""

    def __init__(
        self,
        room: RatingRoom,
        invitations: Invitations,
        keys: RaterKeys,
        *,
        names: Collection[str] = ("localhost",),
        secure: bool = False,
        rater_names: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = room
        self._seats = {
            JUDGE: Seats(lambda rater, reading: Seat(room.desk(rater), read=reading)),
            ADJUDICATE: Seats(lambda rater, reading: Seat(room.adjudication(rater), read=reading)),
        }
        self.readings = Readings(room)
        self._shelf = SoundShelf()
        self._now_s = now_s
        routes = [
            Route("/instructions", self._texts("instructions.html")),
            Route("/guide", self._texts("guide.html")),
            *(Route(place, self._desk, methods=["GET"]) for place in self._seats),
            *(Route(place, self._post, methods=["POST"]) for place in self._seats),
            Route("/sound/{item}/{which}", self._sound),
            Route("/sound/{item}/{which}/picture", self._sound),
        ]
        templates = pages(keys, room.round, names=rater_names)
        super().__init__(invitations, templates, routes, names=names, secure=secure)

    def _place(self, visit: Visit) -> str:
        """Adjudicators see the judgments of others, and so give none of their own here."""
        return ADJUDICATE if visit.invitation is not None and visit.invitation.adjudicator else JUDGE

    def close(self) -> None:
        """Returns when no session is being read."""
        self.readings.wait()

    # Pages

    def _texts(self, template: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            visit = self._rater(request)
            return self._page(template, visit, place=self._place(visit), exercises=len(self._room.exercises))

        return endpoint

    def _desk(self, request: Request) -> Response:
        visit = self._rater(request)
        place = request.url.path
        if place != self._place(visit):
            return RedirectResponse(self._place(visit), 303)
        seat = self._seat(visit, place)
        with seat.lock:
            return self._shown(visit, seat, place)

    def _shown(self, visit: Visit, seat: Seat, place: str, status: int = 200, alert: str = "") -> Response:
        """The seat as a page; under its lock."""
        page = seat.new_page(self._now_s())
        shown = DeskPage(place, page, seat, seat.desk.view, self._room.round, alert)
        return self._page("desk.html", visit, status, **shown.values())

    def _seat(self, visit: Visit, place: str) -> Seat:
        assert visit.invitation is not None
        try:
            seat = self._seats[place].of(visit.invitation.rater, self.readings.number)
        except InputError as error:
            raise HTTPException(403, NOT_OF_ROUND) from error
        self.readings.maybe()
        with seat.lock:
            number = self.readings.number
            if seat.read != number:
                before = seat.item_id
                items = self._room.items_for(visit.invitation.rater, adjudicating=place == ADJUDICATE)
                seat.desk.refresh(items, self._room.rows)
                seat.read = number
                if seat.item_id != before:
                    seat.next_turn()
            seat.desk.present()
            if not seat.item_id:
                self.readings.maybe(WAITING_S)  # whoever is done waits for more
        return seat

    # Posts

    async def _post(self, request: Request) -> Response:
        visit = self._rater(request)
        fields, form = await self._checked_form(request, visit)
        post = read_post(fields, tuple(str(one) for one in form.getlist("sub_flag")))
        return await run_in_threadpool(self._done, visit, request.url.path, post)

    def _done(self, visit: Visit, place: str, post: Post) -> Response:
        if place != self._place(visit):
            raise HTTPException(403, "That page is not for you.")
        seat = self._seat(visit, place)
        with seat.lock:
            try:
                fate = apply(seat, post, self._now_s())
            except LogFull:
                return self._shown(visit, seat, place, 503, FULL)
            except HarnessError:
                return self._shown(visit, seat, place, 503, UNSAVED)
            if fate is Fate.STALE:
                return self._shown(visit, seat, place, 409, STALE)
            if fate is Fate.UNKNOWN:
                return self._shown(visit, seat, place, 400, "Nothing was saved: this site has no such button.")
        if post.do == "draft.quiet":
            return Response(status_code=204)
        return RedirectResponse(place, 303)

    # Sounds

    def _sound(self, request: Request) -> Response:
        visit = self._rater(request)
        which = request.path_params["which"]
        place = self._place(visit)
        seat = self._seat(visit, place)
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
