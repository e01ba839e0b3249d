"""A session of wake and ambient trials that has come some way, row by row."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter
from textual.pilot import Pilot

from harness.base.places import SessionFolder
from harness.dashboard.app import Dashboard
from harness.model.feed import StateChanged, StateWord
from harness.model.observation import ClockFitted, ListeningProved, Proof
from harness.model.record import AttemptStarted, EventClipped, EventReviewed, ReviewVerdict, TrialStarted
from harness.model.scenario import Limits, Scenario, SequentialTest, Stopping, TrialKind
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session.engine.feed import EngineClient
from tests.dashboard.bench import SMALL, opened
from tests.dashboard.engine_double import START_S, EngineDouble, write_clip
from tests.unit.wake.wake_rows import WakeRows, wake_trial

NAMES = ("kitchen-esp32", "nicla", "qemu-m4", "nano-33")
WAKES, AMBIENTS = 60, 30
LIMITS = Limits(
    max_false_reject_share=0.1, max_false_reject_upper=0.2, max_false_accepts_per_hour=4.0, min_exposure_hours=1.0
)
STOPPING = Stopping(SequentialTest(1.0, 5.0), SequentialTest(0.02, 0.1))


def some_wakes(folder: Path, devices: Sequence[str] = NAMES[:1], ambients: int = AMBIENTS - 3) -> WakeRows:
    """All wake trials (the 50th interrupted at first), most of the ambient ones, the next one running.

    Events that match nothing come by a seed; the latest has its sound, and the one before was reviewed.
    """
    chance = random.Random(6)
    rows = WakeRows()
    wakes = [wake_trial(n, devices=devices) for n in range(1, WAKES + 1)]
    sounds = [wake_trial(WAKES + n, TrialKind.AMBIENT, devices) for n in range(1, AMBIENTS + 1)]
    rows.plan(*wakes, *sounds)
    for device in devices:
        rows.see(ClockFitted(f"{device}_link", Stamp(rows.at_s), "b00", 10.0, 12.5, 0.00042))
    for trial in wakes:
        if trial.number == 50:
            rows.play(trial, outcome=Outcome.INTERRUPTED, finish=False)
        heard = [(device, 1.7 + chance.random() / 4) for device in devices if chance.random() > 0.06]
        rows.play(trial, heard, attempt=2 if trial.number == 50 else 1)
    seqs: list[int] = []
    for trial in sounds[:ambients]:
        seqs += rows.play(trial, [(device, 60 * chance.random()) for device in devices if chance.random() < 0.15])
    if seqs:
        rows.add(EventClipped(seqs[-1], write_clip(folder, "event.flac", 2.0)))
    if len(seqs) > 1:
        rows.add(EventReviewed(seqs[-2], ReviewVerdict.REAL_PERSON, "ann"))
    running = sounds[ambients]
    rows.add(TrialStarted(running.id, 1), 0.5)
    rows.add(AttemptStarted(running.id, 1, 1, "now", "sha", 0.0, 60.0, 60.0, None))
    for device in devices:
        rows.see(ListeningProved(f"{device}_link", Stamp(rows.at_s), Proof.HEARTBEAT))
    return rows


def wake_double(folder: Path, devices: Sequence[str] = NAMES[:1], **more: bool) -> EngineDouble:
    rows = some_wakes(folder, devices)
    declare(folder)
    engine = EngineDouble(folder, rows, **more)
    running = next(entry for entry in reversed(rows.entries) if isinstance(entry.record, AttemptStarted)).record
    assert isinstance(running, AttemptStarted)
    engine.state = StateChanged(StateWord.PLAYING, START_S, None, running.trial_id, 1)
    return engine


def wake_dashboard(engine: EngineDouble) -> Dashboard:
    """Two seconds after the last row."""
    now_s = engine.rows.at_s + 2
    return Dashboard(partial(EngineClient, engine.socket_path), "ann", now=lambda: now_s)


def wake_opened(
    engine: EngineDouble, size: tuple[int, int] = SMALL, text: str = "6, 5 to review"
) -> AbstractAsyncContextManager[tuple[EngineDouble, Dashboard, Pilot[int]]]:
    return opened(engine, size, text, wake_dashboard)


def declare(folder: Path, limits: Limits = LIMITS, stopping: Stopping = STOPPING) -> None:
    """What the scenario of the session in `folder` wants, as the session keeps it."""
    scenario = Scenario("wake", "Wake words", "wake.yaml", "0", (), (), limits=limits, stopping=stopping)
    stored = {"scenario": TypeAdapter(Scenario).dump_python(scenario, mode="json"), "bench": {}}
    SessionFolder(folder).resolved.write_text(json.dumps(stored), encoding="utf-8")
