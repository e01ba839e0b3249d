"""Numbers of boots, events and commands (docs/reference/framing.md): which are new, repeated or missing. No I/O.

- `Boots`: a hello with a new boot id is a restart. Over a broker, an old id that speaks again shows a second board.
- `ResentEvents` (serial): the board resends each event until it is acknowledged, so events are reported in order.
  After a gap, later events wait: `… 7, 9, 10` holds 9 and 10 until 8 arrives, or is given up after 2 s.
- `DeliveredEvents` (MQTT): the broker delivers each event at least once. An event is reported when it arrives, a
  repeated number is dropped, and numbers that are passed over count as missing at once.
- `MappedNumbering` (MQTT, other devices): a device without hello, so a new boot id counts as a restart until the old
  one continues.
- `BoardCommands`: one at a time, resent under the same number until the board has carried it out.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum, auto

from harness.base import threads
from harness.base.plain_json import is_integer
from harness.devices.wire.messages import Event, Log, Set, TextCommand
from harness.model.bench import PlainValue
from harness.model.frozen import frozen
from harness.model.time import Stamp

KEPT_BY_BOARD = 32
"""Number of latest events that a board keeps for resending, by docs/reference/framing.md."""
GAP_LIMIT_S = 2.0
"""How long later events wait for a missing one, in seconds."""
_MAX_COUNTED_STEP_S = 0.25
"""The most that one check counts towards the limit, in seconds. A stalled host has not read what the board resent."""
QUIET_S = 2.5
"""While two boards answer, the harness requests a hello each second. A board silent for this time is gone."""
_MAX_AHEAD = 8 * KEPT_BY_BOARD
"""How far ahead the number of an event may be: one event may be lost repeatedly while later ones arrive."""
_NUMBERS_KEPT = 1024
"""Number of delivered numbers that are kept to recognise repetitions. A number farther back counts as a repetition."""
_MAX_NUMBER = 0xFFFFFFFF  # A u32 on the wire.

StampedEvent = tuple[Event | Log | None, Stamp]
"""An event (None: its payload is invalid), and when it arrived."""


class HelloResult(Enum):
    """What a hello means.

    FIRST: no boot was known. SAME: it is from the known boot. RESTARTED: a new boot replaces the known one.
    RETURNED: an earlier boot is current again, without a restart. RIVALS: two boards answer under one name.
    """

    FIRST = auto()
    SAME = auto()
    RESTARTED = auto()
    RETURNED = auto()
    RIVALS = auto()


class Boots:
    """Tracks which boot of a board is current; only a hello decides this.

    single_board: whether the wire reaches only one board. Otherwise, a boot that speaks after it was replaced is a
    second board under the same name, since boot ids are random.
    """

    def __init__(self, *, single_board: bool = False) -> None:
        self.current = ""
        self.rivals: tuple[str, ...] = ()
        """The boots that answer under one name; empty when there is one board."""
        self._single_board = single_board
        self._contested_s = float("-inf")
        """When the current rivals were found."""
        self._last_sign_s: dict[str, float] = {}
        """When each boot that has sent a hello last showed that it runs."""

    def is_known(self, boot: str) -> bool:
        """Whether the hello of this boot has arrived."""
        return boot in self._last_sign_s

    def receive_hello(self, boot: str, now_s: float) -> HelloResult:
        """Handles a hello, which may make its boot the current one. Rivals end once only one boot has sent a sign."""
        is_known, previous_boot = self.is_known(boot), self.current
        self._last_sign_s[boot] = now_s
        if self.rivals:
            alive = tuple(other_boot for other_boot, at_s in self._last_sign_s.items() if now_s - at_s < QUIET_S)
            if len(alive) > 1 or now_s - self._contested_s < QUIET_S:
                return HelloResult.RIVALS
            self.rivals = ()
            self.current = boot
            return HelloResult.RETURNED if is_known else HelloResult.RESTARTED
        if boot == previous_boot:
            return HelloResult.SAME
        if is_known and not self._single_board:
            self._note_rivals(boot, now_s)
            return HelloResult.RIVALS
        self.current = boot
        return HelloResult.RESTARTED if previous_boot else HelloResult.FIRST

    def record_answer(self, boot: str, now_s: float) -> bool:
        """Records that a boot has answered a recent ping. Returns True if this first reveals a second board."""
        if not self.is_known(boot):
            return False
        self._last_sign_s[boot] = now_s
        if boot == self.current or self.rivals:
            return False
        self._note_rivals(boot, now_s)
        return True

    def _note_rivals(self, boot: str, now_s: float) -> None:
        self.rivals, self._contested_s = (self.current, boot), now_s


class EventDecision(Enum):
    """What to do with an event.

    ACKNOWLEDGE: it is known now. IGNORE: it will be resent. REQUEST_HELLO: it cannot be of this boot, so request a
    hello, which shows which boot is speaking.
    """

    ACKNOWLEDGE = auto()
    IGNORE = auto()
    REQUEST_HELLO = auto()


class ResentEvents:
    """Events on a wire that may lose frames: the board resends each until it is acknowledged, so they have an order.

    Nothing is accepted until it is known which events belong to an earlier session. A board that takes no sound never
    reports that. Its session begins with the events that it still keeps when the first one arrives.
    """

    def __init__(self) -> None:
        self.missing = 0
        self._expected_seq: int | None = None
        self._starts_at_next = self._start_is_guess = False
        self._waiting: dict[int, StampedEvent] = {}
        self._waited_s = 0.0
        self._skip_checked_s = float("inf")
        self._delivered: dict[int, Event | Log | None] = {}

    @property
    def has_begun(self) -> bool:
        """Whether it is known, or will be with the next event, from which number on events are reported."""
        return self._expected_seq is not None or self._starts_at_next

    def begin(self, last: int | None) -> None:
        """Starts after event `last` (None: unknown): earlier ones are acknowledged, but not reported."""
        self._expected_seq = None if last is None else last + 1
        self._starts_at_next = last is None
        self._waiting.clear()
        self._delivered.clear()
        self._waited_s = 0.0

    def offer(self, seq: int, event: Event | Log | None, stamp: Stamp) -> EventDecision:
        """Accepts an event; `due` then returns those ready to be reported."""
        if self._starts_at_next:
            self._expected_seq = max(1, seq - KEPT_BY_BOARD + 1)
            self._starts_at_next, self._start_is_guess = False, True
        if self._expected_seq is None:
            return EventDecision.IGNORE
        if seq < self._expected_seq:
            if seq in self._delivered and self._delivered[seq] != event:  # one number, two events: not the same boot
                return EventDecision.REQUEST_HELLO
            return EventDecision.ACKNOWLEDGE
        if seq >= self._expected_seq + _MAX_AHEAD:
            return EventDecision.REQUEST_HELLO
        self._waiting[seq] = event, stamp
        return EventDecision.ACKNOWLEDGE

    def due(self) -> list[StampedEvent]:
        """The events that are ready to be reported, in order; each is returned once."""
        ready: list[StampedEvent] = []
        while self._expected_seq is not None and (arrived := self._waiting.pop(self._expected_seq, None)) is not None:
            ready.append(arrived)
            self._delivered[self._expected_seq] = arrived[0]
            self._expected_seq += 1
        while len(self._delivered) > _MAX_AHEAD:
            oldest = next(iter(self._delivered))
            del self._delivered[oldest]
        if ready:
            self._waited_s = 0.0
            self._start_is_guess = False
        return ready

    def skip_missing(self, alive_s: float) -> int:
        """Gives up missing events after 2 s, since the board keeps only 32; returns their number.

        alive_s: until when the board was known to be alive. It is called often, so stalls of either side hardly count.
        """
        step_s, self._skip_checked_s = alive_s - self._skip_checked_s, alive_s
        if self._expected_seq is None or not self._waiting:
            self._waited_s = 0.0
            return 0
        self._waited_s += min(max(0.0, step_s), _MAX_COUNTED_STEP_S)
        if self._waited_s < GAP_LIMIT_S:
            return 0
        self._waited_s = 0.0
        if self._start_is_guess:  # the number that `offer` began at was a guess, so nothing is missing
            self._expected_seq = min(self._waiting)
            return 0
        return self._give_up_before(min(self._waiting))

    def resume(self, last: int) -> int:
        """The board's last event is known again. Returns how many events up to it will never arrive; gives them up."""
        return self._give_up_before(last - KEPT_BY_BOARD + 1)

    def settle(self, last: int) -> None:
        """Stops waiting for events up to this one."""
        self._give_up_before(last + 1)

    def is_settled(self, number: int) -> bool:
        """Whether all events up to that one were reported or given up."""
        return self._expected_seq is not None and self._expected_seq > number

    def _give_up_before(self, first: int) -> int:
        """Expects event `first` next, unless a later one is expected already. Returns the number of events given up."""
        assert self._expected_seq is not None
        count = max(0, first - self._expected_seq)
        self._expected_seq += count
        self.missing += count
        self._waiting = {number: event for number, event in self._waiting.items() if number >= self._expected_seq}
        return count


