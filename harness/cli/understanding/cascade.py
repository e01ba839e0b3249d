"""`harness understand cascade`: how much recognition errors lower understanding."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.foreign import plain_text
from harness.cli.options import argument, demand_limits, flag, option, parse_share, repeatable, verb
from harness.cli.streams import open_input, refuse_stdin_twice, width
from harness.cli.understanding.options import FrameOptions, Targets, frames_options, named_file, target_options
from harness.cli.understanding.score import add_groups, demand_an_id, read_gold
from harness.model.choices import LISTED_UTTERANCES as LISTED
from harness.model.choices import CountedAttempt, Grouping, MarkScope
from harness.model.errors import InputError, Place, demand_main_options, nearest
from harness.model.frozen import frozen
from harness.model.numbers import counted
from harness.model.transcript import Normalisation
from harness.model.understanding import Corpus, Slot, Utterance
from harness.understanding.counts import ValueRule

if TYPE_CHECKING:
    from harness.model.scenario import RecognitionRule
    from harness.session.figures.trials import TranscribedTrial
    from harness.transcripts.words import WordRules
    from harness.understanding.cascade import HeardCorpus
    from harness.understanding.systems import ComparedSystem

MARKS = '.,!?;:…"«»“”„¿¡()[]'
VOICE, QUERY = "voice", "query"
_ADD_GOLD = "Add --gold FILE|FOLDER with annotated utterances and their texts"
COLUMNS = (Grouping.DEVICE, Grouping.QUERY_CLASS, Grouping.CONDITION)


class TranscriptStyle(StrEnum):
    """How transcripts are written for a model.

    - AS_GOLD: without capitals if gold has none, and without punctuation if gold has none.
    - HEARD: unchanged.
    """

    AS_GOLD = "as-gold"
    HEARD = "heard"


@frozen
class CascadeSources:
    """What the command line names. Raises InputError for options that exclude each other, or that are missing."""

    sessions: tuple[str, ...] = argument("[SESSION…]")
    gold: str | None = option("Annotated reference texts.", metavar="FILE|FOLDER", show_default="the session's")
    split: str | None = option("Split of a gold folder: train, dev, test.", metavar="NAME")
    heard: tuple[str, ...] = repeatable(
        "Transcripts by id: JSONL, trn or CSV, instead of a session. Repeat to compare recognisers.",
        metavar="[NAME=]FILE",
    )
    model: Path | None = option("Folder of a trained model.", metavar="FOLDER")
    pred_reference: str | None = option(
        "Predictions on the reference texts, instead of --model.", metavar="FILE|FOLDER"
    )
    pred_heard: str | None = option("Predictions on the transcripts.", metavar="FILE|FOLDER")
    pred_sound: tuple[str, ...] = repeatable(
        "Predictions from sound (`predict --audio`), to compare; repeatable.", metavar="[NAME=]FILE"
    )
    live: tuple[str, ...] = repeatable(
        "Session whose devices reported what they understood, to compare; repeatable.", metavar="SESSION"
    )
    groups: str | None = option("Additional groups: a CSV file with a header, such as id,voice.", metavar="FILE.csv")
    talkers: str = option(
        "Column that identifies the talkers, for intervals over talkers.", metavar="COLUMN", default=VOICE
    )
    attempt: CountedAttempt = option("Attempt whose transcript is used, for a session.", default=CountedAttempt.FIRST)
    reads: TranscriptStyle = option(
        "Transcripts for the model: unchanged, or without capitals and punctuation where gold has none.",
        default=TranscriptStyle.AS_GOLD,
    )
    missing_is_silence: bool = flag("Count a missing transcript as empty.", show_default="leave the utterance out")

    def __post_init__(self) -> None:
        of_session = self.sessions or self.live
        demand_main_options((
            ("--split", self.split, "--gold", self.gold),
            ("--groups", self.groups, "--gold", self.gold),
            ("--attempt", self.attempt is not CountedAttempt.FIRST, "a session", of_session),
            ("--reads", self.reads is not TranscriptStyle.AS_GOLD, "--model", self.model),
            ("--talkers", self.talkers != VOICE, "several systems (--heard, --pred-sound, --live)", self.compares),
        ))  # fmt: skip
        if self.compares:
            self._demand_comparison()
            return
        if bool(self.sessions) == bool(self.heard):
            problem, remedy = "no transcripts were given", "Name a session, or add --heard FILE"
            if self.heard:
                problem, remedy = "transcripts come either from a session or from --heard", f"{remedy}, not both"
            raise InputError(problem, remedy=remedy)
        if self.heard and not self.gold:
            raise InputError("--gold is missing", remedy=_ADD_GOLD)
        if self.model is None and not (self.pred_reference and self.pred_heard):
            remedy = "Add --model FOLDER, or --pred-reference and --pred-heard"
            raise InputError("neither --model nor predictions were given", remedy=remedy)
        if self.model is not None and (self.pred_reference or self.pred_heard):
            raise InputError(
                "--model cannot be combined with --pred-reference and --pred-heard",
                remedy="Choose a model or predictions",
            )

    def _demand_comparison(self) -> None:
        """Raises InputError for options that do not belong to a comparison, and for fewer than two systems."""
        if self.sessions or self.pred_reference or self.pred_heard:
            raise InputError(
                "--pred-sound, --live and several --heard cannot be combined with SESSION, --pred-reference or "
                "--pred-heard",
                remedy="Pass the session with --live, and use --model for transcripts",
            )
        if not self.gold and not self.live:
            raise InputError("--gold is missing", remedy="Add --gold FILE|FOLDER with annotated utterances")
        if self.heard and self.model is None:
            raise InputError("--heard needs --model", remedy="Add --model FOLDER, or remove --heard")
        if self.model is None and len(self.pred_sound) + len(self.live) < 2:
            raise InputError(
                "there is only one system, so there is nothing to compare",
                remedy="Add --model FOLDER, or another --pred-sound; `harness understand score` scores one system",
            )

    @property
    def compares(self) -> bool:
        """Whether systems are compared; otherwise one cascade is reported in detail."""
        return len(self.heard) > 1 or bool(self.pred_sound or self.live)

    @property
    def files(self) -> list[str]:
        """Every file that is read."""
        named_paths = (path for _, path in map(_split_name, (*self.heard, *self.pred_sound)))
        return [file for file in (self.gold, *named_paths, self.pred_reference, self.pred_heard, self.groups) if file]


@verb(
    "cascade",
    sections={
        "Transcripts and predictions": "pred_reference pred_heard attempt reads missing_is_silence normalise",
        "Comparison of systems": "pred_sound live groups talkers",
        "Counting": "chunking detail separator attributes values zero labels",
        "Tables": "by listed",
    },
)
def command(
    *,
    sources: CascadeSources,
    normalise: Normalisation = option("Normalisation of words for the WER.", default=Normalisation.PLAIN),
    options: FrameOptions = frames_options(ValueRule.PLAIN, of_files=False),
    listed: int = option(
        "Changed utterances to list; 0 for all.", "--max-rows", former=("--list",), within=(0, None), default=LISTED
    ),
    targets: Targets = target_options("Write a page with every utterance that changed."),
    max_sfa_loss: float | None = option(
        "Exit with status 1 when SFA falls by more than X (0.05 or 5%).", callback=parse_share, metavar="X"
    ),
) -> None:
    """Measure how much recognition errors reduce understanding, and compare systems that start from sound.

    One model predicts intents and slots from the reference text and from the transcript. Both predictions are scored
    against gold. Only utterances with a transcript count; the others are listed. The two texts differ in words, so
    slots are compared as lists of concepts, and slot F1 is given for the reference only.

    With several --heard, --pred-sound or --live, systems are compared on the utterances that all of them answered.
    The report says at which stage each system loses an utterance.

    How-to: docs/how-to/score-understanding.md

    Exit status: 0 scored · 1 --max-sfa-loss failed · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.transcripts.words import WordRules
    from harness.understanding.cascade import cascade
    from harness.understanding.comparison import Metric
    from harness.understanding.reports.cascade import cascade_json, lines, page

    refuse_stdin_twice(sources.files)
    targets.refuse(sources.files)
    declared = options.declared
    if sources.compares:
        if options.by or max_sfa_loss is not None or listed != LISTED:
            problem = "--by, --max-rows and --max-sfa-loss do not apply to a comparison of systems"
            raise InputError(problem, remedy="Remove these options, or use a single --heard and no other system")
        _compare(sources, options, WordRules(normalise, marks=MarkScope.NONE), targets)
        return
    with ExitStack() as stack:
        pairs, on_reference, on_transcript, notes = _read_inputs(sources, stack)
    options.demand_groups(pairs.gold)
    # With tags, gold and the predictions on it have the same words, so that places of slots can be compared.
    placed = any(utterance.tags is not None for utterance in pairs.gold.utterances)
    scored = cascade(
        pairs,
        on_reference,
        on_transcript,
        options.rule(ordered=placed or not sources.sessions, places=placed),
        WordRules(normalise, marks=MarkScope.NONE),
        zero=options.zero,
        labels=declared,
        by=options.by or None,
    )
    report_lines = lines(scored, width(), notes=notes, max_listed=listed)
    targets.write(lambda: cascade_json(scored), lambda: page(scored, notes), report_lines)
    if max_sfa_loss is not None:
        from harness.statistics.verdict import SHARE, DeclaredLimit

        gain = scored.total.differences[Metric.SFA].difference
        # A loss of exactly X must pass, but the difference of two floats can exceed X in its last digits.
        loss = None if gain is None else round(-gain, 12)
        demand_limits([DeclaredLimit("--max-sfa-loss", "SFA loss by recognition", max_sfa_loss, loss, unit=SHARE)])


