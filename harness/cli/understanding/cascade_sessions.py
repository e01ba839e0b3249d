"""What devices of sessions heard, with gold for it, for `harness understanding cascade SESSION…`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.cli.sessions import figures_of, session_folder
from harness.model.choices import Grouping, Which
from harness.model.errors import InputError
from harness.model.transcript import Normalisation
from harness.model.understanding import Corpus, Utterance
from harness.session.figures.trials import HeardTrial, Said, group_of, heard_in
from harness.transcripts.words import normalise

COLUMNS = (Grouping.DEVICE, Grouping.QUERY_CLASS, Grouping.CONDITION)


@dataclass(frozen=True, slots=True)
class SessionTexts:
    """gold: an utterance for each trial, with groups; heard: of those that have a transcript. notes: for people."""

    gold: Corpus
    heard: Corpus
    notes: tuple[str, ...]


def session_texts(named: Sequence[str], attempt: Which, gold: Corpus | None) -> SessionTexts:
    """Of each trial its transcript, and gold by the id of its query, or what the trial itself expects to be understood.

    InputError where no trial has gold.
    """
    folders = [session_folder(one) for one in named]
    trials = list(_trials(folders))
    by_query = {one.id: one for one in gold.utterances} if gold else {}
    of, heard, foreign = [], [], 0
    for prefix, one in trials:
        id_ = f"{prefix}{one.trial.id}/{one.device}"
        meant = by_query.get(one.trial.query_id) if gold else _expected(one)
        if meant is None:
            foreign += 1
            continue
        groups = tuple((column.value, label) for column in COLUMNS if (label := group_of(one, column)))
        of.append(replace(meant, id=id_, groups=(*meant.groups, *groups)))
        said = _said(one, attempt)
        if said is not None and said.heard is not None:
            heard.append(Utterance(id_, without_wake_phrase(tuple(said.heard.split()), one.trial.wake_phrases)))
    names = " ".join(str(one) for one in folders)
    if not of:
        remedy = "Name annotated utterances whose ids are those of the scenario's queries: --gold FILE"
        raise InputError(f"no trial of {names} has gold", remedy=remedy)
    notes = [f"attempt       {attempt} of each trial"]
    if foreign:
        notes.append(f"no gold       {foreign:,} trials, which count nowhere")
    return SessionTexts(Corpus(gold.path if gold else names, tuple(of)), Corpus(names, tuple(heard)), tuple(notes))


def _trials(folders: Sequence[Path]) -> Iterator[tuple[str, HeardTrial]]:
    for folder in folders:
        progress, wake = figures_of(folder)
        prefix = f"{folder.name}/" if len(folders) > 1 else ""
        yield from ((prefix, one) for one in heard_in(progress.trials, wake))


def _said(one: HeardTrial, attempt: Which) -> Said | None:
    return one.first if attempt is Which.FIRST else one.final


def _expected(one: HeardTrial) -> Utterance | None:
    """What a trial expects to be understood, where it is one of understanding."""
    expected = one.trial.expects
    if expected is None:
        return None
    return Utterance(one.trial.id, tuple(one.trial.reference.split()), expected.intents, slots=expected.slots)


def without_wake_phrase(words: tuple[str, ...], phrases: Sequence[str]) -> tuple[str, ...]:
    """What was heard, without a wake phrase at its front, which is no part of the query."""
    plain = [normalise(word, Normalisation.PLAIN) for word in words]
    for phrase in sorted(phrases, key=len, reverse=True):
        wanted = normalise(phrase, Normalisation.PLAIN)
        for end in range(1, len(words) + 1) if wanted else ():
            if tuple(part for word in plain[:end] for part in word) == wanted:
                return words[end:]
    return words
