"""A long unattended run in the virtual lab: it ends, its log is whole, and the engine does not grow.

HARNESS_SOAK_MINUTES says how long (30 unless named): `make soak`.
"""

import os
import time
from pathlib import Path

import pytest

from harness.model.record import EndReason, SessionFinished, TrialFinished
from harness.session.engine.launch import EnginePlace, start_engine
from harness.session.log.reader import check
from tests.conformance.engine_runs import rows
from tests.conformance.lab_runs import LabRuns, lab_of_its_own
from tests.written_sessions import records

SCENARIOS = Path(__file__).parents[2] / "scenarios"
MINUTES = float(os.environ.get("HARNESS_SOAK_MINUTES", "30"))
TRIALS_A_MINUTE = 5.0
WARM_UP_S = 120.0
GROWTH_LIMIT = 1.3


def _memory_kb(place: EnginePlace) -> int | None:
    try:
        status = Path(f"/proc/{place.pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), None)


@pytest.mark.soak
@pytest.mark.sound
@pytest.mark.speech
@pytest.mark.timeout(int(MINUTES * 60 * 3))
def test_a_long_run(tmp_path: Path) -> None:
    trials = max(3, round(MINUTES * TRIALS_A_MINUTE))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "scenario: soak\n"
        "title: One question, all night\n"
        "defaults: {voice: {engine: flite, name: slt}, reprompt: {max_attempts: 2, context_wait_s: 3}}\n"
        "stimuli:\n  - {id: product, text: what is seven times eight}\n"
        f"trials:\n  - {{id: product, query: product, repeat: {trials}}}\n",
        encoding="utf-8",
    )
    with lab_of_its_own() as lab:
        runs = LabRuns(tmp_path, lab)
        try:
            folder = runs.prepare(scenario, SCENARIOS / "benches" / "virtual_lab.yaml")
            place = start_engine(folder)
            begun_s, warm_kb, last_kb = time.monotonic(), 0, 0
            while place.alive:
                now_kb = _memory_kb(place)
                if now_kb is not None:
                    last_kb = now_kb
                    if time.monotonic() - begun_s < WARM_UP_S:
                        warm_kb = now_kb
                time.sleep(1.0)  # samples of its memory; what is waited for is the engine's end
        finally:
            runs.close()
    entries = rows(folder)
    last = entries[-1].record
    assert isinstance(last, SessionFinished)
    assert last.reason is EndReason.COMPLETED
    assert len(records(entries, TrialFinished)) == trials
    assert check(folder).damage == ()
    assert last_kb <= GROWTH_LIMIT * warm_kb, f"the engine grew from {warm_kb} kB to {last_kb} kB"
