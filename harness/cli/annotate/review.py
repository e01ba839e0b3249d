"""`harness annotate review`: proposals by groups, and the rest by hand; in the terminal, in lines, or in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.annotation.desk import AnnotationDesk
from harness.cli.annotate.project_options import annotator_name, open_project, project_argument
from harness.cli.sessions import user_name
from harness.model.annotation import IMPORTED
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.annotation.project import AnnotationRoom


@click.command("review")
@project_argument
@click.option("--annotator", help="Your pseudonym, which stands in every row. Default: your user name.")
@click.option("--adjudicate", is_flag=True, help="Settle what annotators disagree on, with their labels in view.")
@click.option("--utterance", "ids", multiple=True, metavar="ID", help="Bring this one back; may be repeated.")
@click.option("--find", "words", metavar="TEXT", help="Bring back utterances whose text has this, in any case.")
@click.option("--plain", is_flag=True, help="Lines instead of a screen; by itself without a terminal.")
@click.option("--web", is_flag=True, help="Serve the annotators' site; they log in with links of `harness invite`.")
@click.option("--address", help="With --web: where to listen. Default 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="With --web. Default 8765.")
@click.option("--tls-cert", type=click.Path(path_type=Path), help="With --web: certificate, PEM.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="With --web: its key, PEM.")
@click.option("--insecure", is_flag=True, help="With --web: let others reach it without TLS.")
@click.option(
    "--public-url",
    metavar="URL",
    help="With --web: how annotators reach it, when that is not the address.",
)
@click.option("--invitations", type=click.Path(path_type=Path), help="With --web: who may log in.")
def command(
    project: Path,
    annotator: str | None,
    adjudicate: bool,
    ids: tuple[str, ...],
    words: str | None,
    plain: bool,
    web: bool,
    **of_web: object,
) -> None:
    """Accept or strike what is proposed, a page of a group at a time; label by hand what is struck or not proposed.

    Every page and every utterance is on the disk before the next one shows. The annotators of a project do not see
    each other's labels; who settles their differences sees labels, and no names.

    --utterance and --find bring utterances of yours back with the labels that they have, to keep or to change; with
    --adjudicate any that is labelled, and what is chosen is final. docs/annotation.md

    Exit status: 0 done · 2 wrong usage or input · 3 something cannot be saved.
    """
    from harness.cli.annotate.bringing_back import brought_back

    given = [f"--{name.replace('_', '-')}" for name, value in of_web.items() if value]
    if given and not web:
        raise InputError(f"{given[0]} is of the annotators' site", remedy="Add --web")
    if web and (plain or adjudicate or annotator is not None or ids or words is not None):
        raise InputError(
            "--web goes with none of --annotator, --adjudicate, --utterance, --find and --plain",
            remedy="Annotators say in the browser who they are; invite adjudicators with: harness invite --adjudicator",
        )
    name = annotator_name(annotator if annotator is not None else user_name())
    if name == IMPORTED:
        raise InputError(f"{IMPORTED!r} stands for labels from files", remedy="Take another name")
    room = open_project(project)
    try:
        if web:
            sys.exit(_serve(room, of_web))
        again = brought_back(room, name, ids, words, adjudicating=adjudicate) if ids or words is not None else ()
        desk = room.adjudication(name, again) if adjudicate else room.desk(name, again)
        sys.exit(_sit(room, desk, plain=plain))
    finally:
        room.close()


def _sit(room: AnnotationRoom, desk: AnnotationDesk, *, plain: bool) -> int:
    if sys.stdin is None:
        raise InputError("standard input is closed", remedy="Leave it open: what you say comes from there")
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if plain or not terminal:
        from harness.cli.annotate.plain import annotate_plainly

        return annotate_plainly(room, desk)
    from harness.dashboard.annotation_app import run_annotation_app

    return run_annotation_app(room, desk)


def _serve(room: AnnotationRoom, options: dict[str, object]) -> int:
    from harness.web.server import WebOptions, serve_annotation

    given = {name: value for name, value in options.items() if value not in (None, "")}
    return serve_annotation(room, WebOptions(**given))  # type: ignore[arg-type]
