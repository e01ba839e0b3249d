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

from harness.base.foreign import plain_text
from harness.base.plain_json import picked
from harness.base.ports import Understander
from harness.base.text_table import Column, text_table
from harness.base.whole_file import WholeFile, demand_folder
from harness.cli.options import (
    argument,
    flag,
    option,
    output_option,
    repeatable,
    seed_option,
    setting_option,
    target_option,
    verb,
)
from harness.cli.streams import STREAM, drawn_progress, put, readable, refuse_overwriting, width
from harness.model.choices import DEV_SPLITS, YARDSTICKS_KNOWN, CorpusFormat
from harness.model.errors import InputError, Place, PluginError
from harness.model.frozen import frozen
from harness.model.numbers import counted, fixed, number, percent
from harness.model.understanding import Corpus, Utterance
from harness.statistics.text import percent_interval

if TYPE_CHECKING:
    from harness.understanding.models.training import Contender, ContenderRow

    _Bench = tuple[Path, dict[str, int], str, Sequence[ContenderRow]]
    """A corpus, what was asked, the title of its table, and its rows."""

Scores = Sequence[tuple[str, float]]
DEFAULT, FROM_SOUND = "crf", "ctc"
BENCHED = "crf,transformer"
MIN_WIDTH = 140
"""Least width of the bench table, so that no name is cut."""
MAX_SEED = 2**31 - 1
AT_ONCE = 256
JSONL, BIO = "jsonl", "bio"
SOUND_REFUSED = 3  # Exit status, as for any fault.
FOLDER = click.Path(path_type=Path)


