"""Who the board is, and who may use it: simulated time, and brokers that are lists."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.framing.numbering import QUIET_S, Boots, HelloResult, MappedNumbering, NumberingResult
from harness.devices.mqtt.board import MqttBoard
from harness.devices.mqtt.lease import DEFENCE_S, ECHO_S, EXPIRES_S, REFRESH_S, Lease, LeaseState
from harness.devices.mqtt.options import MqttOptions
from harness.devices.outlet import DriverOutlet
from harness.model.bench import PlainValue
from harness.model.errors import DeviceError
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    LinkBack,
    LinkLost,
    LogLine,
    Status,
    StimulusEnded,
    Unread,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from tests.seen import Seen

HELLO = {"protocol": 1, "time_us": 1, "rate_hz": 16000, "window": 8000, "firmware": "t", "wake_phrases": ["a"]}
WAKE = {"sample": 100, "score": 1.0, "phrase": "alexa"}
STARTED = {"state": "started", "detail": "watchdog"}


class Bench(Seen):
    """What the board's thread does is done by `run`; boards that are on answer what it publishes."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 100.0
        self.on: list[str] = ["aaaa"]
        self.expected = 0
        surroundings = SimpleNamespace(clock=SimpleNamespace(now_s=lambda: self.now_s), profile=None, folder=Path())
        outlet = DriverOutlet("radio", surroundings)  # type: ignore[arg-type]
        outlet.open(self)
        self.outlet = outlet
        clock = surroundings.clock
        self.board = MqttBoard("radio", MqttOptions("x"), clock, outlet, lambda *_: None)

    def say(self, topic: str, boot: str, **fields: object) -> None:
        self.board.receive(topic, json.dumps({"boot": boot, **fields}).encode(), Stamp(self.now_s, 0.001))

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.02)):
            self.now_s += 0.02
            out, _ = self.board._due_messages(self.now_s)
            for topic, payload, _ in out:
                self.board._foreign_sender.note_own(topic, payload)
                self.board.receive_echo(topic, payload)
                for boot in self.on:
                    self.answer(boot, topic, payload)

    def answer(self, boot: str, topic: str, payload: bytes) -> None:
        now_us = round(self.now_s * 1e6)
        match topic:
            case "in/hello":
                self.say("hello", boot, **HELLO)
            case "in/ping":
                token = int(payload)
                self.say("pong", boot, token=token, received_us=now_us, sent_us=now_us, listening=True)
            case "in/audio":
                first, count = int.from_bytes(payload[2:10], "little"), (len(payload) - 10) // 2
                self.expected += count if first == self.expected else 0
                self.say("ack", boot, next=self.expected, events=0, command=0)

    def lost(self) -> list[str]:
        return [loss.what for loss in self.of(LinkLost)]

    def starts(self) -> list[str]:
        return [status.detail for status in self.of(Status) if status.state is DeviceState.STARTED]


def met() -> Bench:
    bench = Bench()
    bench.board.link_up()
    bench.run(1.5)
    assert bench.board.wait_for_hello(0)
    return bench


def plays(bench: Bench, play_id: str, seconds: float = 1.0) -> None:
    bench.board.play(play_id, Waveform(np.zeros(16000, dtype=np.float32), 16000))
    bench.run(seconds)


def ended(bench: Bench, play_id: str) -> list[bool]:
    return [observation.complete for observation in bench.of(StimulusEnded) if observation.play_id == play_id]


def test_an_event_with_an_invalid_payload_is_unread() -> None:
    bench = met()
    for topic in ("wake", "log", "pong"):
        bench.say(topic, "aaaa", score=7)
    assert [unread.what for unread in bench.of(Unread)] == ["the payload of an event on wake is not valid"]


