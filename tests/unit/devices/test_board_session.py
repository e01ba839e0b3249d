"""One board with our framing in simulated time, on a wire that loses frames and at a broker that delivers them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness.devices.framing.board_messages import BROKER, LINE, ReceivedMessage, WireProperties
from harness.devices.framing.board_session import NO_PROGRESS_S, USED_QUIET_S, BoardSession
from harness.devices.outlet import DriverOutlet
from harness.devices.wire import messages
from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.audio_sender import PROBE_SAMPLE
from harness.model.observation import (
    ClockFitted,
    DeviceState,
    Intent,
    LinkLost,
    ListeningProved,
    LogLine,
    Status,
    StimulusEnded,
    StimulusStarted,
    Unread,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from tests.known import known
from tests.seen import Seen

STEP_S = 0.005
RATE_HZ = 16_000


class SimulatedBoard:
    """Takes what the session sends and answers at once; events stay until they are acknowledged, where that is so."""

    def __init__(self, wire: WireProperties, now_us: int) -> None:
        self.wire = wire
        self.boots = 0
        self.on = self.hears = True
        self.said: list[str] = []
        self.start(now_us)

    def start(self, now_us: int) -> None:
        self.boots += 1
        self.began_us = now_us
        self.heard = self.seq = self.command = 0
        self.kept: dict[int, messages.Event] = {}
        self.wakes_at: list[int] = []

    @property
    def boot(self) -> str:
        return f"{self.boots:08x}"

    def event(self, event: messages.Event) -> ReceivedMessage:
        self.seq += 1
        self.kept[self.seq] = event
        return self.received(event, self.seq)

    def received(self, message: messages.FromBoard, seq: int | None = None) -> ReceivedMessage:
        return ReceivedMessage(message, "" if self.wire.is_lossy else self.boot, seq)

    def take(self, message: messages.ToBoard, number: int, now_us: int) -> list[ReceivedMessage]:
        at_us = now_us - self.began_us
        match message:
            case messages.HelloRequest():
                return [ReceivedMessage(messages.BoardHello(1, self.boot, at_us, RATE_HZ, 8000, "sim 1", ("alexa",)))]
            case messages.Ping(token):
                return [self.received(messages.Pong(token, at_us, at_us, True))]
            case messages.Audio(_, first, data):
                replies = []
                if first == self.heard and self.hears:
                    self.heard += len(data) // 2
                    for sample in [sample for sample in self.wakes_at if sample <= self.heard]:
                        self.wakes_at.remove(sample)
                        replies.append(self.event(messages.WakeMessage(at_us, sample, 0.5, "alexa")))
                if self.hears or first == PROBE_SAMPLE:
                    command = None if self.wire.is_lossy else self.command
                    replies.append(self.received(messages.AudioAck(self.heard, self.seq, command)))
                return replies
            case messages.TextCommand() | messages.Set():
                if number > self.command:
                    self.command = number
                    self.said.append(str(message))
                if self.wire.is_lossy:
                    return [self.received(messages.CommandAck(number))]
                return [self.received(messages.AudioAck(self.heard, self.seq, self.command))]
            case messages.EventAck(number):
                self.kept.pop(number, None)
            case messages.Reset():
                self.start(now_us)
        return []


class Simulation(Seen):
    """A session and its board; `lost` says which of the board's messages never arrive."""

    def __init__(self, wire: WireProperties) -> None:
        super().__init__()
        self.now_s = 100.0
        clock = SimpleNamespace(now_s=lambda: self.now_s)
        outlet = DriverOutlet("dut", SimpleNamespace(clock=clock, profile=None, folder=Path()))  # type: ignore[arg-type]
        outlet.open(self)
        self.board = SimulatedBoard(wire, 100_000_000)
        self.session = BoardSession("dut", outlet, wire, answer_limit_s=3.0, last_command=7 if wire.is_lossy else None)
        self.lost: set[type] = set()
        self.why = ""
        self.session.link_up(self.now_s)
        self.run(1.0)
        assert self.session.ready

    def hear(self, *received: ReceivedMessage) -> None:
        for packet in received:
            if type(packet.message) not in self.lost:
                self.session.receive(packet, Stamp(self.now_s, 0.001))

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            self.why = self.why or self.session.tick(self.now_s)
            for message, number in self.session.due(self.now_s):
                if self.board.on:
                    self.hear(*self.board.take(message, number, round(self.now_s * 1e6)))
            if self.board.wire.is_lossy and self.board.on:
                self.hear(*(self.board.received(event, seq) for seq, event in self.board.kept.items()))

    def play(self, play_id: str = "p", seconds: float = 1.0) -> None:
        sound = self.session.prepare(Waveform(np.zeros(round(seconds * RATE_HZ), np.float32), RATE_HZ))
        self.session.play(play_id, known(sound), self.now_s)

    def ended(self, play_id: str = "p") -> list[bool]:
        return [observation.complete for observation in self.of(StimulusEnded) if observation.play_id == play_id]

    def plays_whole(self, play_id: str) -> None:
        self.play(play_id)
        self.run(1.5)
        assert self.ended(play_id) == [True]


