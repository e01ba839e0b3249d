"""Which utterances `harness annotate review --utterance … --find …` brings back."""

from __future__ import annotations

import click

from harness.annotation.project import AnnotationRoom
from harness.annotation.worklist import has_words, may_label_again
from harness.base.cells import counted
from harness.base.findings import nearest
from harness.base.foreign import plain_text
from harness.model.errors import InputError


def brought_back(
    room: AnnotationRoom, annotator: str, ids: tuple[str, ...], words: str | None, *, adjudicating: bool
) -> tuple[str, ...]:
    """Ids in the order of the data; says how many of them the annotator may not change. InputError when none is left.

    ids: of utterances; words: a piece of their text, in any case.
    """
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