def _compare(sources: CascadeSources, options: FrameOptions, wording: WordRules, targets: Targets) -> None:
    """Compares the systems, and writes the reports."""
    from harness.understanding.reports.systems import lines, page, systems_json
    from harness.understanding.systems import compare_systems

    with ExitStack() as stack:
        gold, systems, notes = _systems(sources, stack)
    columns = {name for utterance in gold.utterances for name, _ in utterance.groups}
    if sources.talkers not in columns and sources.talkers != VOICE:
        remedy = nearest(sources.talkers, sorted(columns), listed="Groups")
        raise InputError(f"--talkers: gold has no group {plain_text(sources.talkers, 60)!r}", remedy=plain_text(remedy))
    compared = compare_systems(
        gold,
        systems,
        options.rule(ordered=not sources.live, places=False),  # devices report slots without an order
        wording,
        talker_column=sources.talkers,
        missing_is_empty=sources.missing_is_silence,
        zero=options.zero,
        labels=options.declared,
    )
    targets.write(lambda: systems_json(compared), lambda: page(compared, notes), lines(compared, width(), notes=notes))


def _systems(sources: CascadeSources, stack: ExitStack) -> tuple[Corpus, list[ComparedSystem], list[tuple[str, str]]]:
    """Gold, the systems in the order of their kinds, and notes (name, text) for the report."""
    from harness.understanding.systems import ComparedSystem, SystemKind

    gold = None if sources.gold is None else _read_gold(sources, stack, needs_texts=sources.model is not None)
    live: list[ComparedSystem] = []
    rule_by_trial: dict[str, RecognitionRule] = {}
    notes: list[tuple[str, str]] = []
    if sources.live:
        gold, devices, rule_by_trial = _read_live_trials(sources.live, sources.attempt, gold, notes)
        live = [ComparedSystem("live", SystemKind.LIVE, devices)]
    assert gold is not None
    systems: list[ComparedSystem] = []
    if sources.model is not None:
        systems += _systems_of_model(sources.model, sources, gold, stack, notes)
    systems += (_system_of_sound(name, path, gold, stack) for name, path in map(_split_name, sources.pred_sound))
    systems += live
    if live:
        systems = [replace(system, frames=_normalise_values(system.frames, rule_by_trial, gold)) for system in systems]
        gold = _normalise_values(gold, rule_by_trial)
    names = [system.name for system in systems]
    if repeated_name := next((name for name in names if names.count(name) > 1), None):
        remedy = "Use different names: --heard a=FILE --heard b=FILE"
        raise InputError(f"two systems are named {plain_text(repeated_name, 60)!r}", remedy=remedy)
    return gold, systems, notes


