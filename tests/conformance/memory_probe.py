"""The memory probe in a virtual lab: real sound, and a reference assistant that is told how long to remember."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.session.engine.launch import find
from harness.session.figures.memory import MemoryFigures, MemoryFinding, MemoryPoint, find_memories
from tests.conformance.engine_runs import rows, wait_for
from tests.conformance.lab_runs import BENCH, LabRuns, lab_of_its_own

TO_WAKE_S = 0.85
"""From the start of the follow-up to the wake event, from where the assistant's memory counts: its wake phrase."""
SESSIONS = 3
_SCENARIO = """\
scenario: memory
needs: [loudspeaker, microphone, transcripts]
voices: {{cass: {{engine: flite, name: slt}}}}
defaults:
  voice: cass
  gap_ms: 300
  reprompt: {{max_attempts: 2, context_wait_s: 2, end_silence_ms: 500}}
stimuli:
  - {{id: product, text: what is seven times eight}}
  - {{id: add_five, text: add five to that}}
trials:
  - id: memory
    kind: memory
    query: product
    follow_up: add_five
    waits_s: {waits}
    repeat: {repeat}
    shows: [sixty one]
    forgets: [sorry]
"""


def probe(folder: Path, memory_s: float, waits_s: Sequence[float], repeat: int) -> MemoryFinding:
    """What the probe finds of an assistant with that memory; waits_s: of silence before the follow-up.

    On a machine so busy that sound breaks up, pairs may not count; then further sessions are run, SESSIONS at most.
    """
    folder.mkdir(parents=True)
    settings, scenario = folder / "assistant.yaml", folder / "memory.yaml"
    settings.write_text(f"assistant: assistant\nmemory_s: {memory_s}\n", encoding="utf-8")
    scenario.write_text(
        _SCENARIO.format(waits=[round(wait_s, 2) for wait_s in waits_s], repeat=repeat), encoding="utf-8"
    )
    points: list[MemoryPoint] = []
    with lab_of_its_own(settings) as lab:
        runs = LabRuns(folder, lab)
        try:
            for _ in range(SESSIONS):
                points += _session(runs, scenario, 60 + len(waits_s) * repeat * (60 + max(waits_s)))
                counted = Counter(point.planned_s for point in points if point.shown is not None)
                if len(counted) == len(waits_s) and min(counted.values()) >= repeat:
                    break
        finally:
            runs.close()
    (finding,) = find_memories(points)
    return finding


def _session(runs: LabRuns, scenario: Path, limit_s: float) -> tuple[MemoryPoint, ...]:
    """The pairs of one run, from its start to its end."""
    session = runs.prepare(scenario, BENCH)
    runs.start(session)
    wait_for(lambda: find(session) is None, limit_s, "the end of the run")
    return MemoryFigures.of(rows(session)).points()