class DeliveredEvents:
    """Events from a broker, which delivers each at least once. They are reported as they arrive.

    It has the methods of `ResentEvents`. from_one: whether numbers are expected from 1; otherwise from the first one
    that arrives.
    """

    def __init__(self, *, from_one: bool = False) -> None:
        self.missing = 0
        self._highest = 0 if from_one else -1
        self._seen_numbers: dict[int, None] = {}
        self._settled = 0  # all events up to this number were delivered or given up
        self._ready_events: list[StampedEvent] = []
        self._unreported_gap = 0

    def record(self, seq: int) -> tuple[bool, int]:
        """Counts an event. Returns whether its number is a repetition, and how many numbers before it are missing."""
        if self._highest < 0:
            self._highest = self._settled = max(seq - 1, self._settled)  # `settle` may have come before any event
        if seq in self._seen_numbers or seq <= self._highest - _NUMBERS_KEPT:
            return True, 0
        gap = max(0, seq - self._highest - 1)
        self.missing += gap
        self._highest = max(self._highest, seq)
        self._seen_numbers[seq] = None
        while len(self._seen_numbers) > _NUMBERS_KEPT:
            oldest = next(iter(self._seen_numbers))
            del self._seen_numbers[oldest]
        self.settle(0)
        return False, gap

    def is_newest(self, seq: int) -> bool:
        """Whether it exceeds every number so far."""
        return seq > self._highest >= 0

    def offer(self, seq: int, event: Event | Log | None, stamp: Stamp) -> EventDecision:
        """Accepts an event; `due` then returns it, unless it is a repetition."""
        repeated, gap = self.record(seq)
        self._unreported_gap += gap
        if not repeated:
            self._ready_events.append((event, stamp))
        return EventDecision.ACKNOWLEDGE

    def due(self) -> list[StampedEvent]:
        """The events that have arrived; each is returned once."""
        ready, self._ready_events = self._ready_events, []
        return ready

    def skip_missing(self, alive_s: float) -> int:
        """The number of events that have gone missing since the last call. A missing one may still arrive."""
        gap, self._unreported_gap = self._unreported_gap, 0
        return gap

    def resume(self, last: int) -> int:
        """The board's last event is known again: earlier ones are not awaited. Returns 0, since a broker keeps them."""
        self.settle(last)
        return 0

    def settle(self, last: int) -> None:
        """Stops waiting for events up to this one."""
        self._settled = max(self._settled, last)
        while self._settled + 1 in self._seen_numbers:
            self._settled += 1

    def is_settled(self, number: int) -> bool:
        """Whether all events up to that one have arrived or were given up."""
        return self._settled >= number


