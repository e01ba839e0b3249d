"""The effect of recognition errors: one model's frames on the references, and on the transcripts.

Both are scored against the same gold, on the utterances that have a transcript. Places of slots are ignored, since a
transcript has other words. Source: the MEDIA paper, 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from harness.model.frozen import frozen
from harness.model.transcript import Transcripts, WordCounts
from harness.model.understanding import Corpus, Prediction, Utterance
from harness.statistics.ratios import MetricDifference
from harness.transcripts.alignment import count
from harness.transcripts.scoring import Scoring as WordScoring
from harness.transcripts.scoring import score as score_words
from harness.transcripts.words import WordRules
from harness.understanding.comparison import DRAWS, Metric, differences
from harness.understanding.counts import FrameCounts, Rule, total
from harness.understanding.figures import ZERO, ZeroDivision
from harness.understanding.scoring import ScoredFrame, group_by_column, is_annotated, score

MAX_LABELS = 60
"""A column with more labels is not a condition but a note on single utterances. It is a group only if `by` names it."""
UnderstandTexts = Callable[[Sequence[tuple[str, ...]]], Sequence[Prediction]]
"""A model: returns a prediction for each text, which is given as its words."""


class FrameChange(StrEnum):
    """How a frame changed from reference to transcript.

    - KEPT: right on both.
    - REVALUED: right on both, but more slot values are wrong on the transcript.
    - BROKEN: right on the reference only.
    - MENDED: right on the transcript only.
    - WRONG: wrong on both.
    """

    KEPT = "kept"
    REVALUED = "revalued"
    BROKEN = "broken"
    MENDED = "mended"
    WRONG = "wrong"


@frozen
class CascadeUtterance:
    """An utterance that has a transcript.

    - heard: the transcript, unchanged.
    - before, after: the frame on the reference, and on the transcript.
    - words: word errors of the transcript.
    """

    heard: Utterance
    before: ScoredFrame
    after: ScoredFrame
    words: WordCounts

    @property
    def id(self) -> str:
        return self.before.id

    @property
    def change(self) -> FrameChange:
        """How the frame changed, judged by intents and lists of concepts, as far as both sides have them."""
        match _is_right(self.before.counts), _is_right(self.after.counts):
            case True, True:
                before, after = self.before.counts.valued.edits.errors, self.after.counts.valued.edits.errors
                return FrameChange.REVALUED if after > before else FrameChange.KEPT
            case True, False:
                return FrameChange.BROKEN
            case False, True:
                return FrameChange.MENDED
        return FrameChange.WRONG


@frozen
class CascadeGroup:
    """Some utterances.

    - reference, transcript: counts of the frames on each.
    - words: word errors of the transcripts.
    - differences: metrics on the transcripts minus those on the references.
    """

    reference: FrameCounts
    transcript: FrameCounts
    words: WordCounts
    differences: Mapping[Metric, MetricDifference]


@frozen
class Cascade:
    """The result.

    - labels: the declared intents; None if there are none.
    - total: all utterances together.
    - placed: counts on the references, with the places of slots, for slot F1.
    - groups: for each column, its labels, each with its utterances.
    - too_many: columns with more than MAX_LABELS labels, each with their number. They are not groups.
    - words: the scored transcripts.
    """

    pairs: HeardCorpus
    rule: Rule
    zero: ZeroDivision
    labels: tuple[str, ...] | None
    utterances: tuple[CascadeUtterance, ...]
    total: CascadeGroup
    placed: FrameCounts
    groups: tuple[tuple[str, tuple[tuple[str, CascadeGroup], ...]], ...]
    too_many: tuple[tuple[str, int], ...]
    words: WordScoring

    def utterances_with(self, change: FrameChange) -> tuple[CascadeUtterance, ...]:
        """The utterances whose frame changed in this way, in the order of gold."""
        return tuple(utterance for utterance in self.utterances if utterance.change is change)


@frozen
class HeardCorpus:
    """Gold with the transcripts of its utterances: the same ids in the same order.

    - without_transcript: ids of gold without a transcript. They are not counted. With missing_is_silence, they count as
      empty transcripts, and are still listed here.
    - without_gold: ids of transcripts without gold, which are not counted.
    - unannotated: ids of gold without intents and slots, which are not counted.
    - missing_is_silence: whether a missing transcript counts as an empty one.
    """

    gold: Corpus
    heard: Corpus
    without_transcript: tuple[str, ...]
    without_gold: tuple[str, ...]
    unannotated: tuple[str, ...]
    missing_is_silence: bool


def join_transcripts(gold: Corpus, heard: Corpus, *, missing_is_silence: bool = False) -> HeardCorpus:
    """Pairs gold and transcripts by id.

    missing_is_silence: whether an utterance without a transcript gets an empty one, and is not left out.
    """
    heard_by_id = {utterance.id: utterance for utterance in heard.utterances}
    gold_ids = {utterance.id for utterance in gold.utterances}
    annotated = [utterance for utterance in gold.utterances if is_annotated(utterance)]
    lacking = tuple(utterance.id for utterance in annotated if utterance.id not in heard_by_id)
    usable = [utterance for utterance in annotated if missing_is_silence or utterance.id in heard_by_id]
    return HeardCorpus(
        Corpus(gold.path, tuple(usable)),
        Corpus(heard.path, tuple(heard_by_id.get(utterance.id, Utterance(utterance.id)) for utterance in usable)),
        lacking,
        tuple(utterance.id for utterance in heard.utterances if utterance.id not in gold_ids),
        tuple(utterance.id for utterance in gold.utterances if not is_annotated(utterance)),
        missing_is_silence,
    )


def predict_corpus(corpus: Corpus, understand: UnderstandTexts, name: str) -> Corpus:
    """A model's predictions for a corpus. Raises ValueError unless there is one for each utterance.

    name: path of the new corpus.
    """
    predictions = understand([utterance.words for utterance in corpus.utterances])
    if len(predictions) != len(corpus.utterances):
        raise ValueError(f"{len(predictions)} predictions for {len(corpus.utterances)} texts")
    utterances = (
        Utterance(utterance.id, utterance.words, prediction.intents, prediction.tags)
        for utterance, prediction in zip(corpus.utterances, predictions, strict=True)
    )
    return Corpus(name, tuple(utterances))


def cascade(
    pairs: HeardCorpus,
    on_reference: Corpus,
    on_transcript: Corpus,
    rule: Rule,
    wording: WordRules,
    *,
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
    draws: int = DRAWS,
) -> Cascade:
    """Scores both sides. Raises InputError for a text that the normalisation refuses.

    - on_reference, on_transcript: predictions for the ids of `pairs`.
    - rule: places count only for slot F1 on the references.
    - wording: the normalisation of words.
    - labels: the declared intents; None for none.
    - by: columns of gold's groups; None for all of them.
    - draws: number of resamples for intervals.
    """
    without_places = replace(rule, places=False)
    before = score(pairs.gold, on_reference, without_places, ())
    after = score(pairs.gold, on_transcript, without_places, ())
    words = score_words(transcripts_of(pairs.gold), transcripts_of(pairs.heard), wording, title=pairs.heard.path)
    counts = dict(zip(words.ids, map(count, words.paths(range(len(words)))), strict=True))
    heard = {utterance.id: utterance for utterance in pairs.heard.utterances}
    utterances = tuple(
        CascadeUtterance(heard[frame.id], frame, frame_after, counts[frame.id])
        for frame, frame_after in zip(before.frames, after.frames, strict=True)
    )
    declared_labels = None if labels is None else tuple(labels)

    def group_of(members: Sequence[CascadeUtterance]) -> CascadeGroup:
        reference = [utterance.before.counts for utterance in members]
        transcript = [utterance.after.counts for utterance in members]
        word_counts = WordCounts.total(utterance.words for utterance in members)
        metric_differences = differences(transcript, reference, zero, declared_labels, draws=draws)
        return CascadeGroup(total(reference), total(transcript), word_counts, metric_differences)

    columns = group_by_column([(utterance.before.gold, utterance) for utterance in utterances], by)
    grouping_columns = {name: groups for name, groups in columns.items() if by is not None or len(groups) <= MAX_LABELS}
    return Cascade(
        pairs=pairs,
        rule=rule,
        zero=zero,
        labels=declared_labels,
        utterances=utterances,
        total=group_of(utterances),
        placed=(score(pairs.gold, on_reference, rule, ()) if rule.places else before).totals,
        groups=tuple(
            (name, tuple((label, group_of(members)) for label, members in sorted(labels.items())))
            for name, labels in grouping_columns.items()
        ),
        too_many=tuple((name, len(labels)) for name, labels in columns.items() if name not in grouping_columns),
        words=words,
    )


def transcripts_of(corpus: Corpus) -> Transcripts:
    """The texts of a corpus as transcripts, so that their words can be scored."""
    ids = tuple(utterance.id for utterance in corpus.utterances)
    lines = tuple(utterance.place.line or 0 if utterance.place else 0 for utterance in corpus.utterances)
    return Transcripts(
        corpus.path, ids, tuple(utterance.text for utterance in corpus.utterances), lines, ("",) * len(ids)
    )


def _is_right(counts: FrameCounts) -> bool:
    """Whether the intents and the list of concepts of an utterance are right; values do not matter."""
    exact = counts.intents.exact
    return exact.count == exact.total and not counts.slots.edits.errors
