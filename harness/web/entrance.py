"""What our sites share: logging in and out, pages of a visit, files, and what is said when something went wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from importlib import resources

from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from harness.web.gate import Gate
from harness.web.invitations import Invitations
from harness.web.login import LIFE_S, RENEW_S, Brake, Logins, Visit
from harness.web.rendering import Templates

STATIC = {
    "site.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "site.js": "text/javascript; charset=utf-8",
    "annotation.css": "text/css; charset=utf-8",
    "annotation.js": "text/javascript; charset=utf-8",
    "login.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
FAULT = (
    "<!doctype html><html lang=en><title>Fault</title><h1>The site has a fault</h1>"
    "<p>Load the page again. What was saved is safe. When it comes again, tell who runs the site.</p>"
)


class Entrance(ABC):
    """The part of a site that lets visitors in; `app` is the ASGI application.

    A site gives its own routes, /instructions among them, and says with `_place` where a visitor works.
    names: host names by which the site is known. port: the one it listens at. secure: visitors reach it by TLS, so
    that cookies are sent by TLS only. most_fields: of a form.
    """

    def __init__(
        self,
        invitations: Invitations,
        templates: Templates,
        routes: Sequence[Route],
        *,
        names: Collection[str],
        port: int,
        secure: bool,
        most_fields: int = 40,
    ) -> None:
        self._logins = Logins(invitations)
        self._brake = Brake()
        self._templates = templates
        self._port = port
        self._secure = secure
        self._most_fields = most_fields
        folder = resources.files("harness.web") / "static"
        self._static = {name: (folder / name).read_bytes() for name in STATIC}
        shared = [
            Route("/", self._front),
            Route("/login", self._login, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/leave", self._leave, methods=["POST"]),
            Route("/rest", self._rest),
            Route("/static/{name}", self._file),
        ]
        starlette = Starlette(
            routes=[*shared, *routes], exception_handlers={HTTPException: self._refused, Exception: self._failed}
        )
        self.app: ASGIApp = Gate(starlette, names, secure=secure)

    @abstractmethod
    def _place(self, visit: Visit) -> str:
        """The path at which a visitor works."""

    # Who is there

    def _visit(self, request: Request) -> Visit | None:
        return self._logins.visit(request.cookies.get(self.cookie_name))

    def _rater(self, request: Request) -> Visit:
        """Who is logged in; else they are led to the login."""
        visit = self._visit(request)
        if visit is None or visit.invitation is None:
            if request.method == "GET" and not request.url.path.startswith("/sound/"):
                raise HTTPException(303, headers={"location": "/login"})
            raise HTTPException(401, "You are not logged in any more. Open the link of your invitation again.")
        return visit

    @property
    def cookie_name(self) -> str:
        """Of the one cookie that the site sets."""
        return self._logins.cookie_name(self._port, secure=self._secure)

    def _with_cookie(self, response: Response, visit: Visit) -> Response:
        value = self._logins.cookie(visit)
        response.set_cookie(
            self.cookie_name, value, max_age=LIFE_S, httponly=True, samesite="strict", secure=self._secure
        )
        return response

    def _page(self, template: str, visit: Visit | None, status: int = 200, **values: object) -> Response:
        """A page; the cookie is made anew when it is of some age."""
        word = self._logins.form_word(visit) if visit else ""
        invitation = visit.invitation if visit else None
        text = self._templates.page(template, form_word=word, invitation=invitation, **values)
        response = HTMLResponse(text, status)
        if visit is not None and visit.age_s > RENEW_S and invitation is not None:
            self._with_cookie(response, visit)
        return response

    async def _checked_form(self, request: Request, visit: Visit) -> tuple[dict[str, str], FormData]:
        """Its fields, each once, and all of it; refused when it is not from a page of this visit."""
        form = await request.form(max_files=0, max_fields=self._most_fields)
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        if not self._logins.is_form_word(visit, fields.pop("form_word", "")):
            raise HTTPException(403, "That form is not from a page of yours. Load the page again.")
        return fields, form

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
        form = await request.form(max_files=0, max_fields=self._most_fields)
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
        response.delete_cookie(self.cookie_name, httponly=True, samesite="strict", secure=self._secure)
        return response

    # Notices and files

    def _rest(self, request: Request) -> Response:
        return self._notice(self._rater(request), 200, "Take a rest", self._templates.words.rest)

    def _notice(self, visit: Visit | None, status: int, title: str, text: str) -> Response:
        place = self._place(visit) if visit is not None and visit.invitation is not None else "/login"
        return self._page("notice.html", visit, status, title=title, text=text, place=place)

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
