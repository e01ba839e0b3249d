"""What the sites share: login and logout, pages of a visit, files, and error pages."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import resources
from typing import ClassVar

from itsdangerous import BadData, URLSafeTimedSerializer
from jinja2 import DictLoader, Environment, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.datastructures import FormData, Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.base.foreign import JOINERS, ON_A_PAGE, plain_text
from harness.base.user_text import MAX_TEXT_CHARS
from harness.model import numbers
from harness.model.frozen import frozen
from harness.model.numbers import NOTHING, counted, fixed
from harness.web.invitations import Invitation, Invitations, SiteReach

SHARED_TEMPLATES = ("base.html", "press.html", "login.html", "notice.html")
_KEY_NAMES = {"space": "Space", "enter": "Enter", "tab": "Tab", "backspace": "⌫", "left": "←", "right": "→"}
_KEY_NAMES |= {"up": "↑", "down": "↓", "escape": "Esc"}


@frozen
class SiteWords:
    """A site's texts for the shared pages.

    - name: name of the site, in titles.
    - welcome: heading of the login page.
    - kept: what the site stores about a visitor.
    - go_on: text of the link back to the work.
    - rest: text of the page for a break.
    """

    name: str
    welcome: str
    kept: str
    go_on: str
    rest: str


class Templates:
    """Renders the shared templates, and those in `names`. All of them can use `values`."""

    def __init__(self, names: Sequence[str], words: SiteWords, values: Mapping[str, object]) -> None:
        folder = resources.files("harness.web") / "templates"
        self.words = words
        self._environment = Environment(
            loader=DictLoader(
                {name: (folder / name).read_text(encoding="utf-8") for name in (*SHARED_TEMPLATES, *names)}
            ),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["plain"] = lambda text, limit=500: plain_text(str(text), limit, kept=JOINERS)
        self._environment.filters["page_text"] = lambda text: plain_text(text, MAX_TEXT_CHARS, kept=ON_A_PAGE)
        # Browsers ignore a line end directly after the tag.
        self._environment.filters["in_textarea"] = lambda text: f"\n{text}" if text.startswith("\n") else text
        self._environment.filters["minutes"] = _minutes_text
        self._environment.filters["words"] = lambda text: str(text).replace("_", " ")
        shared = {"site": words, "key_name": key_name, "longest_comment": MAX_TEXT_CHARS, "numbers": numbers}
        self._environment.globals.update({**shared, **values})

    def render(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(**values)


def key_name(key: str) -> str:
    """The name of a key on screen."""
    return _KEY_NAMES.get(key, key.upper() if key.startswith("f") and len(key) > 1 else key)


def _minutes_text(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute"
    return f"{minutes} min" if minutes < 100 else fixed(minutes / 60, 1, "h")


MAX_BODY_BYTES = 262_144
"""Most bytes of a form. A character of a comment (at most `MAX_TEXT_CHARS`) takes at most 12 bytes in it."""
TOO_LONG = f"That is too long: a comment has at most {MAX_TEXT_CHARS:,} characters. Go back and shorten it.\n"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Under no-referrer a form's Origin is null. This policy sends nothing to other sites either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class RequestFilter:
    """Refuses requests that a rater's browser never sends, and adds the protective headers to all responses.

    - names: host names of the site. Numeric addresses are always accepted: they cannot be used for DNS rebinding.
    - secure: whether the site is reached only over TLS.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], *, secure: bool) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
                if self._secure:
                    headers.setdefault("strict-transport-security", "max-age=31536000")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None and scope["method"] == "POST":
            body = await _read_body(receive)
            if body is None:
                refusal = PlainTextResponse(TOO_LONG, 413)
            else:
                receive = _replay_body(body, receive)
        respond = refusal or self._app
        await respond(scope, receive, send_protected)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        """The response to a request that is refused because of its headers or method; None if it is not."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return PlainTextResponse(
                "This site does not use that name. Open it with the address in your invitation.\n", 421
            )
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy in front may have used the other length.
            return PlainTextResponse("That request declares two different lengths.\n", 400, {"connection": "close"})
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("This site accepts only GET, HEAD and POST.\n", 405, {"allow": "GET, HEAD, POST"})
        if scope["method"] == "POST":
            if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return PlainTextResponse("That form belongs to another site.\n", 403)
            origin = headers.get("origin")
            if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
                return PlainTextResponse("That form belongs to another site.\n", 403)
            length = headers.get("content-length", "0")
            if not length.isascii() or not length.isdecimal() or int(length) > MAX_BODY_BYTES:
                return PlainTextResponse(TOO_LONG, 413)
        return None

    def _is_ours(self, host: str) -> bool:
        name = host_name(host)
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def host_name(host: str) -> str:
    """A Host header without its port, in lower case; "" if it is not valid."""
    host = host.strip().lower()
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        return name if bracket and (not rest or rest[1:].isdecimal()) else ""
    name, _, port = host.partition(":")
    return name if port.isdecimal() or not port else ""


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body of a request; None if it is too long, whatever its declared length."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that first gives a body that was already read, then what `receive` gives."""
    is_replayed = False

    async def replay() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


