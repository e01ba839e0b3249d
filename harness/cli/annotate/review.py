"""`harness understand annotate review`: the annotators' site, where proposals are reviewed and the rest is labelled."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from harness.cli.annotate.projects import open_project, project_argument
from harness.cli.options import Site, flag, option, repeatable, site_options, verb
from harness.cli.sessions import user_name
from harness.model.errors import InputError


@verb("review")
def command(
    *,
    project: Path = project_argument,
    annotator: str | None = option(
        "Invite this annotator, and print the link.",
        show_default="your name, with --adjudicate or if nobody is invited",
    ),
    adjudicate: bool = flag("Invite the annotator as an adjudicator, who settles disagreements and sees all labels."),
    ids: tuple[str, ...] = repeatable("Removed.", "--utterance", metavar="ID", hidden=True),
    words: str | None = option("Removed.", "--find", metavar="TEXT", hidden=True),
    plain: bool = flag("Removed.", hidden=True),
    site: Site = site_options(""),
) -> None:
    """Serve a site where annotators accept or reject proposals, a page of a group at a time, and label the rest by
    hand. If the label set has concepts, they mark slots too. The site works by keyboard and with screen readers.

    Each page and each utterance is saved before the next one is shown. Annotators do not see each other's labels.
    Adjudicators see labels without names.

    From another computer: ssh -L 8765:127.0.0.1:8765 HOST, then open the link there. Invite more people with
    `harness rate invite`. How-to: docs/how-to/annotate-utterances.md

    Exit status: 0 done · 2 wrong usage or input · 3 the project cannot be read.
    """
    if plain:
        raise InputError(
            "--plain was removed: utterances are annotated in a browser",
            remedy="Remove --plain, and open the link. On another computer, first: ssh -L 8765:127.0.0.1:8765 HOST",
        )
    if ids or words is not None:
        raise InputError(
            f"{'--utterance' if ids else '--find'} was removed", remedy="Press / on the site to find utterances"
        )
    from harness.web.invitations import Invitations
    from harness.web.server import WebOptions, serve_annotation

    with closing(open_project(project)) as room:
        options = WebOptions(**site.web_options)
        # Without any invitation, nobody could log in.
        if annotator is not None or adjudicate or not Invitations(options.invitations).everyone:
            name = annotator if annotator is not None else user_name()
            # Both calls raise for a name that the project does not know, and for the one of labels from files.
            desk = room.adjudication(name) if adjudicate else room.desk(name)
            options = WebOptions(**site.web_options, invite=desk.annotator, adjudicator=adjudicate)
        sys.exit(serve_annotation(room, options))
