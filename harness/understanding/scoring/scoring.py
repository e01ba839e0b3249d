"""Predicted frames against gold ones: who is paired with whom, and the counts, of all and by groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.model.understanding import Corpus, Utterance
from harness.understanding.arithmetic.counts import FrameCounts, total
from harness.understanding.arithmetic.frame import count_frame
from harness.understanding.arithmetic.rule import Rule, Values

Groups = tuple[tuple[str, tuple[tuple[str, FrameCounts], ...]], ...]


@dataclass(frozen=True, slots=True)
class ScoredFrame:
    """An utterance. predicted: with nothing in it where the predictions have none of its id (missing)."""

    gold: Utterance
    predicted: Utterance
    missing: bool
    counts: FrameCounts

    @property
    def id(self) -> str:
        return self.gold.id


@dataclass(frozen=True, slots=True)
class Scoring:
    """gold, predicted: paths. frames: of the utterances that count, in the order of gold.

    groups: column → label → counts, columns as asked for, labels sorted. missing: ids of gold without prediction,
    counted as predicted nothing. unknown: ids of predictions without gold, which count nowhere. unannotated: ids of
    gold without intents and slots, which count nowhere. intents_told, slots_told: whether any prediction has some or
    says that there are none; where none does, those figures are n/a, and not all wrong. values_told: whether both sides
    give values; where not, there are no figures with them.
    """

    gold: str
    predicted: str
    rule: Rule
    frames: tuple[ScoredFrame, ...]
    totals: FrameCounts
    groups: Groups
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    unannotated: tuple[str, ...]
    intents_told: bool
    slots_told: bool
    values_told: bool


def score(gold: Corpus, predicted: Corpus, rule: Rule, by: Sequence[str] | None = None) -> Scoring:
    """Scores predictions, paired by id. by: columns of gold's groups; None is all of them."""
    said = {one.id: one for one in predicted.utterances}
    intents_told = any(one.intents is not None for one in predicted.utterances)
    slots_told = any(one.tags is not None or one.slots is not None for one in predicted.utterances)
    values_told = _gives_values(gold, rule) and (not said or _gives_values(predicted, rule))
    counted = rule if values_told else replace(rule, values=Values.NONE)
    frames, missing, unannotated = [], [], []
    for one in gold.utterances:
        if not is_annotated(one):
            unannotated.append(one.id)
            continue
        heard = said.get(one.id)
        if heard is None:
            missing.append(one.id)
        frames.append(_scored(one, heard, counted, intents=intents_told or not said, slots=slots_told or not said))
    known = {one.id for one in gold.utterances}
    return Scoring(
        gold.path,
        predicted.path,
        rule,
        tuple(frames),
        total(frame.counts for frame in frames),
        _groups(frames, by),
        tuple(missing),
        tuple(one.id for one in predicted.utterances if one.id not in known),
        tuple(unannotated),
        intents_told,
        slots_told,
        values_told,
    )


def is_annotated(one: Utterance) -> bool:
    """Whether an utterance says anything of its intents or slots."""
    return one.intents is not None or one.tags is not None or one.slots is not None


def _gives_values(corpus: Corpus, rule: Rule) -> bool:
    """Whether any slot has one; words of tags are values even where there is no slot."""
    if rule.values is Values.NONE:
        return False
    if rule.spoken and any(one.tags is not None and one.slots is None for one in corpus.utterances):
        return True
    return any(slot.value is not None for one in corpus.utterances for slot in one.slots or ())


def _scored(gold: Utterance, predicted: Utterance | None, rule: Rule, *, intents: bool, slots: bool) -> ScoredFrame:
    of = gold
    if not intents:
        of = replace(of, intents=None)
    if not slots:
        of = replace(of, tags=None, slots=None)
    heard = predicted or Utterance(gold.id)
    return ScoredFrame(gold, heard, predicted is None, count_frame(of, heard, rule))


def _groups(frames: Sequence[ScoredFrame], by: Sequence[str] | None) -> Groups:
    columns = by if by is not None else dict.fromkeys(name for frame in frames for name, _ in frame.gold.groups)
    found = []
    for column in columns:
        labels: defaultdict[str, list[FrameCounts]] = defaultdict(list)
        for frame in frames:
            labels[dict(frame.gold.groups).get(column, "")].append(frame.counts)
        found.append((column, tuple((label, total(counts)) for label, counts in sorted(labels.items()))))
    return tuple(found)