def _systems_of_model(
    folder: Path, sources: CascadeSources, gold: Corpus, stack: ExitStack, notes: list[tuple[str, str]]
) -> Iterator[ComparedSystem]:
    """The model on the reference texts, then on each recogniser's transcripts. Adds to the notes."""
    from harness.understanding.cascade import join_transcripts, predict_corpus
    from harness.understanding.models.model_folder import load_model  # here, since a model takes long to import
    from harness.understanding.systems import ComparedSystem, ModelCost, SystemKind

    model = load_model(folder)
    predict = model.understander.predict
    notes.append(("model", f"{plain_text(str(folder), 200)} ({model.name})"))
    yield ComparedSystem("transcripts", SystemKind.TRANSCRIPTS, predict_corpus(gold, predict, str(folder)))
    for name, path in map(_split_name, sources.heard):
        heard = _answers_to(gold, _read_corpus(path, stack))
        pairs = join_transcripts(gold, heard, missing_is_silence=sources.missing_is_silence)
        transcripts, style = _style_transcripts(pairs, sources.reads)
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        frames = predict_corpus(transcripts, predict, str(folder))
        cpu_s, elapsed_s = time.process_time() - start_cpu_s, time.perf_counter() - start_s
        count = max(1, len(transcripts.utterances))
        yield ComparedSystem(name, SystemKind.CASCADE, frames, heard, ModelCost(cpu_s / count, elapsed_s / count))
        notes.append(("model reads", f"of {plain_text(name, 60)}: {style}"))


