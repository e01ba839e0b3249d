"""`harness understand score` and `merge`: score predictions, or what devices understood, against gold."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.plain_json import to_plain
from harness.cli.options import argument, option, repeatable, verb
from harness.cli.streams import InputFile, heading, in_colour, readable, width
from harness.cli.understanding.options import FrameLimits, FrameOptions, Targets, frames_options, target_options
from harness.model.choices import MAX_CONFUSIONS, SPLIT, CorpusFormat, CountedAttempt
from harness.model.errors import InputError, Place, demand_main_options, nearest
from harness.model.frozen import frozen
from harness.model.understanding import Corpus
from harness.understanding.counts import ValueRule

if TYPE_CHECKING:
    from harness.understanding.comparison import FrameComparison
    from harness.understanding.reports.score_json import ScoreFile
    from harness.understanding.reports.score_text import SystemReport
    from harness.understanding.scoring import FrameScoring, SystemCounts


_BY_SUFFIX = "by suffix, or by the files in a folder"


@frozen
class ScoreSources:
    """The files or sessions to score. attempt: for sessions. InputError for options that exclude each other."""

    sessions: tuple[str, ...] = argument("[SESSION…]")
    gold: str | None = option("Correct annotations; - is standard input.", metavar="FILE|FOLDER")
    predicted: tuple[str, ...] = repeatable(
        "Predictions; - is standard input. Repeat to compare systems.", "--pred", metavar="FILE|FOLDER"
    )
    gold_format: CorpusFormat | None = option("Format of --gold.", show_default=_BY_SUFFIX)
    pred_format: CorpusFormat | None = option("Format of --pred.", show_default=_BY_SUFFIX)
    split: str | None = option("Split to score, if folders are given: train, dev or test.", metavar="NAME")
    groups: str | None = option(
        "More groups: a CSV file with a header, such as id,voice,level_dbfs.", metavar="FILE.csv"
    )
    attempt: CountedAttempt = option(
        "Attempt of a session's trials: the first, or the one that decided.", default=CountedAttempt.DECIDING
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
                "sessions cannot be combined with --gold or --pred", remedy="Name sessions, or give --gold and --pred"
            )
        if not self.sessions and not (self.gold and self.predicted):
            remedy = "Give --gold FILE|FOLDER and --pred FILE|FOLDER, or name a session"
            raise InputError("neither a session nor --gold and --pred are given", remedy=remedy)

    @property
    def files(self) -> list[str]:
        return [*filter(None, [self.gold, self.groups]), *self.predicted]


NO_INTENT = {"none": ""}


@verb(
    "score",
    sections={
        "Annotations": "gold_format pred_format split attempt",
        "Counting": "chunking detail separator attributes values spoken without_places zero labels outside",
        "Tables": "groups by confusions",
        "Limits": "min_emr min_sfa min_slot_f1 max_cer limits_on",
    },
)
def score(
    *,
    wanted: ScoreSources,
    options: FrameOptions = frames_options(ValueRule.VERBATIM, of_files=True),
    confusions: int = option("Confusions to list; 0 for all.", within=(0, None), default=20),
    outside: str | None = option(
        "Report how well the system recognises out-of-scope utterances. LABEL: their intent, or none for no intent.",
        "--out-of-scope",
        metavar="LABEL",
    ),
    targets: Targets = target_options("Write an HTML page with the utterances."),
    limits: FrameLimits,
) -> None:
    """Score predicted intents and slots, or those that the devices of a session understood, against gold.

    Reads BIO folders, JSONL, and CSV files of intents. A missing prediction counts as an empty one. A prediction
    without gold is not counted. Both are reported. How-to: docs/how-to/score-understanding.md

    Exit status: 0 scored · 1 a limit failed · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.understanding.reports.score_text import SystemReport
    from harness.understanding.scoring import counted, intent_confidences
    from harness.understanding.scoring import score as scoring_of

    targets.refuse(wanted.files)
    choices = options.zero, options.declared, NO_INTENT.get(outside or "", outside)
    of_files = not wanted.sessions
    rule = options.rule(ordered=of_files, places=of_files and not options.without_places)
    columns = options.by or None
    with ExitStack() as stack:
        corpora, of_sessions = _corpora(wanted, stack)
        for gold, _ in corpora[:1]:
            options.demand_groups(gold)
            _demand_intent(choices[2], gold)
        rules = [replace(rule, detail=detail) for detail in options.details]
        scorings = [
            [scoring_of(gold, predicted, frame_rule, columns) for frame_rule in rules] for gold, predicted in corpora
        ]
    reported = [SystemReport(counted(of_one), *choices, intent_confidences(of_one[0])) for of_one in scorings]
    first = [of_one[0] for of_one in scorings]
    comparisons: list[FrameComparison] = []
    if len(first) > 1:
        from harness.understanding.comparison import compare  # here, since one system needs no arrays

        comparisons = [compare(scoring, other, *choices[:2]) for scoring, other in combinations(first, 2)]
    _write(targets, reported, first, comparisons, confusions, of_sessions)
    limits.demand(reported, of_sessions.unfinished if of_sessions else ())


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
    parts: list[ScoreFile] = []
    for name in files:
        with readable(name) as file:
            part = read_score_json(file.path, file.name)
        if twin := next((other.name for other in parts if other.systems == part.systems), ""):
            same = f"{plain_text(part.name, 80)} has the same counts of the same files as {plain_text(twin, 80)}"
            click.echo(f"harness: {same}. Is it the same shard?", err=True)
        parts.append(part)
    first = parts[0]
    systems = [SystemReport(counts, first.zero, first.labels, first.outside) for counts in _merge(parts)]
    _write(targets, systems)
    limits.demand(systems)