def test_a_message_of_an_unknown_boot_changes_nothing() -> None:
    bench = met()
    plays(bench, "one", 0.02)
    bench.say("wake", "deadbeef", seq=3, time_us=1, **WAKE)
    bench.run(2.0)
    assert ended(bench, "one") == [True]
    plays(bench, "two")
    assert ended(bench, "two") == [True]
    assert not bench.of(LinkLost, Wake, Status)
    assert any("deadbeef" in line.text for line in bench.of(LogLine))


@pytest.mark.parametrize(("boot", "error"), [("aaaa", ""), ("bbbb", "the board is not connected")])
def test_a_hello_while_a_sound_is_prepared_stops_it_only_if_the_board_has_restarted(boot: str, error: str) -> None:
    bench = met()
    session = bench.board.session
    prepare = session.prepare

    def slowly(waveform: Waveform) -> object:
        sound = prepare(waveform)
        bench.say("hello", boot, **HELLO | {"time_us": 2_000_000})
        return sound

    session.prepare = slowly  # type: ignore[method-assign, assignment]
    if error:
        with pytest.raises(DeviceError, match=error):
            plays(bench, "one")
    else:
        plays(bench, "one")
        assert ended(bench, "one") == [True]


def test_restart_is_reported_once_even_if_status_precedes_hello() -> None:
    bench = met()
    plays(bench, "one", 0.02)
    bench.on, bench.expected = ["bbbb"], 0
    bench.say("status", "bbbb", seq=1, time_us=5, **STARTED)
    bench.say("hello", "bbbb", **HELLO)
    bench.run(2.0)
    plays(bench, "two")
    assert bench.starts() == ["watchdog"]
    assert (ended(bench, "one"), ended(bench, "two")) == ([False], [True])
    assert not bench.of(LinkLost)
    assert bench.board.session.lost_events == 0


def test_the_status_of_a_board_that_connects_while_we_subscribe_is_no_restart() -> None:
    bench = Bench()
    bench.board.link_up()
    # A board says its status before its hello when it connects, and we subscribe between the two.
    bench.say("status", "aaaa", seq=1, time_us=5, **STARTED)
    bench.run(1.5)
    bench.on, bench.expected = ["bbbb"], 0
    bench.say("hello", "bbbb", **HELLO)
    bench.run(1.0)
    assert bench.starts() == ["its boot id changed"]


def test_two_boards_under_one_name_are_named_and_the_true_one_is_found_again() -> None:
    bench = met()
    plays(bench, "one", 0.02)
    bench.on = ["aaaa", "bbbb"]
    bench.say("hello", "bbbb", **HELLO)
    bench.run(8.0)
    assert [("two boards use this name" in loss, "aaaa" in loss, "bbbb" in loss) for loss in bench.lost()] == [
        (True,) * 3
    ]
    assert ended(bench, "one") == [False]
    assert not bench.of(LinkBack)
    bench.on = ["aaaa"]
    bench.run(QUIET_S + 2.0)
    assert len(bench.of(LinkBack)) == 1
    plays(bench, "two")
    assert ended(bench, "two") == [True]


def test_foreign_sound_ends_playback_and_is_a_lost_link() -> None:
    bench = met()
    plays(bench, "one", 0.02)
    bench.board.receive_echo("in/audio", b"\0\0" + (320).to_bytes(8, "little") + b"\7" * 640)
    assert ended(bench, "one") == [False]
    bench.run(4.0)
    assert ["another program sends this board sound" in loss for loss in bench.lost()] == [True]
    assert not bench.outlet.link_is_up
    bench.run(3.0)
    assert bench.outlet.link_is_up
    plays(bench, "two")
    assert ended(bench, "two") == [True]


def test_duplicate_sound_from_a_second_sender_is_noticed() -> None:
    bench = met()
    payload = b"\0\0" + bytes(8) + b"\1" * 640
    bench.board._foreign_sender.note_own("in/audio", payload)
    bench.board.receive_echo("in/audio", payload)
    assert not bench.lost()
    bench.board.receive_echo("in/audio", payload)
    assert bench.lost()


