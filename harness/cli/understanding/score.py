"""`harness understand score` and `merge`: score predictions, or what devices understood, against gold."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from itertools import chain, combinations
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.options import argument, option, repeatable, verb
from harness.cli.streams import InputFile, open_input, uses_colour, width
from harness.cli.understanding.options import FrameLimits, FrameOptions, Targets, frames_options, target_options
from harness.model.choices import MAX_CONFUSIONS, SPLIT, CorpusFormat, CountedAttempt
from harness.model.errors import InputError, Place, demand_main_options, nearest
from harness.model.frozen import frozen
from harness.model.understanding import Corpus
from harness.understanding.counts import ValueRule

if TYPE_CHECKING:
    from harness.understanding.comparison import FrameComparison
    from harness.understanding.reports.score_json import ScoreFile
    from harness.understanding.reports.score_text import SessionNotes, SystemReport
    from harness.understanding.scoring import FrameScoring, SystemCounts


_BY_SUFFIX = "by suffix, or by the files in a folder"


@frozen
class ScoreSources:
    """The files or sessions to score. attempt: for sessions. Raises InputError for options that exclude each other."""

    sessions: tuple[str, ...] = argument("[SESSION…]")
    gold: str | None = option("Correct annotations; - is standard input.", metavar="FILE|FOLDER")
    predicted: tuple[str, ...] = repeatable(
        "Predictions; - is standard input. Repeat to compare systems.", "--pred", metavar="FILE|FOLDER"
    )
    gold_format: CorpusFormat | None = option("Format of --gold.", show_default=_BY_SUFFIX)
    pred_format: CorpusFormat | None = option("Format of --pred.", show_default=_BY_SUFFIX)
    split: str | None = option("Split to score, if folders are given: train, dev or test.", metavar="NAME")
    groups: str | None = option(
        "Additional groups: a CSV file with a header, such as id,voice,level_dbfs.", metavar="FILE.csv"
    )
    attempt: CountedAttempt = option(
        "Attempt to score, for a session: the first, or the one that decided.", default=CountedAttempt.DECIDING
    )

    def __post_init__(self) -> None:
        demand_main_options((
            ("--split", self.split, "--gold", self.gold),
            ("--gold-format", self.gold_format, "--gold", self.gold),
            ("--pred-format", self.pred_format, "--pred", self.predicted),
            ("--attempt", self.attempt is not CountedAttempt.DECIDING, "a session", self.sessions),
        ))  # fmt: skip
        if self.sessions and (self.gold or self.predicted):
            raise InputError(
                "sessions cannot be combined with --gold or --pred", remedy="Use sessions, or --gold and --pred"
            )
        if not self.sessions and not (self.gold and self.predicted):
            remedy = "Add --gold FILE|FOLDER and --pred FILE|FOLDER, or pass a session"
            raise InputError(
                "nothing to score: neither a session nor both --gold and --pred were specified", remedy=remedy
            )

    @property
    def files(self) -> list[str]:
        return [*filter(None, [self.gold, self.groups]), *self.predicted]


NO_INTENT = "none"
"""What stands for no intent in --out-of-scope."""


@verb(
    "score",
    sections={
        "Annotations": "gold_format pred_format split attempt",
        "Counting": "chunking detail separator attributes values spoken without_places zero labels out_of_scope",
        "Tables": "groups by confusions",
        "Limits": "min_emr min_sfa min_slot_f1 max_cer limits_on",
    },
)
def score(
    *,
    sources: ScoreSources,
    options: FrameOptions = frames_options(ValueRule.VERBATIM, of_files=True),
    confusions: int = option("Confusions to list; 0 for all.", within=(0, None), default=20),
    out_of_scope: str | None = option(
        "Report how well the system recognises out-of-scope utterances. LABEL: their intent, or none for no intent.",
        "--out-of-scope",
        metavar="LABEL",
    ),
    targets: Targets = target_options("Write an HTML page with the utterances."),
    limits: FrameLimits,
) -> None:
    """Score predicted intents and slots, or those that the devices of a session understood, against gold.

    Reads BIO folders, JSONL, and CSV files of intents. A missing prediction counts as empty and is never right. A
    prediction without gold is not counted. The report states how many there are of each.
    How-to: docs/how-to/score-understanding.md

    Exit status: 0 scored · 1 a limit failed · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.understanding import scoring
    from harness.understanding.reports.score_text import SystemReport

    targets.refuse(sources.files)
    zero, labels = options.zero, options.declared
    outside_intent = "" if out_of_scope == NO_INTENT else out_of_scope
    reads_files = not sources.sessions
    rule = options.rule(ordered=reads_files, places=reads_files and not options.without_places)
    rules = [replace(rule, detail=detail) for detail in options.details]
    with ExitStack() as stack:
        gold, predictions, session_notes = _read_corpora(sources, stack)
        options.demand_groups(gold)
        _demand_intent(outside_intent, gold, labels)
        scorings_by_system = [
            [scoring.score(gold, predicted, frame_rule, options.by or None) for frame_rule in rules]
            for predicted in predictions
        ]
    first_scorings = [scorings[0] for scorings in scorings_by_system]
    confidences = map(scoring.intent_confidences, first_scorings)
    reports = [
        SystemReport(counts, zero, labels, outside_intent, confidence)
        for counts, confidence in zip(map(scoring.count_system, scorings_by_system), confidences, strict=True)
    ]
    comparisons: list[FrameComparison] = []
    if len(first_scorings) > 1:
        from harness.understanding.comparison import compare  # here, since one system needs no arrays

        comparisons = [compare(first, second, zero, labels) for first, second in combinations(first_scorings, 2)]
    _write_reports(targets, reports, first_scorings, comparisons, confusions, session_notes)
    limits.demand(reports, session_notes.unfinished if session_notes else ())