def _merge(parts: list[ScoreFile]) -> Iterator[SystemCounts]:
    from harness.understanding.scoring import added

    first = parts[0]

    def refuse(part: ScoreFile, problem: str) -> InputError:
        return InputError(problem, place=Place(part.name), remedy="Score all shards with the same options")

    for part in parts[1:]:
        if len(part.systems) != len(first.systems):
            raise refuse(part, f"there are {len(part.systems)} systems here, but {len(first.systems)} in {first.name}")
        if part.zero != first.zero:
            raise refuse(part, f"0/0 is {part.zero.name} here, but {first.zero.name} in {first.name}")
        if part.labels != first.labels:
            raise refuse(part, f"the declared labels differ from those in {first.name}")
        if part.outside != first.outside:
            raise refuse(part, f"--out-of-scope differs from the one in {first.name}")
    for index, merged in enumerate(first.systems):
        for part in parts[1:]:
            try:
                merged = added([merged, part.systems[index]])
            except ValueError as error:
                raise refuse(part, f"{error}: it cannot be added to {first.name}") from error
        yield merged


def _write(
    targets: Targets,
    systems: Sequence[SystemReport],
    scorings: Sequence[FrameScoring] = (),
    comparisons: Sequence[FrameComparison] = (),
    confusions: int = MAX_CONFUSIONS,
    of_sessions: ScoredSessions | None = None,
) -> None:
    """Writes the reports. scorings: one per system, under the first rule; empty if the utterances are not known."""
    from harness.understanding.reports.score_text import comparison_json, comparison_lines, system_lines

    as_json = page = None
    if targets.json_target is not None:
        from harness.understanding.reports.score_json import score_json

        compared = [comparison_json(comparison) for comparison in comparisons]
        as_json = score_json(systems, compared, None if of_sessions is None else to_plain(of_sessions))
    if targets.html_target is not None:
        from harness.understanding.reports import score_html  # here, since few want a page

        page = score_html.page(systems, scorings, comparisons).encode()
    columns = width()

    def lines() -> Iterator[str]:
        for number, system in enumerate(systems):
            if len(systems) > 1:
                yield from ([""] if number else [])
                yield heading(system.counts.predicted, columns, in_colour(sys.stdout))
            yield from system_lines(system, columns, confusions=confusions)
        yield from comparison_lines(comparisons, columns)
        if of_sessions is not None:
            yield from of_sessions.lines()

    targets.put(as_json, page, lines())


@frozen
class ScoredSessions:
    """What the scores of sessions leave out.

    - attempt: of each trial, the first or the one that decided.
    - not_counted: ids of trials without a report of what was understood.
    - unfinished: sessions whose run was not completed, each with what was finished.
    """

    attempt: CountedAttempt
    not_counted: tuple[str, ...]
    unfinished: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        from harness.understanding.reports.score_text import listed

        yield f"attempt       {self.attempt} of each trial"
        yield from (f"unfinished    {session}" for session in self.unfinished)
        if self.not_counted:
            yield f"unknown       {listed(self.not_counted)}: no report of what was understood; not counted"


def _corpora(sources: ScoreSources, stack: ExitStack) -> tuple[list[tuple[Corpus, Corpus]], ScoredSessions | None]:
    """Gold paired with each prediction, and what sessions leave out."""
    groups_file = stack.enter_context(readable(sources.groups)) if sources.groups else None
    if sources.sessions:
        session_gold, predicted, of_sessions = _session_pair(sources.sessions, sources.attempt)
        return [(add_groups(session_gold, groups_file), predicted)], of_sessions
    gold_file = stack.enter_context(readable(sources.gold or ""))
    files = [stack.enter_context(readable(path)) for path in sources.predicted]
    gold, split = read_gold(gold_file, sources.gold_format, sources.split)
    gold = add_groups(gold, groups_file)
    return [(gold, _read_predicted(file, sources.pred_format, split, gold)) for file in files], None


