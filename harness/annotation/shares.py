"""Who labels what: which utterances go to two annotators, and to which of them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from harness.model.annotation import IMPORTED, AnnotationProject
from harness.model.understanding import Utterance


def drawn(seed: int, what: str, utterance: str) -> int:
    """A number of 64 bits that only these three decide: the same on every machine and in every version."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{what}\0{utterance}".encode()).digest()[:8], "big")


class Shares:
    """Of one project: utterances in the order of the file."""

    def __init__(self, project: AnnotationProject, utterances: Sequence[Utterance]) -> None:
        self._project = project
        ids = [one.id for one in utterances]
        double = sorted(ids, key=lambda id_: drawn(project.seed, "double", id_))
        many = round(project.double_share * len(ids)) if project.per_utterance > 1 else 0
        self._double = frozenset(double[:many])
        self._turn = {
            id_: at for at, id_ in enumerate(sorted(ids, key=lambda id_: drawn(project.seed, "annotator", id_)))
        }

    def wanted(self, utterance: str) -> int:
        """How many annotators are to label it."""
        return 2 if utterance in self._double else 1

    def is_for(self, annotator: str, utterance: str, chosen: Collection[str]) -> bool:
        """Whether it is in the annotator's queue. chosen: who has chosen labels for it.

        Where annotators are named, each utterance has its own, in turn. Else it is for whoever comes, as long as fewer
        others than wanted have chosen labels for it. Labels that were imported are those of one annotator.
        """
        if not self._project.annotators:
            return len(chosen) - (annotator in chosen) < self.wanted(utterance)
        return annotator in self._named(utterance)[: self.wanted(utterance) - (IMPORTED in chosen)]

    def is_second(self, annotator: str, utterance: str, chosen: Collection[str]) -> bool:
        """Whether the annotator is the second of two at it: by turn where they are named, else by who came first."""
        if self.wanted(utterance) < 2:
            return False
        if not self._project.annotators:
            return len(chosen) > (annotator in chosen)
        return IMPORTED in chosen or self._named(utterance)[1] == annotator

    def _named(self, utterance: str) -> tuple[str, ...]:
        """The annotators in the order in which it is theirs."""
        names, turn = self._project.annotators, self._turn[utterance] % len(self._project.annotators)
        return (*names[turn:], *names[:turn])
