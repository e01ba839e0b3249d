"""Utterances, label sets and desks without a disk, for tests of what an annotator's keys do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.annotation.desk import AnnotationDesk
from harness.annotation.ledger import Ledger
from harness.model.annotation import (
    IMPORTED,
    AnnotationProject,
    AnnotationRow,
    Label,
    Labelled,
    LabelProposal,
    LabelSet,
    Proposed,
)
from harness.model.errors import LogFull
from harness.model.understanding import Utterance

LABELS = LabelSet(
    "test",
    "Test",
    (Label("play"), Label("stop"), Label("thank"), Label("well", alone=True)),
    never_together=(("play", "stop"),),
)


def utterances(count: int) -> tuple[Utterance, ...]:
    return tuple(Utterance(f"u{number}", ("say", f"{number:02}")) for number in range(1, count + 1))


def proposed(given: Mapping[str, str | None], id_: str = "batch") -> Proposed:
    """u1: "play#thank", or None where there was no consensus."""
    each = tuple(
        LabelProposal(one, None if labels is None else tuple(sorted(labels.split("#"))))
        for one, labels in given.items()
    )
    return Proposed(id_, "test", each)


def imported(utterance: str, *intents: str) -> Labelled:
    return Labelled(f"imported {utterance}", IMPORTED, utterance, intents)


@dataclass
class Bench:
    """A project in memory. full: nothing can be written; clock_s goes on only when told."""

    count: int = 6
    project: AnnotationProject = field(default_factory=lambda: AnnotationProject("p", 6, page_size=3))
    rows: list[AnnotationRow] = field(default_factory=list)
    commits: list[Sequence[AnnotationRow]] = field(default_factory=list)
    full: bool = False
    clock_s: float = 100.0

    def desk(
        self, annotator: str = "ann", *, adjudicating: bool = False, again: Sequence[str] = (), **project: object
    ) -> AnnotationDesk:
        self.project = replace(self.project, utterances=self.count, **project)  # type: ignore[arg-type]
        return AnnotationDesk(
            annotator,
            self.project,
            LABELS,
            utterances(self.count),
            self.rows,
            self.keep,
            adjudicating=adjudicating,
            again=again,
            now_s=lambda: self.clock_s,
            wall_s=lambda: self.clock_s,
        )

    def keep(self, rows: Sequence[AnnotationRow]) -> None:
        if self.full:
            raise LogFull("no room")
        self.rows.extend(rows)
        self.commits.append(rows)

    @property
    def ledger(self) -> Ledger:
        return Ledger(LABELS, self.rows)
