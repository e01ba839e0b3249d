"""Plays the sounds of a corpus to a system of frames or a recogniser of words: a prediction for each, with its cost.

Each sound is played as in an evaluation (`FilePlayer`), so that the same files are refused for the same reasons.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from harness.base.child_process import descendants_cpu_s
from harness.base.foreign import plain_text
from harness.base.progress import tracked
from harness.base.text_file import as_text, without_mark
from harness.engines.offline_loading import load_engine
from harness.model.errors import InputError, InputProblems, Place, nearest
from harness.model.frozen import frozen
from harness.model.offline import EngineKind, Evaluation, FileOutcome, ListedFile, ListKind, Task
from harness.model.understanding import SoundCost, Utterance
from harness.offline.one_file import FilePlayer
from harness.transcripts.files.lists import read_groups

AUDIO = "audio"
"""The column of a list that names the files."""


@frozen
class SoundPrediction:
    """What was understood of a sound. refused: why the sound could not be used, with an empty utterance; "" if it could
    be used."""

    utterance: Utterance
    refused: str = ""


def read_sound_list(path: Path) -> dict[str, Path]:
    """The files of a list, by id: CSV with the columns id and audio. Other columns are groups, such as the voice.

    Relative names are looked up in the current folder, then in the list's. Raises InputProblems with each missing file.
    """
    groups = read_groups(path, case_counts=True)
    columns = {grouping.name: grouping.labels for grouping in groups.groupings}
    if AUDIO not in columns:
        remedy = nearest(AUDIO, sorted(columns), listed="Columns")
        raise InputError(f"the header has no column {AUDIO}", place=Place(str(path), 1), remedy=plain_text(remedy, 300))
    sounds: dict[str, Path] = {}
    missing: list[InputError] = []
    for utterance_id, line, name in zip(groups.ids, groups.lines, columns[AUDIO], strict=True):
        candidates = (Path(name), path.parent / name) if name else ()
        # Unlike that of Path, this isfile answers no for a name that is too long.
        file = next((candidate for candidate in candidates if os.path.isfile(candidate)), None)
        if file is None:
            problem = f"there is no file {plain_text(name, 200)!r}" if name else "the row does not name an audio file"
            missing.append(
                InputError(problem, place=Place(str(path), line), remedy="Correct the name, or remove the row")
            )
        else:
            sounds[without_mark(utterance_id)] = file
    if missing:
        raise InputProblems(missing)
    return sounds


def predictions(task: Task, sounds: dict[str, Path], *, resample: bool) -> Iterator[SoundPrediction]:
    """Loads the engine and yields a prediction for each sound, in their order.

    Raises InputError for a wake engine; raises the engine's own error if it does not load.
    """
    with closing(load_engine(task)) as engine:
        if engine.facts.kind is EngineKind.WAKE:
            raise InputError(
                f"{task.name} is a wake engine, which does not recognise sentences",
                remedy="Use a system of intents and slots, or a recogniser; `harness evaluate` measures wake engines",
            )
        player = FilePlayer(engine, Evaluation(task, resample))
        for number, (utterance_id, path) in enumerate(tracked(sounds.items(), "Listening to sounds")):
            # Files of this kind are played even if they are silent.
            file = ListedFile(ListKind.OOV, number, str(path), str(path.absolute()))
            program_s, began_s = descendants_cpu_s(), time.perf_counter()
            outcome = player.play(file)
            elapsed_s = time.perf_counter() - began_s
            cpu_s = outcome.cpu_s + max(0.0, descendants_cpu_s() - program_s)
            yield _prediction_of(utterance_id, outcome, engine.facts.kind, cpu_s, elapsed_s)


def _prediction_of(
    utterance_id: str, outcome: FileOutcome, kind: EngineKind, cpu_s: float, elapsed_s: float
) -> SoundPrediction:
    """The outcome of a sound as a prediction with its cost."""
    if outcome.rejected is not None:
        return SoundPrediction(
            Utterance(utterance_id), f"{outcome.rejected}: {outcome.detail or outcome.error}".rstrip(": ")
        )
    answer = outcome.said
    # A recogniser may break a character. Its word is wrong, but the file of predictions must stay readable.
    words = () if answer is None else tuple(as_text(word) for word in answer.text.split())
    cost = SoundCost(round(cpu_s, 4), round(elapsed_s, 4), outcome.seconds)
    if kind is not EngineKind.FRAME:
        return SoundPrediction(Utterance(utterance_id, words, cost=cost))
    if answer is None:  # it understood nothing: an utterance without intents and slots, not with unknown ones
        return SoundPrediction(Utterance(utterance_id, words, (), slots=(), cost=cost))
    return SoundPrediction(Utterance(utterance_id, words, answer.intents or (), slots=answer.slots or (), cost=cost))
