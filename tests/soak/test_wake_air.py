"""The boards' scenario by loudspeaker: 216 phrases and half an hour of ambient sound through the lab's air, an hour.

Its truth is what the same engine makes of the same stimuli without any air: what differs is told, trial by trial.
HARNESS_AIR_RESULT names a file for the comparison, HARNESS_AIR_SESSION a session that was run already.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soxr

from harness.base.places import SessionFolder
from harness.engines.microwakeword import MicroWakeWord
from harness.model.observation import Overrun
from harness.model.record import Entry, Observed, StimulusStored
from harness.model.scenario import TrialKind
from harness.model.stimulus import Waveform
from harness.session.log.reader import check, read_clip
from tests.conformance.engine_runs import rows, wait_for
from tests.conformance.lab_runs import LabRuns, lab_of_its_own
from tests.known import known
from tests.written_sessions import wake_of

SCENARIOS = Path(__file__).parents[2] / "scenarios"
DEVICE = "assistant"
RATE_HZ = 16_000
QUIET_S = 1.0
DIFFERS_AT_MOST = 0.1
"""Share of the trials that may come out otherwise than offline: the room, its noise, and where the frames fall."""


@dataclass(frozen=True)
class Offline:
    """hits: of so many ways to lie on the engine's frames, how many made it wake in the window."""

    hits: int
    ways: int


def offline(sound: Waveform, first_s: float, last_s: float) -> Offline:
    """What the engine makes of a stimulus with nothing between, laid on its frames in several ways."""
    samples = soxr.resample(sound.samples, sound.rate_hz, RATE_HZ).astype(np.float32)
    chance = np.random.default_rng(7)
    ways = (0, 37, 83, 120)
    hits = 0
    for shift in ways:
        before = chance.normal(0, 1e-4, round(QUIET_S * RATE_HZ) + shift).astype(np.float32)
        after = chance.normal(0, 1e-4, RATE_HZ).astype(np.float32)
        pcm = np.clip(np.rint(np.concatenate([before, samples, after]) * 32768), -32768, 32767).astype(np.int16)
        times_s = [(hit.sample - len(before)) / RATE_HZ for hit in MicroWakeWord().feed(pcm)]
        hits += any(first_s <= at_s <= last_s for at_s in times_s)
    return Offline(hits, len(ways))


def compared(folder: Path, entries: list[Entry]) -> tuple[list[str], int, int]:
    """Lines on every trial that came out otherwise than offline; how many those are, and of how many."""
    figures = wake_of(entries)
    clips = {entry.record.sha256: entry.record.clip for entry in entries if isinstance(entry.record, StimulusStored)}
    overruns = Counter(
        row.trial_id
        for entry in entries
        if isinstance(row := entry.record, Observed) and isinstance(row.observation, Overrun)
    )
    offline_by_sha256: dict[str, Offline] = {}
    lines: list[str] = []
    differs = total = certain = 0
    for play in figures.plays(DEVICE):
        if play.kind is not TrialKind.WAKE:
            continue
        sha256, row, settings = play.row.stimulus_sha256, play.row, play.settings
        if sha256 not in offline_by_sha256:
            sound = read_clip(SessionFolder(folder).clips, clips[sha256])
            window = row.query_start_s - settings.window_before_s, row.query_end_s + settings.window_after_s
            offline_by_sha256[sha256] = offline(sound, *window)
        truth, hit = offline_by_sha256[sha256], play.reading.hit is not None
        total += 1
        certain += truth.hits in (0, truth.ways)
        if hit is not (truth.hits * 2 > truth.ways) or truth.hits * 2 == truth.ways:
            sure = truth.hits in (0, truth.ways)
            differs += sure
            late = (play.place(event) - play.start_s - row.query_end_s for event in play.reading.unmatched)
            after = [f"{at_s:.2f} s after the phrase" for at_s in late]
            lines.append(
                f"{play.trial.id}: {'hit' if hit else 'missed'} through the air, offline {truth.hits} of {truth.ways}"
                f"{'' if sure else ' (it depends on the frames)'}{'; unmatched ' + ', '.join(after) if after else ''}"
                f"; sound lost {overruns[play.trial.id]} times"
            )
    wake = known(figures.snapshot().device(DEVICE))
    share = wake.false_rejects.share
    outcomes = Counter(play.kind.value for play in figures.plays(DEVICE))
    head = [
        f"counted: {dict(outcomes)}",
        f"false rejects {share.count} of {share.total}; false accepts {wake.after_review.count}",
        f"exposure {wake.exposure_s:.1f} s, unproven {wake.unproven_s:.1f} s",
        f"delays: {wake.delays}",
        f"offline says the same however the frames fall for {certain} of {total}; of those {differs} differ:",
    ]
    return [*head, *lines], differs, certain


@pytest.mark.soak
@pytest.mark.sound
@pytest.mark.speech
@pytest.mark.timeout(3 * 3600)
def test_the_boards_scenario_through_the_air(tmp_path: Path) -> None:
    ran = os.environ.get("HARNESS_AIR_SESSION")
    folder = Path(ran) if ran else _run(tmp_path)
    entries = rows(folder)
    assert check(folder).damage == ()
    lines, differs, certain = compared(folder, entries)
    if result_path := os.environ.get("HARNESS_AIR_RESULT"):
        Path(result_path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    figures = wake_of(entries)
    progress = figures.snapshot()
    wake = known(progress.device(DEVICE))
    assert progress.counted == progress.planned == 246
    assert wake.false_rejects.share.total == 216
    assert wake.exposure_s + wake.unproven_s == pytest.approx(1800.0, abs=30.0)
    assert wake.exposure_s >= 0.95 * 1800.0
    assert certain >= 150
    assert differs <= DIFFERS_AT_MOST * certain, "\n".join(lines)


def _run(tmp_path: Path) -> Path:
    with lab_of_its_own() as lab:
        runs = LabRuns(tmp_path, lab)
        try:
            folder = runs.prepare(SCENARIOS / "wake_boards.yaml", SCENARIOS / "benches" / "virtual_lab.yaml")
            watcher = runs.start(folder)
            wait_for(lambda: not watcher.place.alive, 2.5 * 3600, "the end of the run")
        finally:
            runs.close()
    return folder
