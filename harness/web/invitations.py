"""Invitations of raters: a file with a hash of each rater's token, and the key that signs the cookies.

A token has 160 random bits, too many to guess, so one round of SHA-256 is enough. But anyone who can read the file can
log in as any rater, with a cookie signed by that key. So other users must not be able to read the file.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.base.plain_json import from_plain, to_plain
from harness.base.user_text import name_key, person_name, refuse_same_names
from harness.base.whole_file import disk_errors, write_atomically
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.time import DAY_S

TOKEN_BYTES = 20  # 160 bits, which Base32 writes without padding.
MAX_FILE_BYTES = 1_000_000


@frozen
class SiteReach:
    """How visitors reach a site.

    - names: its host names.
    - port: the port on which it listens.
    - secure: whether it is reached only over TLS.
    """

    names: Collection[str] = ("localhost",)
    port: int = 0
    secure: bool = False


HERE = SiteReach()
"""A site that is reached only from this host."""


@frozen
class Invitation:
    """The invitation of one rater.

    - rater: a pseudonym.
    - token_sha256: hash of the token, in hexadecimal.
    - created_s, expires_s: Unix times.
    - revoked: whether it was ended before it expired.
    - adjudicator: whether the person settles disputed responses.
    - coordinator: whether the person sees the progress of raters and moves open responses between them, but judges
      nothing.
    """

    rater: str
    token_sha256: str
    created_s: float
    expires_s: float
    revoked: bool
    adjudicator: bool
    coordinator: bool = False

    def is_valid(self, wall_s: float) -> bool:
        """Whether the invitation is valid at this Unix time."""
        return not self.revoked and wall_s < self.expires_s


@frozen
class InvitationData:
    """The content of the file.

    - site_key: the key that signs the cookies, in hexadecimal; as secret as the file. "" if nobody is invited yet.
    - address: address at which the site was served last, or to which the last links lead; "" if neither is known.
    """

    site_key: str
    invitations: tuple[Invitation, ...] = ()
    address: str = ""


class Invitations:
    """The file of invitations; thread-safe. The next call sees changes by another process.

    All methods raise InputError if the file is damaged, or readable by other users, and LogError if it cannot be read
    or written.
    """

    def __init__(self, path: Path, wall_s: Callable[[], float] = time.time) -> None:
        self.path = path
        self._wall_s = wall_s
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int, int], InvitationData] | None = None
        """The last content, and what the file's attributes were then."""

    @property
    def everyone(self) -> tuple[Invitation, ...]:
        """All invitations in the order in which they were made, including invalid ones."""
        return self._read_invitations().invitations

    @property
    def site_key(self) -> bytes:
        """The key that signs cookies. It is made with the first invitation.

        Raises InputError if nobody is invited yet.
        """
        key = self._read_invitations().site_key
        if not key:
            raise InputError(
                "nobody is invited yet", place=Place(str(self.path)), remedy="Invite raters: harness rate invite RATER"
            )
        return bytes.fromhex(key)

    def by_token(self, token: str) -> Invitation | None:
        """The invitation of a valid token; None for another. A wrong token takes as long as a right one."""
        digest = token_digest(token)
        match = None
        for invitation in self.everyone:  # without a break, for equal time
            if hmac.compare_digest(invitation.token_sha256, digest) and invitation.is_valid(self._wall_s()):
                match = invitation
        return match

    def by_digest(self, digest: str) -> Invitation | None:
        """The valid invitation with this hash of the token, for a visitor who is logged in; None without one."""
        return next(
            (
                invitation
                for invitation in self.everyone
                if invitation.token_sha256 == digest and invitation.is_valid(self._wall_s())
            ),
            None,
        )

    def invite(
        self, raters: Sequence[str], days: float, *, adjudicator: bool = False, coordinator: bool = False
    ) -> dict[str, str]:
        """Invites raters, and ends their older invitations. Returns a new token for each, which is not stored anywhere.

        days: time for which the invitations are valid.
        """
        raters = [_valid_name(rater) for rater in raters]
        refuse_same_names(raters, "rater")
        now_s = self._wall_s()
        tokens = {rater: new_token() for rater in raters}
        new_invitations = [
            Invitation(
                rater=rater,
                token_sha256=token_digest(token),
                created_s=now_s,
                expires_s=now_s + days * DAY_S,
                revoked=False,
                adjudicator=adjudicator,
                coordinator=coordinator,
            )
            for rater, token in tokens.items()
        ]
        with self._locked_for_change() as invited:
            new_names = {name_key(rater) for rater in tokens}
            other_invitations = tuple(
                invitation for invitation in invited.invitations if name_key(invitation.rater) not in new_names
            )
            key = invited.site_key or secrets.token_hex(32)
            self._write(replace(invited, site_key=key, invitations=(*other_invitations, *new_invitations)))
        return tokens

    def revoke(self, raters: Sequence[str]) -> None:
        """Ends invitations at once, also for raters who are logged in. Raises InputError if one is not invited."""
        with self._locked_for_change() as invited:
            invited_names = {name_key(invitation.rater) for invitation in invited.invitations}
            unknown = sorted(rater for rater in raters if name_key(rater) not in invited_names)
            if unknown:
                names = ", ".join(invitation.rater for invitation in invited.invitations) or "nobody"
                raise InputError(
                    f"{unknown[0]!r} is not invited", place=Place(str(self.path)), remedy=f"Invited: {names}"
                )
            ended_names = {name_key(rater) for rater in raters}
            changed = [
                replace(invitation, revoked=True) if name_key(invitation.rater) in ended_names else invitation
                for invitation in invited.invitations
            ]
            self._write(replace(invited, invitations=tuple(changed)))

    @property
    def address(self) -> str:
        """The address at which the site was served last, or to which the last links lead; "" if neither is known."""
        return self._read_invitations().address

    def set_address(self, address: str) -> None:
        """Stores the address of the site, for later links."""
        with self._locked_for_change() as invited:
            if invited.address != address:
                self._write(replace(invited, address=address))

    def _read_invitations(self) -> InvitationData:
        with self._lock:
            with disk_errors(f"{self.path} cannot be read"):
                try:
                    stat = self.path.stat()
                except FileNotFoundError:
                    return InvitationData("")
                attributes = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
                if self._cached is not None:
                    cached_attributes, cached_data = self._cached
                    if cached_attributes == attributes:
                        return cached_data
                if stat.st_mode & 0o077:
                    raise InputError(
                        "other users can read the invitations file and could log in as any rater",
                        place=Place(str(self.path)),
                        remedy=f"chmod 600 {self.path}",
                    )
                # A file that is too large counts as damaged.
                content = self.path.read_bytes() if stat.st_size <= MAX_FILE_BYTES else b""
            invited = _parse_invitations(content, self.path)
            self._cached = (attributes, invited)
            return invited

    @contextmanager
    def _locked_for_change(self) -> Iterator[InvitationData]:
        """Yields the content of the file for one change with `_write`; no other process can change it meanwhile."""
        import fcntl  # here, since few change the file

        with disk_errors(f"{self.path} cannot be written"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield self._read_invitations()
            finally:
                os.close(lock)

    def _write(self, invited: InvitationData) -> None:
        previous_mask = os.umask(0o077)
        try:
            write_atomically(self.path, (json.dumps(to_plain(invited), indent=1, ensure_ascii=True) + "\n").encode())
        finally:
            os.umask(previous_mask)


def new_token() -> str:
    """A new token: 32 letters and digits, which can be read aloud easily."""
    return base64.b32encode(secrets.token_bytes(TOKEN_BYTES)).decode().lower()


def token_digest(token: str) -> str:
    """The SHA-256 of a token in hexadecimal; spaces, hyphens and capitals do not matter."""
    normalised = "".join(char for char in token.lower() if char.isalnum())
    return hashlib.sha256(normalised.encode("utf-8", "replace")).hexdigest()


def _valid_name(rater: str) -> str:
    """The pseudonym of a rater. Raises InputError for blanks and for most special characters."""
    name = person_name(rater, "rater's pseudonym")
    # Some scripts need the zero-width joiner and non-joiner.
    if not all(char.isalnum() or char in "-_.\u200c\u200d" or unicodedata.combining(char) for char in name):
        raise InputError(
            f"{rater!r} is not a valid rater's pseudonym", remedy="Use letters, digits, hyphens, dots and underscores"
        )
    return name


def _parse_invitations(content: bytes, path: Path) -> InvitationData:
    try:
        invited = from_plain(InvitationData, json.loads(content))
        if len(bytes.fromhex(invited.site_key)) < 16:
            raise ValueError("its site_key is too short")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"the invitations file is damaged ({error})",
            place=Place(str(path)),
            remedy="Delete the file and invite the raters again; it contains no judgments",
        ) from error
    return invited
