"""Re-scanning scores that were kept, against running the engine: one operating point, all of them, every threshold.

python benchmarks/bench_rescan.py            about a minute

Figures are seconds of audio a second of processor time of this process, so that a machine that has other things to do
does not show; each with its ratio to the engine on the same sound in the same run. Scores are the engine's own, of
speech-shaped noise that is made here, cut into files of an hour (out-of-vocabulary) and of 3 s (in-vocabulary).
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
from harness.model.offline import CountingRules, FileOutcome, ListKind, ScoreTrack
from harness.offline.figures.counts import Tally
from harness.offline.figures.sweep import Sweep
from harness.offline.one_file import compute_scores, crossings, spots_of_track
from harness.offline.score_cache import ScoreCache

TASK = "microwakeword:okay_nabu"
ENGINE_S = sized(600.0, 60.0)
HOURS, UTTERANCES = sized(50, 1), sized(2000, 20)
MIN_S = sized(1.0, 0.0)
RATE_HZ = 16_000


def noise(seconds: float) -> np.ndarray:
    """Noise with the loudness of speech's syllables, int16."""
    random = np.random.default_rng(1)
    samples = int(seconds * RATE_HZ)
    syllables = np.repeat(random.gamma(1.5, 1.0, samples // 3200 + 1), 3200)[:samples]
    return (random.normal(0, 1500, samples) * syllables).clip(-32_000, 32_000).astype(np.int16)


def timed(work: Callable[[], object], least_s: float = MIN_S) -> float:
    """Processor seconds of one time, over as many as fill least_s."""
    times, began_s = 0, time.process_time()
    while (spent_s := time.process_time() - began_s) < least_s or not times:
        work()
        times += 1
    return spent_s / times


def main() -> None:
    engine = load_engine(task_of(TASK))
    assert isinstance(engine, ScoresSound)
    facts = engine.facts
    assert facts.rule is not None
    rule, counting = facts.rule, CountingRules(count_in_vocabulary=True)
    sound = noise(ENGINE_S)
    engine_s = timed(lambda: compute_scores(engine, [sound])) / ENGINE_S
    (track,) = compute_scores(engine, [sound])
    an_hour = ScoreTrack(track.phrase, np.tile(track.scores, round(3600 / ENGINE_S)), track.first_end, track.step)
    random = np.random.default_rng(2)
    # The same scores as an engine with finer ones would have: every one another value, the hardest case.
    fine = [
        replace(an_hour, scores=np.clip(an_hour.scores + random.random(len(an_hour.scores), np.float32) / 256, 0, 1))
        for _ in range(HOURS)
    ]
    short = [replace(an_hour, scores=fine[0].scores[100 * n % 30_000 :][:100]) for n in range(UTTERANCES)]
    hour = FileOutcome(ListKind.OOV, 0, 3600 * RATE_HZ, RATE_HZ, RATE_HZ)
    utterance = FileOutcome(ListKind.INV, 0, 3 * RATE_HZ, RATE_HZ, RATE_HZ)
    print(f"{TASK}: the engine itself {1 / engine_s:,.0f} x real time on one core")

    def tell(what: str, audio_s: float, spent_s: float) -> None:
        print(f"{what:<74} {audio_s / spent_s:>13,.0f} x real time {audio_s / spent_s * engine_s:>10,.0f} x the engine")

    def counted() -> None:
        tally = Tally(counting)
        for one in fine:
            tally.add(replace(hour, spots=spots_of_track(one, rule)))
        assert tally.counts.oov_files == HOURS

    def swept(tracks: list[ScoreTrack], outcome: FileOutcome, refractory_ms: float = 1000) -> Sweep:
        at = replace(rule, refractory_samples=round(refractory_ms * 16))
        sweep = Sweep(counting, at, facts.operating_points)
        for one in tracks:
            sweep.add(outcome, [one])
        return sweep

    oov_s, inv_s = 3600.0 * HOURS, 3.0 * UTTERANCES
    steps = rule.refractory_samples / track.step
    tell("spots of an hour at one operating point", oov_s,
         timed(lambda: [crossings(one.scores, rule.threshold, steps) for one in fine]))  # fmt: skip
    tell("... counted as the log counts them", oov_s, timed(counted))
    tell("... at another refractory time (250 ms), every threshold at once", oov_s,
         timed(lambda: swept(fine, hour, 250).det_at()))  # fmt: skip
    tell(
        "every threshold at once, hours (over a million distinct scores)",
        oov_s,
        timed(lambda: swept(fine, hour).det_at()),
    )
    quantised = [an_hour] * HOURS
    tell("every threshold at once, hours (scores as this engine gives them)", oov_s,
         timed(lambda: swept(quantised, hour).det_at()))  # fmt: skip
    tell("every threshold at once, files of 3 s", inv_s, timed(lambda: swept(short, utterance).det_at()))
    with tempfile.TemporaryDirectory() as folder:
        cache = ScoreCache(folder, print)
        names = [hashlib.sha256(bytes([n])).hexdigest() for n in range(HOURS)]
        for name, one in zip(names, fine, strict=True):
            cache.put(facts.fingerprint, name, (one,), 3600 * RATE_HZ, RATE_HZ)
        tell("reading kept scores of an hour, checksum included", oov_s,
             timed(lambda: [cache.get(facts.fingerprint, name) for name in names]))  # fmt: skip
        print(f"kept scores of {HOURS} hours: {cache.size(facts.fingerprint)}")


if __name__ == "__main__":
    main()
