"""Serves a site from this process until a signal ends it."""

from __future__ import annotations

import ipaddress
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.annotation.project import AnnotationRoom
from harness.base.plugins import pip_install
from harness.base.user_text import name_key
from harness.model.errors import HarnessError, InputError, Place, PluginError
from harness.model.judgment import RaterKeys
from harness.rating.rating_room import RatingRoom
from harness.web.invitations import Invitations, SiteReach

if TYPE_CHECKING:
    from harness.web.base_site import BaseSite

OPEN_REQUESTS_TIMEOUT_S = 5
"""Time that open requests have to finish after the signal that ends the site."""
INVITATION_DAYS = 30.0
"""Validity of an invitation that is made at the start, in days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """How a site is served."""

    address: str = "127.0.0.1"
    """The address on which to listen. Other hosts can reach it only with TLS or `insecure`."""
    port: int = 8765
    """0 for any free port."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """PEM files of the certificate and its key; both None without TLS."""
    invitations: Path = Path("invitations.json")
    keys: RaterKeys = field(default_factory=RaterKeys)
    insecure: bool = False
    public_url: str = ""
    """The address for visitors if it differs (a name, a proxy); "" if not. With https://, cookies need TLS."""
    names: bool = False
    """Whether adjudicators see the names of raters."""
    invite: str = ""
    """Pseudonym for whom to make and print a new invitation; "" for none."""
    adjudicator: bool = False
    """Whether that person is an adjudicator."""


MakeSite = Callable[[Invitations, SiteReach], "BaseSite"]
"""Makes a site. The function may import the web framework, whose absence `serve_site` reports first."""


def serve(room: RatingRoom, options: WebOptions) -> int:
    """Serves the raters' site, as described in `serve_site`."""

    def make(invitations: Invitations, reached: SiteReach) -> BaseSite:
        from harness.web.raters_site import RatersSite

        return RatersSite(room, invitations, options.keys, reached=reached, show_names=options.names)

    return _print_farewell(serve_site(make, options, "raters' site"))


def serve_annotation(room: AnnotationRoom, options: WebOptions) -> int:
    """Serves the annotators' site, as described in `serve_site`. Ignores `keys` and `names` of the options."""

    def make(invitations: Invitations, reached: SiteReach) -> BaseSite:
        from harness.web.annotators_site import AnnotationSite

        return AnnotationSite(room, invitations, reached=reached)

    return _print_farewell(serve_site(make, options, "annotators' site"))


def _print_farewell(status: int) -> int:
    print("ended: everything is saved. Run the same command to continue", file=sys.stderr, flush=True)  # noqa: T201
    return status


def serve_live(begin_run: Callable[[], Path | None], options: WebOptions) -> int:
    """Serves the live site, as described in `serve_site`. Ignores `keys` and `names` of the options.

    begin_run: called just before the site is served, so that no run starts if the site cannot be served. It returns the
    only session to show; None for all sessions of this user on this host.
    """

    def make(invitations: Invitations, reached: SiteReach) -> BaseSite:
        from harness.web.live_site import LiveSessions, LiveSite

        return LiveSite(LiveSessions(begin_run()), invitations, reached=reached)

    return serve_site(make, options, "live site")


