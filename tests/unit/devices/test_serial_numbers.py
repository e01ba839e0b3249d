"""The numbers of events and commands: order, repeats, gaps, restarts."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.devices.serial.commands import AGAIN_S, Commands
from harness.devices.serial.event_order import GAP_LIMIT_S, EventOrder, Heard
from harness.devices.wire.frames import Decoder, Frame, Kind
from harness.devices.wire.messages import Text


def event(number: int, payload: bytes = b"") -> Frame:
    return Frame(Kind.WAKE, number, payload or b"%d" % number)


def numbers(frames: list[Frame]) -> list[int]:
    return [frame.seq for frame in frames]


@given(st.integers(0, 10_000), st.floats(0, 0.7), st.integers(1, 80))
def test_events_come_in_their_order_each_once_whatever_is_lost(seed: int, loss: float, count: int) -> None:
    """A board that keeps 32 events and sends again those that were not acknowledged."""
    chance, order = random.Random(seed), EventOrder()
    order.start(0)
    told: list[int] = []
    waiting: list[int] = []
    made = 0
    while made < count or waiting:
        while made < count and len(waiting) < 32:
            made += 1
            waiting.append(made)
        for number in list(waiting):
            if chance.random() < loss:
                continue
            assert order.offer(event(number), 0.0) is Heard.TAKEN
            told += numbers(order.due())
            if chance.random() >= loss:
                waiting.remove(number)
    assert told == list(range(1, count + 1))
    assert order.up_to(count)
    assert not order.up_to(count + 1)


def test_nothing_is_taken_before_it_is_known_what_is_of_before() -> None:
    order = EventOrder()
    assert order.offer(event(7), 0.0) is Heard.LEFT
    order.start(7)
    assert order.offer(event(7), 0.0) is Heard.TAKEN
    assert order.due() == []
    order.offer(event(8), 0.0)
    assert numbers(order.due()) == [8]


def test_a_number_with_another_content_is_from_another_boot() -> None:
    order = EventOrder()
    order.start(0)
    order.offer(event(1, b"one"), 0.0)
    order.due()
    assert order.offer(event(1, b"one"), 0.0) is Heard.TAKEN
    assert order.offer(event(1, b"other"), 0.0) is Heard.STRANGE
    assert order.offer(event(500), 0.0) is Heard.STRANGE


def test_a_gap_is_given_up_after_a_while() -> None:
    order = EventOrder()
    order.start(0)
    order.offer(event(4), 10.0)
    assert order.skip(10.0 + GAP_LIMIT_S / 2) == 0
    assert order.skip(10.0 + GAP_LIMIT_S) == 3
    assert numbers(order.due()) == [4]
    assert order.missing == 3


def test_what_the_board_did_not_keep_is_not_waited_for() -> None:
    order = EventOrder()
    order.start(10)
    assert order.resume(11) == 0
    assert order.resume(100) == 58
    order.offer(event(69), 0.0)
    assert numbers(order.due()) == [69]


def test_commands_are_sent_again_until_acknowledged() -> None:
    commands = Commands(100)
    command = commands.add(Text("one"))
    first = commands.due(5.0)
    assert Decoder().feed(first) == [Frame(Kind.TEXT, 101, b"one")]
    assert commands.due(5.0 + AGAIN_S / 2) == b""
    assert commands.due(5.0 + AGAIN_S) == first
    commands.acknowledge(99)
    assert not command.done.is_set()
    commands.acknowledge(101)
    assert command.done.is_set()
    assert command.acknowledged
    assert commands.wait_s(9.0) is None


def test_a_restart_ends_them_unacknowledged() -> None:
    commands = Commands(0)
    command = commands.add(Text("one"))
    commands.fail()
    assert command.done.is_set()
    assert not command.acknowledged
    dropped = commands.add(Text("two"))
    commands.drop(dropped)
    assert commands.due(0.0) == b""


def test_numbers_go_round_past_zero() -> None:
    commands = Commands(0xFFFFFFFF)
    commands.add(Text("one"))
    (frame,) = Decoder().feed(commands.due(0.0))
    assert isinstance(frame, Frame)
    assert frame.seq == 1
