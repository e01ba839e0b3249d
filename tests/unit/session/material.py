"""Trials, stimuli and a log in memory that the tests of the session share."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.base.ports import Clock
from harness.devices.in_process.device import FORGOT, REMEMBERS
from harness.model.bench import Bench, Device, DeviceProfile, Equipment, ObservationKind
from harness.model.errors import LogFull, Place
from harness.model.record import Clip, Entry, Record
from harness.model.scenario import (
    Defaults,
    Evidence,
    MemorySpec,
    Query,
    RepromptRule,
    Scenario,
    TrialKind,
    TrialTemplate,
)
from harness.model.stimulus import Part, RenderedStimulus, Role, SpokenText, StimulusRecipe, Waveform
from harness.model.trial import Trial
from harness.session.take import StimulusTiming
from tests.written_sessions import records

PROFILE = DeviceProfile(
    id="box",
    title="A box",
    path="devices/box.yaml",
    sha256="0" * 64,
    wake_phrases=("alexa",),
    reports=frozenset({ObservationKind.WAKE, ObservationKind.TRANSCRIPT}),
)
TEXTS = ("what time is it", "set an alarm for one", "add milk to my list", "what is seven times eight")
TIMING = StimulusTiming("5" * 64, query_start_s=1.0, query_end_s=2.0, duration_s=2.5, wake_end_s=0.75)
HERE = Place("bench.yaml", 1, 1)


def equipment(id: str, options: object = None, position: str = "") -> Equipment:
    return Equipment(id, "in_process", options, HERE, position)


def bench(profile: DeviceProfile = PROFILE, connected: bool = True) -> Bench:
    return Bench(
        "lab",
        "A lab",
        "bench.yaml",
        "b" * 64,
        (Device("dut", profile, equipment("dut_link") if connected else None),),
        (equipment("speaker", position="front"), equipment("speaker_back", position="back")),
        equipment("mic"),
    )


def scenario(count: int = 4, **changes: object) -> Scenario:
    queries = tuple(
        Query(f"q{n}", SpokenText(TEXTS[n % len(TEXTS)]), TEXTS[n % len(TEXTS)]) for n in range(min(count, len(TEXTS)))
    )
    trials = tuple(TrialTemplate(f"t{n:02}", f"q{n % len(queries)}") for n in range(count))
    plain = Scenario("kitchen", "Kitchen", "/s/kitchen.yaml", "a" * 64, queries, trials, defaults=Defaults())
    return replace(plain, **changes)  # type: ignore[arg-type]


def trial(**changes: object) -> Trial:
    plain = Trial(
        id="t1.r1",
        number=1,
        template="t1",
        query_id="q",
        device="dut",
        loudspeaker="speaker",
        recipe=StimulusRecipe(SpokenText("what time is it"), SpokenText("alexa"), Defaults().voice),
        reference="what time is it",
        alternatives=(),
        recognised=scenario().recognised,
        evidence=Evidence.DEVICE,
        reprompt=RepromptRule(),
        close_dialogue=None,
        microphone="mic",
        connection="dut_link",
        reports=(ObservationKind.WAKE, ObservationKind.TRANSCRIPT),
        wake_phrases=("alexa",),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def sound_of(recipe: StimulusRecipe) -> RenderedStimulus:
    """Two bursts of seeded noise with a pause: wake phrase and query; one burst without a wake phrase."""
    rate = recipe.rate_hz
    seed = int(hashlib.sha256(repr(recipe).encode()).hexdigest()[:8], 16)
    noise = np.random.default_rng(seed).uniform(-0.1, 0.1, rate * 2).astype(np.float32)
    wake = noise[: round(0.5 * rate)] if recipe.wake_phrase else noise[:0]
    gap = np.zeros(round(recipe.gap_ms / 1000 * rate) if recipe.wake_phrase else 0, dtype=np.float32)
    query = noise[-round(0.8 * rate) :]
    samples = np.concatenate([wake, gap, query, np.zeros(round(0.05 * rate), dtype=np.float32)])
    start = len(wake) + len(gap)
    parts = [Part(Role.QUERY, start, start + len(query), "query")]
    if recipe.wake_phrase:
        parts.insert(0, Part(Role.WAKE_PHRASE, 0, len(wake), "wake"))
    return RenderedStimulus(Waveform(samples, rate), tuple(parts), hashlib.sha256(samples.tobytes()).hexdigest())


class Bursts:
    """A real `Renders` that needs no voice."""

    def __init__(self, fails_for: str = "", error: Exception | None = None) -> None:
        self._fails_for = fails_for
        self._error = error

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        if self._error is not None and isinstance(recipe.query, SpokenText) and recipe.query.text == self._fails_for:
            raise self._error
        return sound_of(recipe)


class MemoryLog:
    """A session log in memory. `room` is asked before each write: False is a full disk."""

    def __init__(self, clock: Clock, room: Callable[[], bool] = lambda: True) -> None:
        self.rows: list[Entry] = []
        self.clips: dict[str, Waveform] = {}
        self.run = 1
        self._clock = clock
        self._room = room
        self._lock = threading.Lock()

    def append(self, record: Record) -> Entry:
        if not self._room():
            raise LogFull("no space left on the device")
        with self._lock:
            entry = Entry(len(self.rows) + 1, self.run, self._clock.now_s(), self._clock.wall_s(), record)
            self.rows.append(entry)
        return entry

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        if not self._room():
            raise LogFull("no space left on the device")
        sha = hashlib.sha256(waveform.samples.tobytes()).hexdigest()
        name = f"{len(self.clips):04}.flac"
        self.clips[name] = waveform
        return Clip(name, sha, waveform.rate_hz, len(waveform.samples), start_s)

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        return iter(self.rows[after_seq:])

    def of(self, kind: type) -> list[Record]:
        return records(self.rows, kind)


@dataclass(frozen=True)
class Here:
    """Surroundings of a driver in a test."""

    clock: Clock
    seed: int = 7
    sound_server: str = "system"
    folder: Path = Path("/nonexistent")
    profile: DeviceProfile | None = None


TELLS = replace(PROFILE, reports=PROFILE.reports | {ObservationKind.RESPONSE})
RULE = RepromptRule(max_attempts=2, context_wait_s=3.0, end_silence_ms=300)


def probe(*waits_s: float, repeat: int = 1, rule: RepromptRule = RULE, **changes: Any) -> Scenario:
    """The first query primes, the second follows up."""
    spec = MemorySpec("q1", waits_s, shows=(REMEMBERS,), forgets=(FORGOT,))
    template = TrialTemplate("memory", "q0", kind=TrialKind.MEMORY, repeat=repeat, reprompt=rule, memory=spec)
    return replace(scenario(2), trials=(template,), **changes)


def quick(profile: DeviceProfile = TELLS) -> DeviceProfile:
    """Without a context wait of its own."""
    return replace(profile, context_wait_s=None)