def _system_of_sound(name: str, path: str, gold: Corpus, stack: ExitStack) -> ComparedSystem:
    """A system whose predictions from sound are in a file. Raises InputError if that has neither intents nor slots."""
    from harness.understanding.scoring import is_annotated
    from harness.understanding.systems import ComparedSystem, SystemKind

    frames = _answers_to(gold, _read_corpus(path, stack))
    has_words = any(utterance.words for utterance in frames.utterances)
    if not any(is_annotated(utterance) for utterance in frames.utterances):
        remedy = "For transcripts of a recogniser, use --heard and --model"
        raise InputError("this file contains neither intents nor slots", place=Place(path), remedy=remedy)
    return ComparedSystem(name, SystemKind.SOUND, frames, frames if has_words else None)


def _split_name(text: str) -> tuple[str, str]:
    """A system's name, by default that of its file, and the file."""
    name, path = named_file(text)
    return name or Path(path).stem, path


def _read_live_trials(
    session_names: Sequence[str], attempt: CountedAttempt, gold: Corpus | None, notes: list[tuple[str, str]]
) -> tuple[Corpus, Corpus, dict[str, RecognitionRule]]:
    """An utterance with the expected answer for each trial of sessions, what devices reported, and how values are
    compared, by the id of the trial. Adds to the notes.

    Raises InputError if no trial has gold.

    gold: an utterance for each query, with its id; None to take what each trial expects.
    """
    from harness.cli.sessions import progress_of, session_folder  # here, since they take long to import
    from harness.session.figures.frames_of_session import session_corpora
    from harness.understanding.reports.score_text import listed

    folders = [session_folder(session) for session in session_names]
    corpora = session_corpora([progress_of(folder) for folder in folders], attempt)
    gold_by_query = None if gold is None else {utterance.id: utterance for utterance in gold.utterances}
    trials, ids_without_gold = [], []
    for trial in corpora.gold.utterances:
        query = dict(trial.groups)[QUERY]
        expected = corpora.trials[trial.id].expects
        if gold_by_query is None:
            gold_utterance: Utterance | None = replace(trial, slots=expected.slots if expected else None)
        else:
            gold_utterance = gold_by_query.get(query)
        if gold_utterance is None:
            ids_without_gold.append(trial.id)
            continue
        gold_columns = {name for name, _ in gold_utterance.groups}
        more_groups = [group for group in trial.groups if group[0] not in gold_columns]
        trials.append(replace(gold_utterance, id=trial.id, groups=(*gold_utterance.groups, *more_groups)))
    names = " ".join(map(str, folders))
    if not trials:
        remedy = "Use a session with trials of kind understand, whose queries have the ids of gold"
        raise InputError(f"no trial of {names} has both gold and a report of what was understood", remedy=remedy)
    notes.append(("attempt", f"{attempt} of each trial"))
    if corpora.unknown:
        notes.append(("unknown", f"{listed(corpora.unknown)}: no report of what was understood, not counted"))
    if ids_without_gold:
        notes.append(("no gold", f"{listed(ids_without_gold)}: not counted"))
    queries = {dict(trial.groups)[QUERY] for trial in trials}
    if len(queries) < len(trials):
        repeated = f"{len(trials):,} trials of {counted(len(queries), 'query', 'queries')}"
        notes.append(("repetitions", f"{repeated}; intervals over utterances do not allow for this"))
    path = names if gold is None else gold.path
    rule_by_trial = {id_: trial.recognised for id_, trial in corpora.trials.items()}
    return Corpus(path, tuple(trials)), Corpus(names, corpora.predicted.utterances), rule_by_trial