@pytest.fixture(params=[LINE, BROKER], ids=["line", "broker"])
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return Simulation(request.param)


def test_sound_ends_after_its_events_were_reported(simulation: Simulation) -> None:
    simulation.board.wakes_at = [4_000, 16_000]
    simulation.play()
    simulation.run(1.0)
    kinds = [type(observation) for observation in simulation.of(StimulusStarted, Wake, StimulusEnded)]
    assert kinds == [StimulusStarted, Wake, Wake, StimulusEnded]
    began_s = known(simulation.of(StimulusStarted)[0].audio_s)
    assert [wake.audio_s for wake in simulation.of(Wake)] == pytest.approx([began_s + 0.25, began_s + 1.0])
    assert simulation.ended() == [True]
    assert simulation.of(ListeningProved, ClockFitted)


def test_a_stop_ends_the_sound_at_once_and_the_next_is_complete(simulation: Simulation) -> None:
    simulation.play("one", 30.0)
    simulation.session.stop(simulation.now_s)
    assert simulation.ended("one") == [False]
    simulation.plays_whole("two")


def test_restart_is_reported_before_the_sound_that_it_ended(simulation: Simulation) -> None:
    simulation.play("one", 30.0)
    simulation.run(0.02)
    before_s = simulation.session.sender.audio_line_s(simulation.session.sender.sent)
    simulation.session.reset()
    simulation.run(0.05)
    hello = ReceivedMessage(messages.BoardHello(1, simulation.board.boot, 5, RATE_HZ, 8000, "sim 1", ("alexa",)))
    simulation.hear(hello)
    simulation.run(1.0)
    assert [type(observation) for observation in simulation.of(Status, StimulusEnded)] == [Status, StimulusEnded]
    assert simulation.of(Status)[0].state is DeviceState.STARTED
    simulation.plays_whole("two")
    assert known(simulation.of(StimulusStarted)[-1].audio_s) >= before_s


def test_commands_are_carried_out_once_in_their_order(simulation: Simulation) -> None:
    simulation.lost = {messages.CommandAck, messages.AudioAck}
    words, setting = messages.TextCommand("lights on"), messages.Set(messages.SetKey.OPERATING_POINT, 40)
    first, two = simulation.session.command(words), simulation.session.command(setting)
    simulation.run(1.5)
    assert not first.acknowledged
    simulation.lost = set()
    simulation.run(2.0)
    assert first.acknowledged
    assert two.acknowledged
    assert simulation.board.said == [
        str(messages.TextCommand("lights on")),
        str(messages.Set(messages.SetKey.OPERATING_POINT, 40)),
    ]


def test_device_silence_is_a_loss_unless_the_host_slept(simulation: Simulation) -> None:
    simulation.now_s += 60.0
    simulation.run(1.0)
    assert simulation.why == ""
    simulation.board.on = False
    simulation.run(2.5)
    assert simulation.why == ""
    simulation.run(2.0)
    assert simulation.why.startswith("the board has not answered for 3.00 s")