def test_foreign_words_lose_the_link_and_foreign_questions_do_not() -> None:
    bench = met()
    bench.board.receive_echo("in/hello", b"")
    bench.board.receive_echo("in/ping", b"7")
    assert not bench.lost()
    bench.board.receive_echo("in/text", b'{"number": 1, "text": "lights on"}')
    assert ["words" in loss for loss in bench.lost()] == [True]


def test_a_known_boot_that_says_hello_after_another_is_a_second_board() -> None:
    boots = Boots()
    assert boots.receive_hello("a", 0.0) is HelloResult.FIRST
    assert boots.receive_hello("a", 1.0) is HelloResult.SAME
    assert boots.receive_hello("b", 2.0) is HelloResult.RESTARTED
    assert boots.receive_hello("a", 3.0) is HelloResult.RIVALS
    assert boots.rivals == ("b", "a")
    assert boots.receive_hello("b", 4.0) is HelloResult.RIVALS
    assert boots.receive_hello("a", 5.0) is HelloResult.RIVALS
    assert boots.receive_hello("a", 7.0) is HelloResult.RETURNED
    assert boots.current == "a"


def test_board_identity_is_reported_once_and_after_each_change() -> None:
    bench = met()
    bench.say("hello", "aaaa", **HELLO)
    bench.say("hello", "bbbb", **{**HELLO, "firmware": "t2", "serial": "A1"})
    descriptions = [(description.firmware, description.serial) for description in bench.of(DeviceDescribed)]
    assert descriptions == [("t", ""), ("t2", "A1")]


def test_two_boards_that_push_each_other_off_the_broker_are_named_too() -> None:
    """They have one client id: the broker ends one connection for the other, and tells the last will of its boot."""
    bench = met()
    bench.say("status", "aaaa", state="gone")
    bench.say("hello", "bbbb", **HELLO)
    bench.say("status", "bbbb", state="gone")
    bench.say("hello", "aaaa", **HELLO)
    bench.run(QUIET_S - 0.5)
    assert ["last will" in loss for loss in bench.lost()] == [True, True, False]
    assert "two boards use this name" in bench.lost()[-1]
    assert not bench.outlet.link_is_up
    bench.run(3.0)
    assert bench.outlet.link_is_up


def test_a_message_on_an_unknown_topic_is_logged_as_such_even_without_a_boot() -> None:
    bench = met()
    bench.board.receive("weather", b'{"text": "rain"}', Stamp(bench.now_s))
    assert "unknown topic" in bench.of(LogLine)[-1].text


def test_a_board_may_accept_sound_at_384_khz() -> None:
    bench = met()
    bench.say("hello", "aaaa", **HELLO | {"rate_hz": 384_000})
    assert bench.board.session.rate_hz == 384_000


def message(seq: int, boot: str = "a") -> PlainValue:
    return {"boot": boot, "seq": seq}


def test_numbering_detects_duplicates_gaps_and_late_messages() -> None:
    """Counting begins at the first number that is heard."""
    numbering, twice, plain = MappedNumbering(), NumberingResult(duplicate=True), NumberingResult()
    judged = [numbering.judge(message(seq)) for seq in (41, 42, 42, 45, 43, 43, 46)]
    assert judged == [plain, plain, twice, NumberingResult(missing=2), plain, twice, plain]


def test_numbering_restarts_with_a_boot_and_ignores_old_last_wills() -> None:
    numbering = MappedNumbering()
    numbering.judge(message(7))
    assert numbering.judge(message(1, "b")) == NumberingResult(rebooted=True)
    assert numbering.judge({"boot": "a", "state": "gone"}) == NumberingResult(late=True)
    assert numbering.judge(message(7)) == NumberingResult(duplicate=True, late=True)
    assert numbering.judge(message(6)) == NumberingResult(late=True)
    assert numbering.judge(message(2, "b")) == NumberingResult()
    assert numbering.judge(message(3, "c")) == NumberingResult(rebooted=True, missing=2)