COOKIE = "sitting"
"""Prefix of the cookies' names."""
LOGIN_LIFE_S = 14 * 3600
"""A login ends after this time without a page."""
RENEWAL_AGE_S = 1800
"""A page renews a cookie that is older. This is short, so that LOGIN_LIFE_S counts from about the last page."""
MAX_TRIES, TRIES_WINDOW_S = 10, 300.0
"""MAX_TRIES wrong tokens are allowed from one address within TRIES_WINDOW_S."""
MAX_REMEMBERED_TRIES = 10_000
"""Number of wrong tokens, of all addresses together, that are remembered."""


@frozen
class Visit:
    """A browser with the cookie of the site.

    - id: a random text.
    - invitation: that of the visitor; None before the login.
    - age_s: age of the cookie.
    """

    id: str
    invitation: Invitation | None = None
    age_s: float = 0.0


class Logins:
    """Makes and reads the cookies; thread-safe. A cookie is valid only while its invitation is.

    The key that signs cookies comes from the file of invitations, so a login outlasts a restart of the site.
    """

    def __init__(self, invitations: Invitations) -> None:
        self._invitations = invitations
        self._ended_visits: set[str] = set()

    def cookie_name(self, port: int, *, secure: bool) -> str:
        """A cookie name unique to this site: browsers send the cookies of one port to all ports of a host.

        port: the port on which the site listens. The name also depends on the invitations, for sites of two machines
        behind one host name.
        """
        site_digest = hmac.new(self._invitations.site_key, f"cookie:{port}".encode(), hashlib.sha256).hexdigest()[:8]
        # Browsers accept this prefix over TLS only, and not from another host of the domain.
        return f"{'__Host-' if secure else ''}{COOKIE}-{site_digest}"

    def visit(self, cookie: str | None) -> Visit | None:
        """The visit of a cookie; None if the cookie is forged, too old or missing."""
        if not cookie or len(cookie) > 500:
            return None
        try:
            payload, created = self._serializer().loads(cookie, max_age=LOGIN_LIFE_S, return_timestamp=True)
        except BadData:
            return None
        visit_id, digest = payload
        if visit_id in self._ended_visits:
            return None
        invitation = self._invitations.by_digest(digest) if digest else None
        if digest and invitation is None:
            return None
        return Visit(visit_id, invitation, max(0.0, time.time() - created.timestamp()))

    def new_visit(self) -> Visit:
        """A new visit before login."""
        return Visit(secrets.token_urlsafe(16))

    def log_in(self, token: str) -> Visit | None:
        """A new visit of the token's rater; None for an invalid token."""
        invitation = self._invitations.by_token(token)
        return None if invitation is None else Visit(secrets.token_urlsafe(16), invitation)

    def log_out(self, visit: Visit) -> None:
        """Ends a visit. Its cookie is invalid from now on, even a copy (until the site restarts)."""
        self._ended_visits.add(visit.id)

    def cookie(self, visit: Visit) -> str:
        """The value of the cookie for a visit."""
        digest = visit.invitation.token_sha256 if visit.invitation else ""
        return str(self._serializer().dumps([visit.id, digest]))

    def form_word(self, visit: Visit) -> str:
        """A secret in every form of this visit, which pages of another origin cannot know (a CSRF token)."""
        key = self._invitations.site_key
        return hmac.new(key, f"form:{visit.id}".encode(), hashlib.sha256).hexdigest()

    def is_form_word(self, visit: Visit, word: str) -> bool:
        return hmac.compare_digest(self.form_word(visit).encode(), word.encode("utf-8", "replace"))

    def _serializer(self) -> URLSafeTimedSerializer:
        # Made for each use, since the key changes if the file of invitations is replaced.
        return URLSafeTimedSerializer(
            self._invitations.site_key, salt="visit", signer_kwargs={"digest_method": hashlib.sha256}
        )


