"""Who is logged in: signed cookies, one-time words against forged posts, and a brake on guessing."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from itsdangerous import BadData, URLSafeTimedSerializer

from harness.web.invitations import Invitation, Invitations

COOKIE = "sitting"
"""How the names of our cookies begin."""
LIFE_S = 14 * 3600
"""A login ends after so long at the latest, and goes on from each page that is shown."""
RENEW_S = 1800
TRIES, TRIES_IN_S = 10, 300.0
"""So many wrong tokens in so long from one address; ten times as many from all together."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A browser that has a cookie of ours. id: random. invitation: None before the login. age_s: of the cookie."""

    id: str
    invitation: Invitation | None = None
    age_s: float = 0.0


class Logins:
    """Makes and reads the cookies; thread-safe. A cookie opens nothing once its invitation does not hold any more.

    key: from the file of invitations, so that who is logged in stays so when the site is started again.
    """

    def __init__(self, invitations: Invitations) -> None:
        self._invitations = invitations
        self._left: set[str] = set()

    def cookie_name(self, port: int, *, secure: bool) -> str:
        """A name that no other site of ours has on this host: browsers send one port's cookies to all the others.

        port: the one that the site listens at. The invitations count too, for sites of two machines behind one name.
        """
        mine = hmac.new(self._invitations.site_key, f"cookie:{port}".encode(), hashlib.sha256).hexdigest()[:8]
        # Browsers take this prefix from TLS only, and let no other host of the domain set it.
        return f"{'__Host-' if secure else ''}{COOKIE}-{mine}"

    def visit(self, cookie: str | None) -> Visit | None:
        """Whose cookie it is; None when it is forged, too old or none."""
        if not cookie or len(cookie) > 500:
            return None
        try:
            found, made = self._serializer().loads(cookie, max_age=LIFE_S, return_timestamp=True)
        except BadData:
            return None
        visit_id, digest = found
        if visit_id in self._left:
            return None
        invitation = self._invitations.by_digest(digest) if digest else None
        if digest and invitation is None:
            return None
        return Visit(visit_id, invitation, max(0.0, time.time() - made.timestamp()))

    def stranger(self) -> Visit:
        """A new visit of somebody who has still to log in."""
        return Visit(secrets.token_urlsafe(16))

    def log_in(self, token: str) -> Visit | None:
        """A new visit of the rater whose token it is; None when it opens nothing."""
        invitation = self._invitations.by_token(token)
        return None if invitation is None else Visit(secrets.token_urlsafe(16), invitation)

    def leave(self, visit: Visit) -> None:
        """Ends a visit: its cookie opens nothing any more, even if somebody kept it (until the site starts again)."""
        self._left.add(visit.id)

    def cookie(self, visit: Visit) -> str:
        """The cookie's value."""
        digest = visit.invitation.token_sha256 if visit.invitation else ""
        return str(self._serializer().dumps([visit.id, digest]))

    def form_word(self, visit: Visit) -> str:
        """What every form of this visit carries, and a page of another origin cannot know."""
        key = self._invitations.site_key
        return hmac.new(key, f"form:{visit.id}".encode(), hashlib.sha256).hexdigest()

    def is_form_word(self, visit: Visit, word: str) -> bool:
        return hmac.compare_digest(self.form_word(visit).encode(), word.encode("utf-8", "replace"))

    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(
            self._invitations.site_key, salt="visit", signer_kwargs={"digest_method": hashlib.sha256}
        )


class Brake:
    """Counts wrong tokens by address; thread-safe."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._tries: deque[tuple[float, str]] = deque()

    def wait_s(self, address: str) -> float:
        """For how long nothing more is accepted from there; 0: go on."""
        with self._lock:
            self._forget()
            mine = [at_s for at_s, whose in self._tries if whose == address]
            if len(mine) >= TRIES:
                return max(1.0, mine[-TRIES] + TRIES_IN_S - self._now_s())
            if len(self._tries) >= 10 * TRIES:
                return max(1.0, self._tries[0][0] + TRIES_IN_S - self._now_s())
            return 0.0

    def failed(self, address: str) -> None:
        with self._lock:
            self._forget()
            self._tries.append((self._now_s(), address))

    def _forget(self) -> None:
        while self._tries and self._tries[0][0] + TRIES_IN_S <= self._now_s():
            self._tries.popleft()