EventNumbers = ResentEvents | DeliveredEvents
"""The events of one boot, each reported once."""


@frozen
class NumberingResult:
    """What the numbers of a message show.

    - duplicate: whether the message is a repetition.
    - rebooted: whether the device has restarted.
    - missing: number of messages missing before it.
    - late: whether it belongs to an earlier boot.
    - rival: id of a second boot that sends under the same name: two devices use it; "" if there is none.
    """

    duplicate: bool = False
    rebooted: bool = False
    missing: int = 0
    late: bool = False
    rival: str = ""


_MAX_BOOT_ID_CHARS = 64
_BOOTS_KEPT = 16
_U64_END = 1 << 64


class MappedNumbering:
    """Checks the numbers of messages of a device with mappings. Messages without valid numbers are accepted unchecked.

    It remembers only the last boots, so that a hostile device cannot fill the memory.
    """

    def __init__(self) -> None:
        self._boot: str | None = None
        self._boots: dict[str, DeliveredEvents] = {}

    @property
    def knows_boot(self) -> bool:
        """Whether a message has named the boot of the device."""
        return self._boot is not None

    def judge(self, document: PlainValue) -> NumberingResult:
        """Judges the next message in the order of arrival."""
        if not isinstance(document, dict):
            return NumberingResult()
        boot, seq = document.get("boot"), document.get("seq")
        if not (isinstance(boot, str) or is_integer(boot)) or len(str(boot)) > _MAX_BOOT_ID_CHARS:
            return NumberingResult()
        if not is_integer(seq) or not 0 <= seq < _U64_END:
            seq = None
        return self._record(str(boot), seq)

    def _record(self, boot: str, seq: int | None) -> NumberingResult:
        previous_boot, rival = self._boot, ""
        if boot != previous_boot:
            numbers = self._boots.get(boot)
            if numbers is not None and (seq is None or not numbers.is_newest(seq)):
                # Usually the last will of an earlier boot, or what the broker delivers again.
                return NumberingResult(duplicate=seq is not None and numbers.record(seq)[0], late=True)
            if numbers is not None:
                rival = previous_boot or ""
                self._boots[boot] = self._boots.pop(boot)  # the last to be forgotten
            else:
                # What it sent before this connection is unknown, but after a restart it counts from 1.
                self._boots[boot] = DeliveredEvents(from_one=previous_boot is not None)
                if len(self._boots) > _BOOTS_KEPT:
                    oldest = next(iter(self._boots))
                    del self._boots[oldest]
            self._boot = boot
        rebooted = previous_boot is not None and boot != previous_boot and not rival
        if seq is None:
            return NumberingResult(rebooted=rebooted)
        repeated, missing = self._boots[boot].record(seq)
        return NumberingResult(duplicate=repeated, rebooted=rebooted, missing=missing, rival=rival)


