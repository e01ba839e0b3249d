"""`harness annotate review`: proposals by groups, and the rest by hand; in the terminal, in lines, or in a browser."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import counted, plain_text
from harness.cli.annotate.projects import annotator_name, open_project, project_argument
from harness.cli.options import Site, site_options
from harness.cli.sessions import user_name
from harness.model.annotation import IMPORTED
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.annotation.desk import AnnotationDesk
    from harness.annotation.project import AnnotationRoom


def _brought_back(
    room: AnnotationRoom, annotator: str, ids: tuple[str, ...], words: str | None, *, adjudicating: bool
) -> tuple[str, ...]:
    """Ids in the order of the data; says how many of them the annotator may not change. InputError when none is left.

    ids: of utterances; words: a piece of their text, in any case.
    """
    from harness.annotation.worklist import has_words, may_label_again
    from harness.base.findings import nearest

    texts = {one.id: one.text for one in room.utterances}
    unknown = next((one for one in ids if one not in texts), None)
    if unknown is not None:
        shown = plain_text(unknown, 80)
        raise InputError(f"no utterance has the id {shown!r}", remedy=nearest(unknown, tuple(texts), listed="Ids"))
    if words is not None and not words.strip():
        raise InputError("--find wants a text", remedy="Write a piece of an utterance: --find 'well well'")
    wanted = [one for one, text in texts.items() if one in ids or (words and has_words(text, words))]
    if not wanted:
        raise InputError(f"no utterance has {plain_text(words or '', 80)!r}", remedy="Write a piece of their text")
    room.refresh()
    ledger = room.ledger
    found = tuple(
        one for one in wanted if may_label_again(ledger, room.shares, annotator, one, adjudicating=adjudicating)
    )
    why = "not labelled yet" if adjudicating else "of others"
    if not found:
        remedy = "Leave --adjudicate out" if adjudicating else "Settle them: add --adjudicate"
        raise InputError(f"all that is found is {why}: {counted(len(wanted), 'utterance')}", remedy=remedy)
    if len(found) < len(wanted):
        left = counted(len(wanted) - len(found), "utterance")
        click.echo(f"harness: {left} {why}, left out", err=True)
    return found


@click.command("review")
@project_argument
@click.option("--annotator", help="Your pseudonym, which stands in every row. Default: your user name.")
@click.option("--adjudicate", is_flag=True, help="Settle what annotators disagree on, with their labels in view.")
@click.option("--utterance", "ids", multiple=True, metavar="ID", help="Bring this one back; may be repeated.")
@click.option("--find", "words", metavar="TEXT", help="Bring back utterances whose text has this, in any case.")
@click.option("--plain", is_flag=True, help="Lines instead of a screen; by itself without a terminal.")
@site_options("annotators")
def command(
    project: Path,
    annotator: str | None,
    adjudicate: bool,
    ids: tuple[str, ...],
    words: str | None,
    plain: bool,
    site: Site,
) -> None:
    """Accept or strike what is proposed, a page of a group at a time; label by hand what is struck or not proposed.

    Every page and every utterance is on the disk before the next one shows. The annotators of a project do not see
    each other's labels; who settles their differences sees labels, and no names.

    --utterance and --find bring utterances of yours back with the labels that they have, to keep or to change; with
    --adjudicate any that is labelled, and what is chosen is final. docs/annotation.md

    Exit status: 0 done · 2 wrong usage or input · 3 something cannot be saved.
    """
    site.demand_web("annotators'")
    if site.web and (plain or adjudicate or annotator is not None or ids or words is not None):
        raise InputError(
            "--web goes with none of --annotator, --adjudicate, --utterance, --find and --plain",
            remedy="Annotators say in the browser who they are; invite adjudicators with: harness invite --adjudicator",
        )
    name = annotator_name(annotator if annotator is not None else user_name())
    if name == IMPORTED:
        raise InputError(f"{IMPORTED!r} stands for labels from files", remedy="Take another name")
    with closing(open_project(project)) as room:
        if site.web:
            from harness.web.server import WebOptions, serve_annotation

            sys.exit(serve_annotation(room, WebOptions(**site.given)))
        again = _brought_back(room, name, ids, words, adjudicating=adjudicate) if ids or words is not None else ()
        desk = room.adjudication(name, again) if adjudicate else room.desk(name, again)
        sys.exit(_sit(room, desk, plain=plain))


def _sit(room: AnnotationRoom, desk: AnnotationDesk, *, plain: bool) -> int:
    if sys.stdin is None:
        raise InputError("standard input is closed", remedy="Leave it open: what you say comes from there")
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if plain or not terminal:
        from harness.cli.annotate.plain import annotate_plainly

        return annotate_plainly(room, desk)
    from harness.dashboard.sitting_app import run_annotation_app

    return run_annotation_app(room, desk)
