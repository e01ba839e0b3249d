"""`harness score`: transcripts against references, word by word."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.cells import shown
from harness.cli.options import Command, share, target_option
from harness.cli.read_once import STDIN, Readable, is_one_place, readable, refuse_overwriting
from harness.cli.score_groups import crosses
from harness.cli.score_options import Asked, Shown
from harness.model.choices import Marks
from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError
from harness.model.transcript import ENGLISH

if TYPE_CHECKING:
    from harness.cli.score_groups import Cross
    from harness.cli.score_system import System
    from harness.transcripts.groups import GroupedComparison, SystemComparison

SPEAKERS = "spu_id"
LISTED_CONFUSIONS = 20
TOO_HIGH = 1
FORMATS = click.Choice([one.value for one in Format])


@click.command("score", cls=Command, context_settings={"help_option_names": ["--help"]})
@click.option("-r", "--reference", required=True, metavar="REF", help="What was said; - is standard input.")
@click.option(
    "-h",
    "--hypothesis",
    "hypotheses",
    required=True,
    multiple=True,
    metavar="HYP",
    help="What was recognised; - is standard input. Give several to compare systems.",
)
@click.option("--reference-format", type=FORMATS, help="Where the file's suffix does not say it.")
@click.option("--hypothesis-format", type=FORMATS, help="Where the file's suffix does not say it.")
@click.option("--encoding", help="Of the files; UTF-8 without it.")
@click.option(
    "--normalise",
    metavar="NAME|FILE.yaml",
    help="What makes words comparable: verbatim, plain, spoken, snor, expanded_snor, or a file with a named list. "
    "Without it snor for a reference in .sro, else verbatim.",
)
@click.option(
    "--language",
    default=ENGLISH,
    show_default=True,
    metavar="TAG",
    help="In which spoken reads numerals: en, de, fr, es, … (BCP 47). Others leave digits alone.",
)
@click.option(
    "--marks",
    type=click.Choice([one.value for one in Marks]),
    default=Marks.BOTH.value,
    show_default=True,
    help="In which files { a / b }, @, (w) and w;tag are marks: both, the reference, or none.",
)
@click.option(
    "--like-sclite", is_flag=True, help="As sclite: A-Z without case; references without hypothesis left out."
)
@click.option("--optional-words", is_flag=True, help="A word (w) of the reference that was left out is correct.")
@click.option("--fragments", is_flag=True, help="A fragment such as sho- is correct against a word that begins so.")
@click.option(
    "--by",
    default=SPEAKERS,
    metavar="SCHEME",
    help="The speaker of an id: spu_id (default), wsj, sp, none, or /(…)_/.",
)
@click.option(
    "--groups",
    metavar="FILE.csv",
    help="A list with a header, id,voice,level_dbfs and so on: the WER by each column.",
)
@click.option(
    "--cross",
    "crossed",
    multiple=True,
    callback=crosses,
    metavar="COLUMN,COLUMN",
    help="The WER by two columns at once, as a matrix; more than once for several.",
)
@click.option(
    "--alignments",
    type=click.Choice([one.value for one in Shown]),
    is_flag=False,
    flag_value=Shown.ERRORS.value,
    help="Print reference and hypothesis word below word: of utterances with errors, or of all.",
)
@click.option(
    "--confusions",
    type=click.IntRange(min=0),
    is_flag=False,
    flag_value=LISTED_CONFUSIONS,
    metavar="[N]",
    help=f"Print the N most frequent confusions of each sort ({LISTED_CONFUSIONS} without N, all with 0).",
)
@target_option("--json", "json_target", "Print JSON and no text.")
@click.option("--html", "html_target", metavar="FILE", help="Write a page with the alignments; - as with --json.")
@click.option(
    "--max-wer", callback=share, metavar="X", help="Status 1 when a WER is above X (0.08 or 8%), or there is none."
)
def command(
    reference: str,
    hypotheses: tuple[str, ...],
    reference_format: str | None,
    hypothesis_format: str | None,
    encoding: str | None,
    normalise: str | None,
    language: str,
    marks: str,
    like_sclite: bool,
    optional_words: bool,
    fragments: bool,
    by: str,
    groups: str | None,
    crossed: tuple[Cross, ...],
    alignments: str | None,
    confusions: int | None,
    json_target: str | None,
    html_target: str | None,
    max_wer: float | None,
) -> None:
    """Score transcripts against references, word by word, aligned as NIST's sclite aligns them.

    Files: trn, ctm, stm, .sro, or CSV lists. A reference without hypothesis counts as deleted, word by word; a
    hypothesis without reference counts nowhere; both are stated. The labels of an stm file are groups by themselves.

    Exit status: 0 scored · 1 a WER is above --max-wer, or there is none · 2 wrong usage or input · 3 a report cannot be
    written.
    """
    from harness.cli import score_output as output
    from harness.cli.score_groups import Grouping, compared_by_groups
    from harness.cli.score_system import scored
    from harness.transcripts.groups import compare

    asked = Asked(
        Format(reference_format) if reference_format else None,
        Format(hypothesis_format) if hypothesis_format else None,
        encoding,
        normalise,
        like_sclite,
        optional_words,
        fragments,
        by,
        Marks(marks),
        language,
    )
    which = Shown(alignments) if alignments else None
    files = [reference, *hypotheses, *filter(None, [groups])]
    targets = [target for target in (json_target, html_target) if target is not None]
    for target in targets:
        refuse_overwriting(target, files)
    if len(targets) == 2 and is_one_place(*targets):
        raise InputError("JSON and page want the same place", remedy="Give one of them another file name")
    if files.count(STDIN) > 1:
        raise InputError("only one file can come from standard input", remedy="Name the others")
    with ExitStack() as stack:
        of = stack.enter_context(readable(reference))
        grouping = Grouping(stack.enter_context(readable(groups)) if groups else None, crossed)
        systems = [scored(of, stack.enter_context(readable(one)), asked, grouping) for one in hypotheses]
        found = compare([system.scoring for system in systems]) if len(systems) > 1 else ()
        by_groups = compared_by_groups([(system.scoring, system.groups) for system in systems])
        if json_target is not None:
            pieces = _json(systems, found, by_groups, asked, grouping.file)
            if json_target == STDIN:
                output.print_pieces(pieces)
            else:
                output.write_pieces(Path(json_target), pieces)
    if html_target is not None:
        _write_page(systems, html_target, reference)
    if STDIN not in targets:
        output.print_lines(_lines(systems, found, by_groups, which, confusions))
    if max_wer is not None and not _within(systems, max_wer):
        sys.exit(TOO_HIGH)


def _lines(
    systems: Sequence[System],
    found: Sequence[SystemComparison],
    by_groups: Sequence[Sequence[GroupedComparison]],
    alignments: Shown | None,
    confusions: int | None,
) -> Iterator[str]:
    from harness.cli import score_output as output

    colour = output.in_colour(sys.stdout)
    for index, system in enumerate(systems):
        if index:
            yield ""
        if len(systems) > 1:
            yield output.heading(system.scoring, colour=colour)
            yield ""
        of = system.scoring, system.interval, system.groups
        yield from output.report(*of, alignments, confusions, colour=colour)
    if len(systems) > 1:
        yield ""
        scorings, intervals = [system.scoring for system in systems], [system.interval for system in systems]
        yield from output.compared(scorings, intervals, found, by_groups)


def _write_page(systems: Sequence[System], target: str, reference: str) -> None:
    from harness.cli import score_output as output
    from harness.transcripts.reports.html import page, write_html

    scorings, intervals = [system.scoring for system in systems], [system.interval for system in systems]
    groups = [system.groups for system in systems]
    title = f"Word errors against {reference}"
    if target == STDIN:
        output.print_pieces([page(scorings, title, reference, intervals, groups=groups)])
    else:
        write_html(scorings, Path(target), title=title, references=reference, intervals=intervals, groups=groups)


def _json(
    systems: Sequence[System],
    found: Sequence[SystemComparison],
    by_groups: Sequence[Sequence[GroupedComparison]],
    asked: Asked,
    groups: Readable | None,
) -> Iterator[str]:
    import hashlib

    from harness.cli.score_system import ScoredFile
    from harness.transcripts.files.encoding import encoding_name
    from harness.transcripts.reports.scoring_json import Scored, Source, SourceFile, pieces

    def source_file(file: ScoredFile) -> SourceFile:
        with file.readable.path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return SourceFile(file.readable.name, file.format.value, file.encoding, digest)

    listed = None if groups is None else source_file(ScoredFile(groups, Format.CSV, encoding_name(asked.encoding)))

    listings = [
        Scored(
            system.scoring,
            Source(
                source_file(system.reference),
                source_file(system.hypothesis),
                asked.like_sclite,
                asked.optional_words,
                asked.fragments,
                listed,
            ),
            system.interval,
            system.groups,
        )
        for system in systems
    ]
    return pieces(listings, found, by_groups)


def _within(systems: Sequence[System], limit: float) -> bool:
    """Whether every WER is within the limit; says of each that is not."""
    from harness.transcripts.reports.summary import per_cent

    within = True
    for system in systems:
        totals = system.scoring.totals
        if totals.wer is not None and totals.within(limit):
            continue
        within = False
        wer = "n/a, which no limit allows" if totals.wer is None else f"{per_cent(totals.wer)}, above {per_cent(limit)}"
        click.echo(f"harness: the WER of {shown(system.scoring.title, 200)} is {wer}", err=True)
    return within