@verb("merge")
def merge(
    *,
    files: tuple[str, ...] = argument("A.json B.json…", required=True),
    targets: Targets = target_options("Write an HTML page (without utterances, which the JSON files lack)."),
    limits: FrameLimits,
) -> None:
    """Merge the results that `harness understand score --json` wrote for shards of a corpus.

    Results and intervals equal those of scoring all utterances at once. All shards must have been scored with the
    same rule, labels and value of 0/0, and with the same systems in the same order.

    Exit status: 0 added · 1 a limit failed · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.understanding.reports.score_json import read_score_json
    from harness.understanding.reports.score_text import SystemReport

    targets.refuse(files)
    shards: list[ScoreFile] = []
    for name in files:
        with open_input(name) as file:
            shard = read_score_json(file.path, file.name)
        if twin := next((other.name for other in shards if other.systems == shard.systems), ""):
            problem = f"{plain_text(shard.name, 80)} has the same counts of the same files as {plain_text(twin, 80)}"
            click.echo(f"harness: {problem}. Is it the same shard?", err=True)
        shards.append(shard)
    first = shards[0]
    reports = [SystemReport(counts, first.zero, first.labels, first.outside) for counts in _merge(shards)]
    session_notes = _merge_notes(shards)
    _write_reports(targets, reports, session_notes=session_notes)
    limits.demand(reports, session_notes.unfinished if session_notes else ())


def _merge(shards: list[ScoreFile]) -> Iterator[SystemCounts]:
    """The counts of each system over all shards. Raises InputError for shards that were not scored in the same way."""
    from harness.understanding.scoring import add_system_counts

    first, *others = shards
    for shard in others:
        problem = ""
        if len(shard.systems) != len(first.systems):
            problem = f"there are {len(shard.systems)} systems here, but {len(first.systems)} in {first.name}"
        elif shard.zero != first.zero:
            problem = f"--zero-division differs from the one in {first.name}"
        elif shard.labels != first.labels:
            problem = f"the declared labels differ from those in {first.name}"
        elif shard.outside != first.outside:
            problem = f"--out-of-scope differs from the one in {first.name}"
        elif first.sessions and shard.sessions and shard.sessions.attempt is not first.sessions.attempt:
            attempts = f"the {shard.sessions.attempt} attempts count here, but the {first.sessions.attempt}"
            problem = f"{attempts} ones in {first.name}"
        if problem:
            raise _merge_error(shard, problem)
    for index, merged in enumerate(first.systems):
        for shard in others:
            try:
                merged = add_system_counts([merged, shard.systems[index]])
            except ValueError as error:
                raise _merge_error(shard, f"{error}: it cannot be added to {first.name}") from error
        yield merged


def _merge_notes(shards: Sequence[ScoreFile]) -> SessionNotes | None:
    """What the scores of sessions leave out together; None for scores of files."""
    notes = [shard.sessions for shard in shards if shard.sessions is not None]
    return reduce(add, notes) if notes else None


def _merge_error(shard: ScoreFile, problem: str) -> InputError:
    return InputError(problem, place=Place(shard.name), remedy="Score all shards with the same options")


def _write_reports(
    targets: Targets,
    reports: Sequence[SystemReport],
    scorings: Sequence[FrameScoring] = (),
    comparisons: Sequence[FrameComparison] = (),
    confusions: int = MAX_CONFUSIONS,
    session_notes: SessionNotes | None = None,
) -> None:
    """Writes JSON and page, if requested, and prints the text.

    - scorings: one per system, under the first rule; () if the utterances are not known.
    - confusions: how many to list.
    """
    from harness.understanding.reports.score_text import comparison_json, comparison_lines, systems_lines

    columns = width()

    def as_json() -> str:
        from harness.understanding.reports.score_json import score_json  # here, since few want it

        return score_json(reports, [comparison_json(comparison) for comparison in comparisons], session_notes)

    def page() -> str:
        from harness.understanding.reports import score_html  # as above

        return score_html.page(reports, scorings, comparisons)

    lines = (
        systems_lines(reports, columns, confusions=confusions, colour=uses_colour(sys.stdout)),
        comparison_lines(comparisons, columns),
        session_notes.lines() if session_notes is not None else (),
    )
    targets.write(as_json, page, chain.from_iterable(lines))


def _read_corpora(sources: ScoreSources, stack: ExitStack) -> tuple[Corpus, list[Corpus], SessionNotes | None]:
    """Gold, the predictions of each system, and for sessions what they leave out. The stack closes the files."""
    groups_file = stack.enter_context(open_input(sources.groups)) if sources.groups else None
    if sources.sessions:
        gold, predicted, session_notes = _read_sessions(sources.sessions, sources.attempt)
        return add_groups(gold, groups_file), [predicted], session_notes
    gold_file = stack.enter_context(open_input(sources.gold or ""))
    files = [stack.enter_context(open_input(path)) for path in sources.predicted]
    gold, split = read_gold(gold_file, sources.gold_format, sources.split, option="--gold-format")
    gold = add_groups(gold, groups_file)
    return gold, [_read_predicted(file, sources.pred_format, split, gold) for file in files], None


def _read_sessions(sessions: Sequence[str], attempt: CountedAttempt) -> tuple[Corpus, Corpus, SessionNotes]:
    """Gold, predictions, and what they leave out. Raises InputError if no trial expects an intent."""
    from harness.cli.sessions import progress_of, session_folder
    from harness.model.record import EndReason
    from harness.session.figures.frames_of_session import session_corpora
    from harness.session.summary import session_verdict
    from harness.understanding.reports.score_text import SessionNotes, listed

    folders = [session_folder(session) for session in sessions]
    progresses = [progress_of(folder) for folder in folders]
    corpora = session_corpora(progresses, attempt)
    if not corpora.gold.utterances:
        why = f": no report says what was understood in {listed(corpora.unknown)}" if corpora.unknown else ""
        remedy = "Use a session with trials of kind understand (docs/explanation/trials.md)"
        raise InputError(f"no trial has an intent to score{why}", remedy=remedy)
    names = " ".join(map(str, folders))
    unfinished = tuple(
        f"{folder}: {session_verdict((), progress)[1][0]}"
        for folder, progress in zip(folders, progresses, strict=True)
        if progress.finished is not EndReason.COMPLETED
    )
    return (
        Corpus(names, corpora.gold.utterances),
        Corpus(f"devices in {names}", corpora.predicted.utterances),
        SessionNotes(attempt, corpora.unknown, unfinished),
    )


def read_gold(
    file: InputFile, form: CorpusFormat | None, split: str | None, *, option: str | None = None
) -> tuple[Corpus, str | None]:
    """Gold, and the name of its split as written in its ids; None for the name if no split was chosen.

    option: the option for `form`; None if the command has none.
    """
    from harness.understanding.files.corpus_file import read_corpus
    from harness.understanding.scoring import is_annotated

    gold = read_corpus(file.path, form, split, name=file.name, option=option)
    if not any(map(is_annotated, gold.utterances)):
        raise InputError(
            "this file contains no annotations", place=Place(file.name), remedy="Use a file of annotated utterances"
        )
    return gold, None if split is None else dict(gold.utterances[0].groups)[SPLIT]


def _read_predicted(file: InputFile, form: CorpusFormat | None, split: str | None, gold: Corpus) -> Corpus:
    """Predictions for gold. Raises InputError when they have no id in common.

    split: the split of gold. A BIO folder without splits is taken as that split.
    """
    from harness.understanding.files.corpus_file import corpus_format_of, read_corpus
    from harness.understanding.files.corpus_formats import SEQ_IN

    form = form or corpus_format_of(file.path, file.name, "--pred-format")
    is_bio_split = form is CorpusFormat.BIO and (file.path / SEQ_IN).exists()
    has_splits = file.path.is_dir() and not is_bio_split
    predicted = read_corpus(file.path, form, split if has_splits else None, name=file.name)
    if is_bio_split and split is not None:
        renamed = (replace(utterance, id=f"{split}/{utterance.id}") for utterance in predicted.utterances)
        predicted = Corpus(predicted.path, tuple(renamed))
    ids = [utterance.id for utterance in predicted.utterances]
    demand_an_id(ids, gold, "these predictions", file.name)
    return predicted


def _demand_intent(label: str | None, gold: Corpus, declared: Sequence[str] | None) -> None:
    """Raises InputError unless gold has utterances with the intent that is out of scope, and with no other intent.

    - label: "" for no intent; None does not check.
    - declared: all intents, of which gold may lack some, since it may be a shard; None if they are not declared.
    """
    intents = {name for utterance in gold.utterances for name in utterance.intents or ("",)}
    if declared is not None:
        intents |= {"", *declared}
    if label is not None and label not in intents:
        problem = "--out-of-scope: every utterance of gold has an intent"
        if label:
            problem = f"--out-of-scope: no utterance of gold has the intent {plain_text(label, 60)!r}"
        remedy = nearest(label, sorted(filter(None, intents)), listed="Intents")
        remedy = f"{plain_text(remedy, 300)}. If gold is a shard, declare all intents with --labels"
        raise InputError(problem, place=Place(gold.path), remedy=remedy)
    for utterance in gold.utterances:
        if label and label in (utterance.intents or ()) and len(utterance.intents or ()) > 1:
            problem = f"--out-of-scope: {plain_text(utterance.id, 60)} has {plain_text(label, 60)!r} and other intents"
            raise InputError(
                problem,
                place=utterance.place,
                remedy="Remove the other intents: an out-of-scope utterance cannot have any",
            )


def demand_an_id(ids: Sequence[str], gold: Corpus, subject: str, name: str) -> None:
    """Raises InputError if gold has none of the ids.

    - subject: what has the ids, such as "these answers".
    - name: of its file.
    """
    gold_ids = {utterance.id for utterance in gold.utterances}
    if ids and gold_ids.isdisjoint(ids):
        problem = f"no id of {subject} occurs in gold: the first is {plain_text(ids[0], 60)!r}"
        example_id = plain_text(gold.utterances[0].id, 60)
        remedy = f"Use the ids of {plain_text(gold.path)}, such as {example_id!r}"
        raise InputError(problem, place=Place(name), remedy=remedy)


def add_groups(gold: Corpus, file: InputFile | None) -> Corpus:
    """Gold with the groups of a list added.

    Raises InputError for a list of other utterances, or a group that gold has.
    """
    if file is None:
        return gold
    from harness.base.text_file import as_utf_8, without_mark
    from harness.transcripts.files.lists import read_groups

    try:
        groups = read_groups(Path(file.path), case_counts=True)
    except InputError as error:
        raise as_utf_8(error) from error
    rows = {without_mark(id_): row for row, id_ in enumerate(groups.ids)}
    demand_an_id(list(rows), gold, "this list", file.name)
    columns = {column for utterance in gold.utterances for column, _ in utterance.groups}
    if repeated_name := next((grouping.name for grouping in groups.groupings if grouping.name in columns), None):
        problem = f"gold already has a group {plain_text(repeated_name, 60)!r}"
        raise InputError(problem, place=Place(file.name), remedy="Rename the column")
    utterances = []
    for utterance in gold.utterances:
        row = rows.get(utterance.id)
        added_groups = ((column.name, "" if row is None else column.labels[row]) for column in groups.groupings)
        utterances.append(replace(utterance, groups=(*utterance.groups, *added_groups)))
    return Corpus(gold.path, tuple(utterances))
