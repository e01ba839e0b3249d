"""`harness understanding cascade`: what recognition cost of understanding."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.cli.options import Command, share, target_option
from harness.cli.read_once import STDIN, refuse_overwriting
from harness.cli.understanding.cascade_inputs import Reads
from harness.cli.understanding.declared_labels import declared_labels
from harness.cli.understanding.rule_options import (
    attributes_option,
    by_option,
    chunking_option,
    labels_option,
    separator_option,
    zero_option,
)
from harness.model.choices import LISTED_UTTERANCES as LISTED
from harness.model.choices import Which
from harness.model.errors import InputError
from harness.model.transcript import Normalisation
from harness.model.understanding import Chunking, Detail
from harness.understanding.counts import Rule, Values
from harness.understanding.figures import ZeroDivision
from harness.understanding.reports.score_text import per_cent

NOT_HELD = 1


@click.command("cascade", cls=Command)
@click.argument("sessions", nargs=-1, metavar="[SESSION…]")
@click.option("--gold", metavar="FILE|FOLDER", help="What was said, annotated. Without it a session's own.")
@click.option("--split", metavar="NAME", help="The split of a folder of gold: train, dev, test.")
@click.option("--heard", metavar="FILE", help="What was heard, by id: JSONL, trn or CSV. Or name a session.")
@click.option("--model", type=click.Path(path_type=Path), metavar="FOLDER", help="What `understanding train` made.")
@click.option("--pred-reference", metavar="FILE|FOLDER", help="In place of a model: what one found in the reference,")
@click.option("--pred-heard", metavar="FILE|FOLDER", help="and what it found in the transcripts.")
@click.option(
    "--attempt",
    type=click.Choice([one.value for one in Which]),
    default=Which.FIRST.value,
    show_default=True,
    help="Whose transcript, of a session's trials.",
)
@click.option(
    "--normalise",
    type=click.Choice([one.value for one in Normalisation]),
    default=Normalisation.PLAIN.value,
    show_default=True,
    help="What makes words comparable for the WER.",
)
@click.option(
    "--reads",
    type=click.Choice([one.value for one in Reads]),
    default=Reads.AS_GOLD.value,
    show_default=True,
    help="What the model is given: transcripts as heard, or without capitals and marks where gold has none.",
)
@click.option("--missing-is-silence", is_flag=True, help="Without a transcript nothing was heard; else left out.")
@chunking_option
@click.option(
    "--detail",
    type=click.Choice([one.value for one in Detail]),
    default=Detail.FULL.value,
    show_default=True,
    help="Concepts as they stand, or without their specifiers.",
)
@separator_option
@attributes_option
@click.option(
    "--values",
    type=click.Choice([one.value for one in Values]),
    default=Values.PLAIN.value,
    show_default=True,
    help="How values of slots are compared; those of tags are their words.",
)
@zero_option
@labels_option
@by_option
@click.option("--list", "listed", type=click.IntRange(min=0), default=LISTED, show_default=True, help="0 for all.")
@target_option("--json", "json_target", "Print JSON and no text.")
@click.option("--html", "html_target", metavar="FILE", help="Write a page with every utterance that changed.")
@click.option("--max-sfa-loss", callback=share, metavar="X", help="Status 1 when SFA falls by more (0.05 or 5%).")
def command(
    sessions: tuple[str, ...],
    gold: str | None,
    split: str | None,
    heard: str | None,
    model: Path | None,
    pred_reference: str | None,
    pred_heard: str | None,
    attempt: str,
    normalise: str,
    reads: str,
    missing_is_silence: bool,
    chunking: Chunking,
    detail: str,
    separator: str,
    attributes: tuple[str, ...],
    values: str,
    zero: ZeroDivision,
    labels: str | None,
    by: tuple[str, ...],
    listed: int,
    json_target: str | None,
    html_target: str | None,
    max_sfa_loss: float | None,
) -> None:
    """Say what recognition cost: intents and slots found in the reference, beside those found in what was heard.

    One model reads both. Figures are over utterances that have a transcript; the others are stated. Transcripts have
    other words than the reference, so slots are compared as lists of concepts there, and slot F1 is of the reference.

    Exit status: 0 scored · 1 --max-sfa-loss does not hold · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.cli import score_output as output
    from harness.cli.understanding.cascade_inputs import Inputs, Sources, inputs
    from harness.model.choices import Marks
    from harness.transcripts.words import Wording
    from harness.understanding.cascade import cascade
    from harness.understanding.comparison import Figure
    from harness.understanding.reports.cascade import cascade_json, lines

    sources = Sources(sessions, gold, split, heard, model, pred_reference, pred_heard, Which(attempt))
    sources.check()
    for target in filter(None, (json_target, html_target)):
        refuse_overwriting(target, sources.files)
    declared = declared_labels(labels).ids if labels else None
    wording = Wording(Normalisation(normalise), marks=Marks.NONE)
    with ExitStack() as stack:
        found: Inputs = inputs(sources, Reads(reads), stack, missing_is_silence=missing_is_silence)
    columns = {name for one in found.pairs.gold.utterances for name, _ in one.groups}
    if unknown := next((one for one in by if one not in columns), None):
        there = f"There are {', '.join(sorted(columns))}" if columns else "Leave --by out"
        raise InputError(f"--by: gold has no group {plain_text(unknown, 60)!r}", remedy=plain_text(there, 200))
    rule = Rule(
        chunking,
        Detail(detail),
        separator,
        attributes,
        Values(values),
        spoken=True,
        ordered=found.ordered,
        places=found.placed,
    )
    scored = cascade(
        found.pairs,
        found.on_reference,
        found.on_transcript,
        rule,
        wording,
        zero=zero,
        labels=declared,
        by=by or None,
    )
    if json_target == STDIN:
        output.print_pieces([cascade_json(scored)])
    elif json_target is not None:
        output.write_pieces(Path(json_target), [cascade_json(scored)])
    if html_target is not None:
        from harness.understanding.reports.cascade import write_html  # here, since few want a page

        write_html(scored, Path(html_target), found.notes)
    if json_target != STDIN:
        output.print_lines(lines(scored, output.width(), notes=found.notes, listed=listed))
    if max_sfa_loss is None:
        return
    loss = scored.total.differences[Figure.SFA].value
    if loss is None or -loss > max_sfa_loss + 1e-9:
        why = "n/a, which no limit allows" if loss is None else f"{per_cent(-loss)}, above {per_cent(max_sfa_loss)}"
        click.echo(f"harness: what recognition cost of SFA is {why}", err=True)
        raise SystemExit(NOT_HELD)
