"""The raters' site: routes, and what each of them answers. No I/O of its own; saving is done by the desks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from importlib import resources

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from harness.model.errors import HarnessError, InputError, LogFull
from harness.model.rater_keys import RaterKeys
from harness.rig.rating_room import RatingRoom
from harness.web.gate import Gate
from harness.web.invitations import Invitations
from harness.web.login import COOKIE, LIFE_S, RENEW_S, Brake, Logins, Visit
from harness.web.pages import STATIC, DeskPage, Pages
from harness.web.posts import Fate, Post, apply, read_post
from harness.web.seats import WAITING_S, Readings, Seat, Seats
from harness.web.sounds import SoundShelf, picture, ranged

JUDGE, ADJUDICATE = "/judge", "/adjudicate"
MOST_FIELDS = 40
STALE = "Nothing was saved: that page was old, its response was dealt with in another window. This is the one open now."
FULL = "Not saved, the disk of this site is full. Tell who runs it, and press the key again; nothing else is lost."
UNSAVED = "Not saved, this site could not write it. Tell who runs it, and press the key again; nothing else is lost."


NOT_OF_ROUND = "You are invited to this site, but not to what is rated here now. Tell who invited you."
FAULT = (
    "<!doctype html><html lang=en><title>Fault</title><h1>The site has a fault</h1>"
    "<p>Load the page again. What was saved is safe. When it comes again, tell who runs the site.</p>"
)


class Site:
    """Answers requests; `app` is the ASGI application.

    names: host names by which the site is known. secure: raters reach it by TLS, so that cookies are sent by TLS only.
    rater_names: adjudicators see who the raters are.
    """

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
        self._logins = Logins(invitations)
        self._brake = Brake()
        self._pages = Pages(keys, room.round, names=rater_names)
        self._seats = {JUDGE: Seats(room.desk), ADJUDICATE: Seats(room.adjudication)}
        self.readings = Readings(room)
        self._shelf = SoundShelf()
        self._secure = secure
        self._now_s = now_s
        folder = resources.files("harness.web") / "static"
        self._static = {name: (folder / name).read_bytes() for name in STATIC}
        self.app: ASGIApp = Gate(self._starlette(), names, secure=secure)

    def _starlette(self) -> Starlette:
        routes = [
            Route("/", self._front),
            Route("/login", self._login, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/leave", self._leave, methods=["POST"]),
            Route("/instructions", self._texts("instructions.html")),
            Route("/guide", self._texts("guide.html")),
            Route("/rest", self._rest),
            *(Route(place, self._desk, methods=["GET"]) for place in self._seats),
            *(Route(place, self._post, methods=["POST"]) for place in self._seats),
            Route("/sound/{item}/{which}", self._sound),
            Route("/sound/{item}/{which}/picture", self._sound),
            Route("/static/{name}", self._file),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: self._refused, Exception: self._failed})

    # Who is there

    def _visit(self, request: Request) -> Visit | None:
        return self._logins.visit(request.cookies.get(self._cookie_name))

    def _rater(self, request: Request) -> Visit:
        """Who is logged in; else they are led to the login."""
        visit = self._visit(request)
        if visit is None or visit.invitation is None:
            if request.method == "GET" and not request.url.path.startswith("/sound/"):
                raise HTTPException(303, headers={"location": "/login"})
            raise HTTPException(401, "You are not logged in any more. Open the link of your invitation again.")
        return visit

    @property
    def _cookie_name(self) -> str:
        # Browsers take this prefix from TLS only, and let no other host of the domain set it.
        return f"__Host-{COOKIE}" if self._secure else COOKIE

    def _with_cookie(self, response: Response, visit: Visit) -> Response:
        value = self._logins.cookie(visit)
        response.set_cookie(
            self._cookie_name, value, max_age=LIFE_S, httponly=True, samesite="strict", secure=self._secure
        )
        return response

    def _page(self, template: str, visit: Visit | None, status: int = 200, **values: object) -> Response:
        """A page; the cookie is made anew when it is of some age."""
        word = self._logins.form_word(visit) if visit else ""
        invitation = visit.invitation if visit else None
        text = self._pages.page(template, form_word=word, invitation=invitation, **values)
        response = HTMLResponse(text, status)
        if visit is not None and visit.age_s > RENEW_S and invitation is not None:
            self._with_cookie(response, visit)
        return response

    # Logging in and out

    async def _front(self, request: Request) -> Response:
        self._rater(request)
        return RedirectResponse("/instructions", 303)

    async def _login(self, request: Request) -> Response:
        visit = self._visit(request)
        if visit is None:
            visit = self._logins.stranger()
        return self._with_cookie(self._page("login.html", visit, alert=""), visit)

    async def _log_in(self, request: Request) -> Response:
        visit = self._visit(request) or self._logins.stranger()
        form = await request.form(max_files=0, max_fields=MOST_FIELDS)
        address = request.client.host if request.client else ""
        if wait_s := self._brake.wait_s(address):
            text = f"Too many wrong invitations came from your network. Try again in {round(wait_s / 60) + 1} minutes."
            response = self._page("login.html", visit, 429, alert=text)
            response.headers["retry-after"] = str(round(wait_s))
            return self._with_cookie(response, visit)
        if not self._logins.is_form_word(visit, str(form.get("form_word", ""))):
            text = "This page was open for too long. Please send it again."
            return self._with_cookie(self._page("login.html", visit, 403, alert=text), visit)
        found = self._logins.log_in(str(form.get("token", ""))[:200])
        if found is None:
            self._brake.failed(address)
            text = "This invitation is wrong, has expired or was withdrawn. Ask who invited you for a new one."
            return self._with_cookie(self._page("login.html", visit, 403, alert=text), visit)
        if visit.invitation == found.invitation:
            # The link was opened once more: the forms of their other windows go on.
            found = visit
        return self._with_cookie(RedirectResponse("/instructions", 303), found)

    async def _leave(self, request: Request) -> Response:
        visit = self._rater(request)
        await self._checked_form(request, visit)
        self._logins.leave(visit)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(self._cookie_name, httponly=True, samesite="strict", secure=self._secure)
        return response

    async def _checked_form(self, request: Request, visit: Visit) -> tuple[dict[str, str], tuple[str, ...]]:
        """Its fields and its sub-flags; refused when it is not from a page of this visit."""
        form = await request.form(max_files=0, max_fields=MOST_FIELDS)
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        if not self._logins.is_form_word(visit, fields.pop("form_word", "")):
            raise HTTPException(403, "That form is not from a page of yours. Load the page again.")
        return fields, tuple(str(one) for one in form.getlist("sub_flag"))

    # Pages

    def _texts(self, template: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            visit = self._rater(request)
            return self._page(template, visit, place=_place(visit), exercises=len(self._room.exercises))

        return endpoint

    def _rest(self, request: Request) -> Response:
        visit = self._rater(request)
        return self._notice(visit, 200, "Take a rest", "All that you judged is saved. You may close this window.")

    def _notice(self, visit: Visit | None, status: int, title: str, text: str) -> Response:
        place = _place(visit) if visit is not None and visit.invitation is not None else "/login"
        return self._page("notice.html", visit, status, title=title, text=text, place=place)

    def _desk(self, request: Request) -> Response:
        visit = self._rater(request)
        place = request.url.path
        if place != _place(visit):
            return RedirectResponse(_place(visit), 303)
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
        fields, sub_flags = await self._checked_form(request, visit)
        post = read_post(fields, sub_flags)
        return await run_in_threadpool(self._done, visit, request.url.path, post)

    def _done(self, visit: Visit, place: str, post: Post) -> Response:
        if place != _place(visit):
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

    # Sounds and files

    def _sound(self, request: Request) -> Response:
        visit = self._rater(request)
        which = request.path_params["which"]
        place = _place(visit)
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

    def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404, "There is no such page.")
        return Response(self._static[name], media_type=STATIC[name], headers={"cache-control": "no-cache"})

    # What went wrong

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 303:
            return RedirectResponse((error.headers or {}).get("location", "/login"), 303)
        text = error.detail if error.status_code != 404 or "." in error.detail else "There is no such page."
        return self._notice(self._visit(request), error.status_code, "That did not work", text)

    async def _failed(self, request: Request, error: Exception) -> Response:
        """The traceback goes to the log; a rater is told what to do."""
        return HTMLResponse(FAULT, 500)


def _place(visit: Visit) -> str:
    """Adjudicators see the judgments of others, and so give none of their own here."""
    return ADJUDICATE if visit.invitation is not None and visit.invitation.adjudicator else JUDGE