@verb("train")
def train(
    *,
    data: Path = option("Folder with the splits train and, optionally, dev.", required=True, metavar="FOLDER"),
    out: Path = output_option("Folder for the model.", metavar="MODEL", folder=True, required=True),
    understander: str = option("Plug-in: crf or transformer; with --audio, ctc.", default=DEFAULT, metavar="NAME"),
    audio: tuple[Path, ...] = repeatable(
        "Sounds instead of texts: a CSV list with the columns id and audio.", metavar="LIST"
    ),
    settings: tuple[str, ...] = setting_option("Understander setting; repeatable."),
    seed: int = seed_option("Random seed; the same seed gives the same model.", 1, most=MAX_SEED),
    form: str | None = option(
        "Format of the data.",
        "--format",
        show_default="by the files in the folder",
        type=click.Choice([BIO, JSONL], case_sensitive=False),
    ),
    force: bool = flag("Replace an existing model."),
) -> None:
    """Train an understander on the split train of a folder.

    If there is a split dev, the model is scored on it, and transformer ends its training by it. The model's
    folder is written completely or not at all.
    How-to: docs/how-to/train-understanders.md

    Exit status: 0 trained · 2 wrong usage or input · 3 the model cannot be written.
    """
    from harness.base.plugins import Group, names
    from harness.understanding.models.model_folder import demand_place, save_model
    from harness.understanding.models.training import make_understander
    from harness.understanding.models.training import train as train_one

    demand_folder(out)
    chosen = _settings_of(settings)
    if not audio:
        if understander in names(Group.AUDIO_UNDERSTANDERS):
            raise InputError(f"{understander} learns from sound", remedy="Give --audio LIST.csv")
        make_understander(understander, chosen, seed)  # refuse wrong settings before reading any data
        splits = _splits_of(data, form)
        demand_place(out, force=force)
        trained = train_one(understander, chosen, seed, splits.train, splits.held_out, _print_progress)
        save_model(understander, trained.understander, out, trained.facts, force=force)
        facts = trained.facts
    else:
        from harness.offline.sound_predictions import read_sound_list
        from harness.understanding.models.training import audio_class, train_from_sound

        source = click.get_current_context().get_parameter_source("understander")
        name = FROM_SOUND if source is click.core.ParameterSource.DEFAULT else understander
        audio_class(name, chosen)
        splits, sounds = _splits_of(data, form), dict[str, Path]()
        for sound_list in audio:
            read = read_sound_list(sound_list)
            if shared := sounds.keys() & read.keys():
                problem = f"the sound of {min(shared)!r} is also in another list"
                raise InputError(problem, place=Place(str(sound_list)), remedy="Name it in only one list")
            sounds |= read
        demand_place(out, force=force)
        system, facts = train_from_sound(name, chosen, seed, (splits.train, splits.held_out), sounds, _print_progress)
        save_model(name, system, out, facts, force=force)
        understander = name
    from harness.understanding.comparison import Metric

    figures = ", ".join(f"{Metric(name).in_words} {percent(value, 2)}" for name, value in facts.held_out)
    held_out_text = f"; held-out ({facts.held_out_utterances:,}): {figures}" if figures else ""
    for note in facts.notes:
        _print_progress(note)
    shown = plain_text(str(out))
    click.echo(
        f"{shown}: {understander}, {facts.utterances:,} utterances, {fixed(facts.cpu_s, 1)} CPU s{held_out_text}"
    )


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
    written: str = option(
        "Format of the result; bio makes a new folder.",
        "--output-format",
        former=("--as",),
        type=click.Choice([JSONL, BIO]),
        default=JSONL,
    ),
    scores: bool = flag("Add the probability of every intent; JSONL only."),
    audio: Path | None = option("Sounds instead of texts: a CSV list with the columns id and audio.", metavar="LIST"),
    task: str | None = option(
        "System for intents and slots, or recogniser, for --audio.", "-t", "--task", metavar="TASK"
    ),
    settings: tuple[str, ...] = setting_option("System setting; the last one wins."),
    resample: bool = flag("Resample files with another sample rate.", show_default="reject them"),
) -> None:
    """Predict the intents and slots of texts with a trained model, or of sounds with a system.

    Texts come one per line (txt), or as JSONL, a BIO folder, trn or CSV; their annotations are ignored. From standard
    input to standard output, each line is answered before the next is read.

    Sounds give JSONL with the words that were recognised, if any, and the cost in seconds. A recogniser gives words
    only. Both are input of `harness understand cascade`.

    Exit status: 0 done · 2 wrong usage or input · 3 the result cannot be written, or a sound cannot be used.
    """
    from harness.understanding.files.corpus_file import read_corpus
    from harness.understanding.models.model_folder import load_model

    if audio is not None:
        if model is not None or file != STREAM or scores or split or form or written == BIO:
            problem = (
                "--audio cannot be combined with --model, FILE, --format, --split, --scores or --output-format bio"
            )
            raise InputError(problem, remedy="Give --audio LIST and -t TASK")
        _predict_sounds(audio, task, settings, out, resample=resample)
        return
    if model is None:
        raise InputError(
            "--model is missing", remedy="Give --model MODEL for texts, or --audio LIST and -t TASK for sounds"
        )
    if task or settings or resample:
        raise InputError("-t, -s and --resample need --audio", remedy="Give --audio LIST, or omit them")
    if written == BIO and (scores or out == STREAM):
        raise InputError(
            "--output-format bio writes a folder without scores", remedy="Give --output FOLDER, and omit --scores"
        )
    refuse_overwriting(out, [file])
    form = form or (CorpusFormat.TXT if file == STREAM else None)
    loaded = load_model(model).understander
    if file == STREAM and form is CorpusFormat.TXT and written == JSONL and out == STREAM and split is None:
        _answer_lines(loaded, scores)
        return
    with readable(file) as source:
        corpus = read_corpus(source.path, form, split, name=source.name)
    if written == BIO:
        from harness.understanding.files.corpus_writing import write_bio

        understood = tuple(utterance for utterance, _ in _understood(loaded, corpus.utterances))
        write_bio(Corpus(corpus.path, understood), Path(out))
    elif out == STREAM:
        for utterance, pairs in _understood(loaded, corpus.utterances):
            click.echo(_line(utterance, pairs if scores else None))
    else:
        with WholeFile(out) as target:
            for utterance, pairs in _understood(loaded, corpus.utterances):
                target.write((_line(utterance, pairs if scores else None) + "\n").encode())
            target.keep()
    _print_progress(f"{len(corpus.utterances):,} utterances")


def _predict_sounds(audio: Path, task: str | None, settings: Sequence[str], out: str, *, resample: bool) -> None:
    """Writes a line for each sound. Refused sounds are named, and end in status 3."""
    from harness.engines.offline_loading import task_of
    from harness.offline.sound_predictions import predictions, read_sound_list
    from harness.understanding.files.corpus_writing import jsonl_line

    if task is None:
        raise InputError("--audio needs -t", remedy="Give -t TASK, such as -t faster_whisper or -t ctc:MODEL")
    refuse_overwriting(out, [str(audio)])
    system, sounds = task_of(task, _settings_of(settings)), read_sound_list(audio)
    refused = 0
    with drawn_progress(), ExitStack() as stack:
        target = None if out == STREAM else stack.enter_context(WholeFile(out))
        for prediction in predictions(system, sounds, resample=resample):
            if prediction.refused:
                refused += 1
                _print_progress(f"{prediction.utterance.id}: {prediction.refused}; no prediction")
            elif target is None:
                click.echo(jsonl_line(prediction.utterance))
            else:
                target.write((jsonl_line(prediction.utterance) + "\n").encode())
        if target is not None:
            target.keep()
    _print_progress(
        f"{counted(len(sounds), 'sound')}, {refused:,} without a prediction"
        if refused
        else counted(len(sounds), "sound")
    )
    if refused:
        sys.exit(SOUND_REFUSED)


