"""Wake figures that a test sets out by hand: what a session looks like that has come some way."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from harness.dashboard.app import Dashboard
from harness.evaluate.wake_progress import (
    DeviceWake,
    Look,
    MarkKind,
    Rate,
    Ratio,
    TimelineMark,
    WakeEvent,
    WakeProgress,
)
from harness.log.folder import SessionFolder
from harness.metrics.anytime import rate_sequence, share_sequence
from harness.metrics.exact import clopper_pearson, garwood
from harness.metrics.intervals import Share
from harness.metrics.latency import latency_figures
from harness.model.bench import ObservationKind
from harness.model.feed import StateWord
from harness.model.record import Entry, ReviewWord
from harness.model.scenario import Limits, Scenario, SequentialTest, Stopping, TrialKind, WakeSettings
from harness.model.time import Measured, Stamp
from harness.model.trial import Listening, Target, Trial
from harness.rig.client import EngineClient
from tests.dashboard.engine_double import START_S, EngineDouble, write_clip
from tests.unit.evaluate.rows import Rows, planned

NOW_S = 2262.0
NAMES = ("kitchen-esp32", "nicla", "qemu-m4", "nano-33")


class Given:
    """Says what a test wants to be seen, whatever rows come."""

    def __init__(self, progress: WakeProgress) -> None:
        self.progress = progress

    def add(self, entry: Entry) -> None:
        """Rows change nothing here."""

    def snapshot(self) -> WakeProgress:
        return self.progress


def listening(number: int, kind: TrialKind, devices: tuple[str, ...] = NAMES[:1], reference: str = "") -> Trial:
    targets = tuple(Target(one, f"{one}-serial", f"{one}-serial", (ObservationKind.WAKE,)) for one in devices)
    ambient = kind is TrialKind.AMBIENT
    what = Listening(
        kind, targets, WakeSettings(), 1.0, 1.5, "" if ambient else "alexa", "kitchen talk" if ambient else ""
    )
    trial = planned(number, "alexa", f"{kind.value}-{number:03}", device=devices[0])
    return replace(trial, reference=reference, listening=what)


def planned_trials(devices: tuple[str, ...] = NAMES[:1], wakes: int = 200, ambients: int = 40) -> list[Trial]:
    kinds = [TrialKind.WAKE] * wakes + [TrialKind.AMBIENT] * ambients
    return [listening(number, kind, devices) for number, kind in enumerate(kinds, start=1)]


def ratio(missed: int, total: int) -> Ratio:
    return Ratio(Share(missed, total), clopper_pearson(missed, total), share_sequence(missed, total))


def rate(count: int, hours: float) -> Rate:
    return Rate(count, hours, garwood(count, hours), rate_sequence(count, hours))


def device(
    name: str, trials: int = 120, miss_share: float = 0.04, ambient_s: float = 1800.0, seed: int = 3
) -> DeviceWake:
    """Trials of 3 s each, then ambient sound with an unmatched event every ten minutes or so, all by a seed."""
    chance = random.Random(f"{name} {seed}")
    at, missed = 100.0, 0
    marks: list[TimelineMark] = []
    looks: list[Look] = []
    for n in range(1, trials + 1):
        miss = chance.random() < miss_share
        missed += miss
        kind = MarkKind.FALSE_REJECT if miss else MarkKind.INTERRUPTED if n == trials - 6 else MarkKind.HIT
        marks.append(TimelineMark(kind, at + 1.0, at + 1.6, f"wake-{n:03}"))
        looks.append(Look(1000 + at, n, ratio(missed, n), 0.0, Rate()))
        at += 3.0
    false_accepts = 0
    for segment in range(int(ambient_s // 60)):
        marks.append(TimelineMark(MarkKind.AMBIENT, at, at + 60, f"ambient-{segment:03}"))
        if chance.random() < 0.1:
            false_accepts += 1
            marks.append(TimelineMark(MarkKind.UNMATCHED, at + 20, at + 20, f"ambient-{segment:03}", 900 + segment))
        at += 60
        hours = (segment + 1) / 60
        looks.append(Look(1000 + at, trials, ratio(missed, trials), hours, rate(false_accepts, hours)))
    return DeviceWake(
        device=name,
        false_rejects=ratio(missed, trials),
        hits=trials - missed,
        missed=missed,
        false_accepts=rate(false_accepts, ambient_s / 3600),
        after_review=rate(max(0, false_accepts - 1), ambient_s / 3600),
        exposure_s=ambient_s,
        unproven_s=12.0,
        delays=latency_figures([Measured(chance.uniform(0.2, 0.5), 0.0004) for _ in range(trials - missed)]),
        clock_error_s=0.00042,
        listening_proved_s=NOW_S - 2,
        timeline=tuple(marks),
        looks=tuple(looks),
        in_vocabulary_events=1,
        suppressed=2,
    )


def events(folder: Path, names: tuple[str, ...] = NAMES[:1], count: int = 7) -> tuple[WakeEvent, ...]:
    """The latest first: the second was reviewed, the third explained by a rule."""
    clip = write_clip(folder, "event.flac", 2.0)
    found = [
        WakeEvent(
            seq=900 + n,
            device=names[n % len(names)],
            at=Stamp(200.0 + n, 0.0004),
            wall_s=51_000.0 + 61 * n,
            phrase="alexa",
            score=0.95 - n / 20,
            trial_id=f"ambient-{n:03}",
            audio_s=100.0 + n,
            offset_s=12.34 + n,
            clip=clip,
        )
        for n in reversed(range(count))
    ]
    if count > 2:
        found[1] = replace(found[1], word=ReviewWord.REAL_PERSON, reviewed_by="ann")
        found[2] = replace(found[2], word=ReviewWord.SELF_WAKE, rule=ReviewWord.SELF_WAKE, why="it was speaking itself")
    return tuple(found)


def some_wakes(folder: Path, names: tuple[str, ...] = NAMES[:1]) -> WakeProgress:
    trials = planned_trials(names)
    return WakeProgress(
        devices=tuple(device(name, seed=n) for n, name in enumerate(names)),
        unmatched=events(folder, names),
        planned=len(trials),
        counted=150,
        ambient_planned_s=2400.0,
    )


def wake_double(folder: Path, names: tuple[str, ...] = NAMES[:1], **more: bool) -> EngineDouble:
    rows = Rows()
    rows.start(*planned_trials(names), title="Kitchen wake words")
    engine = EngineDouble(folder, rows, **more)
    engine.state = type(engine.state)(StateWord.PLAYING, START_S, None, "wake-121", 1)
    return engine


def wake_dashboard(engine: EngineDouble, given: Given) -> Dashboard:
    return Dashboard(partial(EngineClient, engine.socket_path), engine.folder, "ann", now=lambda: NOW_S, wake=given)


LIMITS = Limits(
    max_false_reject_share=0.05, max_false_reject_upper=0.08, max_false_accepts_per_hour=4.0, min_exposure_hours=1.0
)
STOPPING = Stopping(SequentialTest(1.0, 5.0), SequentialTest(0.02, 0.1))


def declare(folder: Path, limits: Limits = LIMITS, stopping: Stopping = STOPPING) -> None:
    """What the scenario of the session in `folder` wants, as the session keeps it."""
    scenario = Scenario("wake", "Wake words", "wake.yaml", "0", (), (), limits=limits, stopping=stopping)
    stored = {"scenario": TypeAdapter(Scenario).dump_python(scenario, mode="json"), "bench": {}}
    SessionFolder(folder).resolved.write_text(json.dumps(stored), encoding="utf-8")
