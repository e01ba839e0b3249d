"""The annotators' site: routes, and what each of them answers. No I/O of its own; saving is done by the desks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from harness.model.annotation import MOST_ON_A_PAGE
from harness.model.errors import HarnessError, InputError, LogFull
from harness.rig.annotation_room import AnnotationRoom
from harness.understanding.annotation.view import AnnotationPhase
from harness.web.annotation.pages import AnnotationPage, pages
from harness.web.annotation.posts import AnnotationPost, apply, read_post
from harness.web.annotation.seats import AnnotationSeat
from harness.web.entrance import FULL, UNSAVED, Entrance
from harness.web.invitations import Invitations
from harness.web.login import Visit
from harness.web.posts import Fate
from harness.web.seats import WAITING_S, Readings, Seats

ANNOTATE, ADJUDICATE = "/annotate", "/adjudicate"
OTHER_FIELDS = 20
STALE = "Nothing was saved: that page was old, it was dealt with in another window. This is the one open now."
NOT_OF_PROJECT = "You are invited to this site, but are no annotator of this project. Tell who invited you."


class AnnotationSite(Entrance):
    """Answers requests; the rest as in `Entrance`."""

    def __init__(
        self,
        room: AnnotationRoom,
        invitations: Invitations,
        *,
        names: Collection[str] = ("localhost",),
        secure: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = room
        self._seats = {
            ANNOTATE: Seats(lambda name, reading: AnnotationSeat(room.desk(name), read=reading)),
            ADJUDICATE: Seats(lambda name, reading: AnnotationSeat(room.adjudication(name), read=reading)),
        }
        self._readings = Readings(room, now_s)
        routes = [
            Route("/instructions", self._texts("annotation_instructions.html")),
            Route("/guide", self._texts("annotation_guide.html")),
            *(Route(place, self._desk, methods=["GET"]) for place in self._seats),
            *(Route(place, self._post, methods=["POST"]) for place in self._seats),
        ]
        super().__init__(
            invitations,
            pages(room.label_set, room.project),
            routes,
            names=names,
            secure=secure,
            most_fields=OTHER_FIELDS + max(MOST_ON_A_PAGE, len(room.label_set.labels)),
        )

    def close(self) -> None:
        """Returns when the project's file is not being read."""
        self._readings.wait()

    def _place(self, visit: Visit) -> str:
        """Adjudicators see the labels of others, and so give none of their own here."""
        return ADJUDICATE if visit.invitation is not None and visit.invitation.adjudicator else ANNOTATE

    # Pages

    def _texts(self, template: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            visit = self._rater(request)
            return self._page(template, visit, place=self._place(visit))

        return endpoint

    def _desk(self, request: Request) -> Response:
        visit = self._rater(request)
        place = request.url.path
        if place != self._place(visit):
            return RedirectResponse(self._place(visit), 303)
        seat = self._seat(visit, place)
        with seat.lock:
            return self._shown(visit, seat, place)

    def _shown(self, visit: Visit, seat: AnnotationSeat, place: str, status: int = 200, alert: str = "") -> Response:
        """The seat as a page; under its lock."""
        shown = AnnotationPage(place, seat, seat.desk.view, self._room.label_set, alert)
        return self._page("annotation_desk.html", visit, status, **shown.values())

    def _seat(self, visit: Visit, place: str) -> AnnotationSeat:
        assert visit.invitation is not None
        try:
            seat = self._seats[place].of(visit.invitation.rater, self._readings.number)
        except InputError as error:
            raise HTTPException(403, NOT_OF_PROJECT) from error
        self._readings.maybe()
        with seat.lock:
            number = self._readings.number
            if seat.read != number:
                before = seat.sight
                seat.desk.refresh(self._room.rows)
                seat.read = number
                if seat.sight != before:
                    seat.next_turn()
            seat.desk.present()
            if seat.desk.view.phase is AnnotationPhase.FINISHED:
                self._readings.maybe(WAITING_S)  # whoever is done waits for more
        return seat

    # Posts

    async def _post(self, request: Request) -> Response:
        visit = self._rater(request)
        fields, form = await self._checked_form(request, visit)
        lists = {name: [str(one) for one in form.getlist(name)] for name in ("struck", "label")}
        post = read_post(fields, lists["struck"], lists["label"])
        return await run_in_threadpool(self._done, visit, request.url.path, post)

    def _done(self, visit: Visit, place: str, post: AnnotationPost) -> Response:
        if place != self._place(visit):
            raise HTTPException(403, "That page is not for you.")
        seat = self._seat(visit, place)
        with seat.lock:
            try:
                fate = apply(seat, post)
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
