"""What every request passes before a page is made: names of the site, lengths, origins; and what every answer says."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 32_768
"""Bytes of a form; a comment has 2,000 characters at most."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # A form's Origin is null under no-referrer; this one sends nothing to others either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Gate:
    """Refuses what no browser of a rater sends, and puts the protecting headers on all answers.

    names: host names by which the site is known. Addresses in digits are always taken: no foreign name can be made
    to lead to this host with them (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, names: Collection[str], *, secure: bool) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
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
            body = await _body(receive)
            if body is None:
                refusal = PlainTextResponse("That is too long; shorten the comment.\n", 413)
            else:
                receive = _again(body, receive)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return PlainTextResponse(
                "This site is not known by that name. Open it by the address in your invitation.\n", 421
            )
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy in front may have believed the other one.
            return PlainTextResponse("That request has two lengths.\n", 400, {"connection": "close"})
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Only GET, HEAD and POST are served here.\n", 405, {"allow": "GET, HEAD, POST"})
        if scope["method"] == "POST":
            if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return PlainTextResponse("That form is of another site.\n", 403)
            origin = headers.get("origin")
            if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
                return PlainTextResponse("That form is of another site.\n", 403)
            length = headers.get("content-length", "0")
            if not length.isascii() or not length.isdecimal() or int(length) > MOST_BODY:
                return PlainTextResponse("That is too long; shorten the comment.\n", 413)
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
    """A Host header without its port, in small letters; "" when it is none."""
    host = host.strip().lower()
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        return name if bracket and (not rest or rest[1:].isdecimal()) else ""
    name, _, port = host.partition(":")
    return name if port.isdecimal() or not port else ""


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None when it is too long, whatever its length was said to be."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > MOST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    given = False

    async def first() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return first
