"""`harness understand train`, `predict` and `bench`: train, use and compare models of intents and slots."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from harness.base.foreign import plain_text
from harness.base.grouping import group_by
from harness.base.ports import Understander
from harness.base.whole_file import WholeFile, demand_folder
from harness.cli.options import (
    argument,
    flag,
    option,
    output_option,
    parse_settings,
    repeatable,
    seed_option,
    setting_option,
    target_option,
    verb,
)
from harness.cli.streams import (
    STREAM,
    drawn_progress,
    open_input,
    print_lines,
    refuse_overwriting,
    width,
    write_output,
    write_pieces,
)
from harness.model.choices import DEV_SPLITS, SPLIT, YARDSTICKS_KNOWN, CorpusFormat
from harness.model.errors import InputError, Place, PluginError
from harness.model.numbers import counted, fixed, percent
from harness.model.understanding import Corpus, Utterance

if TYPE_CHECKING:
    from harness.understanding.models.model_folder import SavesModel
    from harness.understanding.models.training import Contender, ContenderRow

Scores = Sequence[tuple[str, float]]
"""The probability of each intent."""
DEFAULT_FOR_TEXT, DEFAULT_FOR_SOUND = "crf", "ctc"
DEFAULT_CONTENDERS = "crf,transformer"
MAX_SEED = 2**31 - 1
"""The largest 32-bit integer with a sign, so that every library takes the seed."""
BATCH_UTTERANCES = 256
"""A model predicts this many at a time."""
JSONL, BIO = "jsonl", "bio"
SOUND_REFUSED = 3  # Exit status, as for any fault.


@verb("train")
def train(
    *,
    data: Path = option("Folder with the splits train and, optionally, dev.", required=True, metavar="FOLDER"),
    out: Path = output_option("Folder for the model.", metavar="MODEL", folder=True, required=True),
    understander: str = option(
        "Understander plug-in: crf or transformer; with --audio, ctc.", default=DEFAULT_FOR_TEXT, metavar="NAME"
    ),
    audio: tuple[Path, ...] = repeatable(
        "Sounds instead of texts: a CSV list with the columns id and audio.", metavar="LIST"
    ),
    settings: tuple[str, ...] = setting_option("Understander setting; repeatable."),
    seed: int = seed_option("Random seed; the same seed gives the same model.", 1, max_seed=MAX_SEED),
    form: str | None = option(
        "Format of the data.",
        "--format",
        show_default="by the files in the folder",
        type=click.Choice([BIO, JSONL], case_sensitive=False),
    ),
    force: bool = flag("Replace an existing model."),
) -> None:
    """Train an understander on the split `train` of a folder.

    If there is a split dev, the model is scored on it, and transformer uses it to decide when to stop. The model's
    folder is written completely or not at all.
    How-to: docs/how-to/train-understanders.md

    Exit status: 0 trained · 2 wrong usage or input · 3 the model cannot be written.
    """
    from harness.base.plugins import Group, names
    from harness.understanding.comparison import Metric
    from harness.understanding.models import training
    from harness.understanding.models.model_folder import demand_place, save_model

    # Wrong settings, data and targets are refused before the training, which may take hours.
    demand_folder(out)
    parsed_settings = parse_settings(settings)
    if audio:
        source = click.get_current_context().get_parameter_source("understander")
        if source is ParameterSource.DEFAULT:
            understander = DEFAULT_FOR_SOUND
        training.audio_class(understander, parsed_settings)
    else:
        if understander in names(Group.AUDIO_UNDERSTANDERS):
            raise InputError(f"{understander} learns from sound", remedy="Add --audio LIST.csv")
        training.make_understander(understander, parsed_settings, seed)
    learned, held_out, _ = _read_splits(data, form, "--format")
    sounds = _read_sound_lists(audio)
    demand_place(out, force=force)
    system: SavesModel
    if audio:
        corpora = (learned, held_out)
        system, facts = training.train_from_sound(understander, parsed_settings, seed, corpora, sounds, _print_progress)
    else:
        trained = training.train(understander, parsed_settings, seed, learned, held_out, _print_progress)
        system, facts = trained.understander, trained.facts
    save_model(understander, system, out, facts, force=force)
    figures = ", ".join(f"{Metric(metric).in_words} {percent(value, 2)}" for metric, value in facts.held_out)
    held_out_text = f"; held-out ({facts.held_out_utterances:,}): {figures}" if figures else ""
    for note in facts.notes:
        _print_progress(note)
    cost = f"{fixed(facts.cpu_s, 1)} CPU s"
    click.echo(f"{plain_text(str(out))}: {understander}, {facts.utterances:,} utterances, {cost}{held_out_text}")


def _read_sound_lists(lists: Iterable[Path]) -> dict[str, Path]:
    """The sounds of all lists, by id. Raises InputError for an id that is in two lists."""
    from harness.offline.sound_predictions import read_sound_list

    sounds: dict[str, Path] = {}
    for path in lists:
        more_sounds = read_sound_list(path)
        if shared := sounds.keys() & more_sounds.keys():
            problem = f"the sound of {min(shared)!r} is also in another list"
            raise InputError(problem, place=Place(str(path)), remedy="Keep each sound in only one list")
        sounds |= more_sounds
    return sounds


@verb("predict", sections={"From sound": "audio task settings resample"})
def predict(
    *,
    file: str = argument("[FILE|FOLDER|-]", default=STREAM),
    model: Path | None = option("Folder of a trained model.", metavar="MODEL"),
    form: CorpusFormat | None = option(
        "Format of the texts.", "--format", show_default="by suffix; for standard input txt, one text per line"
    ),
    split: str | None = option("Predict only this split of a folder.", metavar="NAME"),
    out: str = output_option("File for the result; - is standard output.", type=str, default=STREAM, metavar="FILE"),
    output_format: str = option(
        "Format of the result; bio makes a new folder.",
        "--output-format",
        former=("--as",),
        type=click.Choice([JSONL, BIO]),
        default=JSONL,
    ),
    scores: bool = flag("Add the probability of every intent; JSONL only."),
    audio: Path | None = option("Sounds instead of texts: a CSV list with the columns id and audio.", metavar="LIST"),
    task: str | None = option(
        "System for intents and slots, or a recogniser; for --audio.", "-t", "--task", metavar="TASK"
    ),
    settings: tuple[str, ...] = setting_option("System setting; the last one wins."),
    resample: bool = flag("Resample files whose sample rate differs from the system's.", show_default="reject them"),
) -> None:
    """Predict the intents and slots of texts with a trained model, or of sounds with a system.

    Texts come one per line (txt), or as JSONL, a BIO folder, trn or CSV; their annotations are ignored. From standard
    input to standard output, each line is answered before the next is read.

    For sounds, the result is JSONL with the words that were recognised, if any, and the cost in seconds. That of a
    recogniser has words only. `harness understand cascade` reads both.

    Exit status: 0 done · 2 wrong usage or input · 3 the result cannot be written, or a sound cannot be used.
    """
    from harness.understanding.files.corpus_file import read_corpus
    from harness.understanding.files.corpus_writing import write_bio
    from harness.understanding.models.model_folder import load_model

    if audio is not None:
        if model is not None or file != STREAM or scores or split or form or output_format == BIO:
            problem = (
                "--audio cannot be combined with --model, FILE, --format, --split, --scores or --output-format bio"
            )
            raise InputError(problem, remedy="Use only --audio LIST and -t TASK")
        _predict_sounds(audio, task, settings, out, resample=resample)
        return
    if model is None:
        raise InputError(
            "--model is missing", remedy="Add --model MODEL for texts, or --audio LIST and -t TASK for sounds"
        )
    if task or settings or resample:
        raise InputError(
            "-t, -s and --resample need --audio", remedy="Add --audio LIST, or remove -t, -s and --resample"
        )
    if output_format == BIO and (scores or out == STREAM):
        raise InputError(
            "--output-format bio writes a folder without scores", remedy="Add --output FOLDER, and remove --scores"
        )
    refuse_overwriting(out, [file])
    form = form or (CorpusFormat.TXT if file == STREAM else None)
    loaded = load_model(model).understander
    if file == STREAM and form is CorpusFormat.TXT and output_format == JSONL and out == STREAM and split is None:
        _answer_lines(loaded, with_scores=scores)
        return
    with open_input(file) as source:
        corpus = read_corpus(source.path, form, split, name=source.name, option="--format")
    predictions = _predictions(loaded, corpus.utterances)
    lines = (_json_line(utterance, probabilities if scores else None) for utterance, probabilities in predictions)
    if output_format == BIO:
        write_bio(Corpus(corpus.path, tuple(utterance for utterance, _ in predictions)), Path(out))
    elif out == STREAM:
        for line in lines:
            click.echo(line)
    else:
        write_pieces(Path(out), (f"{line}\n" for line in lines))
    _print_progress(f"{len(corpus.utterances):,} utterances")


def _predict_sounds(audio: Path, task: str | None, settings: Sequence[str], out: str, *, resample: bool) -> None:
    """Writes a line for each sound. Reports each refused sound, and exits with status 3 if there is one."""
    from harness.engines.offline_loading import task_of
    from harness.offline.sound_predictions import predictions, read_sound_list
    from harness.understanding.files.corpus_writing import jsonl_line

    if task is None:
        raise InputError("--audio needs -t", remedy="Add -t TASK, such as -t faster_whisper or -t ctc:MODEL")
    refuse_overwriting(out, [str(audio)])
    system = task_of(task, parse_settings(settings))
    sounds = read_sound_list(audio)
    refused_count = 0
    with drawn_progress(), ExitStack() as stack:
        target = None if out == STREAM else stack.enter_context(WholeFile(out))
        for prediction in predictions(system, sounds, resample=resample):
            if prediction.refused:
                refused_count += 1
                _print_progress(f"{prediction.utterance.id}: {prediction.refused}; no prediction")
            elif target is None:
                click.echo(jsonl_line(prediction.utterance))
            else:
                target.write((jsonl_line(prediction.utterance) + "\n").encode())
        if target is not None:
            target.keep()
    refused_text = f", {refused_count:,} without a prediction" if refused_count else ""
    _print_progress(f"{counted(len(sounds), 'sound')}{refused_text}")
    if refused_count:
        sys.exit(SOUND_REFUSED)


_CorpusResults = tuple[Path, dict[str, int], str, "Sequence[ContenderRow]"]
"""The folder of a corpus, what the JSON output says about the run, the title of the table, and its rows."""


@verb("bench")
def bench(
    *,
    data: tuple[Path, ...] = repeatable(
        "Folder with the splits train, dev (or valid) and test; repeatable.", required=True, metavar="FOLDER"
    ),
    understander: str | None = option(
        "Understander plug-ins to compare.",
        metavar="NAME,…",
        show_default=f"those of {DEFAULT_CONTENDERS} that are installed",
    ),
    settings: tuple[str, ...] = setting_option("Setting of an understander, such as crf:l1=0.1.", "NAME:SETTING=VALUE"),
    seed: int = seed_option("Seed for training.", 1, max_seed=MAX_SEED),
    published: str | None = option(
        "Add published results on this corpus.",
        "--published",
        show_default="by atis or snips in the folder's name",
        former=("--yardstick",),
        type=click.Choice([*YARDSTICKS_KNOWN, "none"]),
    ),
    folds: int | None = option(
        "Cross-validate instead: divide all splits into K parts, and score each with a model trained on the others.",
        within=(2, 100),
        metavar="K",
    ),
    json_target: str | None = target_option("--json", "Print JSON instead of text."),
) -> None:
    """Train and score several understanders on a corpus.

    Prints a row per understander: metrics with 95 % intervals, and processor seconds. Slots are conlleval chunks of
    full concepts. Published results on ATIS and SNIPS follow, marked *. With --folds, values are means over the folds,
    with standard deviations.

    Exit status: 0 done · 2 wrong usage or input · 3 a report cannot be written.
    """
    if folds is not None and published is not None:
        problem = "--published and --folds cannot be combined: published results are for the split test"
        raise InputError(problem, remedy="Choose one")
    contenders = _usable_contenders(
        _parse_contenders(understander or DEFAULT_CONTENDERS, settings), seed, all_wanted=understander is not None
    )
    if folds is None:
        results = _results_on_test(data, contenders, seed, published)
    else:
        results = _results_over_folds(data, contenders, seed, folds)
    _print_results(results, json_target)


def _results_on_test(
    data: Sequence[Path], contenders: Sequence[Contender], seed: int, published: str | None
) -> Iterator[_CorpusResults]:
    """Trains on the split train of each folder, and scores on its split test.

    InputError, before anything is trained, if a folder does not have both splits.
    """
    from harness.understanding.models.training import bench

    corpora = []
    for folder in data:
        train, held_out, test = _read_splits(folder)
        if test is None:
            raise InputError(
                "there is no split named test", place=Place(str(folder)), remedy="Rename the split to score to `test`"
            )
        corpora.append((folder, train, held_out, _with_tags(test)))
    for folder, train, held_out, tagged_test in corpora:
        rows = []
        for contender in contenders:
            _print_progress(f"{folder}: {contender.name}")
            rows.append(bench(contender, (train, held_out, tagged_test), seed, _print_progress))
        rows += _published_rows(folder, published)
        title = f"{len(tagged_test.utterances):,} test utterances, seed {seed}"
        yield folder, {"seed": seed}, title, rows


def _results_over_folds(
    data: Sequence[Path], contenders: Sequence[Contender], seed: int, folds: int
) -> Iterator[_CorpusResults]:
    """Cross-validates each contender on all splits of each folder."""
    from harness.understanding.files.corpus_file import read_corpus
    from harness.understanding.models.training import cross_validated

    for folder in data:
        corpus = _with_tags(read_corpus(folder))
        rows = []
        for contender in contenders:
            _print_progress(f"{folder}: {contender.name}")
            rows.append(cross_validated(contender, corpus, folds, seed, _print_progress))
        title = f"{len(corpus.utterances):,} utterances in {folds} folds, seed {seed}; mean ± standard deviation"
        yield folder, {"seed": seed, "folds": folds}, title, rows


def _print_results(results: Iterable[_CorpusResults], json_target: str | None) -> None:
    """Prints a table for each corpus as soon as it is done, and writes one JSON list of all at the end.

    json_target: None for no JSON; STREAM for JSON on standard output and no table.
    """
    from harness.understanding.reports.systems import contender_json, contender_lines

    documents = []
    for folder, facts, title, rows in results:
        documents.append({"data": str(folder), **facts, "rows": [contender_json(row) for row in rows]})
        if json_target != STREAM:
            click.echo(plain_text(f"{folder}: {title}"))
            print_lines(contender_lines(rows, width()))
    if json_target is not None:
        write_output(json_target, [json.dumps(documents, indent=1) + "\n"])


def _print_progress(line: str) -> None:
    """Prints to standard error, so that standard output contains only results."""
    click.echo(plain_text(line), err=True)


def _read_splits(
    folder: Path, form: str | None = None, option: str | None = None
) -> tuple[Corpus, Corpus | None, Corpus | None]:
    """The splits of a folder for training, for holding out, and for tests; the latter two are None if it has none.

    Those to learn from get tags in place of slots. InputError without a split `train`. option: the option for `form`.
    """
    from harness.understanding.files.corpus_file import read_splits

    splits = read_splits(folder, CorpusFormat(form) if form else None, option=option)
    if list(splits) == [""]:
        by_split = group_by((dict(utterance.groups).get(SPLIT, ""), utterance) for utterance in splits[""].utterances)
        if "train" in by_split:  # a file whose utterances name their splits, as `annotate export` writes it
            splits = {name: Corpus(splits[""].path, tuple(utterances)) for name, utterances in by_split.items()}
    # A file or folder that is not divided is one split with the name "".
    training = splits.get("train", splits.get(""))
    if training is None:
        problem = f"there is no split named train (splits: {', '.join(splits)})"
        raise InputError(problem, place=Place(str(folder)), remedy="Rename the split for training to `train`")
    held_out = next((splits[name] for name in DEV_SPLITS if name in splits), None)
    return _with_tags(training), None if held_out is None else _with_tags(held_out), splits.get("test")


def _with_tags(corpus: Corpus) -> Corpus:
    """The corpus with BIO tags also where it has slots. Raises InputError for slots that tags cannot represent."""
    from harness.understanding.files.corpus_writing import tags_of

    return replace(
        corpus, utterances=tuple(replace(utterance, tags=tags_of(utterance)) for utterance in corpus.utterances)
    )


def _answer_lines(model: Understander, *, with_scores: bool) -> None:
    """Answers each line of standard input before it reads the next. The line number is the id."""
    from harness.understanding.files.corpus_formats import split_words

    for line_number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if line_number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            place = Place("<stdin>", line_number)
            raise InputError("the line is not UTF-8", place=place, remedy="Convert it to UTF-8") from error
        utterance = Utterance(str(line_number), tuple(split_words(text.rstrip("\r\n"))))
        for predicted, scores in _predictions(model, (utterance,)):
            click.echo(_json_line(predicted, scores if with_scores else None))


def _predictions(model: Understander, utterances: Sequence[Utterance]) -> Iterator[tuple[Utterance, Scores]]:
    """The utterances with predicted intents and tags, in their order, and the probabilities of the intents.

    Predicts `BATCH_UTTERANCES` at a time.
    """
    remaining = iter(utterances)
    while batch := list(islice(remaining, BATCH_UTTERANCES)):
        for utterance, prediction in zip(batch, model.predict([utterance.words for utterance in batch]), strict=True):
            predicted = replace(
                utterance, intents=prediction.intents, tags=prediction.tags, slots=None, scores=(), cost=None
            )
            yield predicted, prediction.scores


def _json_line(utterance: Utterance, scores: Scores | None) -> str:
    """An utterance as a line of JSONL, with slots from its tags. scores: None leaves them out."""
    from harness.understanding.files.corpus_writing import jsonl_line, slots_of

    line = jsonl_line(replace(utterance, slots=slots_of(utterance)))
    if scores is None:
        return line
    return json.dumps({**json.loads(line), "scores": {label: round(score, 6) for label, score in scores}})


def _parse_contenders(understanders: str, assignments: Sequence[str]) -> list[Contender]:
    """The understanders `a,b`, each with its settings `a:name=value`.

    Raises InputError for a setting of another one.
    """
    from harness.understanding.models.training import Contender

    names = list(dict.fromkeys(name.strip() for name in understanders.split(",") if name.strip()))
    if not names:
        raise InputError("--understander is empty", remedy="Use crf, or crf,transformer")
    settings: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    form = f"{names[0]}:name=value"
    for qualified_name, value in parse_settings(assignments, form):
        name, colon, setting = qualified_name.partition(":")
        if not colon or name not in settings:
            remedy = f"Use -s {form} (understanders of this run: {', '.join(names)})"
            raise InputError(f"-s {qualified_name} does not name an understander of this run", remedy=remedy)
        settings[name].append((setting, value))
    return [Contender(name, tuple(pairs)) for name, pairs in settings.items()]


def _usable_contenders(contenders: Sequence[Contender], seed: int, *, all_wanted: bool) -> list[Contender]:
    """The understanders that can run, which is checked before anything is trained.

    all_wanted: whether each of them must be usable. Otherwise, one that is not is reported and left out. Raises
    PluginError if one that is needed, or each of them, cannot run.
    """
    from harness.understanding.models.training import make_understander

    usable: list[Contender] = []
    for position, contender in enumerate(contenders, 1):
        try:
            make_understander(contender.name, contender.settings, seed)
        except PluginError as error:
            none_is_left = not usable and position == len(contenders)
            if all_wanted or none_is_left:
                raise
            _print_progress(f"{contender.name} is skipped: {error.what}. {error.remedy}")
        else:
            usable.append(contender)
    return usable


def _published_rows(folder: Path, corpus: str | None) -> Iterable[ContenderRow]:
    """Published results on a corpus. corpus: its name, or "none"; None to look for one in the folder's name."""
    from harness.understanding.models.training import YARDSTICKS

    if corpus is not None:
        return YARDSTICKS.get(corpus, ())
    return next((rows for name, rows in YARDSTICKS.items() if name in folder.absolute().name.lower()), ())