def test_stray_message_of_another_boot_does_not_replace_the_device() -> None:
    numbering = MappedNumbering()
    numbering.judge(message(7))
    assert numbering.judge(message(3, "deadbeef")) == NumberingResult(rebooted=True, missing=2)
    assert numbering.judge(message(8)) == NumberingResult(rival="deadbeef")
    assert numbering.judge(message(8)) == NumberingResult(duplicate=True)
    assert numbering.judge({"boot": "a", "state": "gone"}) == NumberingResult()


@pytest.mark.parametrize("length", [20, 30_000])
def test_a_hostile_device_cannot_fill_the_memory(length: int) -> None:
    """20,000 boot ids, and numbers without an end."""
    numbering = MappedNumbering()
    tracemalloc.start()
    for number in range(20_000):
        numbering.judge({"boot": f"{number:0{length}}", "seq": 10**2000 + number})
        numbering.judge({"boot": "a", "seq": 10**2000 + number})
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 200_000


def test_a_device_that_speaks_on_is_known_beside_any_number_of_others() -> None:
    numbering = MappedNumbering()
    numbering.judge(message(1))
    for number in range(100):
        assert numbering.judge(message(1, f"b{number}")) == NumberingResult(rebooted=True)
        assert numbering.judge(message(number + 2)) == NumberingResult(rival=f"b{number}")


@pytest.mark.parametrize(
    "document", [None, 3, "x", [], {}, {"boot": None, "seq": 1}, {"boot": "a"}, {"boot": "a", "seq": True}]
)
def test_messages_without_numbers_are_taken_as_they_are(document: PlainValue) -> None:
    numbering = MappedNumbering()
    assert numbering.judge(document) == NumberingResult()
    assert numbering.judge(document) == NumberingResult()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80))
def test_each_number_is_new_exactly_once(numbers: list[int]) -> None:
    numbering = MappedNumbering()
    fresh = [seq for seq in numbers if not numbering.judge(message(seq)).duplicate]
    assert sorted(fresh) == sorted(set(numbers))


def test_a_flood_is_told_of_every_ten_seconds_and_at_its_end() -> None:
    now, observations = [0.0], Seen()
    surroundings = SimpleNamespace(clock=SimpleNamespace(now_s=lambda: now[0]), profile=None, folder=Path())
    outlet = DriverOutlet("board", surroundings)  # type: ignore[arg-type]
    outlet.open(observations)
    for step in range(30_000):
        now[0] = step / 1000
        outlet.tell(LogLine("board", Stamp(now[0]), "x"))
    outlet.close()
    texts = [line.text for line in observations.of(LogLine)]
    counts = [int(text.split()[0]) for text in texts if "left out" in text]
    assert len(counts) == 3
    assert sum(counts) == 30_000 - texts.count("x")


def test_outlet_reports_one_line_in_the_singular() -> None:
    observations = Seen()
    surroundings = SimpleNamespace(clock=SimpleNamespace(now_s=lambda: 1.0), profile=None, folder=Path())
    outlet = DriverOutlet("board", surroundings)  # type: ignore[arg-type]
    outlet.open(observations)
    for _ in range(201):
        outlet.tell(LogLine("board", Stamp(1.0), "x"))
    outlet.close()
    assert observations.of(LogLine)[-1].text == "1 line was left out: more than 50 per second"


WALL_S = 1_800_000_000.0