def _normalise_values(
    corpus: Corpus, rule_by_trial: Mapping[str, RecognitionRule], gold: Corpus | None = None
) -> Corpus:
    """The corpus with values that are normalised by the rule of their trial, and with slots instead of tags.

    gold: the expected slots, for a corpus of predictions.
    """
    from harness.understanding.reported_frames import normalised_slots

    expected = {} if gold is None else {utterance.id: _slots_with_values(utterance) for utterance in gold.utterances}
    utterances = []
    for utterance in corpus.utterances:
        slots = _slots_with_values(utterance)
        if slots is not None:
            slots = normalised_slots(slots, rule_by_trial[utterance.id], expected.get(utterance.id) or ())
        utterances.append(replace(utterance, tags=None, slots=slots))
    return Corpus(corpus.path, tuple(utterances))


def _slots_with_values(utterance: Utterance) -> tuple[Slot, ...] | None:
    """The slots of an utterance, or those of its tags with their words as values; None without annotated slots."""
    from harness.understanding.files.corpus_writing import slots_of

    return slots_of(utterance) if utterance.slots is None and utterance.tags is not None else utterance.slots


def _answers_to(gold: Corpus, corpus: Corpus) -> Corpus:
    """The answers of a corpus to the utterances of gold, with their ids.

    Raises InputError if there are answers, but none of those. An answer to a trial may also have the id of its query.
    """
    answer_by_id = {utterance.id: utterance for utterance in corpus.utterances}
    answers = []
    for gold_utterance in gold.utterances:
        query = dict(gold_utterance.groups).get(QUERY, "")
        answer = answer_by_id.get(gold_utterance.id) or answer_by_id.get(query)
        if answer is not None:
            answers.append(replace(answer, id=gold_utterance.id))
    if not answers:
        demand_an_id([utterance.id for utterance in corpus.utterances], gold, "these answers", corpus.path)
    return Corpus(corpus.path, tuple(answers))