@verb("bench")
def bench(
    *,
    data: tuple[Path, ...] = repeatable(
        "Folder with the splits train, dev (or valid) and test; repeatable.", required=True, metavar="FOLDER"
    ),
    understander: str | None = option(
        "Plug-ins.", metavar="NAME,…", show_default=f"{BENCHED}, those that are installed"
    ),
    settings: tuple[str, ...] = setting_option("Setting of an understander, such as crf:l1=0.1.", "NAME:SETTING=VALUE"),
    seed: int = seed_option("Seed for training.", 1, most=MAX_SEED),
    yardstick: str | None = option(
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
    json_target: str | None = target_option("--json", "Print JSON and no table."),
) -> None:
    """Train and score several understanders on a corpus.

    Prints a row per understander: metrics with 95 % intervals, and processor seconds. Slots are conlleval chunks of
    full concepts. Published results on ATIS and SNIPS follow, marked *. With --folds, values are means over folds, with
    their standard deviations.

    Exit status: 0 done · 2 wrong usage or input · 3 a report cannot be written.
    """
    from harness.understanding.models.training import bench as bench_one

    if folds is not None and yardstick is not None:
        raise InputError("--published results are of the split test, not of --folds", remedy="Omit one of them")
    contenders = _ready(_contenders(understander or BENCHED, settings), seed, all_wanted=understander is not None)
    if folds is not None:
        _print_benches(_cross_validated(data, contenders, seed, folds), json_target)
        return
    corpora = [(folder, _splits_of(folder)) for folder in data]
    for folder, splits in corpora:
        if splits.test is None:
            raise InputError(
                "there is no split test", place=Place(str(folder)), remedy="Name the split to score `test`"
            )

    def benches() -> Iterator[_Bench]:
        for folder, splits in corpora:
            assert splits.test is not None
            rows = []
            for contender in contenders:
                _print_progress(f"{folder}: {contender.name}")
                rows.append(bench_one(contender, (splits.train, splits.held_out, splits.test), seed, _print_progress))
            rows += _yardsticks(folder, yardstick)
            yield folder, {"seed": seed}, f"{len(splits.test.utterances):,} test utterances, seed {seed}", rows

    _print_benches(benches(), json_target)


def _cross_validated(data: Sequence[Path], contenders: Sequence[Contender], seed: int, folds: int) -> Iterator[_Bench]:
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


def _print_benches(benches: Iterable[_Bench], json_target: str | None) -> None:
    """Prints a table for each corpus as soon as it is done, or writes one JSON list of all at the end."""
    documents = []
    for folder, facts, title, rows in benches:
        documents.append({"data": str(folder), **facts, "rows": [_as_json(row) for row in rows]})
        if json_target != STREAM:
            click.echo(plain_text(f"{folder}: {title}"))
            click.echo("\n".join(_table(rows)))
    if json_target is not None:
        put(json_target, [json.dumps(documents, indent=1) + "\n"])


@frozen
class _Splits:
    """The splits of a data folder. held_out, test: None when the folder has none."""

    train: Corpus
    held_out: Corpus | None
    test: Corpus | None


def _print_progress(line: str) -> None:
    """Prints a line of progress."""
    click.echo(plain_text(line), err=True)


def _settings_of(assignments: Sequence[str]) -> list[tuple[str, str]]:
    """The settings written as `name=value`; InputError for other texts."""
    settings = []
    for text in assignments:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise InputError(f"-s {text}: the value is missing", remedy="Write -s name=value")
        settings.append((name.strip(), value.strip()))
    return settings


def _splits_of(folder: Path, form: str | None = None) -> _Splits:
    """The splits of a folder. Slots with places become tags. InputError without a split `train`."""
    from harness.model.choices import CorpusFormat
    from harness.understanding.files.corpus_file import read_splits

    splits = read_splits(folder, CorpusFormat(form) if form else None)
    training = splits.get("train", splits.get(""))
    if training is None:
        problem = f"there is no split train (splits: {', '.join(splits)})"
        raise InputError(problem, place=Place(str(folder)), remedy="Name the split for training `train`")
    held_out = next((splits[name] for name in DEV_SPLITS if name in splits), None)
    return _Splits(_with_tags(training), held_out and _with_tags(held_out), splits.get("test"))


def _with_tags(corpus: Corpus) -> Corpus:
    from harness.understanding.files.corpus_writing import tags_of

    return replace(
        corpus, utterances=tuple(replace(utterance, tags=tags_of(utterance)) for utterance in corpus.utterances)
    )


def _answer_lines(model: Understander, scores: bool) -> None:
    """Answers each line of standard input; the line number is the id."""
    from harness.understanding.files.corpus_formats import split_words

    for line_number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if line_number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            place = Place("<stdin>", line_number)
            raise InputError("the line is not UTF-8", place=place, remedy="Convert it to UTF-8") from error
        utterance = Utterance(str(line_number), tuple(split_words(text.rstrip("\r\n"))))
        for answer, pairs in _understood(model, (utterance,)):
            click.echo(_line(answer, pairs if scores else None))


def _understood(model: Understander, utterances: Sequence[Utterance]) -> Iterator[tuple[Utterance, Scores]]:
    """The utterances with the model's predictions, in their order; the model gets `AT_ONCE` at a time."""
    remaining = iter(utterances)
    while part := list(islice(remaining, AT_ONCE)):
        for utterance, prediction in zip(part, model.predict([utterance.words for utterance in part]), strict=True):
            answer = replace(
                utterance, intents=prediction.intents, tags=prediction.tags, slots=None, scores=(), cost=None
            )
            yield answer, prediction.scores


def _line(utterance: Utterance, scores: Scores | None) -> str:
    from harness.understanding.files.corpus_writing import jsonl_line, slots_of

    line = jsonl_line(replace(utterance, slots=slots_of(utterance)))
    if scores is None:
        return line
    return json.dumps({**json.loads(line), "scores": {label: round(score, 6) for label, score in scores}})


def _contenders(names: str, settings: Sequence[str]) -> list[Contender]:
    """Understanders with their settings; InputError for a setting of another one."""
    from harness.understanding.models.training import Contender

    contenders = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not contenders:
        raise InputError("--understander is empty", remedy="Write crf, or crf,transformer")
    settings_by_name: dict[str, list[tuple[str, str]]] = {name: [] for name in contenders}
    for name, value in _settings_of(settings):
        contender, sign, setting = name.partition(":")
        if not sign or contender not in settings_by_name:
            remedy = f"Write -s {contenders[0]}:name=value (understanders of this run: {', '.join(contenders)})"
            raise InputError(f"-s {name}: this does not name an understander of this run", remedy=remedy)
        settings_by_name[contender].append((setting, value))
    return [Contender(name, tuple(pairs)) for name, pairs in settings_by_name.items()]


def _ready(contenders: Sequence[Contender], seed: int, *, all_wanted: bool) -> list[Contender]:
    """The understanders that can run, checked before anything is trained.

    all_wanted: raise PluginError for one that cannot. Otherwise report it, and raise PluginError when none can.
    """

    from harness.understanding.models.training import make_understander

    usable: list[Contender] = []
    for contender in contenders:
        try:
            make_understander(contender.name, contender.settings, seed)
        except PluginError as error:
            if all_wanted or (contender is contenders[-1] and not usable):
                raise
            _print_progress(f"{contender.name} is skipped: {error.what}. {error.remedy}")
        else:
            usable.append(contender)
    return usable


def _yardsticks(folder: Path, corpus: str | None) -> Iterable[ContenderRow]:
    from harness.understanding.models.training import YARDSTICKS

    if corpus is not None:
        return YARDSTICKS.get(corpus, ())
    return next((rows for name, rows in YARDSTICKS.items() if name in folder.absolute().name.lower()), ())


def _table(rows: Sequence[ContenderRow]) -> Iterator[str]:
    """Lines of the table: each metric, with its interval below it."""
    from harness.understanding.models.training import FIGURES

    cells: list[tuple[str, ...]] = []
    for row in rows:
        spreads = row.deviations or (None,) * len(row.figures)
        texts_by_figure = {
            figure: (percent(value, 2), percent_interval(interval, 1) if spread is None else f"± {percent(spread, 2)}")
            for (figure, value, interval), spread in zip(row.figures, spreads, strict=True)
        }
        values = [texts_by_figure.get(figure, (percent(None), "")) for figure in FIGURES]
        name = f"{row.name} *" if row.from_elsewhere else row.name
        cells.append((name, *(value for value, _ in values), number(row.train_cpu_s), number(row.predict_cpu_s)))
        if not row.from_elsewhere:
            cells.append(("", *(interval for _, interval in values), "", ""))
    heads = ("understander", "intent accuracy", "EMR", "slot F1", "F1mh", "CER", "SFA", "CPU s", "CPU s / 1,000")
    yield from text_table(list(map(Column, heads)), cells, max(width(), MIN_WIDTH))
    if any(row.from_elsewhere for row in rows):
        yield "* published result on the corpus's own splits, not measured in this run"


def _as_json(row: ContenderRow) -> dict[str, object]:
    figures = {
        figure.value: {"value": value, "interval_95": None if interval is None else list(interval)}
        for figure, value, interval in row.figures
    }
    for (figure, _, _), deviation in zip(row.figures, row.deviations, strict=False):
        figures[figure.value]["sd"] = deviation
    return {
        "understander": row.name, **picked(row, "from_elsewhere", "utterances"),
        "figures": figures, "train_cpu_s": row.train_cpu_s, "predict_cpu_s_per_1000": row.predict_cpu_s,
    }  # fmt: skip