def test_a_board_that_answers_and_takes_no_sound_is_noticed(simulation: Simulation) -> None:
    simulation.board.hears = False
    simulation.play()
    simulation.run(NO_PROGRESS_S - 1.0)
    assert simulation.ended() == []
    simulation.run(2.0)
    assert simulation.ended() == [False]
    assert simulation.why == ""


def test_sound_with_a_missing_event_does_not_count(simulation: Simulation) -> None:
    simulation.board.wakes_at = [8_000]
    simulation.lost = {messages.WakeMessage}
    simulation.play()
    simulation.run(simulation.board.wire.last_events_s + 2.0)
    assert simulation.ended() == [False]
    simulation.board.kept.clear()
    simulation.lost = set()
    simulation.plays_whole("two")


def test_missing_event_is_reported_with_the_event_after_it(simulation: Simulation) -> None:
    first, _, third = (
        simulation.board.event(messages.WakeMessage(None, number, 0.5, str(number))) for number in (1, 2, 3)
    )
    del simulation.board.kept[2]
    simulation.now_s += STEP_S
    simulation.hear(first, third, third)
    simulation.run(2.5)
    assert [wake.phrase for wake in simulation.of(Wake)] == ["1", "3"]
    assert simulation.session.lost_events == 1
    assert [(lost.what, lost.count) for lost in simulation.of(Unread)] == [("events missing before the next: 1", 1)]


def test_an_event_that_cannot_be_read_is_reported_as_unread(simulation: Simulation) -> None:
    simulation.board.seq += 1
    unreadable = ReceivedMessage(
        None, "" if simulation.board.wire.is_lossy else simulation.board.boot, simulation.board.seq
    )
    simulation.hear(unreadable, unreadable)
    simulation.run(0.1)
    assert [lost.what for lost in simulation.of(Unread)] == ["the payload of an event is not valid"]


def test_a_late_event_before_the_first_ping_takes_its_time_from_the_hello() -> None:
    simulation = Simulation(BROKER)
    board, began_s = simulation.board, simulation.now_s
    board.start(round(began_s * 1e6))
    simulation.now_s += 40.0
    simulation.hear(*board.take(messages.HelloRequest(), 0, round(simulation.now_s * 1e6)))
    simulation.hear(board.event(messages.WakeMessage(10_000_000, 0, 0.5, "alexa")))
    (wake,) = simulation.of(Wake)
    assert abs(wake.at.at_s - (began_s + 10.0)) <= wake.at.error_s < 4.0


def test_not_understood_error_is_reported_as_an_empty_intent(simulation: Simulation) -> None:
    now_us = round(simulation.now_s * 1e6) - simulation.board.began_us
    for code in messages.ErrorCode:
        simulation.hear(simulation.board.event(messages.ErrorEvent(now_us, code, "eh?")))
    simulation.run(0.1)
    assert f"error {messages.ErrorCode.BAD_COMMAND}: eh?" in [line.text for line in simulation.of(LogLine)]
    assert [intent.name for intent in simulation.of(Intent)] == [""]


def test_a_board_used_by_another_program_is_lost_until_that_stops(simulation: Simulation) -> None:
    simulation.play(seconds=30.0)
    for reason in ("it is used by two", "and so shows its acknowledgement"):
        simulation.session.report_foreign_use(reason, simulation.now_s)
    assert simulation.ended() == [False]
    assert [loss.what for loss in simulation.of(LinkLost)] == ["it is used by two"]
    simulation.run(USED_QUIET_S + 1.0)
    assert simulation.session.ready
    simulation.plays_whole("two")


def test_adpcm_is_not_used_if_the_window_is_smaller_than_a_chunk(simulation: Simulation) -> None:
    session = simulation.session
    session._encoding = Encoding.ADPCM
    session.hello = messages.BoardHello(1, known(session.hello).boot, 1, RATE_HZ, 100, "sim 1", ())
    _, _, encoded = known(session.prepare(Waveform(np.zeros(10, np.float32), RATE_HZ)))
    assert encoded.encoding is Encoding.PCM16
