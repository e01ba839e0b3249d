"""`harness score`: transcripts against references, word by word."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import shown
from harness.cli import streams
from harness.cli.options import Command, WordOf, options_as, share, target_option
from harness.cli.streams import STDIN, Readable, is_one_place, named, readable, refuse_overwriting
from harness.model.choices import Aligned, Marks, TranscriptFormat
from harness.model.errors import InputError
from harness.model.transcript import ENGLISH, Normalisation

if TYPE_CHECKING:
    from harness.model.transcript import Groupings, Transcripts
    from harness.transcripts.groups import GroupedComparison, SystemComparison
    from harness.transcripts.reports.scoring_json import Scored, SourceFile
    from harness.transcripts.words import Wording

SPEAKERS = "spu_id"
LISTED_CONFUSIONS = 20
TOO_HIGH = 1
LIST_SUFFIXES = (".yaml", ".yml")
Cross = tuple[str, str]


def crosses(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[Cross, ...]:
    """An option's pairs of groupings: voice,level_dbfs."""
    found: list[Cross] = []
    for value in values:
        names = [name.strip() for name in value.split(",")]
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise click.BadParameter(f"{value!r} is not two different columns; write voice,level_dbfs", ctx, param)
        found.append((names[0], names[1]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ScoreRules:
    """How files are read and words compared. normalise: a name, a file, or None for what the format asks for."""

    reference_format: TranscriptFormat | None
    hypothesis_format: TranscriptFormat | None
    encoding: str | None
    normalise: str | None
    language: str
    marks: Marks
    like_sclite: bool
    optional_words: bool
    fragments: bool
    by: str

    def wording(self, reference_format: TranscriptFormat) -> Wording:
        """How words are compared; InputError for a normalisation that there is not, or what is wrong in its file."""
        from harness.transcripts.words import Wording

        fold = self.like_sclite
        if self.normalise is None:
            of_sro = Normalisation.SNOR if reference_format is TranscriptFormat.SRO else Normalisation.VERBATIM
            return Wording(of_sro, fold_case=fold, marks=self.marks)
        if self.normalise in tuple(Normalisation):
            return Wording(Normalisation(self.normalise), None, fold, self.marks, self.language)
        if self.normalise.lower().endswith(LIST_SUFFIXES):
            # Here, since reading YAML takes longer to import than most files take to score.
            from harness.transcripts.files.normalisation_file import load_normalisation

            rewriting = load_normalisation(Path(self.normalise))
            return Wording(rewriting.base, rewriting, fold, self.marks, self.language)
        raise InputError(
            f"there is no normalisation {self.normalise!r}",
            remedy=f"There are {', '.join(Normalisation)}, or name a .yaml file with a list",
        )

    def name(self, wording: Wording) -> str:
        """What stands beside every figure: the normalisation, and what else made words correct."""
        optional = self.optional_words and any(wording.reads_marks)
        also = (("optional words", optional), ("fragments", self.fragments))
        return ", ".join([wording.name, *(name for name, holds in also if holds)])


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
@options_as(
    "rules",
    ScoreRules,
    click.option("--reference-format", type=WordOf(TranscriptFormat), help="Where the file's suffix does not say it."),
    click.option("--hypothesis-format", type=WordOf(TranscriptFormat), help="Where the file's suffix does not say it."),
    click.option("--encoding", help="Of the files; UTF-8 without it."),
    click.option(
        "--normalise",
        metavar="NAME|FILE.yaml",
        help="What makes words comparable: verbatim, plain, spoken, snor, expanded_snor, or a file with a named list. "
        "Without it snor for a reference in .sro, else verbatim.",
    ),
    click.option(
        "--language",
        default=ENGLISH,
        show_default=True,
        metavar="TAG",
        help="In which spoken reads numerals: en, de, fr, es, … (BCP 47). Others leave digits alone.",
    ),
    click.option(
        "--marks",
        type=WordOf(Marks),
        default=Marks.BOTH.value,
        show_default=True,
        help="In which files { a / b }, @, (w) and w;tag are marks: both, the reference, or none.",
    ),
    click.option(
        "--like-sclite", is_flag=True, help="As sclite: A-Z without case; references without hypothesis left out."
    ),
    click.option("--optional-words", is_flag=True, help="A word (w) of the reference that was left out is correct."),
    click.option("--fragments", is_flag=True, help="A fragment such as sho- is correct against a word that begins so."),
    click.option(
        "--by",
        default=SPEAKERS,
        metavar="SCHEME",
        help="The speaker of an id: spu_id (default), wsj, sp, none, or /(…)_/.",
    ),
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
    type=WordOf(Aligned),
    is_flag=False,
    flag_value=Aligned.ERRORS.value,
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
    rules: ScoreRules,
    groups: str | None,
    crossed: tuple[Cross, ...],
    alignments: Aligned | None,
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
    from harness.transcripts.groups import compare, compared_by_groups
    from harness.transcripts.reports.scoring_json import pieces

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
        listed = stack.enter_context(readable(groups)) if groups else None
        heard = [stack.enter_context(readable(one)) for one in hypotheses]
        systems = [_scored(of, one, rules, listed, crossed, hashed=json_target is not None) for one in heard]
    scorings = [one.scoring for one in systems]
    found = compare(scorings)
    by_groups = compared_by_groups([(one.scoring, one.groups) for one in systems])
    if json_target is not None:
        streams.put(json_target, pieces(systems, found, by_groups))
    if html_target is not None:
        _write_page(systems, html_target, reference)
    if STDIN not in targets:
        streams.print_lines(_lines(systems, found, by_groups, alignments, confusions))
    if max_wer is not None and not _within(systems, max_wer):
        sys.exit(TOO_HIGH)


def _scored(
    reference: Readable,
    hypothesis: Readable,
    rules: ScoreRules,
    listed: Readable | None,
    crossed: Sequence[Cross],
    *,
    hashed: bool,
) -> Scored:
    """Reads both files and scores them; InputError. hashed: the sources say the digests of their bytes."""
    from harness.transcripts.files.encoding import encoding_name
    from harness.transcripts.files.transcripts import format_of, read_pair, speaker_scheme
    from harness.transcripts.groups import group_figures, interval_of, with_queries
    from harness.transcripts.reports.scoring_json import Scored, Source
    from harness.transcripts.scoring import score

    form = rules.reference_format or format_of(Path(reference.name), "--reference-format")
    heard_form = rules.hypothesis_format or format_of(Path(hypothesis.name), "--hypothesis-format")
    wording = rules.wording(form)
    speakers_of = speaker_scheme(rules.by)
    try:
        of, said = read_pair(reference.path, hypothesis.path, form, heard_form, rules.encoding)
    except InputError as error:
        raise named(error, reference, hypothesis) from error
    scoring = score(
        replace(of, file=reference.name),
        replace(said, file=hypothesis.name),
        wording,
        rules.name(wording),
        speakers_of=speakers_of,
        drop_missing=rules.like_sclite,
        optional_words=rules.optional_words,
        fragments=rules.fragments,
    )
    if scoring.surplus and len(scoring.without_hypothesis) == len(of):
        # Most likely of other utterances, or with ids spelt otherwise.
        here, there = f"{hypothesis.name} has {scoring.surplus[0]}", f"{reference.name} has {of.ids[0]}"
        click.echo(f"harness: no hypothesis belongs to a reference: {shown(here)}, {shown(there)}", err=True)
    sources = _groupings(reference, of, form, listed, rules.encoding)
    scoring = with_queries(scoring, sources)
    source = Source(
        _source_file(reference, form, of.encoding, hashed),
        _source_file(hypothesis, heard_form, said.encoding, hashed),
        rules.like_sclite,
        rules.optional_words,
        rules.fragments,
        _source_file(listed, TranscriptFormat.CSV, encoding_name(rules.encoding), hashed) if listed else None,
    )
    groups = group_figures(scoring, sources, crossed) if sources or crossed else None
    return Scored(scoring, source, interval_of(scoring), groups)


def _groupings(
    reference: Readable, references: Transcripts, form: TranscriptFormat, listed: Readable | None, encoding: str | None
) -> list[Groupings]:
    """The list, and the labels of an stm file; InputError for what is wrong with either."""
    if listed is None and form is not TranscriptFormat.STM:
        return []
    from harness.transcripts.files.lists import read_groups, read_labels, refuse_other_list

    found: list[Groupings] = []
    try:
        if listed is not None:
            groups = read_groups(listed.path, encoding, case_counts=form is TranscriptFormat.CSV)
            found.append(replace(groups, file=listed.name))
        if form is TranscriptFormat.STM:
            taken = [one.name for groups in found for one in groups.groupings]
            labels = read_labels(reference.path, references, encoding, taken)
            found += [labels] if labels else []
    except InputError as error:
        raise named(error, *filter(None, [listed]), reference) from error
    if listed is not None:
        refuse_other_list(found[0], replace(references, file=reference.name))
    return found


def _source_file(file: Readable, form: TranscriptFormat, encoding: str, hashed: bool) -> SourceFile:
    import hashlib

    from harness.transcripts.reports.scoring_json import SourceFile

    digest = ""
    if hashed:
        with file.path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return SourceFile(file.name, form.value, encoding, digest)


def _lines(
    systems: Sequence[Scored],
    found: Sequence[SystemComparison],
    by_groups: Sequence[Sequence[GroupedComparison]],
    alignments: Aligned | None,
    confusions: int | None,
) -> Iterator[str]:
    from harness.transcripts.reports.text import compared, report

    colour, width = streams.in_colour(sys.stdout), streams.width()
    for index, one in enumerate(systems):
        if index:
            yield ""
        if len(systems) > 1:
            yield streams.heading(one.scoring.title, width, colour)
            yield ""
        yield from report(one, alignments, confusions, width, colour=colour)
    if len(systems) > 1:
        yield ""
        yield from compared(systems, found, width, by_groups)


def _write_page(systems: Sequence[Scored], target: str, reference: str) -> None:
    from harness.transcripts.reports.html import page, write_html

    title = f"Word errors against {reference}"
    if target == STDIN:
        streams.print_pieces([page(systems, title, reference)])
    else:
        write_html(systems, Path(target), title=title, references=reference)


def _within(systems: Sequence[Scored], limit: float) -> bool:
    """Whether every WER is within the limit; says of each that is not."""
    from harness.statistics.text import percent

    within = True
    for one in systems:
        totals = one.scoring.totals
        if totals.wer is None or not totals.within(limit):
            within = False
            wer = "n/a, which no limit allows"
            if totals.wer is not None:
                wer = f"{percent(totals.wer, 2)}, above {percent(limit, 2)}"
            click.echo(f"harness: the WER of {shown(one.scoring.title, 200)} is {wer}", err=True)
    return within