@dataclass(slots=True, eq=False)
class BoardCommand:
    """A command to a board.

    - number: 0 until it is first sent.
    - next_s: when to send it next.
    - done: set when it has ended.
    - acknowledged: whether the board has carried it out.
    """

    message: TextCommand | Set
    number: int = 0
    next_s: float = float("-inf")
    acknowledged: bool = False
    done: threading.Event = field(default_factory=threads.event)


class BoardCommands:
    """The commands of one boot, one at a time, resent until acknowledged. Only `BoardCommand.done` is thread-safe.

    - resend_s: time after which an unacknowledged command is sent again.
    - last: number after which to count; None: the last one that the board reports as carried out. The board carries out
      each number once per boot, which may last for many sessions, so numbers must not start at 1 in each session.
    """

    def __init__(self, resend_s: float, last: int | None) -> None:
        self._resend_s = resend_s
        self._last_number = last
        self._waiting: list[BoardCommand] = []

    def add(self, message: TextCommand | Set) -> BoardCommand:
        """Queues a command, whose `done` is set when it has ended."""
        command = BoardCommand(message)
        self._waiting.append(command)
        return command

    def drop(self, command: BoardCommand) -> None:
        """Removes a command for which the caller has stopped waiting."""
        if command in self._waiting:
            self._waiting.remove(command)

    def fail_all(self) -> None:
        """Ends all commands, since the board has restarted or is lost, and it is unknown which ones it carried out."""
        for command in self._waiting:
            command.done.set()
        self._waiting.clear()

    def acknowledge(self, number: int) -> None:
        """Ends the command with that number, which the board has carried out."""
        if self._waiting and self._waiting[0].number and self._waiting[0].number == number:
            command = self._waiting.pop(0)
            command.acknowledged = True
            command.done.set()

    def acknowledge_up_to(self, last: int) -> None:
        """Ends the commands up to the one that the board reports as carried out last."""
        self._last_number = max(self._last_number or 0, last)
        while self._waiting and 0 < self._waiting[0].number <= last:
            self.acknowledge(self._waiting[0].number)

    def due(self, now_s: float) -> tuple[tuple[TextCommand | Set, int], ...]:
        """The command to send now, and its number; () if there is none."""
        if not self._waiting or self._last_number is None:
            return ()
        first = self._waiting[0]
        if first.next_s > now_s:
            return ()
        if not first.number:
            self._last_number = first.number = ((self._last_number + 1) & _MAX_NUMBER) or 1  # 0 means "not sent yet"
        first.next_s = now_s + self._resend_s
        return ((first.message, first.number),)

    def wait_s(self, now_s: float) -> float | None:
        """Time until `due` has a command, s; None while it waits for none."""
        if not self._waiting or self._last_number is None:
            return None
        return max(0.0, self._waiting[0].next_s - now_s)
