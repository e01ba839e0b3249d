"""Faults under wake sessions on two real boards, one of them struck: nothing lost or miscounted, all of it said."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.model.feed import Abort, Pause, Rerun, Resume, Skip
from harness.model.observation import DeviceState, Status
from harness.model.record import AttemptFinished, Observed, TrialFinished
from harness.model.trial import Outcome
from tests.conformance.boards import PosixBoard, posix_board
from tests.conformance.engine_runs import HARNESS, kill, rows, wait_for
from tests.conformance.faulted_runs import (
    SCENARIO,
    SEGMENT_S,
    Session,
    assert_whole,
    bench,
    causes,
    counted_events,
    strike,
)
from tests.conformance.mqtt_bench import Broker
from tests.known import known
from tests.seen import until
from tests.written_sessions import records

NOTICED_AT_ONCE_S = 2.0
"""Milliseconds on a machine that is free."""
SILENT_S = 3.0
"""`answer_limit_s` of the serial driver; it is 4 s over MQTT."""


@dataclass
class Bench:
    """A board on a port behind a cable, and one on a broker."""

    root: Path
    wired: PosixBoard
    radio: PosixBoard
    broker: Broker

    def session(self, calls: int = 1, segments: int = 2) -> Session:
        """In µ-law a second of sound takes half as many messages, so that a call has a longer lead-in."""
        scenario = SCENARIO.replace("lead_in_s: 40", "lead_in_s: 90")
        scenario = scenario.replace("hours: 0.1", f"hours: {segments * SEGMENT_S / 3600:.7f}")
        scenario = scenario.replace("[alan, boris, kal]", "[alan, boris]" if calls == 2 else "[alan]")
        wired = f"{{driver: serial, port: {self.wired.port}, encoding: ulaw}}"
        radio = f'{{driver: mqtt, address: "127.0.0.1:{self.broker.port}", encoding: ulaw}}'
        return Session(self.root / "work", scenario=scenario, bench=bench(wired=wired, radio=radio))


@pytest.fixture
def two_boards(short: Path) -> Iterator[Bench]:
    for name in ("wired", "radio"):
        (short / name).mkdir()
    with (
        Broker(short) as broker,
        posix_board(short / "wired", cable=True) as wired,
        posix_board(short / "radio", "--device", "radio", "--mqtt", f"127.0.0.1:{broker.port}") as radio,
    ):
        yield Bench(short, wired, radio, broker)


def assert_said(session: Session, *patterns: str) -> None:
    """What a person has read, in this order."""
    screen, position = session.screen(), 0
    for pattern in patterns:
        match = re.compile(pattern).search(screen, position)
        assert match, f"{pattern!r} does not follow in:\n{screen}"
        position = match.end()


def assert_causes(session: Session, *patterns: str) -> None:
    """The causes in their order. A host that stands still for seconds may add silences of a board."""
    interruptions = causes(rows(session.folder))
    left = list(patterns)
    for cause in interruptions:
        if left and re.match(left[0], cause):
            left.pop(0)
        else:
            assert re.search(r"has not answered for 3\.\d\d s", cause), interruptions
    assert not left, interruptions


def test_counts_survive_a_cable_that_is_pulled_and_put_back(two_boards: Bench) -> None:
    cable = known(two_boards.wired.cable)
    with two_boards.session() as session:
        mended_s = 0.0
        for trial in ("call.v-alan", "soak.r1.s0001", "soak.r1.s0001"):  # the last one in its second attempt
            session.playing(trial, "wired", mended_s)
            struck_s = strike(cable.unplug)
            noticed_s, _ = session.interrupted(struck_s)
            assert noticed_s < NOTICED_AT_ONCE_S
            session.lost("wired", struck_s)
            mended_s = strike(cable.replug)
            session.back("wired", mended_s)
        session.goes_on(mended_s)
        assert session.ask(Pause("1", "ann", "a look at the cable")).ok
        wait_for(lambda: bool(session.records(TrialFinished, mended_s)), 90, "the end of the trial")
        struck_s = strike(cable.unplug)
        session.lost("wired", struck_s)
        assert session.ask(Resume("2", "ann")).ok
        wait_for(lambda: "waiting for wired" in session.screen(), event="a word about the gap")
        mended_s = strike(cable.replug)
        session.back("wired", mended_s)
        assert session.finish() == 0
    gone = r"its port is gone \(unplugged, or without power\): \S+/cable"
    assert_causes(session, *[f"link_lost: wired: {gone}"] * 3)
    assert_said(
        session,
        f"LOST wired: {gone}",
        rf"1/3 call\.v-alan\.r1 attempt 1: interrupted \(link lost: wired: {gone}\)",
        "BACK wired",
        r"call\.v-alan\.r1 attempt 2",
        r"PAUSED by ann",
        f"LOST wired: {gone}",
        f"interrupted .* s: waiting for wired: {gone}",
        "BACK wired",
        "END all trials are finished",
    )
    assert_whole(session.folder)


def test_counts_survive_a_board_that_restarts_and_freezes(two_boards: Bench) -> None:
    wired = two_boards.wired
    with two_boards.session() as session:
        session.playing("call.v-alan", "wired")
        struck_s = strike(wired.reset)
        noticed_s, cause = session.interrupted(struck_s)
        assert (noticed_s < NOTICED_AT_ONCE_S, cause) == (True, "device_restarted: wired")
        session.playing("soak.r1.s0001", "wired")
        struck_s = strike(wired.freeze)
        noticed_s, _ = session.lost("wired", struck_s)
        assert SILENT_S - 0.5 < noticed_s < SILENT_S + NOTICED_AT_ONCE_S
        wait_for(lambda: "waiting for wired" in session.screen(), event="a word about the board")
        mended_s = strike(wired.thaw)
        session.back("wired", mended_s)
        session.playing("soak.r1.s0002", "wired", mended_s)
        wired.reset()
        wired.reset()
        assert session.finish() == 0
    assert_causes(
        session,
        "device_restarted: wired",
        r"link_lost: wired: the board has not answered for 3\.\d\d s; its port is still there",
        "device_restarted: wired",
    )
    assert_said(
        session,
        r"attempt 1: interrupted \(device restarted: wired\)",
        r"LOST wired: the board has not answered for 3\.\d\d s; its port is still there",
        r"interrupted .* s: waiting for wired: the board has not answered",
        "BACK wired",
        r"interrupted \(device restarted: wired\)",
    )
    entries = assert_whole(session.folder)
    restarts = [
        row.observation
        for row in records(entries, Observed)
        if isinstance(row.observation, Status)
        if row.observation.state is DeviceState.STARTED
    ]
    assert len(restarts) >= 2
    assert {restart.source for restart in restarts} == {"wired"}


def test_a_noisy_line_and_a_flood_change_no_count(two_boards: Bench) -> None:
    cable = known(two_boards.wired.cable)
    with two_boards.session(segments=1) as session:
        session.playing("call.v-alan", "wired")
        cable.corrupt(1e-3, seed=3)
        session.playing("soak.r1.s0001", "wired", within_s=90)
        cable.corrupt(0)
        cable.flood(500_000)
        assert session.finish(90) == 0
    # A starved host may let a board be silent for 3 s, once.
    interruptions = causes(rows(session.folder))
    assert [cause for cause in interruptions if "has not answered" not in cause] == []
    assert len(interruptions) <= 1
    assert_whole(session.folder)


def test_counts_survive_a_killed_frozen_and_repeating_broker(two_boards: Bench) -> None:
    with Echo(two_boards.broker), two_boards.session(segments=1) as session:
        session.playing("call.v-alan", "radio")
        struck_s = strike(two_boards.broker.kill)
        noticed_s, _ = session.interrupted(struck_s)
        assert noticed_s < NOTICED_AT_ONCE_S
        wait_for(lambda: "waiting for radio" in session.screen(), event="a word about the broker")
        mended_s = strike(two_boards.broker.start)
        session.back("radio", mended_s)
        session.playing("soak.r1.s0001", "radio", mended_s)
        struck_s = strike(two_boards.broker.freeze)
        noticed_s, _ = session.lost("radio", struck_s)
        assert 3.0 < noticed_s < 6.0 + NOTICED_AT_ONCE_S
        mended_s = strike(two_boards.broker.thaw)
        session.back("radio", mended_s)
        session.goes_on(mended_s)
        assert session.finish(90) == 0
    gone = r"the connection to the broker was lost: 127\.0\.0\.1:\d+"
    still = r"the broker (does not answer|has not answered)"
    assert_causes(session, f"link_lost: radio: {gone}", f"link_lost: radio: {still}")
    assert_said(
        session, f"LOST radio: {gone}", f"waiting for radio: {gone}", "BACK radio", f"LOST radio: {still}", "BACK"
    )
    assert_whole(session.folder)


def test_counts_survive_a_radio_board_that_restarts_freezes_and_loses_power(two_boards: Bench) -> None:
    with ExitStack() as stack, two_boards.session() as session:
        session.playing("call.v-alan", "radio")
        struck_s = strike(two_boards.radio.reset)
        noticed_s, _ = session.interrupted(struck_s)
        assert noticed_s < NOTICED_AT_ONCE_S
        session.playing("soak.r1.s0001", "radio")
        struck_s = strike(two_boards.radio.freeze)
        noticed_s, _ = session.lost("radio", struck_s)
        assert 3.0 < noticed_s < 5.0 + NOTICED_AT_ONCE_S
        wait_for(lambda: "waiting for radio" in session.screen(), event="a word about the board")
        mended_s = strike(two_boards.radio.thaw)
        session.back("radio", mended_s)
        session.playing("soak.r1.s0002", "radio", mended_s)
        struck_s = strike(two_boards.radio.kill)
        noticed_s, _ = session.interrupted(struck_s)
        assert noticed_s < NOTICED_AT_ONCE_S, "its last will says so"
        (two_boards.root / "other").mkdir()
        options = ("--device", "radio", "--mqtt", f"127.0.0.1:{two_boards.broker.port}")
        stack.enter_context(posix_board(two_boards.root / "other", *options))
        assert session.finish(90) == 0
    assert_causes(
        session,
        "device_(gone|restarted): radio",  # a reset ends its connection: its last will mostly comes first
        r"(link_lost: radio: the board has been silent for [4-6]\.\d\d s; the broker answers|device_gone)",
        "(device_gone|link_lost): radio: the b(oard|roker)",
    )
    assert_said(
        session,
        r"interrupted \(device (gone|restarted): radio",
        r"LOST radio: the board has (been silent for [4-6]\.\d\d s; the broker answers|left the broker)",
        "BACK radio",
        r"interrupted \((device gone|link lost): radio",
        "BACK radio",
    )
    assert_whole(session.folder)


def test_skip_pause_and_engine_kill_during_an_injection(two_boards: Bench) -> None:
    with two_boards.session(calls=2) as session:
        session.playing("call.v-alan", "radio")
        assert session.ask(Skip("1", "ann", "the wrong phrase")).ok
        session.playing("call.v-boris", "radio")
        assert session.ask(Pause("2", "ann", "tea")).ok
        wait_for(lambda: any(row.trial_id == "call.v-boris.r1" for _, row in session.records(TrialFinished)), 30)
        assert session.ask(Rerun("3", "ann", "call.v-alan.r1")).ok
        assert not session.ask(Rerun("4", "ann", "nothing")).ok
        assert session.ask(Resume("5", "ann")).ok
        session.playing("soak.r1.s0001", "radio")
        kill(session.place)
        assert session.process.wait(60) == 3
        assert "harness run resume" in session.screen()
        session.resume()
        session.playing("soak.r1.s0002", "radio")
        session.process.send_signal(signal.SIGINT)
        assert session.finish(30) == 3
        session.resume()
        assert session.finish(90) == 0
    entries = assert_whole(session.folder, takes=2)
    assert_causes(session, "engine_ended", "stopped")
    attempts = records(entries, AttemptFinished)
    first = [row for row in attempts if (row.trial_id, row.take) == ("call.v-alan.r1", 1)]
    assert [(row.outcome, row.cause) for row in first] == [(Outcome.SKIPPED, "operator: the wrong phrase")]
    assert_said(session, "SKIPPED after 1 attempt", "PAUSED by ann", "re-run of call.v-alan.r1", "stopped", "END all")


def test_an_aborted_session_cannot_be_resumed(two_boards: Bench) -> None:
    with two_boards.session(segments=1) as session:
        session.playing("soak.r1.s0001", "radio")
        assert session.ask(Abort("1", "ann")).ok
        assert session.finish(30) == 3
    entries = rows(session.folder)
    (last,) = records(entries, AttemptFinished)[-1:]
    assert (last.trial_id, last.outcome) == ("soak.r1.s0001", Outcome.ABORTED)
    assert "soak.r1.s0001" not in counted_events(entries).get("wired", {})
    result = subprocess.run([*HARNESS, "resume", str(session.folder), "--plain"], capture_output=True, check=False)
    assert result.returncode != 0


class Echo:
    """Says each event of the board a second time, as a broker may with QoS 1."""

    def __init__(self, broker: Broker) -> None:
        self.count = 0
        self._broker = broker
        self._lock = threading.Lock()
        self._said: set[bytes] = set()

    def __enter__(self) -> Echo:
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda client, *_: client.subscribe(
            [(f"vh/radio/{topic}", 1) for topic in ("wake", "status")]
        )
        self._client.on_message = self._again
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", self._broker.port, keepalive=5)
        self._client.loop_start()
        until(self._client.is_connected)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()
        assert self.count > 0, "nothing was said twice"

    def _again(self, client: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        if message.retain or bytes(message.payload) in self._said or b'"seq"' not in message.payload:
            return
        self._said.add(bytes(message.payload))
        self.count += 1
        client.publish(message.topic, message.payload, qos=1)