def _read_inputs(
    sources: CascadeSources, stack: ExitStack
) -> tuple[HeardCorpus, Corpus, Corpus, list[tuple[str, str]]]:
    """Reads everything and runs the model, if there is one. Raises InputError for files that do not belong together.

    Returns gold with its transcripts, the predictions on either, and notes (name, text) for the report.
    """
    from harness.understanding.cascade import join_transcripts, predict_corpus

    gold = _read_gold(sources, stack) if sources.gold else None
    if sources.sessions:
        gold, heard, notes = _session_texts(sources.sessions, sources.attempt, gold)
    else:
        _, path = _split_name(sources.heard[0])
        heard, notes = _read_corpus(path, stack), []
    if gold is None:
        raise InputError("--gold is missing", remedy=_ADD_GOLD)
    pairs = join_transcripts(gold, heard, missing_is_silence=sources.missing_is_silence)
    _demand_pairs(gold, heard, pairs)
    if sources.model is None:
        predictions = (_read_corpus(path or "", stack) for path in (sources.pred_reference, sources.pred_heard))
        on_reference, on_transcript = (_compared_predictions(corpus, pairs) for corpus in predictions)
    else:
        from harness.understanding.models.model_folder import load_model  # here, since a model takes long to import

        model = load_model(sources.model)
        predict = model.understander.predict
        transcripts, style = _style_transcripts(pairs, sources.reads)
        notes += [("model", f"{plain_text(str(sources.model), 200)} ({model.name})"), ("model reads", style)]
        on_reference = predict_corpus(pairs.gold, predict, str(sources.model))
        on_transcript = predict_corpus(transcripts, predict, str(sources.model))
    return pairs, on_reference, on_transcript, notes


def _read_gold(sources: CascadeSources, stack: ExitStack, *, needs_texts: bool = True) -> Corpus:
    """Gold with its groups. needs_texts: whether a model will read its texts; then InputError if it has none."""
    gold, _ = read_gold(stack.enter_context(open_input(sources.gold or "")), None, sources.split)
    if needs_texts and not any(utterance.words for utterance in gold.utterances):
        remedy = "Use a BIO folder or a JSONL file; a CSV file of intents contains no text"
        raise InputError("gold has no text to predict from", place=Place(gold.path), remedy=remedy)
    return add_groups(gold, stack.enter_context(open_input(sources.groups)) if sources.groups else None)


def _read_corpus(path: str, stack: ExitStack) -> Corpus:
    from harness.understanding.files.corpus_file import read_corpus

    file = stack.enter_context(open_input(path))
    return read_corpus(file.path, name=file.name)


def _compared_predictions(predicted: Corpus, pairs: HeardCorpus) -> Corpus:
    """The predictions for utterances with a transcript. Raises InputError if there is none."""
    ids = {utterance.id for utterance in pairs.gold.utterances}
    utterances = tuple(utterance for utterance in predicted.utterances if utterance.id in ids)
    if not utterances:
        problem = "no prediction has the id of a gold utterance with a transcript"
        raise InputError(problem, place=Place(predicted.path), remedy="Use the ids of gold")
    return Corpus(predicted.path, utterances)


def _demand_pairs(gold: Corpus, heard: Corpus, pairs: HeardCorpus) -> None:
    """Raises InputError if none of the annotated utterances of gold has a transcript."""
    if len(pairs.without_transcript) < len(gold.utterances) - len(pairs.unannotated):
        return
    first_id = heard.utterances[0].id if heard.utterances else ""
    example_id = gold.utterances[0].id if gold.utterances else ""
    problem = f"no transcript has the id of a gold utterance: the first id is {plain_text(first_id, 60)!r}"
    remedy = f"Use the ids of {plain_text(gold.path, 200)}, such as {plain_text(example_id, 60)!r}"
    raise InputError(problem, place=Place(heard.path), remedy=remedy)


def _style_transcripts(pairs: HeardCorpus, style: TranscriptStyle) -> tuple[Corpus, str]:
    """The transcripts as the model reads them, and a phrase for it."""
    if style is TranscriptStyle.HEARD:
        return pairs.heard, "transcripts as heard"
    words = [word for utterance in pairs.gold.utterances for word in utterance.words]
    without_capitals = all(word == word.lower() for word in words)
    without_punctuation = all(word == word.strip(MARKS) for word in words)
    if not (without_capitals or without_punctuation):
        return pairs.heard, "transcripts as heard: gold has capitals and punctuation too"
    utterances = tuple(
        replace(
            utterance,
            words=_spell(utterance.words, without_capitals=without_capitals, without_punctuation=without_punctuation),
        )
        for utterance in pairs.heard.utterances
    )
    omissions = {"without capitals": without_capitals, "without punctuation": without_punctuation}
    omissions_text = " and ".join(text for text, is_omitted in omissions.items() if is_omitted)
    return Corpus(pairs.heard.path, utterances), f"transcripts {omissions_text}, as gold is written"