def _session_pair(sessions: Sequence[str], attempt: CountedAttempt) -> tuple[Corpus, Corpus, ScoredSessions]:
    """Gold, predictions, and what they leave out; InputError when no trial expects an intent."""
    from harness.cli.sessions import progress_of, session_folder
    from harness.model.record import EndReason
    from harness.session.figures.frames_of_session import session_corpora
    from harness.session.summary import session_verdict
    from harness.understanding.reports.score_text import listed

    folders = [session_folder(session) for session in sessions]
    progresses = [progress_of(folder) for folder in folders]
    corpora = session_corpora(progresses, attempt)
    if not corpora.gold.utterances:
        why = f": no report says what was understood in {listed(corpora.unknown)}" if corpora.unknown else ""
        remedy = "Name a session with trials of kind understand (docs/explanation/trials.md)"
        raise InputError(f"no trial has an intent to score{why}", remedy=remedy)
    names = " ".join(map(str, folders))
    unfinished = tuple(
        f"{folder}: {session_verdict((), progress)[1][0]}"
        for folder, progress in zip(folders, progresses, strict=True)
        if progress.finished is not EndReason.COMPLETED
    )
    of_sessions = ScoredSessions(attempt, corpora.unknown, unfinished)
    return (
        Corpus(names, corpora.gold.utterances),
        Corpus(f"devices in {names}", corpora.predicted.utterances),
        of_sessions,
    )


def read_gold(file: InputFile, form: CorpusFormat | None, split: str | None) -> tuple[Corpus, str | None]:
    """Gold, and the name of its split as written in its ids."""
    from harness.understanding.files.corpus_file import read_corpus
    from harness.understanding.scoring import is_annotated

    gold = read_corpus(file.path, form, split, name=file.name, option="--gold-format")
    if not any(map(is_annotated, gold.utterances)):
        raise InputError("nothing here is annotated", place=Place(file.name), remedy="Name annotated utterances")
    return gold, None if split is None else dict(gold.utterances[0].groups)[SPLIT]


def _read_predicted(file: InputFile, form: CorpusFormat | None, split: str | None, gold: Corpus) -> Corpus:
    """Predictions for gold; InputError when they have no id in common.

    split: the split of gold. A BIO folder without splits is taken as that split.
    """
    from harness.understanding.files.corpus_file import corpus_format_of, read_corpus
    from harness.understanding.files.corpus_formats import SEQ_IN

    form = form or corpus_format_of(file.path, file.name, "--pred-format")
    of_split = form is CorpusFormat.BIO and (file.path / SEQ_IN).exists()
    whole = of_split or not file.path.is_dir()
    predicted = read_corpus(file.path, form, None if whole else split, name=file.name)
    if of_split and split is not None:
        renamed = (replace(utterance, id=f"{split}/{utterance.id}") for utterance in predicted.utterances)
        predicted = Corpus(predicted.path, tuple(renamed))
    ids = [utterance.id for utterance in predicted.utterances]
    demand_an_id(ids, gold, "these predictions", file.name)
    return predicted


def _demand_intent(label: str | None, gold: Corpus) -> None:
    """InputError for an intent out of scope that no utterance of gold has."""
    intents = {name for utterance in gold.utterances for name in utterance.intents or ("",)}
    if label is not None and label not in intents:
        problem = f"--out-of-scope: no utterance of gold has the intent {plain_text(label or 'none', 60)!r}"
        remedy = nearest(label, sorted(filter(None, intents)), listed="Intents")
        raise InputError(problem, place=Place(gold.path), remedy=plain_text(remedy, 300))
    for utterance in gold.utterances:
        if label and label in (utterance.intents or ()) and len(utterance.intents or ()) > 1:
            problem = f"--out-of-scope: {plain_text(utterance.id, 60)} has {plain_text(label, 60)!r} and other intents"
            raise InputError(problem, place=utterance.place, remedy="An utterance out of scope has no other intent")


def demand_an_id(ids: Sequence[str], gold: Corpus, subject: str, name: str) -> None:
    """InputError if gold has none of the ids. subject, name: what they are the ids of, and its file."""
    gold_ids = {utterance.id for utterance in gold.utterances}
    if ids and gold_ids.isdisjoint(ids):
        problem = f"no id of {subject} occurs in gold: the first is {plain_text(ids[0], 60)!r}"
        example_id = plain_text(gold.utterances[0].id, 60)
        remedy = f"Use the ids of {plain_text(gold.path)}, such as {example_id!r}"
        raise InputError(problem, place=Place(name), remedy=remedy)


def add_groups(gold: Corpus, file: InputFile | None) -> Corpus:
    """Gold with the groups of a list added; InputError for a list of other utterances."""
    if file is None:
        return gold
    from harness.base.text_file import as_utf_8
    from harness.transcripts.files.lists import read_groups

    try:
        groups = read_groups(Path(file.path), case_counts=True)
    except InputError as error:
        raise as_utf_8(error) from error
    demand_an_id(groups.ids, gold, "this list", file.name)
    rows = {id_: row for row, id_ in enumerate(groups.ids)}
    columns = {column for utterance in gold.utterances for column, _ in utterance.groups}
    if twice := next((grouping.name for grouping in groups.groupings if grouping.name in columns), None):
        problem = f"gold already has a group {plain_text(twice, 60)!r}"
        raise InputError(problem, place=Place(file.name), remedy="Rename the column")
    utterances = []
    for utterance in gold.utterances:
        row = rows.get(utterance.id)
        more = tuple((column.name, "" if row is None else column.labels[row]) for column in groups.groupings)
        utterances.append(replace(utterance, groups=(*utterance.groups, *more)))
    return Corpus(gold.path, tuple(utterances))
