"""Who may use a board: several owners and a broker that keeps one message, in simulated time."""

from __future__ import annotations

from harness.devices.mqtt.lease import DEFENCE_S, ECHO_S, EXPIRES_S, REFRESH_S, Holding, Lease

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
            lease.take(self.kept, self.now_s, WALL_S + self.now_s, retained=True)

    def publish(self, payload: bytes) -> None:
        self.kept = payload
        self._coming += [(self.now_s + self.late_s, one, payload, False) for one in self.there]

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.01)):
            self.now_s += 0.01
            due = [one for one in self._coming if one[0] <= self.now_s]
            self._coming = [one for one in self._coming if one[0] > self.now_s]
            for _, lease, payload, retained in due:
                if lease.owner not in self.deaf and lease in self.there:
                    lease.take(payload, self.now_s, WALL_S + self.now_s, retained=retained)
            for lease in self.there:
                payload = None if lease.owner in self.deaf else lease.due(self.now_s, WALL_S + self.now_s)
                if payload is not None:
                    self.publish(payload)


def test_a_free_board_is_held_at_once_and_an_owner_that_is_there_keeps_it() -> None:
    broker = Broker()
    first = broker.connect("b")
    broker.run(0.1)
    assert first.state is Holding.HELD
    broker.run(30.0)
    second = broker.connect("a")
    broker.run(0.1)
    assert (first.state, second.state, second.other) == (Holding.HELD, Holding.TAKEN, "b")
    broker.run(60.0)
    assert (first.state, second.state) == (Holding.HELD, Holding.TAKEN)


def test_of_two_at_the_same_moment_one_holds_it() -> None:
    for late_s in (0.005, 0.05, 0.3):
        broker = Broker(late_s=late_s)
        leases = [broker.connect(owner) for owner in ("a", "b", "c")]
        broker.run(5.0)
        states = [one.state for one in leases]
        assert states.count(Holding.HELD) == 1, (late_s, states)
        assert states.count(Holding.TAKEN) == 2, (late_s, states)


def test_the_lease_of_an_owner_that_crashed_is_free_soon() -> None:
    broker = Broker()
    broker.connect("a")
    broker.run(1.0)
    broker.there.clear()
    second = broker.connect("b")
    broker.run(DEFENCE_S - 0.5)
    assert second.state is Holding.DISPUTED
    broker.run(1.0)
    assert second.state is Holding.HELD
    broker.there.clear()
    broker.run(EXPIRES_S + 1.0)
    third = broker.connect("c")
    broker.run(0.1)
    assert third.state is Holding.HELD, "an expired lease is not waited for"


def test_what_is_given_back_is_there_for_the_next() -> None:
    broker = Broker()
    first, second = broker.connect("a"), broker.connect("b")
    broker.run(3.0)
    assert (first.state, second.state) == (Holding.HELD, Holding.TAKEN)
    broker.there.remove(first)
    broker.publish(b"")
    broker.run(0.1)
    assert second.state is Holding.HELD


def test_an_owner_that_was_away_does_not_share_the_board() -> None:
    broker = Broker()
    first = broker.connect("a")
    broker.run(1.0)
    first.link_down()
    broker.there.remove(first)
    second = broker.connect("b")
    broker.run(DEFENCE_S + 1.0)
    assert second.state is Holding.HELD
    broker.there.append(first)
    broker.back(first)
    broker.run(1.0)
    assert (first.state, second.state) == (Holding.TAKEN, Holding.HELD)


def test_two_that_both_hold_it_settle_on_one() -> None:
    broker = Broker()
    first = broker.connect("b")
    broker.run(1.0)
    broker.deaf.add("b")  # its process stands still: no link is lost
    second = broker.connect("a")
    broker.run(DEFENCE_S + 1.0)
    assert second.state is Holding.HELD
    broker.deaf.clear()
    broker.run(REFRESH_S + 1.0)
    assert sorted((first.state.name, second.state.name)) == ["HELD", "TAKEN"]


def test_a_broker_that_shows_us_nothing_is_said_and_foreign_payloads_are_not_ours() -> None:
    lease = Lease("a", "a")
    lease.link_up(0.0)
    assert lease.due(0.0, WALL_S) is not None
    for payload in (
        b"x",
        b"[]",
        b"{}",
        b'{"owner": 1, "name": "x", "until": "x"}',
        b'{"owner":"q","name":"q","until":"?"}',
    ):
        lease.take(payload, 0.1, WALL_S, retained=False)
    assert lease.due(ECHO_S + 0.1, WALL_S) is None
    assert lease.state is Holding.UNSEEN