def _spell(words: Sequence[str], *, without_capitals: bool, without_punctuation: bool) -> tuple[str, ...]:
    """The words without capitals or punctuation, as requested. A word that is only punctuation is left out."""
    if without_punctuation:
        words = [word.strip(MARKS) for word in words]
    if without_capitals:
        words = [word.lower() for word in words]
    return tuple(word for word in words if word)


def _session_texts(
    session_names: Sequence[str], attempt: CountedAttempt, gold: Corpus | None
) -> tuple[Corpus, Corpus, list[tuple[str, str]]]:
    """Gold with an utterance for each trial, its transcript, and notes (name, text) for the report.

    gold: an utterance for each query, with its id; None to take what each trial expects. Raises InputError when no
    trial has gold.
    """
    from harness.cli.sessions import figures_of, session_folder  # here, since they take long to import
    from harness.session.figures.trials import group_of, heard_in

    folders = [session_folder(session) for session in session_names]
    gold_by_query = {utterance.id: utterance for utterance in gold.utterances} if gold else {}
    references: list[Utterance] = []
    heard: list[Utterance] = []
    count_without_gold = 0
    prefixes: list[str] = []
    for number, folder in enumerate(folders, 1):
        progress, wake = figures_of(folder)
        prefix = f"{folder.name}/" if len(folders) > 1 else ""
        if prefix in prefixes:  # folders with the same name in different places: their ids must differ
            prefix = f"{folder.name}~{number}/"
        prefixes.append(prefix)
        for trial in heard_in(progress.trials, wake):
            id_ = f"{prefix}{trial.trial.id}/{trial.device}"
            gold_utterance = gold_by_query.get(trial.trial.query_id) if gold else _expected_utterance(trial)
            if gold_utterance is None:
                count_without_gold += 1
                continue
            labels = ((column.value, group_of(trial, column)) for column in COLUMNS)
            groups = ((name, label) for name, label in labels if label)
            references.append(replace(gold_utterance, id=id_, groups=(*gold_utterance.groups, *groups)))
            heard_attempt = trial.first if attempt is CountedAttempt.FIRST else trial.final
            if heard_attempt is not None and heard_attempt.heard is not None:
                words = without_wake_phrase(tuple(heard_attempt.heard.split()), trial.trial.wake_phrases)
                heard.append(Utterance(id_, words))
    names = " ".join(map(str, folders))
    if not references:
        remedy = "Add --gold FILE with annotated utterances that have the ids of the scenario's queries"
        raise InputError(f"no trial in {names} has a gold annotation", remedy=remedy)
    notes = [("attempt", f"{attempt} of each trial")]
    if count_without_gold:
        notes.append(("no gold", f"{count_without_gold:,} trials, which are not counted"))
    return Corpus(gold.path if gold else names, tuple(references)), Corpus(names, tuple(heard)), notes


def _expected_utterance(trial: TranscribedTrial) -> Utterance | None:
    """The intents and slots that an understanding trial expects; None for other trials."""
    expected = trial.trial.expects
    if expected is None:
        return None
    return Utterance(trial.trial.id, tuple(trial.trial.reference.split()), expected.intents, slots=expected.slots)


def without_wake_phrase(words: tuple[str, ...], phrases: Sequence[str]) -> tuple[str, ...]:
    """A transcript without a leading wake phrase, which is not part of the query."""
    from harness.transcripts.words import normalise

    plain = [normalise(word, Normalisation.PLAIN) for word in words]
    for phrase in sorted(phrases, key=len, reverse=True):
        phrase_words = normalise(phrase, Normalisation.PLAIN)
        if not phrase_words:
            continue
        for end in range(1, len(words) + 1):
            # One word of the transcript may be several normalised ones, or none.
            if tuple(part for word in plain[:end] for part in word) == phrase_words:
                return words[end:]
    return words
