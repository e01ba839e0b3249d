"""Re-scanning stored scores, beside running the engine: one operating point, all of them, every threshold.

python benchmarks/bench_rescan.py            about a minute

Speeds are seconds of audio per second of processor time of this process, so that load on the machine does not show.
Beside each is its ratio to the engine on the same sound in the same run. Scores are the engine's own, of speech-shaped
noise that is made here, cut into files of an hour (out-of-vocabulary) and of 3 s (in-vocabulary).
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sizes import sized

from harness.base.ports import ScoresSound
from harness.engines.offline_loading import load_engine, task_of
from harness.model.offline import CountingRules, FileOutcome, ListKind, ScoreTrack, SpotRule
from harness.offline.figures.counts import Tally
from harness.offline.figures.sweep import Sweep
from harness.offline.one_file import compute_scores, crossings, spots_of_track
from harness.offline.score_cache import ScoreCache

TASK = "microwakeword:okay_nabu"
ENGINE_S = sized(600.0, 60.0)
HOURS, UTTERANCES = sized(50, 1), sized(2000, 20)
MIN_S = sized(1.0, 0.0)
RATE_HZ = 16_000
COUNTING = CountingRules(count_in_vocabulary=True)
HOUR = FileOutcome(ListKind.OOV, 0, 3600 * RATE_HZ, RATE_HZ, RATE_HZ)
UTTERANCE = FileOutcome(ListKind.INV, 0, 3 * RATE_HZ, RATE_HZ, RATE_HZ)
"""Files before their spots are counted."""


def noise(seconds: float) -> np.ndarray:
    """Noise with the loudness of speech's syllables, int16."""
    random = np.random.default_rng(1)
    samples = int(seconds * RATE_HZ)
    syllables = np.repeat(random.gamma(1.5, 1.0, samples // 3200 + 1), 3200)[:samples]
    return (random.normal(0, 1500, samples) * syllables).clip(-32_000, 32_000).astype(np.int16)


def mean_cpu_s(work: Callable[[], object]) -> float:
    """Processor seconds of one call, over as many calls as fill MIN_S, and one at least."""
    calls, spent_s, began_s = 0, 0.0, time.process_time()
    while calls == 0 or spent_s < MIN_S:
        work()
        calls += 1
        spent_s = time.process_time() - began_s
    return spent_s / calls


def main() -> None:
    engine = load_engine(task_of(TASK))
    assert isinstance(engine, ScoresSound)
    facts = engine.facts
    assert facts.rule is not None
    rule = facts.rule
    sound = noise(ENGINE_S)
    engine_s = mean_cpu_s(lambda: compute_scores(engine, [sound])) / ENGINE_S
    (track,) = compute_scores(engine, [sound])
    hour_track = ScoreTrack(track.phrase, np.tile(track.scores, round(3600 / ENGINE_S)), track.first_end, track.step)
    fine = distinct_hours(hour_track)
    short = [replace(hour_track, scores=fine[0].scores[100 * n % 30_000 :][:100]) for n in range(UTTERANCES)]
    print(f"{TASK}: the engine itself {1 / engine_s:,.0f} x real time on one core")

    def measure(name: str, work: Callable[[], object], audio_s: float = 3600.0 * HOURS) -> None:
        speed = audio_s / mean_cpu_s(work)
        print(f"{name:<74} {speed:>13,.0f} x real time {speed * engine_s:>10,.0f} x the engine")

    def sweep(tracks: list[ScoreTrack], outcome: FileOutcome, refractory_ms: float = 1000) -> None:
        sweep_rule = replace(rule, refractory_samples=round(refractory_ms * RATE_HZ / 1000))
        counts = Sweep(COUNTING, sweep_rule, facts.operating_points)
        for track in tracks:
            counts.add(outcome, [track])
        counts.det_at()

    steps = rule.refractory_samples / track.step
    measure(
        "spots of an hour at one operating point",
        lambda: [crossings(hour.scores, rule.threshold, steps) for hour in fine],
    )
    measure("... counted as the log counts them", lambda: count(fine, rule))
    measure("... at another refractory time (250 ms), every threshold at once", lambda: sweep(fine, HOUR, 250))
    measure("every threshold at once, hours (over a million distinct scores)", lambda: sweep(fine, HOUR))
    quantised = [hour_track] * HOURS
    measure("every threshold at once, hours (scores as this engine gives them)", lambda: sweep(quantised, HOUR))
    measure("every threshold at once, files of 3 s", lambda: sweep(short, UTTERANCE), 3.0 * UTTERANCES)
    with tempfile.TemporaryDirectory() as folder:
        cache = ScoreCache(folder, print)
        keys = [hashlib.sha256(bytes([n])).hexdigest() for n in range(HOURS)]
        for key, hour in zip(keys, fine, strict=True):
            cache.put(facts.fingerprint, key, (hour,), 3600 * RATE_HZ, RATE_HZ)
        measure(
            "reading kept scores of an hour, checksum included",
            lambda: [cache.get(facts.fingerprint, key) for key in keys],
        )
        print(f"kept scores of {HOURS} hours: {cache.size(facts.fingerprint)}")


def distinct_hours(hour: ScoreTrack) -> list[ScoreTrack]:
    """The scores of an hour, HOURS times, as an engine with finer ones would give them.

    All values are different then, which is the hardest case.
    """
    random = np.random.default_rng(2)
    count = len(hour.scores)
    return [
        replace(hour, scores=np.clip(hour.scores + random.random(count, np.float32) / 256, 0, 1)) for _ in range(HOURS)
    ]


def count(hours: list[ScoreTrack], rule: SpotRule) -> None:
    tally = Tally(COUNTING)
    for hour in hours:
        tally.add(replace(HOUR, spots=spots_of_track(hour, rule)))
    assert tally.counts.oov_files == HOURS


if __name__ == "__main__":
    main()