class RateLimiter:
    """Counts wrong tokens by address; thread-safe.

    A right token is always accepted, even from an address that is refused, so strangers cannot lock a rater out. This
    is safe, since a token has 160 random bits. At 10,000 guesses per second against 100 invitations, a hit would take
    10³⁴ years on average.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._tries: deque[tuple[float, str]] = deque(maxlen=MAX_REMEMBERED_TRIES)
        """Time and address of each wrong token, oldest first."""

    def wait_s(self, address: str) -> float:
        """Seconds for which that address is refused; 0 if it is not."""
        with self._lock:
            self._forget_old()
            own_tries = [at_s for at_s, caller in self._tries if caller == address]
            if len(own_tries) >= MAX_TRIES:
                return max(1.0, own_tries[-MAX_TRIES] + TRIES_WINDOW_S - self._now_s())
            return 0.0

    def record_failure(self, address: str) -> None:
        with self._lock:
            self._forget_old()
            self._tries.append((self._now_s(), address))

    def _forget_old(self) -> None:
        while self._tries and self._tries[0][0] + TRIES_WINDOW_S <= self._now_s():
            self._tries.popleft()


STATIC_FILES = {
    "site.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "site.js": "text/javascript; charset=utf-8",
    "annotation.css": "text/css; charset=utf-8",
    "annotation.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "login.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
FAULT = (
    "<!doctype html><html lang=en><title>Error</title><h1>Something went wrong</h1>"
    "<p>Load the page again. What was saved is safe. "
    "If this page appears again, report it to the person who runs the site.</p>"
)


class BaseSite(ABC):
    """Login, shared pages and files of a site; `app` is the ASGI application.

    A site adds its routes, among them `FIRST`, and returns from `_place` the path where a visitor works.
    max_fields: most fields of a form.
    """

    FIRST: ClassVar[str] = "/instructions"
    """The path that a visitor sees after the login."""

    def __init__(
        self,
        invitations: Invitations,
        templates: Templates,
        routes: Sequence[Route],
        reached: SiteReach,
        max_fields: int = 40,
    ) -> None:
        self.invitations = invitations
        self._logins = Logins(invitations)
        self._rate_limiter = RateLimiter()
        self._templates = templates
        self._port = reached.port
        self._secure = reached.secure
        self._max_fields = max_fields
        folder = resources.files("harness.web") / "static"
        self._static = {name: (folder / name).read_bytes() for name in STATIC_FILES}
        shared = [
            Route("/", self._front_page),
            Route("/login", self._login_page, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/leave", self._log_out, methods=["POST"]),
            Route("/rest", self._rest_page),
            Route("/static/{name}", self._static_file),
        ]
        starlette = Starlette(
            routes=[*shared, *routes], exception_handlers={HTTPException: self._refuse, Exception: self._fail}
        )
        self.app: ASGIApp = RequestFilter(starlette, reached.names, secure=reached.secure)

    @abstractmethod
    def close(self) -> None:
        """Ends everything that the site does outside of requests."""

    @abstractmethod
    def _place(self, visit: Visit) -> str:
        """The path at which a visitor works."""

    # Who is there

    def _visit(self, request: Request) -> Visit | None:
        return self._logins.visit(request.cookies.get(self.cookie_name))

    def _rater(self, request: Request) -> Visit:
        """The visit of a visitor who is logged in. Others are redirected to the login."""
        visit = self._visit(request)
        if visit is None or visit.invitation is None:
            if request.method == "GET" and not request.url.path.startswith("/sound/"):
                raise HTTPException(303, headers={"location": "/login"})
            raise HTTPException(401, "You are no longer logged in. Open your invitation link again.")
        return visit

    @property
    def cookie_name(self) -> str:
        """The name of the site's only cookie."""
        return self._logins.cookie_name(self._port, secure=self._secure)

    def _with_cookie(self, response: Response, visit: Visit) -> Response:
        value = self._logins.cookie(visit)
        # After a link on another site, such as web mail, a browser's first request has no strict cookie. The login page
        # would then replace it. POSTs from other sites have no lax cookie either.
        response.set_cookie(
            self.cookie_name, value, max_age=LOGIN_LIFE_S, httponly=True, samesite="lax", secure=self._secure
        )
        return response

    def _page(self, template: str, visit: Visit | None, status: int = 200, **values: object) -> Response:
        """A page, with a new cookie if the old one is older than RENEWAL_AGE_S."""
        form_word = self._logins.form_word(visit) if visit else ""
        invitation = visit.invitation if visit else None
        text = self._templates.render(template, form_word=form_word, invitation=invitation, **values)
        response = HTMLResponse(text, status)
        if visit is not None and visit.age_s > RENEWAL_AGE_S and invitation is not None:
            self._with_cookie(response, visit)
        return response

    async def _checked_form(self, request: Request, visit: Visit) -> tuple[dict[str, str], FormData]:
        """The fields of a form that occur once, and the whole form. A form that is not from a page of this visit is
        refused."""
        form = await request.form(max_files=0, max_fields=self._max_fields)
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        if not self._logins.is_form_word(visit, fields.pop("form_word", "")):
            raise HTTPException(403, "That form is not from one of your pages. Reload the page.")
        return fields, form

    # Logging in and out

    async def _front_page(self, request: Request) -> Response:
        self._rater(request)
        return RedirectResponse(self.FIRST, 303)

    async def _login_page(self, request: Request) -> Response:
        visit = self._visit(request)
        if visit is None:
            visit = self._logins.new_visit()
        return self._with_cookie(self._page("login.html", visit, alert=""), visit)

    async def _log_in(self, request: Request) -> Response:
        visit = self._visit(request) or self._logins.new_visit()
        form = await request.form(max_files=0, max_fields=self._max_fields)
        address = request.client.host if request.client else ""
        if not self._logins.is_form_word(visit, str(form.get("form_word", ""))):
            text = "This page was open for too long. Please send it again."
            return self._with_cookie(self._page("login.html", visit, 403, alert=text), visit)
        new_visit = self._logins.log_in(str(form.get("token", ""))[:200])
        wait_s = self._rate_limiter.wait_s(address)
        if new_visit is None and wait_s:
            wait = counted(round(wait_s / 60) + 1, "minute")
            text = f"Too many invalid invitations were sent from your network. Try again in {wait}."
            response = self._page("login.html", visit, 429, alert=text)
            response.headers["retry-after"] = str(math.ceil(wait_s))
            return self._with_cookie(response, visit)
        if new_visit is None:
            self._rate_limiter.record_failure(address)
            text = "This invitation is invalid, expired or withdrawn. Ask the person who invited you for a new one."
            return self._with_cookie(self._page("login.html", visit, 403, alert=text), visit)
        if visit.invitation == new_visit.invitation:
            # The same link was opened again. Keep the visit, so that forms in other windows stay valid.
            new_visit = visit
        return self._with_cookie(RedirectResponse(self.FIRST, 303), new_visit)

    async def _log_out(self, request: Request) -> Response:
        visit = self._rater(request)
        await self._checked_form(request, visit)
        self._logins.log_out(visit)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(self.cookie_name, httponly=True, samesite="lax", secure=self._secure)
        return response

    # Notices and files

    def _rest_page(self, request: Request) -> Response:
        return self._notice(self._rater(request), 200, "Take a break", self._templates.words.rest)

    def _notice(self, visit: Visit | None, status: int, title: str, text: str, *, refused_at: str = "") -> Response:
        """A page of one sentence, with a link to the work unless that is the path that was refused."""
        place = self._place(visit) if visit is not None and visit.invitation is not None else "/login"
        link = "" if place == refused_at else place
        return self._page("notice.html", visit, status, title=title, text=text, place=link)

    def _static_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404, "There is no such page.")
        return Response(self._static[name], media_type=STATIC_FILES[name], headers={"cache-control": "no-cache"})

    # What went wrong

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """The response to an HTTPException: a redirection (303, see `_rater`), or a notice with its text."""
        assert isinstance(error, HTTPException)
        if error.status_code == 303:
            return RedirectResponse((error.headers or {}).get("location", "/login"), 303)
        # Starlette raises 404 with the detail "Not Found". Our own texts are sentences, and end in a period.
        text = error.detail if error.status_code != 404 or "." in error.detail else "There is no such page."
        visit = self._visit(request)
        # Without access to this page, the visitor gets no link back to it.
        here = request.url.path if error.status_code == 403 and request.method == "GET" else ""
        return self._notice(visit, error.status_code, "That did not work", text, refused_at=here)

    async def _fail(self, request: Request, error: Exception) -> Response:
        """The page for an unexpected error, which says what to do. The traceback goes to the log."""
        return HTMLResponse(FAULT, 500)
