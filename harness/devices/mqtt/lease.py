"""Reserves a board for one harness: a retained lease with owner and expiry on `vh/<device>/lease`.

A claim replaces the retained lease of another harness. A running owner answers a claim with its own lease, and the
claimant gives up. The broker orders all claims, so the first of two simultaneous claims wins.

    CLAIMED    own claim comes back ──►  HELD, or DISPUTED if there was another lease
               an owner answers ──────►  TAKEN
               nothing comes ─────────►  UNSEEN, or TAKEN if there was another lease

DISPUTED becomes HELD if no answer comes within DEFENCE_S. TAKEN becomes CLAIMED again if nothing is heard of the other
lease for EXPIRES_S, or if it is released.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, auto

from harness.base import threads
from harness.base.foreign import plain_text
from harness.base.ports import Clock
from harness.devices.wire.lines import MappingError
from harness.devices.wire.mappings import parse_json
from harness.model.errors import DeviceError
from harness.model.frozen import frozen

TOPIC = "lease"
REFRESH_S = 3.0
"""Interval at which an owner renews its lease, in seconds. Some renewals may be lost before the lease expires."""
EXPIRES_S = 10.0  # Three renewals, and a second for the transmission.
DEFENCE_S = 2.0
"""Time that an owner has to answer a claim, in seconds."""
ECHO_S = 1.5
"""If the broker has not returned a claim by then, its access list refused the claim."""


class LeaseState(Enum):
    """The state of a lease.

    NONE: not claimed (no link). CLAIMED: the claim was sent. DISPUTED: there was a lease of another harness, which may
    answer. HELD: held by this harness. TAKEN: held by another one. UNSEEN: the broker does not deliver the lease.
    """

    NONE = auto()
    CLAIMED = auto()
    DISPUTED = auto()
    HELD = auto()
    TAKEN = auto()
    UNSEEN = auto()


@frozen
class _SeenLease:
    """A lease that was read from the topic.

    - owner: the owner's id.
    - name: the owner, in words.
    - until_s: when it expires, in Unix time.
    - held: False for a claim.
    """

    owner: str
    name: str
    until_s: float
    held: bool


class Lease:
    """The lease of one board, for one owner. No I/O: it takes messages of the topic, and returns what to publish.

    wall_s, in its methods, is Unix time.
    """

    def __init__(self, owner: str, name: str) -> None:
        """owner: random id of this harness. name: this harness, in words."""
        self.owner = owner
        self.state = LeaseState.NONE
        self.other = ""
        """The name of the other harness that has, or last had, the lease; "" if none had."""
        self._name = name
        self._state_since_s = 0.0
        self._other_expires_s: float | None = None  # of the retained lease of another harness, in Unix time
        self._must_publish = False

    def link_up(self, now_s: float) -> None:
        """The broker is connected (again): claims the lease."""
        self._enter(LeaseState.CLAIMED, now_s, publish=True)
        self._other_expires_s = None

    def link_down(self) -> None:
        """The broker is gone, and with it the lease."""
        self.state = LeaseState.NONE

    def receive(self, payload: bytes, now_s: float, wall_s: float, *, retained: bool) -> None:
        """Handles a message of the topic; an empty payload means that the lease was released."""
        if self.state is LeaseState.NONE:
            return
        lease = _parse_lease(payload)
        if lease is None:
            if not payload and self.state is LeaseState.TAKEN:
                self._other_expires_s = None
                self._enter(LeaseState.CLAIMED, now_s, publish=True)
            elif not payload and self.state is LeaseState.HELD:
                self._must_publish = True  # another harness withdrew the claim that had replaced this lease
            return
        if lease.owner == self.owner:
            if not retained and self.state in (LeaseState.CLAIMED, LeaseState.UNSEEN):
                self._enter(LeaseState.DISPUTED if self._has_rival(wall_s) else LeaseState.HELD, now_s)
            return
        self.other = lease.name
        if retained:
            self._other_expires_s = lease.until_s
            return
        if self.state is LeaseState.HELD and not (lease.held and lease.owner < self.owner):
            self._must_publish = True  # if both hold it, since one was offline, the lower name keeps it
        else:
            self._enter(LeaseState.TAKEN, now_s)

    def due(self, now_s: float, wall_s: float) -> bytes | None:
        """Lets time pass, which may change the state. Returns the payload to publish now (retained), or None."""
        elapsed_s = now_s - self._state_since_s
        match self.state:
            case LeaseState.CLAIMED if not self._must_publish and elapsed_s >= ECHO_S:
                self._enter(LeaseState.TAKEN if self._has_rival(wall_s) else LeaseState.UNSEEN, now_s)
            case LeaseState.DISPUTED if elapsed_s >= DEFENCE_S:
                self._enter(LeaseState.HELD, now_s, publish=True)
            case LeaseState.HELD if elapsed_s >= REFRESH_S:
                self._enter(LeaseState.HELD, now_s, publish=True)
            case LeaseState.TAKEN if elapsed_s >= EXPIRES_S:
                self._enter(LeaseState.CLAIMED, now_s, publish=True)
                self._other_expires_s = None
        if not self._must_publish or self.state in (LeaseState.NONE, LeaseState.TAKEN):
            return None
        self._must_publish = False
        if self.state is LeaseState.CLAIMED:
            self._state_since_s = now_s
        expires = datetime.fromtimestamp(wall_s + EXPIRES_S, UTC).isoformat(timespec="seconds")
        is_held = self.state is LeaseState.HELD
        return json.dumps({"owner": self.owner, "name": self._name, "until": expires, "held": is_held}).encode()

    def _has_rival(self, wall_s: float) -> bool:
        """Whether the retained lease of another harness has not expired."""
        return self._other_expires_s is not None and self._other_expires_s > wall_s

    def _enter(self, state: LeaseState, now_s: float, *, publish: bool = False) -> None:
        self.state, self._state_since_s, self._must_publish = state, now_s, publish


def _parse_lease(payload: bytes) -> _SeenLease | None:
    """The lease in a message; None for anything else, such as a release."""
    try:
        document = parse_json(payload)
    except MappingError:
        return None
    if not isinstance(document, dict):
        return None
    owner, name, expires = (document.get(key) for key in ("owner", "name", "until"))
    if not isinstance(owner, str) or not isinstance(name, str) or not isinstance(expires, str):
        return None
    try:
        until_s = datetime.fromisoformat(expires).timestamp()
    except (ValueError, OverflowError):
        return None
    return _SeenLease(owner[:64], plain_text(name, 80), until_s, document.get("held") is True)


class Reservation:
    """A lease that a thread renews.

    publish(topic, payload): publishes a retained message. on_taken(reason): called when another harness has the lease.
    on_free(): called when this harness has it again. Both are called from the thread, once `wait_for_owner` has ended.
    """

    def __init__(
        self,
        owner: str,
        topic: str,
        clock: Clock,
        publish: Callable[[str, bytes], None],
        on_taken: Callable[[str], None],
        on_free: Callable[[], None],
    ) -> None:
        self._lease = Lease(owner, f"{_user()}@{socket.gethostname()}, process {os.getpid()}")
        self._topic = topic
        self._clock = clock
        self._publish = publish
        self._on_taken, self._on_free = on_taken, on_free
        self._changed = threads.condition()
        self._is_closed = self._wait_has_ended = False
        self._reported_state = LeaseState.NONE  # used by the thread only
        self._thread = threads.thread(self._run, name="mqtt-lease")
        self._thread.start()

    def link_up(self) -> None:
        with self._changed:
            self._lease.link_up(self._clock.now_s())
            self._changed.notify_all()

    def link_down(self) -> None:
        with self._changed:
            self._lease.link_down()

    def receive(self, payload: bytes, *, retained: bool) -> None:
        """Handles a message of the lease's topic."""
        with self._changed:
            self._lease.receive(payload, self._clock.now_s(), self._clock.wall_s(), retained=retained)
            self._changed.notify_all()

    def wait_for_owner(self) -> bool:
        """Waits until the owner is known. Returns False if the broker does not deliver the lease.

        Raises DeviceError if another harness has the board.
        """
        with self._changed:
            final_states = (LeaseState.HELD, LeaseState.TAKEN, LeaseState.UNSEEN)
            self._changed.wait_for(lambda: self._lease.state in final_states, ECHO_S + DEFENCE_S + 1.0)
            state, other = self._lease.state, self._lease.other
            self._wait_has_ended = True
        if state is LeaseState.TAKEN:
            raise DeviceError(
                f"{self._topic}: the board is reserved by {other}",
                remedy="End that session first; after a crash the lease expires within a few seconds",
            )
        return state is LeaseState.HELD

    def close(self) -> None:
        """Ends the thread, waiting at most 1 s, and releases the lease."""
        with self._changed:
            self._is_closed = True
            is_held = self._lease.state in (LeaseState.HELD, LeaseState.DISPUTED, LeaseState.CLAIMED)
            self._lease.link_down()
            self._changed.notify_all()
        self._thread.join(1.0)
        if is_held:
            self._publish(self._topic, b"")

    def _run(self) -> None:
        """Publishes what is due and reports changes of the owner, both without the lock, until closed."""
        while True:
            with self._changed:
                if self._is_closed:
                    return
                payload = self._lease.due(self._clock.now_s(), self._clock.wall_s())
                state, other = self._lease.state, self._lease.other
                if payload is None and state is self._reported_state:
                    self._changed.wait(0.25)
                    continue
                if state is not self._reported_state:
                    self._changed.notify_all()
            if payload is not None:
                self._publish(self._topic, payload)
            previous, self._reported_state = self._reported_state, state
            if not self._wait_has_ended or previous is state:
                continue
            if state is LeaseState.TAKEN:
                self._on_taken(f"the board is reserved by {other}")
            elif state is LeaseState.HELD:
                self._on_free()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"  # the user has no name, as in a container
