"""A wake session on a real board over a port, reset in the middle: every event is the firmware's, and none is lost."""

import subprocess
from collections import Counter
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from harness.model.observation import DeviceState, Status, StimulusStarted, Wake
from harness.model.record import AttemptFinished, AttemptStarted, Entry, Observed, SessionStarted, TrialFinished
from harness.model.trial import Outcome, Trial
from harness.session.engine.launch import start_engine
from harness.session.engine.prepare import prepare
from harness.session.log.reader import check
from harness.sound.stimuli.renderer import renderer
from harness.wake.wake import WakeFigures
from tests.conformance.boards import built, posix_board
from tests.conformance.engine_runs import Runs, rows, runs, wait_for

__all__ = ["runs"]

SCENARIO = """\
scenario: board
seed: 4
needs: [wake_events, injection]
voices:
  alan: {engine: espeak, name: en-gb, rate_wpm: 150, language: en-GB}
  boris: {engine: espeak, name: en-us+m3, rate_wpm: 170}
  kal: {engine: flite, name: kal}
trials:
  - {id: call, kind: wake, repeat: 3}
  - id: soak
    kind: ambient
    hours: 0.1
    segment_s: 60
    sources:
      - {noise: pink}
      - {id: talk, share: 3, voices: [alan, boris], texts: ["Alec sat down, and Eleksa stood", good morning to you]}
matrix: {axes: {voice: [alan, boris, kal], noise: [null, {kind: pink, snr_db: 10}]}, order: shuffled}
"""
BENCH = """\
bench: board
operator: absent
devices: {{wired: {{profile: vh_board, connection: {{driver: serial, port: {port}}}}}}}
"""
Event = tuple[str, int]
"""Name of a play, and the sample of its sound at which the board woke."""


@pytest.mark.timeout(150)
def test_counts_are_the_firmwares_own_through_a_reset(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    with posix_board(tmp_path) as board:
        (tmp_path / "bench.yaml").write_text(BENCH.format(port=board.port), encoding="utf-8")
        folder = prepare(tmp_path / "scenario.yaml", tmp_path / "bench.yaml", tmp_path / "sessions")
        runs.folders.append(folder)
        place = start_engine(folder)
        soaking = "soak"
        wait_for(lambda: _under_way(rows(folder)).startswith(soaking), 60, "an ambient segment")
        board.reset()
        wait_for(lambda: not place.alive, 120, "the end of the run")
    entries = rows(folder)
    assert check(folder).damage == ()
    outcomes = Counter(row.outcome for entry in entries if isinstance(row := entry.record, TrialFinished))
    assert outcomes == {Outcome.COUNTED: 18 + 6}
    restarts = [row for entry in entries if isinstance(row := entry.record, Observed) and _is_restart(row)]
    assert restarts, "the reset is an observation"
    cut = [
        row
        for entry in entries
        if isinstance(row := entry.record, AttemptFinished)
        if row.outcome is Outcome.INTERRUPTED
    ]
    assert len(cut) == 1, "and interrupts the attempt that was under way"

    plan = _plan(entries)
    true, heard = _truth(entries, plan, tmp_path), _heard(entries)
    counted = {
        f"{row.trial_id}.t{row.take}.a{row.attempt}"
        for entry in entries
        if isinstance(row := entry.record, AttemptFinished)
        if row.outcome is Outcome.COUNTED
    }
    assert sorted(event for event in heard if event[0] in counted) == sorted(one for one in true if one[0] in counted)

    figures = WakeFigures()
    for entry in entries:
        figures.add(entry)
    (device,) = figures.snapshot().devices
    calls = {play_id for play_id in counted if play_id.startswith("call")}
    assert device.hits == len({play_id for play_id, _ in true if play_id in calls}), "each hit lies in its window here"
    assert device.hits + device.false_rejects.share.count == 18
    assert device.false_accepts.count == sum(play_id in counted - calls for play_id, _ in true)
    assert device.false_accepts.count > 0, "nothing was tested"
    assert device.exposure_s == pytest.approx(360.0, abs=0.01)


def _under_way(entries: list[Entry]) -> str:
    last = next(
        (entry.record for entry in reversed(entries) if isinstance(entry.record, AttemptStarted | AttemptFinished)),
        None,
    )
    return last.trial_id if isinstance(last, AttemptStarted) else ""


def _is_restart(row: Observed) -> bool:
    return isinstance(row.observation, Status) and row.observation.state is DeviceState.STARTED


def _plan(entries: list[Entry]) -> dict[str, Trial]:
    started = entries[0].record
    assert isinstance(started, SessionStarted)
    return {trial.id: trial for trial in started.trials}


def _truth(entries: list[Entry], plan: dict[str, Trial], folder: Path) -> list[Event]:
    """What the spotter itself finds in what each boot of the board was given, by the sound made again from the plan."""
    renders = renderer()
    boots: list[list[tuple[str, np.ndarray]]] = [[]]
    for entry in entries:
        match entry.record:
            case AttemptStarted(trial_id=trial_id, take=take, attempt=attempt, stimulus_sha256=sha256):
                made = renders.render(plan[trial_id].recipe)
                assert made.sha256 == sha256
                assert made.waveform.rate_hz == 16_000
                pcm = np.clip(np.rint(made.waveform.samples * 32768), -32768, 32767).astype("<i2")
                boots[-1].append((f"{trial_id}.t{take}.a{attempt}", pcm))
            case AttemptFinished(outcome=Outcome.INTERRUPTED):
                boots.append([])
            case _:
                pass
    found: list[Event] = []
    for plays in boots:
        path = folder / "boot.s16"
        path.write_bytes(b"".join(pcm.tobytes() for _, pcm in plays))
        said = subprocess.run([built("host") / "vh_spot", path], capture_output=True, text=True, check=True).stdout
        ends = list(accumulate(len(pcm) for _, pcm in plays))
        for line in said.splitlines():
            sample = int(line.split()[0])
            number = next(n for n, end in enumerate(ends) if sample <= end)
            found.append((plays[number][0], sample - (ends[number] - len(plays[number][1]))))
    return found


def _heard(entries: list[Entry]) -> list[Event]:
    starts: dict[str, float] = {}
    found: list[Event] = []
    for entry in entries:
        match entry.record:
            case Observed(observation=StimulusStarted(play_id=play_id, audio_s=float(audio_s))):
                starts[play_id] = audio_s
            case Observed(observation=Wake(audio_s=float(audio_s))) as row:
                play_id = f"{row.trial_id}.t{row.take}.a{row.attempt}"
                found.append((play_id, round((audio_s - starts[play_id]) * 16_000)))
            case _:
                pass
    return found