class Broker:
    """Keeps the last message, and gives each to everyone who is connected, in one order, `late_s` later."""

    def __init__(self, *, late_s: float = 0.01) -> None:
        self.now_s = 0.0
        self.late_s = late_s
        self.kept = b""
        self.there: list[Lease] = []
        self.deaf: set[str] = set()
        self._coming: list[tuple[float, Lease, bytes, bool]] = []

    def connect(self, owner: str) -> Lease:
        lease = Lease(owner, owner)
        self.there.append(lease)
        self.back(lease)
        return lease

    def back(self, lease: Lease) -> None:
        lease.link_up(self.now_s)
        if self.kept:
            lease.receive(self.kept, self.now_s, WALL_S + self.now_s, retained=True)

    def publish(self, payload: bytes) -> None:
        self.kept = payload
        self._coming += [(self.now_s + self.late_s, lease, payload, False) for lease in self.there]

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.01)):
            self.now_s += 0.01
            due = [delivery for delivery in self._coming if delivery[0] <= self.now_s]
            self._coming = [delivery for delivery in self._coming if delivery[0] > self.now_s]
            for _, lease, payload, retained in due:
                if lease.owner not in self.deaf and lease in self.there:
                    lease.receive(payload, self.now_s, WALL_S + self.now_s, retained=retained)
            for lease in self.there:
                payload = None if lease.owner in self.deaf else lease.due(self.now_s, WALL_S + self.now_s)
                if payload is not None:
                    self.publish(payload)


def test_free_board_is_leased_at_once_and_owner_keeps_lease() -> None:
    broker = Broker()
    first = broker.connect("b")
    broker.run(0.1)
    assert first.state is LeaseState.HELD
    broker.run(30.0)
    second = broker.connect("a")
    broker.run(0.1)
    assert (first.state, second.state, second.other) == (LeaseState.HELD, LeaseState.TAKEN, "b")
    broker.run(60.0)
    assert (first.state, second.state) == (LeaseState.HELD, LeaseState.TAKEN)


def test_the_lease_of_an_owner_that_crashed_is_free_soon() -> None:
    broker = Broker()
    broker.connect("a")
    broker.run(1.0)
    broker.there.clear()
    second = broker.connect("b")
    broker.run(DEFENCE_S - 0.5)
    assert second.state is LeaseState.DISPUTED
    broker.run(1.0)
    assert second.state is LeaseState.HELD
    broker.there.clear()
    broker.run(EXPIRES_S + 1.0)
    third = broker.connect("c")
    broker.run(0.1)
    assert third.state is LeaseState.HELD, "an expired lease is not waited for"


def test_released_lease_passes_to_the_next_owner() -> None:
    broker = Broker()
    first, second = broker.connect("a"), broker.connect("b")
    broker.run(3.0)
    assert (first.state, second.state) == (LeaseState.HELD, LeaseState.TAKEN)
    broker.there.remove(first)
    broker.publish(b"")
    broker.run(0.1)
    assert second.state is LeaseState.HELD


def test_an_owner_that_was_away_does_not_share_the_board() -> None:
    broker = Broker()
    first = broker.connect("a")
    broker.run(1.0)
    first.link_down()
    broker.there.remove(first)
    second = broker.connect("b")
    broker.run(DEFENCE_S + 1.0)
    assert second.state is LeaseState.HELD
    broker.there.append(first)
    broker.back(first)
    broker.run(1.0)
    assert (first.state, second.state) == (LeaseState.TAKEN, LeaseState.HELD)


def test_two_owners_of_one_lease_settle_on_one() -> None:
    broker = Broker()
    first = broker.connect("b")
    broker.run(1.0)
    broker.deaf.add("b")  # its process stands still: no link is lost
    second = broker.connect("a")
    broker.run(DEFENCE_S + 1.0)
    assert second.state is LeaseState.HELD
    broker.deaf.clear()
    broker.run(REFRESH_S + 1.0)
    assert sorted((first.state.name, second.state.name)) == ["HELD", "TAKEN"]


def test_lease_is_unseen_when_only_foreign_payloads_arrive() -> None:
    lease = Lease("a", "a")
    lease.link_up(0.0)
    assert lease.due(0.0, WALL_S) is not None
    strange = b'{"owner": 1, "name": "x", "until": "x"}', b'{"owner":"q","name":"q","until":"?"}'
    for payload in (b"x", b"[]", b"{}", *strange):
        lease.receive(payload, 0.1, WALL_S, retained=False)
    assert lease.due(ECHO_S + 0.1, WALL_S) is None
    assert lease.state is LeaseState.UNSEEN
