"""The numbers of events and commands: order, repeats, gaps, restarts."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.devices.framing.numbering import GAP_LIMIT_S, BoardCommands, EventDecision, ResentEvents, StampedEvent
from harness.devices.wire.messages import ResponseEvent, TextCommand
from harness.model.time import Stamp

AGAIN_S = 0.2


def offer(order: ResentEvents, number: int, at_s: float = 0.0, text: str = "") -> EventDecision:
    return order.offer(number, ResponseEvent(number, text), Stamp(at_s))


def numbers(arrived: list[StampedEvent]) -> list[int | None]:
    return [event.time_us for event, _ in arrived if event is not None]


@given(st.integers(0, 10_000), st.floats(0, 0.7), st.integers(1, 80))
def test_events_come_in_their_order_each_once_whatever_is_lost(seed: int, loss: float, count: int) -> None:
    """A board that keeps 32 events and sends again those that were not acknowledged."""
    chance, order = random.Random(seed), ResentEvents()
    order.begin(0)
    events: list[int] = []
    waiting: list[int] = []
    created = 0
    while created < count or waiting:
        while created < count and len(waiting) < 32:
            created += 1
            waiting.append(created)
        for number in list(waiting):
            if chance.random() < loss:
                continue
            assert offer(order, number, 0.0) is EventDecision.ACKNOWLEDGE
            events += numbers(order.due())
            if chance.random() >= loss:
                waiting.remove(number)
    assert events == list(range(1, count + 1))
    assert order.is_settled(count)
    assert not order.is_settled(count + 1)


def test_no_event_is_taken_before_numbering_has_begun() -> None:
    order = ResentEvents()
    assert offer(order, 7, 0.0) is EventDecision.IGNORE
    order.begin(7)
    assert offer(order, 7, 0.0) is EventDecision.ACKNOWLEDGE
    assert order.due() == []
    offer(order, 8, 0.0)
    assert numbers(order.due()) == [8]


def test_events_with_unknown_history_are_all_accepted() -> None:
    order = ResentEvents()
    order.begin(None)
    assert order.has_begun
    assert offer(order, 902) is EventDecision.ACKNOWLEDGE
    assert offer(order, 901) is EventDecision.ACKNOWLEDGE  # the line had lost it
    assert order.due() == []
    assert looked_at(order, 0.0, GAP_LIMIT_S + 1.0) == 0  # those before belong to an earlier session
    assert numbers(order.due()) == [901, 902]
    assert order.missing == 0
    offer(order, 904)
    assert looked_at(order, 10.0, 10.0 + GAP_LIMIT_S + 1.0) == 1


def test_a_number_with_another_content_is_from_another_boot() -> None:
    order = ResentEvents()
    order.begin(0)
    offer(order, 1, 0.0, "one")
    order.due()
    assert offer(order, 1, 0.0, "one") is EventDecision.ACKNOWLEDGE
    assert offer(order, 1, 0.0, "other") is EventDecision.REQUEST_HELLO
    assert offer(order, 500, 0.0) is EventDecision.REQUEST_HELLO


def looked_at(order: ResentEvents, start_s: float, end_s: float, every_s: float = 0.05) -> int:
    """Events given up while the board is heard all the time."""
    looks = round((end_s - start_s) / every_s)
    return sum(order.skip_missing(start_s + every_s * number) for number in range(looks + 1))


def test_missing_event_is_given_up_after_the_gap_limit() -> None:
    order = ResentEvents()
    order.begin(0)
    offer(order, 4, 10.0)
    assert looked_at(order, 10.0, 10.0 + GAP_LIMIT_S / 2) == 0
    assert looked_at(order, 10.0 + GAP_LIMIT_S / 2, 10.1 + GAP_LIMIT_S) == 3
    assert numbers(order.due()) == [4]
    assert order.missing == 3


def test_a_stall_of_the_host_gives_up_no_event() -> None:
    order = ResentEvents()
    order.begin(0)
    offer(order, 2, 10.0)
    assert looked_at(order, 10.0, 10.2) == 0
    assert order.skip_missing(10.2 + 3 * GAP_LIMIT_S) == 0, "what the board resent meanwhile has not been read yet"
    offer(order, 1, 10.3 + 3 * GAP_LIMIT_S)
    assert numbers(order.due()) == [1, 2]
    assert order.missing == 0


def test_events_the_board_no_longer_keeps_are_not_awaited() -> None:
    order = ResentEvents()
    order.begin(10)
    assert order.resume(11) == 0
    assert order.resume(100) == 58
    offer(order, 69, 0.0)
    assert numbers(order.due()) == [69]


def test_commands_are_sent_one_at_a_time_and_again_until_acknowledged() -> None:
    commands = BoardCommands(AGAIN_S, 100)
    command, two = commands.add(TextCommand("one")), commands.add(TextCommand("two"))
    first = commands.due(5.0)
    assert first == ((TextCommand("one"), 101),)
    assert commands.due(5.0 + AGAIN_S / 2) == ()
    assert commands.due(5.0 + AGAIN_S) == first
    commands.acknowledge(99)
    assert not command.done.is_set()
    commands.acknowledge(101)
    assert command.done.is_set()
    assert command.acknowledged
    assert commands.due(5.3) == ((TextCommand("two"), 102),)
    commands.acknowledge_up_to(102)
    assert two.acknowledged
    assert commands.wait_s(9.0) is None


def test_command_numbers_wait_for_the_last_number_of_the_board() -> None:
    commands = BoardCommands(AGAIN_S, None)
    commands.add(TextCommand("one"))
    assert commands.due(0.0) == ()
    commands.acknowledge_up_to(7)
    assert commands.due(0.0) == ((TextCommand("one"), 8),)


def test_restart_ends_pending_commands_unacknowledged() -> None:
    commands = BoardCommands(AGAIN_S, 0)
    command = commands.add(TextCommand("one"))
    commands.fail_all()
    assert command.done.is_set()
    assert not command.acknowledged
    dropped = commands.add(TextCommand("two"))
    commands.drop(dropped)
    assert commands.due(0.0) == ()


def test_command_numbers_wrap_past_zero() -> None:
    commands = BoardCommands(AGAIN_S, 0xFFFFFFFF)
    commands.add(TextCommand("one"))
    assert commands.due(0.0) == ((TextCommand("one"), 1),)
