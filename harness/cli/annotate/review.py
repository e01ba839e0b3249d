"""`harness annotate review`: review proposals, label the rest; in a terminal, as lines, or in a browser."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.written import person_name
from harness.cli.annotate.projects import open_project, project_argument
from harness.cli.options import Site, flag, many, option, site_options, verb
from harness.cli.sessions import user_name
from harness.model.annotation import IMPORTED
from harness.model.errors import InputError
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.annotation.desk import AnnotationDesk
    from harness.annotation.project import AnnotationRoom


def _brought_back(
    room: AnnotationRoom, annotator: str, ids: tuple[str, ...], words: str | None, *, adjudicating: bool
) -> tuple[str, ...]:
    """Ids in the order of the data. Reports how many the annotator may not change; InputError when none is left.

    ids: ids of utterances. words: a part of their text, in any case.
    """
    from harness.annotation.worklist import has_words, may_label_again
    from harness.base.findings import nearest

    texts = {one.id: one.text for one in room.utterances}
    unknown = next((one for one in ids if one not in texts), None)
    if unknown is not None:
        shown = plain_text(unknown, 80)
        raise InputError(f"no utterance has the id {shown!r}", remedy=nearest(unknown, tuple(texts), listed="Ids"))
    if words is not None and not words.strip():
        raise InputError("--find is empty", remedy="Write a part of an utterance: --find 'well well'")
    wanted = [one for one, text in texts.items() if one in ids or (words and has_words(text, words))]
    if not wanted:
        raise InputError(f"no utterance contains {plain_text(words or '', 80)!r}", remedy="Write a part of its text")
    room.refresh()
    ledger = room.ledger
    found = tuple(
        one for one in wanted if may_label_again(ledger, room.shares, annotator, one, adjudicating=adjudicating)
    )
    why = "not labelled yet" if adjudicating else "labelled by others"
    if not found:
        remedy = "Omit --adjudicate" if adjudicating else "Add --adjudicate to settle them"
        raise InputError(f"all utterances found ({len(wanted)}) are {why}", remedy=remedy)
    if len(found) < len(wanted):
        left = counted(len(wanted) - len(found), "utterance")
        click.echo(f"harness: left out {left} {why}", err=True)
    return found


@verb("review")
def command(
    *,
    project: Path = project_argument,
    annotator: str | None = option("Your pseudonym, kept in every row (default: your user name)."),
    adjudicate: bool = flag("Settle disagreements; shows the labels of the annotators."),
    ids: tuple[str, ...] = many("Bring this utterance back; repeatable.", "--utterance", metavar="ID"),
    words: str | None = option("Bring back utterances that contain this text, in any case.", "--find", metavar="TEXT"),
    plain: bool = flag("Use lines instead of a screen (default without a terminal)."),
    site: Site = site_options("annotators"),
) -> None:
    """Accept or strike proposals, a page of a group at a time, and label the rest by hand. If the label set has
    concepts, mark slots too.

    Each page and each utterance is saved before the next one is shown. Annotators do not see each other's labels.
    Adjudicators see labels without names.

    --utterance and --find bring back utterances that you labelled, to keep or change their labels. With --adjudicate
    they bring back any labelled utterance, and your choice is final. How-to: docs/how-to/annotate-utterances.md

    Exit status: 0 done · 2 wrong usage or input · 3 something cannot be saved.
    """
    site.demand_web("annotators'")
    if site.web and (plain or adjudicate or annotator is not None or ids or words is not None):
        raise InputError(
            "--web excludes --annotator, --adjudicate, --utterance, --find and --plain",
            remedy="Annotators sign in with their browser; invite adjudicators with: harness invite --adjudicator",
        )
    name = person_name(annotator if annotator is not None else user_name(), "annotator name")
    if name == IMPORTED:
        raise InputError(f"{IMPORTED!r} is reserved for labels from files", remedy="Choose another name")
    with closing(open_project(project)) as room:
        if site.web:
            from harness.web.server import WebOptions, serve_annotation

            sys.exit(serve_annotation(room, WebOptions(**site.given)))
        again = _brought_back(room, name, ids, words, adjudicating=adjudicate) if ids or words is not None else ()
        desk = room.adjudication(name, again) if adjudicate else room.desk(name, again)
        sys.exit(_sit(room, desk, plain=plain))


def _sit(room: AnnotationRoom, desk: AnnotationDesk, *, plain: bool) -> int:
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if plain or not terminal:
        from harness.cli.annotate.plain import annotate_plainly

        return annotate_plainly(room, desk)
    from harness.dashboard.sitting_app import run_annotation_app

    return run_annotation_app(room, desk)
