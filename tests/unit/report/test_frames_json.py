"""What was understood, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.model.record import TrialFinished, TrialStarted
from harness.model.trial import Outcome
from harness.report.session import WholeSession
from harness.report.wake_json import as_json
from tests.dashboard.frame_bench import TIMER, some_frames, wanting
from tests.unit.session.figures.rows import Rows, planned


def understood(rows: Rows) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(as_json(WholeSession.of(rows.entries), ())))["understood"]
    return found


def test_counts_and_every_attempt(tmp_path: Path) -> None:
    found = understood(some_frames(tmp_path))
    assert (found["frames"]["right"], found["frames"]["of"], found["frames"]["value"]) == (3, 4, 0.75)
    assert found["first_attempt"]["frames"]["right"] == 2
    assert found["first_attempt"]["intents"]["right"] == 3
    assert found["attempts"] == [
        {"attempts": 1, "trials": 2, "of": 4},
        {"attempts": 2, "trials": 1, "of": 4},
        {"attempts": None, "trials": 1, "of": 4},
    ]
    timer = found["trials"][0]
    assert timer["expected"] == {"intents": ["set_timer"], "slots": [{"concept": "duration", "value": "10 minutes"}]}
    assert [(one["attempt"], one["intents_right"], one["right"]) for one in timer["attempts"]] == [
        (1, True, False),
        (2, True, True),
    ]
    assert timer["attempts"][0]["parts"] == [
        {"mark": "right", "intent": "set_timer"},
        {"mark": "other value", "slot": "duration", "value": "15 minutes", "wanted": "10 minutes"},
    ]
    assert found["trials"][4] == {
        "trial": "read_list",
        "device": "kitchen",
        "expected": {"intents": ["read_list"], "slots": None},
        "outcome": None,
        "attempts": [],
    }


def test_what_nobody_knows_is_null() -> None:
    rows = Rows()
    rows.start(wanting(1, "set a timer", "timer", TIMER))
    rows.add(TrialStarted("timer", 1))
    rows.attempt("timer", 1, Outcome.NO_WAKE, latency_s=None)
    rows.add(TrialFinished("timer", 1, Outcome.NO_WAKE, 1, 1))
    found = understood(rows)
    assert found["trials"][0]["attempts"] == [{"attempt": 1, "understood": None, "intents_right": None, "right": None}]
    # … but a device that did not wake has not understood.
    assert (found["frames"]["right"], found["frames"]["of"]) == (0, 1)
    nothing = Rows()
    nothing.start(planned(1))
    empty = understood(nothing)
    assert empty["frames"] == {"right": 0, "of": 0, "value": None, "interval": None}
    assert empty["trials"] == []
