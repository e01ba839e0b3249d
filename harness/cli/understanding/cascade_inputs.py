"""What a cascade is made of: gold, transcripts, and a model or its predictions on both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.foreign import plain_text
from harness.cli.read_once import STDIN, readable
from harness.model.choices import Which
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus

if TYPE_CHECKING:
    from harness.understanding.cascade import Heard

MARKS = '.,!?;:…"«»“”„¿¡()[]'


class Reads(StrEnum):
    """What a model is given of transcripts. AS_GOLD: without capitals, or marks at words, where gold has none."""

    AS_GOLD = "as-gold"
    HEARD = "heard"


@dataclass(frozen=True, slots=True)
class Sources:
    """What the command line names."""

    sessions: tuple[str, ...]
    gold: str | None
    split: str | None
    heard: str | None
    model: Path | None
    pred_reference: str | None
    pred_heard: str | None
    attempt: Which

    @property
    def files(self) -> list[str]:
        return [one for one in (self.gold, self.heard, self.pred_reference, self.pred_heard) if one]

    def check(self) -> None:
        """InputError for what does not go together."""
        if bool(self.sessions) == bool(self.heard):
            what = "transcripts come from a session or from --heard" + (", not both" if self.heard else "")
            raise InputError(what, remedy="Name a session, or give --heard FILE")
        if self.heard and not self.gold:
            raise InputError("there is no gold", remedy="Give --gold FILE|FOLDER: annotated utterances, with text")
        if self.model is None and not (self.pred_reference and self.pred_heard):
            remedy = "Give --model FOLDER, or --pred-reference and --pred-heard"
            raise InputError("there is nothing that understands", remedy=remedy)
        if self.model is not None and (self.pred_reference or self.pred_heard):
            raise InputError("a model makes its own predictions", remedy="Give --model, or predictions, not both")
        if self.files.count(STDIN) > 1:
            raise InputError("only one file can come from standard input", remedy="Name the others")


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that is scored. placed: words of gold and of predictions on it are the same. notes: lines for people."""

    pairs: Heard
    on_reference: Corpus
    on_transcript: Corpus
    ordered: bool
    placed: bool
    notes: tuple[str, ...]


def inputs(sources: Sources, reads: Reads, stack: ExitStack, *, missing_is_silence: bool) -> Inputs:
    """Everything read, and a model's predictions made; InputError for files that do not go together."""
    from harness.understanding.cascade import Understand, joined, understood

    gold = _gold(sources, stack) if sources.gold else None
    if sources.sessions:
        from harness.cli.understanding.cascade_sessions import session_texts  # here, since it takes long to import

        told = session_texts(sources.sessions, sources.attempt, gold)
        gold, heard, notes = told.gold, told.heard, list(told.notes)
    else:
        heard, notes = _read(sources.heard or "", stack), []
    if gold is None:
        raise InputError("there is no gold", remedy="Give --gold FILE|FOLDER: annotated utterances, with text")
    pairs = joined(gold, heard, missing_is_silence=missing_is_silence)
    _demand_pairs(gold, heard, pairs)
    listed_only = all(one.tags is None for one in pairs.gold.utterances)
    ordered = not (sources.sessions and listed_only)
    if sources.model is None:
        predictions = (_read(one or "", stack) for one in (sources.pred_reference, sources.pred_heard))
        before, after = (_known(one, pairs) for one in predictions)
        return Inputs(pairs, before, after, ordered, not listed_only, tuple(notes))
    from harness.understanding.models.model_folder import load_model  # here, since a model takes long to import

    model = load_model(sources.model)
    notes.append(f"model         {plain_text(str(sources.model), 200)} ({model.name})")
    given, how = _given(pairs, reads)
    notes.append(f"model reads   {how}")
    understand: Understand = model.understander.predict
    before, after = (understood(one, understand, str(sources.model)) for one in (pairs.gold, given))
    return Inputs(pairs, before, after, ordered, not listed_only, tuple(notes))


def _gold(sources: Sources, stack: ExitStack) -> Corpus:
    from harness.cli.understanding.scored_files import read_gold

    gold, _ = read_gold(stack.enter_context(readable(sources.gold or "")), None, sources.split)
    if not any(one.words for one in gold.utterances):
        remedy = "Name a BIO folder or JSONL; a CSV of intents has no text"
        raise InputError("gold has no text, so nothing can be found in it", place=Place(gold.path), remedy=remedy)
    return gold


def _read(named: str, stack: ExitStack) -> Corpus:
    from harness.understanding.files.corpus_file import read_corpus

    file = stack.enter_context(readable(named))
    return read_corpus(file.path, name=file.name)


def _known(predicted: Corpus, pairs: Heard) -> Corpus:
    """Predictions for what is compared; InputError where there is none of it."""
    ids = {one.id for one in pairs.gold.utterances}
    kept = tuple(one for one in predicted.utterances if one.id in ids)
    if not kept:
        what = "no id of these predictions is one of gold that has a transcript"
        raise InputError(what, place=Place(predicted.path), remedy="Write ids as gold does")
    return Corpus(predicted.path, kept)


def _demand_pairs(gold: Corpus, heard: Corpus, pairs: Heard) -> None:
    if len(pairs.without_transcript) < len(gold.utterances) - len(pairs.unannotated):
        return
    first = heard.utterances[0].id if heard.utterances else ""
    like = gold.utterances[0].id if gold.utterances else ""
    what = f"no transcript is of an annotated utterance: the first is {plain_text(first, 60)!r}"
    remedy = f"Write ids as {plain_text(gold.path, 200)} does, such as {plain_text(like, 60)!r}"
    raise InputError(what, place=Place(heard.path), remedy=remedy)


def _given(pairs: Heard, reads: Reads) -> tuple[Corpus, str]:
    """The transcripts as a model is given them, and how that is, in words."""
    if reads is Reads.HEARD:
        return pairs.heard, "transcripts as heard"
    words = [word for one in pairs.gold.utterances for word in one.words]
    lower = not any(word != word.lower() for word in words)
    bare = not any(word.strip(MARKS) != word for word in words)
    if not (lower or bare):
        return pairs.heard, "transcripts as heard: gold has capitals and marks as well"
    said = tuple(replace(one, words=_written(one.words, lower=lower, bare=bare)) for one in pairs.heard.utterances)
    how = " and ".join(["without capitals"] * lower + ["without marks at words"] * bare)
    return Corpus(pairs.heard.path, said), f"transcripts {how}, as gold is written"


def _written(words: Sequence[str], *, lower: bool, bare: bool) -> tuple[str, ...]:
    found = (word.strip(MARKS) if bare else word for word in words)
    return tuple(word.lower() if lower else word for word in found if word)