def serve_site(make: MakeSite, options: WebOptions, called: str) -> int:
    """Serves a site until SIGINT or SIGTERM, then finishes open requests and returns 0. called: name of the site in
    messages.

    Raises InputError for conflicting options, a port in use, or no invitations, and PluginError if the web framework is
    not installed.
    """
    tls = _uses_tls(options)
    public_address = _parse_public_url(options)
    if not _is_loopback(options.address) and not tls and not options.insecure:
        raise InputError(
            f"{options.address} is open to other computers, and without TLS they can read what people send",
            remedy="Use --tls-cert and --tls-key, or --insecure if a proxy or a private network protects the site",
        )
    try:
        import uvicorn

        from harness.web import base_site  # noqa: F401 - it needs all that the extra brings
        from harness.web.connections import PromptConnection
    except ModuleNotFoundError as error:
        raise PluginError(
            f"the {called} is not installed ({error.name} is missing)", remedy=f"Install it: {pip_install('web')}"
        ) from error
    invitations = Invitations(options.invitations)
    if not options.invite and not any(invitation.is_valid(time.time()) for invitation in invitations.everyone):
        raise InputError(
            "nobody is invited, or all invitations have ended",
            place=Place(str(options.invitations)),
            remedy="Invite raters: harness rate invite RATER",
        )
    listening = _listen(options)
    tokens: dict[str, str] = {}
    replaces_link = any(
        invitation.is_valid(time.time()) and name_key(invitation.rater) == name_key(options.invite)
        for invitation in invitations.everyone
    )
    if options.invite:  # only once the port is ours, since this ends the person's earlier link
        tokens = invitations.invite([options.invite], INVITATION_DAYS, adjudicator=options.adjudicator)
    port = listening.getsockname()[1]
    site = make(invitations, _site_reach(port, tls, public_address))
    config = uvicorn.Config(
        site.app,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        http=PromptConnection,
        lifespan="off",
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        # A client that reaches this port directly could forge the sender's address.
        proxy_headers=False,
        limit_concurrency=200,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=OPEN_REQUESTS_TIMEOUT_S,
        h11_max_incomplete_event_size=32_768,
    )
    server = uvicorn.Server(config)
    address = visitor_address(options, port)
    for name, token in tokens.items():
        print(f"{name}  {address}/login#{token}", file=sys.stderr, flush=True)  # noqa: T201
        if replaces_link:
            print(f"harness: the earlier link of {name} no longer works", file=sys.stderr, flush=True)  # noqa: T201
    print(f"{called} at {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)  # noqa: T201
    previous_address = invitations.address
    if previous_address not in ("", address):
        remedy = f"Replace {previous_address} with {address} in the links, or invite the raters again."
        moved = f"Links to {previous_address} do not work here. {remedy}"
        print(moved, file=sys.stderr, flush=True)  # noqa: T201
    invitations.set_address(address)
    _run_server(server.run, listening, called)
    site.close()
    return 0


def _site_reach(port: int, tls: bool, public_address: tuple[str, str] | None) -> SiteReach:
    """How visitors reach the site that listens on this port. public_address: from `_parse_public_url`."""
    names = {"localhost", socket.gethostname(), f"{socket.gethostname()}.local"}
    if public_address is None:
        return SiteReach(names, port, secure=tls)
    scheme, public_name = public_address
    return SiteReach(names | {public_name}, port, secure=tls or scheme == "https")


def _run_server(run: Callable[..., None], listening: socket.socket, called: str) -> None:
    """Runs uvicorn until a signal. uvicorn then raises the signal again, which must not end this process."""
    previous_handlers = {signum: signal.signal(signum, lambda *_: None) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        run(sockets=[listening])
    except SystemExit as error:
        raise HarnessError(f"the {called} could not start") from error
    finally:
        for signum, handler in previous_handlers.items():
            signal.signal(signum, handler)
        listening.close()


def _listen(options: WebOptions) -> socket.socket:
    """A socket that listens on the address and port of the options. Raises InputError if that is not possible."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            options.address, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise InputError(f"{options.address!r} is not an address to listen on: {error}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on port {options.port} of {options.address}: {error.strerror}",
            remedy="If another program or site uses it, choose another port with --web-port",
        ) from error
    return listening


def _uses_tls(options: WebOptions) -> bool:
    """Whether the site itself uses TLS. Raises InputError if its certificate and key cannot be used together."""
    if (options.tls_cert is None) != (options.tls_key is None):
        raise InputError("TLS needs a certificate and its key", remedy="Use --tls-cert and --tls-key together")
    if options.tls_cert is None:
        return False
    try:
        # With a password, the library does not ask for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.tls_cert, options.tls_key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise InputError(
            f"the certificate and its key cannot be used: {error.strerror if isinstance(error, OSError) else error}",
            place=Place(str(options.tls_cert)),
            remedy="Use a PEM certificate and its own PEM key, without a password",
        ) from error
    return True


def _parse_public_url(options: WebOptions) -> tuple[str, str] | None:
    """(scheme, host name) of the public address; None if there is none. Raises InputError for another URL."""
    if not options.public_url:
        return None
    try:
        parts = urlsplit(options.public_url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise InputError(
            f"{options.public_url!r} is not a site address",
            remedy="Use an address such as https://raters.example, without a path",
        )
    return parts.scheme, parts.hostname


def visitor_address(options: WebOptions, port: int) -> str:
    """The address to which links lead: the public address, or else that on which the site listens.

    If the site listens on all addresses (0.0.0.0 or ::), links have the name of this host.
    """
    if options.public_url:
        return options.public_url.rstrip("/")
    host = socket.gethostname() if options.address in ("", "0.0.0.0", "::") else options.address
    if ":" in host:
        host = f"[{host}]"  # an IPv6 address
    scheme = "https" if options.tls_cert else "http"
    return f"{scheme}://{host}:{port}"


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
