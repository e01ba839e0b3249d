"""`harness rate invite`: links with which raters and annotators log in to their sites."""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from harness.base.foreign import plain_text
from harness.base.user_text import name_key
from harness.cli.options import argument, flag, option, repeatable, verb
from harness.model.errors import InputError
from harness.web.invitations import Invitation, Invitations

INVITATIONS = Path("invitations.json")
"""The default file of invitations; `harness rate --web` reads it, too."""
ADDRESS = "http://127.0.0.1:8765"
MAX_DAYS = 3650.0


@verb("invite")
def command(
    *,
    raters: tuple[str, ...] = argument("[RATER]..."),
    path: Path = option("Invitations file, mode 0600.", "--invitations", former=("--file",), default=INVITATIONS),
    days: float = option("Days until the links expire.", within=(0.01, MAX_DAYS), default=30.0),
    adjudicator: bool = flag("Invite adjudicators: they settle what raters disagree on, and see all judgments."),
    coordinator: bool = flag("Invite coordinators: they see progress, and move open responses to other raters."),
    address: str = option(
        "Address of the site in the links.",
        "--public-url",
        former=("--address",),
        default=ADDRESS,
        show_default=f"the last address in the file, else {ADDRESS}",
        metavar="URL",
    ),
    listed: bool = flag("List the invitations.", "--list"),
    revoke: tuple[str, ...] = repeatable("Revoke an invitation immediately; repeatable.", metavar="RATER"),
) -> None:
    """Invite raters (`harness rate --web`), annotators (`harness understand annotate review`), or visitors to a run.

    Prints a link for each person, which cannot be printed again. Send each link in private. RATER: the pseudonym of a
    rater or annotator, stored with every judgment or label. Inviting somebody again ends the earlier link.
    The file holds only hashes of tokens.
    """
    if not (raters or listed or revoke):
        raise InputError(
            "no rater is named", remedy="Add a rater: harness rate invite RATER…, or use --list or --revoke RATER"
        )
    if adjudicator and coordinator:
        raise InputError(
            "--adjudicator and --coordinator cannot be combined", remedy="Invite the person under two names"
        )
    invitations = Invitations(path)
    is_given = click.get_current_context().get_parameter_source("address") is ParameterSource.COMMANDLINE
    base_url = _parse_address(address if is_given else invitations.address or address)
    if revoke:
        invitations.revoke(revoke)
        for rater in dict.fromkeys(revoke):
            click.echo(f"{plain_text(rater)} can no longer log in")
    if raters:
        names = tuple(dict.fromkeys(raters))
        replaced = _replaced_invitations(invitations, names, _role(adjudicator, coordinator))
        if listed and replaced:
            raise InputError(
                f"{plain_text(replaced[0].rater)} is already invited, and a new invitation would end the earlier link",
                remedy="To invite the rater again, remove --list. To list all invitations, remove the name",
            )
        tokens = invitations.invite(names, days, adjudicator=adjudicator, coordinator=coordinator)
        for rater, token in tokens.items():
            # Browsers do not send what follows the #, so no proxy logs it.
            click.echo(f"{rater}  {base_url}/login#{token}")
        invitations.set_address(base_url)
        for earlier in replaced:
            click.echo(f"harness: the earlier link of {plain_text(earlier.rater)} no longer works", err=True)
    if listed:
        for invitation in invitations.everyone:
            click.echo(_invitation_line(invitation, time.time()))


def _replaced_invitations(invitations: Invitations, names: Collection[str], role: str) -> list[Invitation]:
    """The valid invitations that new ones replace. Raises InputError if one of them has another role."""
    keys = {name_key(name) for name in names}
    replaced = [
        earlier for earlier in invitations.everyone if name_key(earlier.rater) in keys and earlier.is_valid(time.time())
    ]
    for earlier in replaced:
        earlier_role = _role(earlier.adjudicator, earlier.coordinator)
        if earlier_role != role:
            raise InputError(
                f"{plain_text(earlier.rater)} has the role {earlier_role}, and the new link would change it to {role}",
                remedy=f"For both roles, invite the {role} under a second name. To change the role, end the "
                f"earlier invitation first: --revoke {plain_text(earlier.rater)}",
            )
    return replaced


def _parse_address(address: str) -> str:
    """The scheme, host and port of a URL. Raises InputError for anything else, and for a path."""
    invalid = InputError(
        f"{plain_text(address, 200)!r} is not a valid site address",
        remedy=f"Use an address such as {ADDRESS}, without a path",
    )
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise invalid from None
    has_more = parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("http", "https") or not parts.hostname or has_more:
        raise invalid
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}" if port else f"{parts.scheme}://{host}"


def _role(adjudicator: bool, coordinator: bool) -> str:
    if adjudicator:
        return "adjudicator"
    return "coordinator" if coordinator else "rater"


def _invitation_line(invitation: Invitation, now_s: float) -> str:
    expiry = datetime.fromtimestamp(invitation.expires_s).astimezone().strftime("%Y-%m-%d %H:%M")
    state = f"until {expiry}" if invitation.is_valid(now_s) else f"expired {expiry}"
    if invitation.revoked:
        state = "revoked"
    role = _role(invitation.adjudicator, invitation.coordinator)
    return f"{plain_text(invitation.rater, 40):<20} {role:<12} {state}"
