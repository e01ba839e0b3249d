"""The independent model of tests/nights counts what the product counts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

import pytest

from harness.base.codec import RECORDS
from harness.devices.in_process.device import InProcessOptions
from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    Proof,
    SpeechEnded,
    SpeechStarted,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Wake,
)
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EngineStarted,
    Entry,
    EventReviewed,
    Observed,
    Record,
    ReviewVerdict,
    SessionStarted,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import Limits, OnUndecided, SequentialTest, Stopping, TrialKind, WakeSettings
from harness.model.stimulus import VoiceSpec
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition, Target, Trial
from harness.session.figures.limits import NO_TESTS
from harness.statistics.sequential import rate_boundaries, share_boundaries
from harness.wake.wake_progress import due_decisions
from tests.known import known
from tests.nights.figures import figures_of
from tests.nights.model import Recount, Row
from tests.nights.verdicts import BORDER, boundaries, decided, differences, figures, looks, totals
from tests.unit.session.figures.rows import Rows
from tests.unit.session.house import house
from tests.unit.wake.wake_rows import wake_trial
from tests.written_sessions import progress_of, wake_of


def rows_of(entries: Iterable[Entry]) -> list[Row]:
    return [
        Row(
            entry.seq,
            entry.run,
            entry.at_s,
            entry.wall_s,
            entry.record.kind,
            json.loads(RECORDS.dump_json(entry.record)),
        )
        for entry in entries
    ]


NO_LIMITS = Limits()


def assert_agree(entries: list[Entry], limits: Limits = NO_LIMITS, stopping: Stopping = NO_TESTS) -> None:
    product = figures_of(wake_of(entries), progress_of(entries).totals, limits, stopping)
    counted = figures(Recount(rows_of(entries)), asdict(limits), asdict(stopping))
    assert list(differences(product, counted)) == []


@dataclass
class Drawn:
    """A session whose rows are drawn from a seed: what happens has a time, and its row comes when it arrives."""

    seed: int
    short_tail: bool = False
    rows: Rows = field(default_factory=Rows)
    coming: list[tuple[float, int, Record]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.injected = self.chance.random() < 0.5
        self.several = self.chance.random() < 0.4
        self.probing = not self.injected and self.chance.random() < 0.4
        self.audio_s = {"kitchen": 0.0, "den": 100.0}
        self.boot = 1

    def see(self, observation: Observation, attempt: tuple[str, int, int] | None = None, after_s: float = 0.0) -> None:
        arrives_s = max(observation.at.at_s, self.rows.at_s) + after_s
        self.coming.append((arrives_s, len(self.coming), Observed(observation, *(attempt or ()))))

    def until(self, at_s: float) -> None:
        """The rows that have arrived by then."""
        for arrives_s, _, record in sorted(self.coming, key=lambda row: row[:2]):
            if arrives_s <= at_s:
                self.rows.at_s = max(self.rows.at_s, arrives_s)
                self.rows.add(record)
        self.coming = [row for row in self.coming if row[0] > at_s]
        self.rows.at_s = max(self.rows.at_s, at_s)

    def trial(self, number: int) -> Trial:
        draw = self.chance.random()
        kind = TrialKind.WAKE if draw < 0.5 else TrialKind.AMBIENT if draw < 0.8 else TrialKind.COMMAND
        if self.probing and draw > 0.7:
            kind = TrialKind.PROBE
        template = wake_trial(number, kind, ("kitchen", "den"), self.injected, self.settings, ambient_s=20.0)
        listening = known(template.listening)
        if self.several:
            kitchen = replace(listening.targets[0], also=("kitchen.led", "kitchen.log"), merge_within_s=1.0)
            listening = replace(listening, targets=(kitchen, *listening.targets[1:]))
        idle = (DeviceState.IDLE,) if self.seed % 2 else ()
        targets = tuple(replace(target, listening_states=idle) for target in listening.targets)
        every_s = 30.0 if self.probing and kind in (TrialKind.PROBE, TrialKind.AMBIENT) else 0.0
        voice = VoiceSpec(name=self.chance.choice(["ann", "ben", "cas"]))
        recipe = replace(template.recipe, voice=voice)
        return replace(template, recipe=recipe, listening=replace(listening, targets=targets, probe_every_s=every_s))

    def session(self) -> list[Entry]:
        chance = self.chance
        self.settings = WakeSettings(
            refractory_s=chance.choice([0.5, 2.0]), proof_within_s=15.0, count_in_vocabulary=chance.random() < 0.3
        )
        trials = [self.trial(number) for number in range(1, chance.randint(3, 8))]
        self.rows.at_s = 10.0
        self.rows.start(*trials)
        for trial in trials:
            self.between()
            self.take(trial, 1)
        for trial in chance.sample(trials, 2):
            if chance.random() < 0.5:
                self.between()
                self.take(trial, 2)
        self.until(self.rows.at_s + 60.0)
        for entry in [entry for entry in self.rows.entries if is_wake(entry)]:
            if chance.random() < 0.2:
                self.rows.add(EventReviewed(entry.seq, chance.choice([*ReviewVerdict, None]), "ann"))
        return self.rows.entries

    def between(self) -> None:
        chance, rows = self.chance, self.rows
        now_s = rows.at_s
        self.until(now_s + chance.uniform(0.0, 3.0))
        draw = chance.random()
        if draw < 0.1:
            self.coming.clear()
            rows.run += 1
            if chance.random() < 0.5:  # the host was switched off and on
                self.boot, rows.at_s = self.boot + 1, 5.0
            rows.add(EngineStarted(rows.run, 1, f"boot {self.boot}", 1.0))
            self.audio_s = dict.fromkeys(self.audio_s, 0.0)
        elif draw < 0.2:
            self.see(LinkLost("den_link", Stamp(now_s + 0.1), "gone"))
            self.see(LinkBack("den_link", Stamp(now_s + 0.2)))
        elif draw < 0.3:
            state = chance.choice([DeviceState.STARTED, DeviceState.SPEAKING, DeviceState.IDLE])
            self.see(Status("kitchen_link", Stamp(now_s + 0.1), state))
        elif draw < 0.4:
            self.see(Wake("kitchen_link", Stamp(now_s + 0.1)))
            if not self.injected:
                self.see(SpeechStarted("mic", Stamp(now_s + chance.uniform(0.5, 9)), -30.0))
                self.see(SpeechEnded("mic", Stamp(now_s + 12.0)))

    def take(self, trial: Trial, take: int) -> None:
        chance, rows = self.chance, self.rows
        rows.add(TrialStarted(trial.id, take))
        attempt = 0
        while True:
            attempt += 1
            outcome = Outcome.INTERRUPTED if chance.random() < 0.15 else Outcome.COUNTED
            woken = self.attempt(trial, (trial.id, take, attempt), outcome)
            probe = known(trial.listening).kind is TrialKind.PROBE
            if outcome is Outcome.COUNTED and probe and not woken:
                outcome = Outcome.NO_WAKE
            rows.add(AttemptFinished(trial.id, take, attempt, outcome, Recognition.NOT_ASSESSED, EvidenceSource.NONE))
            if outcome is Outcome.COUNTED or attempt == 2:
                break
        rows.add(TrialFinished(trial.id, take, outcome, attempt, attempt))

    def attempt(self, trial: Trial, attempt_key: tuple[str, int, int], outcome: Outcome) -> bool:
        chance, rows, listening = self.chance, self.rows, known(trial.listening)
        ambient = listening.kind is TrialKind.AMBIENT
        phrase = (0.0, 20.0) if ambient else (2.1, 2.7)
        long_s = 20.0 if ambient else 2.7 + (0.3 if self.short_tail else 1.5)
        play_id = f"p{len(rows.entries)}"
        rows.add(AttemptStarted(*attempt_key, play_id, "sha", *phrase, long_s, None))
        begun_s = rows.at_s + 0.05
        played_s = long_s if outcome is Outcome.COUNTED else chance.uniform(0.5, long_s)
        speed = chance.choice([0.5, 1.0, 8.0]) if self.injected else 1.0
        until_s = begun_s + played_s / speed
        if not self.injected:
            until_s = max(until_s, begun_s + phrase[1] + 1.3 if not ambient else until_s + 1.3)
        begins = dict(self.audio_s)
        for player in listening.players:
            name = player.removesuffix("_link")
            self.see(StimulusStarted(player, Stamp(begun_s), play_id, begins.get(name)), attempt_key)
            ended = begins[name] + played_s if self.injected else None
            ends = Stamp(begun_s + played_s / speed)
            self.see(StimulusEnded(player, ends, play_id, outcome is Outcome.COUNTED, ended), attempt_key)
        shift_s = 0.0
        if not self.injected and chance.random() < 0.5:
            shift_s = chance.uniform(0.0, 0.04)
            self.see(StimulusHeard("mic", Stamp(begun_s + shift_s, 0.001), play_id, 0.9), attempt_key, 0.3)
        woke = True
        for target in listening.targets:
            offsets = [chance.uniform(0.1, played_s) for _ in range(chance.choice([0, 0, 1, 3]))]
            if not ambient and chance.random() < 0.7:
                offsets.append(phrase[1] + chance.uniform(-0.5, 1.1))
            if self.injected:  # a device reports no place that it has not been sent
                offsets = [offset_s for offset_s in offsets if offset_s < played_s]
            woke &= any(phrase[0] - 0.1 <= offset_s <= phrase[1] + 1.0 for offset_s in offsets)
            for offset_s in offsets:
                late_s = chance.choice([0.0, 0.0, 0.2, 0.2 if self.probing else 7.0])
                self.reports(target, begun_s, offset_s, speed, begins, attempt_key, late_s)
            step_s = chance.choice([4.0, 4.0, 20.0])
            if self.injected and chance.random() < 0.8:
                proof = Proof.ACKNOWLEDGED
                stamp, to_s = (
                    Stamp(begun_s + played_s / speed),
                    begins[target.device] + played_s * chance.choice([1, 1, 0.5]),
                )
                self.see(ListeningProved(target.connection, stamp, proof, to_s), attempt_key)
            for beat in range(0 if self.probing else 8):
                if (at_s := begun_s + beat * step_s) < until_s:
                    self.see(ListeningProved(target.connection, Stamp(at_s), Proof.HEARTBEAT), attempt_key)
        self.until(until_s)
        for name in self.audio_s:
            self.audio_s[name] += played_s
        return woke

    def reports(
        self,
        target: Target,
        begun_s: float,
        offset_s: float,
        speed: float,
        begins: dict[str, float],
        attempt: tuple[str, int, int],
        late_s: float,
    ) -> None:
        chance = self.chance
        at_s = begun_s + offset_s / speed
        audio_s = begins[target.device] + offset_s if self.injected else None
        sources = [target.connection, *target.also]
        for source in sources if len(sources) == 1 else chance.sample(sources, chance.randint(1, 3)):
            delay_s = 0.0 if source == target.connection else chance.uniform(0.0, 0.4) / speed
            stamp = Stamp(at_s + delay_s, 0.01 if source == target.connection else 0.1)
            exact_s = audio_s if source == target.connection else None
            credited = attempt if late_s < 1.0 else chance.choice([None, ("ask", 1, 1), ("life-check.7", 1, 1)])
            self.see(Wake(source, stamp, "alexa", 0.9, exact_s), credited, late_s)


def is_wake(entry: Entry) -> bool:
    return isinstance(entry.record, Observed) and isinstance(entry.record.observation, Wake)


@pytest.mark.parametrize(
    "first", [*range(0, 300, 100), *(pytest.param(first, marks=pytest.mark.soak) for first in range(300, 1000, 100))]
)
def test_the_model_agrees_on_drawn_sessions(first: int) -> None:
    for seed in range(first, first + 100):
        # Sounds may follow each other so fast that the window of one lies in the next.
        assert_agree(Drawn(seed, short_tail=seed % 2 == 1).session())


LIMITS = Limits(
    max_false_reject_share=0.3,
    max_false_reject_upper=0.9,
    max_false_accepts_per_hour=200.0,
    max_false_accepts_upper_per_hour=800.0,
    min_exposure_hours=0.01,
    max_wake_delay_p95_ms=500.0,
    max_interrupted=0,
    max_inconclusive=0,
)
STOPPING = Stopping(SequentialTest(100.0, 900.0), SequentialTest(0.2, 0.6), OnUndecided.PASS)


@pytest.mark.parametrize("seed", range(100))
def test_the_model_agrees_on_verdicts_and_decisions(seed: int) -> None:
    entries = Drawn(seed).session()
    assert_agree(entries, LIMITS, STOPPING)
    rows = rows_of(entries)
    for seq in (*looks(Recount(rows)), entries[-1].seq):
        progress = wake_of(entry for entry in entries if entry.seq <= seq).snapshot()
        due: dict[tuple[str, str], bool] = {
            (row.device, row.figure): row.passed for row in due_decisions(progress, STOPPING)
        }
        for name, device in Recount(row for row in rows if row.seq <= seq).devices.items():
            for figure, passed in decided(device, asdict(STOPPING)).items():
                assert passed is None or due.pop((name, figure)) is passed
                due.pop((name, figure), None)
        assert not due


@pytest.mark.parametrize(
    "test", [SequentialTest(0.1, 0.5), SequentialTest(0.02, 0.1, 0.1, 0.01), SequentialTest(0.3, 0.7)]
)
@pytest.mark.parametrize("rate", [False, True])
def test_the_model_agrees_on_sequential_boundaries(test: SequentialTest, rate: bool) -> None:
    known_boundaries = rate_boundaries(test) if rate else share_boundaries(test)
    assert boundaries(test.good, test.bad, test.alpha, test.beta, rate) == pytest.approx(
        known_boundaries, abs=BORDER / 2
    )


@pytest.mark.usefixtures("simulated_time")
def test_the_model_agrees_on_a_session_of_queries() -> None:
    played = house(8, options=InProcessOptions(wake_miss_share=0.2, mishear_share=0.4, late_share=0.2)).played()
    started = SessionStarted("s", "k", "K", "a", "lab", "b", 1, "in_process", (), played.trials)
    entries = [Entry(1, 1, 0.0, 0.0, started), *(replace(row, seq=row.seq + 1) for row in played.log.rows)]
    assert_agree(entries)
    counted = totals(Recount(rows_of(entries)))
    assert counted["finished"] == 8
    assert counted["recognised"][1] > 0
