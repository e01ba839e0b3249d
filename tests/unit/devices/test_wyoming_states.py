"""The states of a Wyoming satellite, from the events of a pipeline run."""

from __future__ import annotations

import json
import queue
import time
from pathlib import Path

import pytest

from harness.devices.outlet import BROKEN
from harness.devices.profiles.profile import load_profile
from harness.devices.wire.console import Console
from harness.devices.wyoming import PipelineEnd, WyomingOptions, WyomingRelay
from harness.devices.wyoming_server import PIPELINE_ENDED
from harness.model.observation import Status, Wake
from harness.model.time import Stamp
from tests.ports import free_port

LOCAL = {"start_stage": "asr", "end_stage": "tts", "restart_on_end": False}
MUTE = {**LOCAL, "end_stage": "handle"}
REMOTE = {"start_stage": "wake", "end_stage": "tts", "restart_on_end": True}
DETECTION = ("detection", {"name": "okay_nabu"})
ASKED = [DETECTION, ("run-pipeline", LOCAL), ("transcribe", {}), ("voice-stopped", {}), ("transcript", {"text": "hi"})]
NOT_HEARD = ("error", {"text": "no text", "code": "stt-no-text-recognized"})
SOUND = [("audio-start", {}), ("audio-stop", {"timestamp": 2000})]


def states(events: list[tuple[str, dict[str, object]]], profile: str, until_s: float = 10.0) -> tuple[list[str], int]:
    """The states that a relay reports of events 0.1 s apart, each with its time in s, and the number of wake events."""
    console, end = Console(load_profile(profile, beside=Path()), "satellite"), PipelineEnd()
    observations = []
    for step in range(round(until_s * 10)):
        at_s = step / 10
        lines = PIPELINE_ENDED if end.is_overdue(at_s) else b""
        if step < len(events):
            kind, data = events[step]
            event = json.dumps({"type": kind, "data": data}).encode()
            lines += event + b"\n"
            if end.ends_run(event, at_s):
                lines += PIPELINE_ENDED
        observations += console.feed(lines, Stamp(at_s))
    changes = [
        f"{observation.at.at_s:.1f} {observation.state.value}"
        for observation in observations
        if isinstance(observation, Status)
    ]
    return changes, sum(isinstance(observation, Wake) for observation in observations)


ANSWERED = ["0.1 listening", "0.2 listening", "0.3 thinking", "0.5 speaking"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([*ASKED, *SOUND, ("played", {})], [*ANSWERED, "0.7 idle"]),
        ([*ASKED, *SOUND], [*ANSWERED, "3.0 idle"]),  # version 1.0 does not report the end of its answer
        ([*ASKED, ("audio-start", {}), ("audio-stop", {})], ANSWERED),
        ([*ASKED[:4], NOT_HEARD], ["0.1 listening", "0.2 listening", "0.3 thinking", "0.4 idle"]),
        ([DETECTION, ("run-pipeline", MUTE), ("transcript", {"text": "hi"})], ["0.1 listening", "0.2 idle"]),
        ([("run-pipeline", REMOTE), DETECTION, ("transcribe", {})], ["0.0 idle", "0.2 listening"]),
    ],
)
def test_a_pipeline_run_gives_the_states_of_the_satellite(
    events: list[tuple[str, dict[str, object]]], expected: list[str]
) -> None:
    assert states(events, "wyoming_events") == (expected, 1)


def test_a_run_without_a_detection_counts_as_the_wake_event() -> None:
    assert states([*ASKED[1:], *SOUND], "wyoming_server")[1] == 1
    assert states([*ASKED, *SOUND], "wyoming_server")[1] == 1
    assert states([*ASKED[1:], *SOUND], "wyoming_events")[1] == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_that_ends_a_thread_of_the_relay_is_reported() -> None:
    def fail(lines: bytes, at: Stamp) -> None:
        raise ZeroDivisionError

    reasons = queue.SimpleQueue[str]()
    relay = WyomingRelay(WyomingOptions(f"127.0.0.1:{free_port()}"), time.monotonic, fail, left=reasons.put)
    assert reasons.get(timeout=30) == BROKEN
    relay.close()
