"""`harness score`: compare transcripts with references, word by word."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.text_table import shown
from harness.cli import streams
from harness.cli.options import EnumChoice, demand_limits, flag, option, parse_share, repeatable, target_option, verb
from harness.cli.streams import STREAM, InputFile, is_one_place, open_input, refuse_overwriting, refuse_stdin_twice
from harness.model.choices import ERROR_RATES, AlignmentSelection, MarkScope, SpeakerPairing, TextUnit, TranscriptFormat
from harness.model.errors import InputError, demand_main_options
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact
from harness.model.transcript import ENGLISH, Normalisation

if TYPE_CHECKING:
    from harness.model.transcript import Groupings, Transcripts
    from harness.transcripts.groups import GroupedComparison, SystemComparison
    from harness.transcripts.reports.scoring_json import SourcedScoring, SourceFile
    from harness.transcripts.scoring import Scoring
    from harness.transcripts.talkers import PairedTalkers, TalkerPair
    from harness.transcripts.words import WordRules

SPEAKERS = "spu_id"
LISTED_CONFUSIONS = 20
_SPEAKER_RATES = {SpeakerPairing.CP: "cp", SpeakerPairing.TCP: "tcp", SpeakerPairing.ORC: "ORC-"}
LIST_SUFFIXES = (".yaml", ".yml")
Cross = tuple[str, str]
"""Two columns by which results are grouped at the same time."""


def _parse_crosses(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[Cross, ...]:
    """A callback: the two columns of each value such as `voice,level_dbfs`. BadParameter for another text."""
    pairs: list[Cross] = []
    for value in values:
        names = [name.strip() for name in value.split(",")]
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise click.BadParameter(
                f"{value!r} is not a pair of different columns. Write voice,level_dbfs", ctx, param
            )
        pairs.append((names[0], names[1]))
    return tuple(pairs)


@frozen
class ScoreRules:
    """How files are read and words compared.

    - normalise: a name, a file, or None for the default of the format.
    - glm: a global mapping file that comes before it.
    - collar: seconds between words that may be paired.
    """

    reference_format: TranscriptFormat | None = option("Format of REF.", show_default="by its suffix")
    hypothesis_format: TranscriptFormat | None = option("Format of HYP.", show_default="by its suffix")
    encoding: str | None = option("Text encoding of the files.", show_default="UTF-8")
    normalise: str | None = option(
        "How words are normalised first: verbatim, plain, spoken, snor, expanded_snor, or a file of word pairs.",
        metavar="NAME|FILE.yaml",
        show_default="snor if a file is in .sro, else verbatim",
    )
    glm: str | None = option(
        "First map words with a NIST global mapping file, and convert them to upper case.", metavar="FILE"
    )
    glm_encoding: str | None = option("Text encoding of the --glm file.", show_default="the same as --encoding")
    unit: TextUnit = option(
        "What to count: word, char (spaces do not count), or mixed: characters of Chinese, Japanese, Thai, Lao, "
        "Khmer and Burmese, and words of other scripts.",
        default=TextUnit.WORD,
    )
    language: str = option(
        "Language of numerals for spoken, as a BCP 47 tag: en, de, fr, es. Other languages keep digits.",
        default=ENGLISH,
        metavar="TAG",
    )
    marks: MarkScope = option("Files in which { a / b }, @, (w) and w;tag are marks.", default=MarkScope.BOTH)
    like_sclite: bool = flag("Like sclite: ignore the case of A-Z, and references without a hypothesis.")
    optional_words: bool = flag("Count an omitted word (w) of the reference as correct.")
    fragments: bool = flag("Count a fragment such as sho- as correct against a word that begins with it.")
    by: str = option(
        "Which part of an id names the speaker: spu_id, wsj, sp, none, or /(…)_/.",
        "--id-type",
        former=("--by",),
        default=SPEAKERS,
        metavar="TYPE",
    )
    speakers: SpeakerPairing | None = option(
        "Pair the speakers of recordings to minimise errors: cp (cpWER), tcp (also by time: tcpWER), or orc "
        "(reference segments to streams: ORC-WER). Both files are stm or seglst."
    )
    collar: float | None = option(
        "For tcp: how far apart two words may be, in seconds.", within=(0, 3600), metavar="S", show_default="5"
    )
    by_time: bool = flag("Align the words of two ctm files by their times alone, like sclite -T.")

    def word_rules(self, formats: Sequence[TranscriptFormat]) -> WordRules:
        """How words are compared. InputError for an unknown normalisation, a mistake in its file, or a wrong --unit.

        formats: of the reference and all hypotheses, so that systems that are compared have the same rules.
        """
        from harness.transcripts.words import WordRules

        if self.unit is not TextUnit.WORD:
            # These have a meaning for whole words only.
            expanded = f"--normalise {Normalisation.EXPANDED_SNOR}"
            options = (
                ("--optional-words", self.optional_words),
                ("--fragments", self.fragments),
                (expanded, self.normalise == Normalisation.EXPANDED_SNOR),
            )
            for name, is_given in options:
                if is_given:
                    raise InputError(
                        f"{name} applies to whole words, not to --unit {self.unit}",
                        remedy="Remove one of the two options",
                    )
        rewriting = None
        if self.normalise is None:
            base = Normalisation.SNOR if TranscriptFormat.SRO in formats else Normalisation.VERBATIM
        elif self.normalise in tuple(Normalisation):
            base = Normalisation(self.normalise)
        elif self.normalise.lower().endswith(LIST_SUFFIXES):
            # Here, since reading YAML takes longer to import than most files take to score.
            from harness.transcripts.files.normalisation_file import load_normalisation

            rewriting = load_normalisation(Path(self.normalise), self.language)
            base = rewriting.base
        else:
            raise InputError(
                f"{self.normalise!r} is not a normalisation",
                remedy=f"Use {', '.join(Normalisation)}, or the name of a .yaml file",
            )
        return WordRules(base, rewriting, self.like_sclite, self.marks, self.language, self.unit)

    def refuse_contradictions(self, formats: tuple[TranscriptFormat, TranscriptFormat], word_rules: WordRules) -> None:
        """Raises InputError for options that exclude each other, and for those that another option must accompany.

        formats: of reference and hypothesis.
        """
        with_times = self.speakers is SpeakerPairing.TCP
        demand_main_options((
            ("--glm-encoding", self.glm_encoding is not None, "--glm", self.glm is not None),
            ("--collar", self.collar is not None, "--speakers tcp", with_times),
            ("--language", self.language != ENGLISH, "--normalise spoken", word_rules.has_readings),
        ))  # fmt: skip
        if self.by_time and formats != (TranscriptFormat.CTM, TranscriptFormat.CTM):
            raise InputError("--by-time needs the times of words in both files", remedy="Use ctm for both files")
        options = (
            ("--optional-words", self.optional_words),
            ("--fragments", self.fragments),
            ("--glm", self.glm is not None),
            ("--like-sclite", self.like_sclite and self.speakers is not None),
            ("--speakers", self.speakers is not None and self.by_time),
            ("--id-type", self.by != SPEAKERS and self.speakers is not None),
            ("--marks", self.marks is MarkScope.REFERENCE),
        )
        for name, is_given in options:
            if is_given and (self.by_time or self.speakers is not None):
                other = "--by-time" if self.by_time else "--speakers"
                raise InputError(f"{name} cannot be combined with {other}", remedy="Remove one of the two options")

    def name(self, word_rules: WordRules) -> str:
        """What every report names: the normalisation, and the options that make more words correct."""
        optional = self.optional_words and any(word_rules.reads_marks)
        options = (("optional words", optional), ("fragments", self.fragments))
        return ", ".join([word_rules.name, *(name for name, is_given in options if is_given)])


@verb(
    "score",
    context_settings={"help_option_names": ["--help"]},
    sections={
        "Files": "reference_format hypothesis_format encoding glm_encoding",
        "Words": "glm language marks like_sclite optional_words fragments",
        "Conversations": "speakers collar by_time",
        "Tables": "groups crossed alignments confusions",
    },
)
def command(
    *,
    reference: str = option("File of reference transcripts; - is standard input.", "-r", required=True, metavar="REF"),
    hypotheses: tuple[str, ...] = repeatable(
        "File of recognised transcripts; - is standard input. Repeat to compare systems.",
        "-H",
        "--hypothesis",
        former=("-h",),
        required=True,
        metavar="HYP",
    ),
    rules: ScoreRules,
    groups: str | None = option(
        "Print the WER by each column of this list, whose header is id,voice,level_dbfs, …", metavar="FILE.csv"
    ),
    crossed: tuple[Cross, ...] = repeatable(
        "Print the WER by two columns as a matrix (repeatable).",
        "--cross",
        callback=_parse_crosses,
        metavar="COLUMN,COLUMN",
    ),
    alignments: AlignmentSelection | None = option(
        "Print reference and hypothesis aligned: utterances with errors, or all (without a value: errors).",
        type=EnumChoice(AlignmentSelection),
        is_flag=False,
        flag_value=AlignmentSelection.ERRORS.value,
    ),
    confusions: int | None = option(
        f"Print the N most frequent confusions of each kind; 0 for all (without a value: {LISTED_CONFUSIONS}).",
        within=(0, None),
        is_flag=False,
        flag_value=LISTED_CONFUSIONS,
        metavar="[N]",
    ),
    json_target: str | None = target_option("--json", "Print JSON instead of text."),
    html_target: str | None = option(
        "Write a page with the alignments (- for standard output, without text).", "--html", metavar="FILE", writes=True
    ),
    max_wer: float | None = option(
        "Exit with status 1 when a WER, or the rate of --unit, is above X (0.08 or 8%) or missing.",
        callback=parse_share,
        metavar="X",
    ),
) -> None:
    """Count word errors of transcripts against references, aligned as in NIST's sclite.

    Files: trn, ctm, stm, .sro, CSV and others (docs/reference/transcript-formats.md). If a reference has no hypothesis,
    all its words count as deleted. A hypothesis without a reference is ignored. The report counts both.

    Exit status: 0 scored · 1 a WER is above --max-wer or undefined · 2 wrong usage or input · 3 writing failed.
    """
    from harness.transcripts.files.transcripts import format_of
    from harness.transcripts.groups import compare, compare_by_groups
    from harness.transcripts.reports.scoring_json import json_chunks

    if rules.speakers is not None and len(hypotheses) > 1:
        # A row is a speaker of one hypothesis, which others need not have.
        raise InputError(
            "--speakers takes one hypothesis",
            remedy="Score each hypothesis separately, and compare the results of --json",
        )
    files = [reference, *hypotheses, *filter(None, [groups])]
    targets = [target for target in (json_target, html_target) if target is not None]
    for target in targets:
        refuse_overwriting(target, [*files, *filter(None, [rules.glm, rules.normalise])])
    if json_target is not None and html_target is not None and is_one_place(json_target, html_target):
        raise InputError("--json and --html name the same file", remedy="Choose another file name for one of them")
    refuse_stdin_twice(files)
    with ExitStack() as stack:
        reference_file = stack.enter_context(open_input(reference))
        groups_file = stack.enter_context(open_input(groups)) if groups else None
        hypothesis_files = [stack.enter_context(open_input(hypothesis)) for hypothesis in hypotheses]
        reference_form = rules.reference_format or format_of(Path(reference_file.name), "--reference-format")
        hypothesis_forms = [
            rules.hypothesis_format or format_of(Path(file.name), "--hypothesis-format") for file in hypothesis_files
        ]
        word_rules = rules.word_rules([reference_form, *hypothesis_forms])
        systems = [
            _score(
                reference_file, file, (reference_form, form), rules, word_rules, groups_file, crossed,
                with_digests=json_target is not None,
            )
            for file, form in zip(hypothesis_files, hypothesis_forms, strict=True)
        ]  # fmt: skip
    comparisons: Sequence[SystemComparison] = ()
    by_groups: Sequence[Sequence[GroupedComparison]] = ()
    if len(systems) > 1:
        comparisons = compare([system.scoring for system in systems])
        by_groups = compare_by_groups([(system.scoring, system.groups) for system in systems])
    if json_target is not None:
        streams.write_output(json_target, json_chunks(systems, comparisons, by_groups))
    if html_target is not None:
        _write_page(systems, html_target, reference)
    if STREAM not in targets:
        from harness.transcripts.reports.text import lines

        colour = streams.uses_colour(sys.stdout)
        streams.print_lines(
            lines(systems, comparisons, by_groups, alignments, confusions, streams.width(), colour=colour)
        )
    if max_wer is not None:
        from harness.statistics.verdict import SHARE, DeclaredLimit

        demand_limits(
            DeclaredLimit(
                "--max-wer",
                f"{ERROR_RATES[system.scoring.unit]} of {shown(system.scoring.title, 200)}",
                max_wer,
                system.scoring.totals.wer,
                unit=SHARE,
                why_not="the reference has no words",
            )
            for system in systems
        )


def _score(
    reference: InputFile,
    hypothesis: InputFile,
    forms: tuple[TranscriptFormat, TranscriptFormat],
    rules: ScoreRules,
    word_rules: WordRules,
    groups_file: InputFile | None,
    crossed: Sequence[Cross],
    *,
    with_digests: bool,
) -> SourcedScoring:
    """Reads both files and scores them. Raises InputError.

    - forms: of reference and hypothesis.
    - with_digests: the sources include the digests of their bytes.
    """
    from harness.base.text_file import encoding_name
    from harness.transcripts.entities import entity_errors
    from harness.transcripts.groups import group_figures, interval_of, with_queries
    from harness.transcripts.reports.scoring_json import SourcedScoring
    from harness.transcripts.scoring import word_confidences

    reference_form, hypothesis_form = forms
    rules.refuse_contradictions(forms, word_rules)
    if rules.by_time or rules.speakers is not None:
        word_rules = replace(word_rules, marks=MarkScope.NONE)
    talkers: tuple[TalkerPair, ...] = ()
    if rules.speakers is None:
        scoring, references, hypotheses = _score_by_id(reference, hypothesis, forms, rules, word_rules)
    else:
        scoring, pairs = _score_talkers(reference, hypothesis, forms, rules, word_rules)
        references, hypotheses, talkers = pairs.references, pairs.hypotheses, pairs.pairs
    _refuse_mismatch(scoring, references, reference.name, hypothesis.name)
    for transcripts, name in ((references, reference.name), (hypotheses, hypothesis.name)):
        if transcripts.not_scored:
            left_out = counted(transcripts.not_scored, "word")
            click.echo(f"harness: {shown(name)}: left out {left_out} of a type other than lex", err=True)
    # With paired speakers a row is a speaker, whose segments may have several labels, so labels are not read.
    labelled_form = reference_form if rules.speakers is None else TranscriptFormat.SEGLST
    groupings = _read_groupings(reference, references, labelled_form, groups_file, rules.encoding)
    scoring = with_queries(scoring, groupings)
    groups_source = None
    if groups_file is not None:
        encoding = encoding_name(rules.encoding)
        groups_source = _source_file(groups_file, TranscriptFormat.CSV, encoding, with_digest=with_digests)
    reads_reference_marks, _ = word_rules.reads_marks
    return SourcedScoring(
        scoring=scoring,
        reference=_source_file(reference, reference_form, references.encoding, with_digest=with_digests),
        hypothesis=_source_file(hypothesis, hypothesis_form, hypotheses.encoding, with_digest=with_digests),
        interval=interval_of(scoring),
        like_sclite=rules.like_sclite,
        optional_words=rules.optional_words,
        fragments=rules.fragments,
        groups_file=groups_source,
        groups=group_figures(scoring, groupings, crossed) if groupings or crossed else None,
        confidence=word_confidences(scoring, hypotheses, word_rules),
        entities=entity_errors(scoring, references, word_rules) if reads_reference_marks else None,
        talkers=talkers,
    )


def _refuse_mismatch(scoring: Scoring, references: Transcripts, reference_name: str, hypothesis_name: str) -> None:
    """Raises InputError with an example of the ids if no hypothesis has the id of a reference.

    The files probably have different utterances, or spell their ids differently, so a WER would mean nothing.
    """
    if scoring.surplus and len(scoring.without_hypothesis) == len(references):
        surplus_text = shown(f"{hypothesis_name} has {scoring.surplus[0]}")
        reference_text = shown(f"{reference_name} has {references.ids[0]}")
        raise InputError(
            f"no hypothesis matches a reference: {surplus_text}, {reference_text}",
            remedy="Use two files with the same utterances, and spell their ids the same way",
        )


def _score_by_id(
    reference: InputFile,
    hypothesis: InputFile,
    forms: tuple[TranscriptFormat, TranscriptFormat],
    rules: ScoreRules,
    word_rules: WordRules,
) -> tuple[Scoring, Transcripts, Transcripts]:
    """Reads both files, and scores each reference with the hypothesis of the same id.

    Returns the transcripts of both, too, as --glm maps them.
    """
    from harness.transcripts.by_time import align_rows_by_time
    from harness.transcripts.files.mapping_file import MappedSide, read_mapping
    from harness.transcripts.files.transcripts import read_pair, speaker_scheme
    from harness.transcripts.scoring import score

    reference_form, hypothesis_form = forms
    speakers_of = speaker_scheme(rules.by)
    references, hypotheses = read_pair(reference.path, hypothesis.path, *forms, rules.encoding)
    name = rules.name(word_rules)
    if rules.by_time:
        name += ", aligned by time"
    if rules.glm is not None:
        path, encoding = Path(rules.glm), rules.glm_encoding or rules.encoding
        mapping = read_mapping(path, encoding, reference_form, MappedSide.REFERENCE)
        references = mapping.mapped_transcripts(references)
        name += f", mapped by {mapping.name}"
        hypothesis_mapping = read_mapping(path, encoding, hypothesis_form, MappedSide.HYPOTHESIS)
        hypotheses = hypothesis_mapping.mapped_transcripts(hypotheses)
    scoring = score(
        replace(references, file=reference.name),
        replace(hypotheses, file=hypothesis.name),
        word_rules,
        name,
        speakers_of=speakers_of,
        drop_missing=rules.like_sclite,
        optional_words=rules.optional_words,
        fragments=rules.fragments,
        aligner=align_rows_by_time if rules.by_time else None,
    )
    return scoring, references, hypotheses


def _score_talkers(
    reference: InputFile,
    hypothesis: InputFile,
    forms: tuple[TranscriptFormat, TranscriptFormat],
    rules: ScoreRules,
    word_rules: WordRules,
) -> tuple[Scoring, PairedTalkers]:
    """Reads both files, pairs their speakers, and scores each speaker."""
    from harness.transcripts.files.transcripts import read_segments
    from harness.transcripts.scoring import score
    from harness.transcripts.talkers import COLLAR_S, pair_talkers
    from harness.transcripts.words import WordRules

    assert rules.speakers is not None
    reference_form, hypothesis_form = forms
    references = replace(read_segments(reference.path, reference_form, rules.encoding), file=reference.name)
    hypotheses = replace(
        read_segments(hypothesis.path, hypothesis_form, rules.encoding, may_be_empty=True), file=hypothesis.name
    )
    collar_s = COLLAR_S if rules.collar is None else rules.collar
    pairs = pair_talkers(references, hypotheses, word_rules, rules.speakers, collar_s)
    name = f"{word_rules.name}, {_SPEAKER_RATES[rules.speakers]}{ERROR_RATES[word_rules.unit]}"
    if rules.speakers is SpeakerPairing.TCP:
        name = f"{name} with a collar of {exact(collar_s)} s"
    # The words are normalised already.
    as_paired = WordRules(Normalisation.VERBATIM, marks=MarkScope.NONE, unit=word_rules.unit)
    scoring = score(pairs.references, pairs.hypotheses, as_paired, name, aligner=lambda *_: pairs.aligned)
    return scoring, pairs


def _read_groupings(
    reference: InputFile,
    references: Transcripts,
    form: TranscriptFormat,
    groups_file: InputFile | None,
    encoding: str | None,
) -> list[Groupings]:
    """The groupings of the list of groups, if there is one, and those of the labels if the form is stm.

    Raises InputError for a mistake in either, or for a list of other utterances.
    """
    if groups_file is None and form is not TranscriptFormat.STM:
        return []
    from harness.transcripts.files.lists import read_groups, read_labels, refuse_other_list

    groupings: list[Groupings] = []
    if groups_file is not None:
        groups = read_groups(groups_file.path, encoding, case_counts=form is TranscriptFormat.CSV)
        groupings.append(replace(groups, file=groups_file.name))
    if form is TranscriptFormat.STM:
        names = [grouping.name for groups in groupings for grouping in groups.groupings]
        labels = read_labels(reference.path, references, encoding, names)
        if labels:
            groupings.append(labels)
    if groups_file is not None:
        refuse_other_list(groupings[0], replace(references, file=reference.name))
    return groupings


def _source_file(file: InputFile, form: TranscriptFormat, encoding: str, *, with_digest: bool) -> SourceFile:
    """What a report says about a file. with_digest: include its SHA-256, else ""."""
    import hashlib

    from harness.transcripts.reports.scoring_json import SourceFile

    digest = ""
    if with_digest:
        with file.path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return SourceFile(file.name, form.value, encoding, digest)


def _write_page(systems: Sequence[SourcedScoring], target: str, reference: str) -> None:
    from harness.transcripts.reports.html import page, write_html

    title = f"{systems[0].scoring.unit.capitalize()} errors against {reference}"
    if target == STREAM:
        streams.print_pieces([page(systems, title, reference)])
    else:
        write_html(systems, Path(target), title=title, references=reference)
