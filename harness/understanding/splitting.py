"""Splits annotated utterances into parts with similar shares of every label. Equal sentences stay in one part.

Labels are intents and concepts, rarest first, as in Sechidis, Tsoumakas & Vlahavas 2011 (iterative stratification).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.errors import InputError, Place
from harness.model.numbers import counted
from harness.model.understanding import Corpus, Utterance


def stratified(corpus: Corpus, shares: Sequence[float], seed: int) -> tuple[Corpus, ...]:
    """A part for each share, with utterances in the order of the corpus. The same seed gives the same parts.

    shares: sizes of the parts relative to each other, above 0. Raises InputError if a part would be empty.
    """
    clusters = list(_group_equal_sentences(corpus.utterances).values())
    random.Random(seed).shuffle(clusters)
    part_by_index = _parts_by_index(clusters, shares, by_label=True)
    if len(set(part_by_index.values())) < len(shares):  # all labels are so rare that one part needs each most
        part_by_index = _parts_by_index(clusters, shares, by_label=False)
    if len(set(part_by_index.values())) < len(shares):
        problem = f"a part would be empty with only {counted(len(clusters), 'different sentence')}"
        raise InputError(problem, place=Place(corpus.path), remedy="Use a larger corpus, or fewer parts")
    parts: list[list[Utterance]] = [[] for _ in shares]
    for index, utterance in enumerate(corpus.utterances):
        parts[part_by_index[index]].append(utterance)
    return tuple(Corpus(corpus.path, tuple(utterances)) for utterances in parts)


def _parts_by_index(clusters: Sequence[_Cluster], shares: Sequence[float], *, by_label: bool) -> dict[int, int]:
    """Index of an utterance → its part: the one that needs it most, for its rarest label, or for its own size alone."""
    label_counts = sum((cluster.labels for cluster in clusters), Counter[str]())
    utterances = sum(len(cluster.indices) for cluster in clusters)
    part_shares = [share / sum(shares) for share in shares]
    # What each part still lacks.
    lacking_utterances = [share * utterances for share in part_shares]
    lacking_labels = [{label: share * count for label, count in label_counts.items()} for share in part_shares]
    part_by_index: dict[int, int] = {}
    for cluster in _rarest_first(clusters, label_counts):
        if by_label:
            needs = [
                (labels[cluster.rarest], count)
                for labels, count in zip(lacking_labels, lacking_utterances, strict=True)
            ]
        else:  # in proportion to the share, so that no part lacks more than an empty one
            needs = [(count / share, 0.0) for count, share in zip(lacking_utterances, part_shares, strict=True)]
        chosen = needs.index(max(needs))
        lacking_utterances[chosen] -= len(cluster.indices)
        for label, count in cluster.labels.items():
            lacking_labels[chosen][label] -= count
        part_by_index.update(dict.fromkeys(cluster.indices, chosen))
    return part_by_index


@dataclass(slots=True)
class _Cluster:
    """Utterances with the same words.

    - indices: of the utterances in the corpus.
    - labels: how often each label occurs in them.
    - rarest: the label among them that is the rarest in the corpus.
    """

    indices: list[int]
    labels: Counter[str]
    rarest: str = ""


def _group_equal_sentences(utterances: Sequence[Utterance]) -> dict[tuple[str, ...], _Cluster]:
    clusters: dict[tuple[str, ...], _Cluster] = {}
    for index, utterance in enumerate(utterances):
        key = tuple(word.lower() for word in utterance.words) or (utterance.id,)
        cluster = clusters.setdefault(key, _Cluster([], Counter()))
        cluster.indices.append(index)
        cluster.labels.update(_labels(utterance))
    return clusters


def _labels(utterance: Utterance) -> set[str]:
    concepts = {slot.concept for slot in utterance.slots or ()} | {
        tag[2:] for tag in utterance.tags or () if tag != "O"
    }
    return {f"intent {label}" for label in utterance.intents or ("",)} | {f"concept {name}" for name in concepts}


def _rarest_first(clusters: Sequence[_Cluster], label_counts: Counter[str]) -> list[_Cluster]:
    for cluster in clusters:
        cluster.rarest = min(cluster.labels, key=lambda label: (label_counts[label], label))
    return sorted(clusters, key=lambda cluster: (label_counts[cluster.rarest], cluster.rarest, -len(cluster.indices)))
