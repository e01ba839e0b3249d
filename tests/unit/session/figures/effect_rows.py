"""Rows of queries whose effects are checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, tzinfo

from harness.model.bench import ObservationKind
from harness.model.effect import EffectCheck, EffectEvidence, EffectOutcome, StateWanted
from harness.model.observation import StateTold, StimulusStarted
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EffectAnswered,
    EndReason,
    EngineStarted,
    Entry,
    Observed,
    ResponseFrozen,
    SessionFinished,
    SessionStarted,
    TrialFinished,
)
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.session.figures.effects import AttemptKey, EffectRows
from tests.unit.session.figures.rows import clip_of, planned

TIMER = EffectCheck("a timer runs", (StateWanted("timer", "10 minutes"),), within_s=8.0)
BOTH = replace(TIMER, state=(StateWanted("timer", "10 minutes"), StateWanted("list", "")))
ASKED = EffectCheck("a timer runs", question="does it?")
QUERY_ENDS_S = 3.0
KEY = ("t1", 1, 1)
WALL_S = 1_700_000_000.0


def trial(check: EffectCheck | None, number: int = 1, **changes: object) -> Trial:
    plain = replace(
        planned(number, trial_id=f"t{number}"),
        effect=check,
        connection="link",
        reports=(ObservationKind.TRANSCRIPT, ObservationKind.STATE),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


class Session:
    """Rows with the session's clock at which each is committed; the wall clock is WALL_S later."""

    def __init__(self, *trials: Trial) -> None:
        self.entries: list[Entry] = []
        self.trials = trials
        self.add(0.0, SessionStarted("s", "k", "K", "a", "b", "c", 1, "air", (), trials))
        self.add(0.0, EngineStarted(1, 1, "boot", 1.0))

    def add(self, at_s: float, record: object) -> Session:
        seq = len(self.entries) + 1
        self.entries.append(Entry(seq, 1, at_s, WALL_S + at_s, record))  # type: ignore[arg-type]
        return self

    def asked(self, at_s: float = 0.0, trial_id: str = "t1", attempt: int = 1) -> Session:
        """Its query ends QUERY_ENDS_S later."""
        play = f"{trial_id}.{attempt}"
        self.add(at_s, AttemptStarted(trial_id, 1, attempt, play, "s", 1.0, 2.0, 2.5, None))
        return self.add(at_s + 1.0, Observed(StimulusStarted("speaker", Stamp(at_s + 1.0, 0.001), play)))

    def answered(self, at_s: float = 6.0, outcome: Outcome = Outcome.RESPONDED, attempt: int = 1) -> Session:
        self.add(at_s, ResponseFrozen("t1", 1, attempt, clip_of("r"), Stamp(at_s - 2), Stamp(at_s - 1)))
        return self.add(at_s + 0.5, AttemptFinished("t1", 1, attempt, outcome, Recognition.YES, EvidenceSource.DEVICE))

    def told(self, at_s: float, value: str = "10 minutes", name: str = "timer", source: str = "link") -> Session:
        return self.add(at_s + 0.05, Observed(StateTold(source, Stamp(at_s, 0.01), name, value)))

    def ends(self, at_s: float) -> Session:
        self.add(at_s, TrialFinished("t1", 1, Outcome.RESPONDED, 1, 1))
        return self.add(at_s, SessionFinished(EndReason.COMPLETED))

    def found(self, *answers: Entry) -> EffectEvidence:
        return effects_in(self.entries, answers, UTC)[KEY]


def effects_in(
    entries: Iterable[Entry], answers: Iterable[Entry] = (), zone: tzinfo | None = None
) -> dict[AttemptKey, EffectEvidence]:
    rows = EffectRows()
    for entry in entries:
        rows.add(entry)
    return rows.evidence(answers, zone)


def answer(word: EffectOutcome, at_s: float = 100.0, observer: str = "ann", detail: str = "") -> Entry:
    return Entry(1, 0, 0.0, WALL_S + at_s, EffectAnswered("t1", 1, 1, word, observer, detail))
