"""`harness understanding score`: predicted intents and slots, or what devices understood, against gold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import click

from harness.cli.options import Command, target_option
from harness.cli.read_once import STDIN, Readable, named, readable, refuse_overwriting
from harness.cli.understanding.declared_labels import declared_labels
from harness.cli.understanding.limits import Limits, limit_options
from harness.cli.understanding.rule_options import (
    attributes_option,
    by_option,
    chunking_option,
    labels_option,
    separator_option,
    zero_option,
)
from harness.cli.understanding.writing import write_reports
from harness.model.choices import CorpusFormat, Which
from harness.model.errors import InputError
from harness.model.understanding import Chunking, Corpus, Detail
from harness.understanding.counts import Rule, Values
from harness.understanding.figures import ZeroDivision

BOTH = "both"
FORMATS = click.Choice([one.value for one in CorpusFormat])


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is scored: files, or sessions. attempt: of sessions."""

    gold: str | None
    predicted: tuple[str, ...]
    sessions: tuple[str, ...]
    groups: str | None
    gold_format: CorpusFormat | None
    predicted_format: CorpusFormat | None
    split: str | None
    attempt: Which

    def check(self, targets: Sequence[str]) -> None:
        """InputError for options that do not go together."""
        files = [*filter(None, [self.gold, self.groups]), *self.predicted]
        if self.sessions and (self.gold or self.predicted):
            raise InputError("sessions have their own gold", remedy="Name sessions, or give --gold and --pred")
        if not self.sessions and not (self.gold and self.predicted):
            remedy = "Give --gold FILE|FOLDER and --pred FILE|FOLDER, or name a session"
            raise InputError("there is nothing to score", remedy=remedy)
        for target in targets:
            refuse_overwriting(target, files)
        if files.count(STDIN) > 1:
            raise InputError("only one file can come from standard input", remedy="Name the others")


@click.command("score", cls=Command)
@click.argument("sessions", nargs=-1, metavar="[SESSION…]")
@click.option("--gold", metavar="FILE|FOLDER", help="What is meant; - is standard input.")
@click.option(
    "--pred",
    "predicted",
    multiple=True,
    metavar="FILE|FOLDER",
    help="What was predicted; - is standard input. Give several to compare systems.",
)
@click.option("--gold-format", type=FORMATS, help="Where the suffix, or what lies in the folder, does not say it.")
@click.option("--pred-format", type=FORMATS, help="Where the suffix, or what lies in the folder, does not say it.")
@click.option("--split", metavar="NAME", help="The split of folders that is scored: train, dev, test.")
@chunking_option
@click.option(
    "--detail",
    type=click.Choice([*(one.value for one in Detail), BOTH]),
    default=Detail.FULL.value,
    show_default=True,
    help="Concepts as they stand, without their specifiers, or both.",
)
@separator_option
@attributes_option
@click.option(
    "--values",
    type=click.Choice([one.value for one in Values]),
    default=Values.VERBATIM.value,
    show_default=True,
    help="How values of slots are compared, beside the figures without them, where both sides give them.",
)
@click.option("--spoken", is_flag=True, help="The words of a slot are its value, where tags say which they are.")
@click.option("--without-places", is_flag=True, help="The words are not the same on both sides, as in transcripts.")
@zero_option
@labels_option
@by_option
@click.option(
    "--groups",
    metavar="FILE.csv",
    help="A list with a header, id,voice,level_dbfs and so on: more groups.",
)
@click.option(
    "--attempt",
    type=click.Choice([one.value for one in Which]),
    default=Which.DECIDING.value,
    show_default=True,
    help="Of a session's trials: the first attempt, or the one that decided.",
)
@click.option("--confusions", type=click.IntRange(min=0), default=20, show_default=True, help="How many; 0 for all.")
@target_option("--json", "json_target", "Print JSON and no text.")
@click.option("--html", "html_target", metavar="FILE", help="Write a page with the utterances.")
@limit_options
def command(
    sessions: tuple[str, ...],
    gold: str | None,
    predicted: tuple[str, ...],
    gold_format: str | None,
    pred_format: str | None,
    split: str | None,
    chunking: Chunking,
    detail: str,
    separator: str,
    attributes: tuple[str, ...],
    values: str,
    spoken: bool,
    without_places: bool,
    zero: ZeroDivision,
    labels: str | None,
    by: tuple[str, ...],
    groups: str | None,
    attempt: str,
    confusions: int,
    json_target: str | None,
    html_target: str | None,
    limits: Limits,
) -> None:
    """Score predicted intents and slots against gold ones, or what the devices of a session understood.

    Files: BIO folders, JSONL, and CSV files of intents (docs/understanding.md). A missing prediction counts as
    nothing predicted; a prediction without gold counts nowhere; both are stated.

    Exit status: 0 scored · 1 a limit does not hold · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.cli.understanding.scored_files import scored
    from harness.understanding.comparison import compare
    from harness.understanding.reports.score_text import Reported

    wanted = _Wanted(
        gold,
        predicted,
        sessions,
        groups,
        CorpusFormat(gold_format) if gold_format else None,
        CorpusFormat(pred_format) if pred_format else None,
        split,
        Which(attempt),
    )
    wanted.check([one for one in (json_target, html_target) if one])
    declared = declared_labels(labels).ids if labels else None
    rule = Rule(
        chunking=chunking,
        separator=separator,
        attributes=attributes,
        values=Values(values),
        spoken=spoken,
        ordered=not sessions,
        places=not without_places and not sessions,
    )
    details = tuple(Detail) if detail == BOTH else (Detail(detail),)
    with ExitStack() as stack:
        corpora, notes = _corpora(wanted, stack)
        systems = [scored(of, said, rule, details, by or None) for of, said in corpora]
    choices = zero, declared
    comparisons = [compare(one.scorings[0], other.scorings[0], *choices) for one, other in combinations(systems, 2)]
    reported = [Reported(one.counts, *choices) for one in systems]
    write_reports(
        reported,
        json_target=json_target,
        html_target=html_target,
        scorings=[one.scorings[0] for one in systems],
        comparisons=comparisons,
        confusions=confusions,
        notes=notes,
    )
    limits.demand(reported)


def _corpora(wanted: _Wanted, stack: ExitStack) -> tuple[list[tuple[Corpus, Corpus]], list[str]]:
    """Gold with each prediction, and what is to be told of them."""
    from harness.cli.understanding.scored_files import read_gold, read_predicted

    listed = stack.enter_context(readable(wanted.groups)) if wanted.groups else None
    if wanted.sessions:
        from harness.cli.understanding.scored_sessions import session_pair  # here, since it takes long to import

        of, said, notes = session_pair(wanted.sessions, wanted.attempt)
        return [(_with_groups(of, listed), said)], notes
    gold_file = stack.enter_context(readable(wanted.gold or ""))
    files = [stack.enter_context(readable(one)) for one in wanted.predicted]
    try:
        gold, split = read_gold(gold_file, wanted.gold_format, wanted.split)
        gold = _with_groups(gold, listed)
        return [(gold, read_predicted(one, wanted.predicted_format, split, gold)) for one in files], []
    except InputError as error:
        raise named(error, gold_file, *files) from error


def _with_groups(gold: Corpus, listed: Readable | None) -> Corpus:
    from harness.cli.understanding.scored_files import grouped

    if listed is None:
        return gold
    try:
        return grouped(gold, Path(listed.path), listed.name)
    except InputError as error:
        raise named(error, listed) from error
