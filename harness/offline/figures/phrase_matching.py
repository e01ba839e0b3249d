"""Detections in a long recording against the phrases that are labelled in it, one to one.

A detection belongs to a phrase of its name if it ends between the phrase's beginning and the tolerance after its end.
As many pairs as possible are formed; among equal choices, those nearest to the ends of the phrases. Every other
detection is a false accept, every other phrase a false reject.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from harness.base.grouping import group_by
from harness.model.offline import CountingRules, FileOutcome, LabelledPhrase, OfflineSpot
from harness.model.transcript import Normalisation
from harness.wake.counting import Window, match_events


@lru_cache(maxsize=4096)
def comparable_phrase(phrase: str) -> str:
    """The form of a phrase for comparisons: lower case, no punctuation, single spaces. `okay_nabu` gives `okay
    nabu`."""
    from harness.transcripts.words import normalise  # imported here, since it takes long

    return " ".join(normalise(phrase, Normalisation.PLAIN))


def counting_labels(outcome: FileOutcome, counting: CountingRules) -> dict[int, LabelledPhrase]:
    """The labels that count, by their index in the file. They name a phrase of the engine, or no phrase; and the
    recording has sound there."""
    labels = enumerate(outcome.labels)
    return {
        index: label
        for index, label in labels
        if index not in outcome.silent_labels and _names_engine_phrase(label, counting)
    }


def silent_labels(outcome: FileOutcome, counting: CountingRules) -> list[LabelledPhrase]:
    """The labels that would count if the recording had sound there."""
    labels = (outcome.labels[index] for index in outcome.silent_labels)
    return [label for label in labels if _names_engine_phrase(label, counting)]


def _names_engine_phrase(label: LabelledPhrase, counting: CountingRules) -> bool:
    """Whether a label names a phrase that the engine detects. True for a label without a phrase."""
    return not counting.phrases or not label.phrase or comparable_phrase(label.phrase) in counting.phrases


def labels_by_phrase(labels: Sequence[LabelledPhrase]) -> Iterator[tuple[str, list[int]]]:
    """Phrases as compared, each with the indices of its labels. The phrase "" has the labels that name none."""
    phrases = (comparable_phrase(label.phrase) if label.phrase else "" for label in labels)
    indices = group_by((phrase, index) for index, phrase in enumerate(phrases))
    yield from indices.items()


def label_window(label: LabelledPhrase, tolerance_s: float) -> Window:
    """The time in which the detection of a labelled phrase must end."""
    return Window(label.start_s, label.end_s + tolerance_s, label.end_s)


def match_labels(
    labels: Sequence[LabelledPhrase], spots: Sequence[OfflineSpot], rate_hz: int, tolerance_s: float
) -> tuple[tuple[int, int], ...]:
    """(label, spot) pairs, as indices, in the order of the labels. labels: in order of their starts."""
    pairs: list[tuple[int, int]] = []
    ends = sorted(range(len(spots)), key=lambda index: spots[index].end)
    for phrase, label_indices in labels_by_phrase(labels):
        spot_indices = [index for index in ends if not phrase or comparable_phrase(spots[index].phrase) == phrase]
        windows = [label_window(labels[index], tolerance_s) for index in label_indices]
        matching = match_events(windows, [spots[index].end / rate_hz for index in spot_indices], 0.0)
        pairs += [(label_indices[row], spot_indices[event]) for row, event in matching.pairs]
    return tuple(sorted(pairs))
