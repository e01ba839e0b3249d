"""The MQTT driver in simulated time: itself, with a broker and a client in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.base import threads
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.mqtt.link import BrokerLink, LinkEvents
from harness.devices.mqtt.options import MessageFraming, MqttOptions
from harness.devices.profiles.profile import load_profile
from harness.model.bench import DeviceProfile, Heartbeat, MessageMapping, ObservationKind
from harness.model.errors import DeviceError, InputError
from harness.model.observation import DeviceState, LinkBack, LinkLost, LogLine, StateTold, Status, Transcript, Wake
from tests.nights.ports import Message, SimulatedBroker, SimulatedMqtt
from tests.seen import Around, Seen, opened

PROFILE = DeviceProfile(
    "box",
    "A box",
    "box.yaml",
    "0",
    ("alexa",),
    mappings=(
        MessageMapping("box/wake", ObservationKind.WAKE, (("phrase", "/phrase"), ("score", "/score"))),
        MessageMapping("box/text", ObservationKind.TRANSCRIPT, (("text", "/text"),)),
        MessageMapping("box/status", ObservationKind.STATUS, (("state", "/state"),)),
    ),
)


class Box:
    """Says numbered messages. said_s: when it heard its wake phrase and said so."""

    def __init__(self, broker: SimulatedBroker, boot: str = "b1") -> None:
        self.boot, self.number = boot, 0
        self.said_s: list[float] = []
        self._world = broker.world
        self.peer = broker.peer(f"box-{boot}", Message("box/status", self._body(state="gone"), 1))

    def _body(self, **fields: object) -> bytes:
        return json.dumps({"boot": self.boot, **fields}).encode()

    def say(self, topic: str, *, times: int = 1, retain: bool = False, **fields: object) -> None:
        """times: as often as it has missed the acknowledgement."""
        self.number += 1
        for _ in range(times):
            self.peer.say(f"box/{topic}", self._body(seq=self.number, **fields), retain=retain)

    def hears(self, *, times: int = 1) -> None:
        self.said_s.append(self._world.monotonic())
        self.say("wake", times=times, phrase="alexa", score=0.9)


@contextmanager
def watching(
    broker: SimulatedBroker, profile: DeviceProfile = PROFILE, **options: Any
) -> Iterator[tuple[SimulatedMqtt, Seen]]:
    driver = SimulatedMqtt("box", MqttOptions(address="simulated:1883", **options), Around(profile=profile), broker)
    observations = opened(driver)
    yield driver, observations
    driver.close()


def contained(observations: Seen, said_s: list[float]) -> None:
    """Each wake event was reported once, and its stated time contains the true one."""
    wakes = observations.of(Wake)
    assert len(wakes) == len(said_s)
    for wake, true_s in zip(wakes, said_s, strict=True):
        assert abs(wake.at.at_s - true_s) <= wake.at.error_s + 1e-6, (wake, true_s)


@pytest.fixture
def broker(simulated_time: SimulatedThreads) -> SimulatedBroker:
    return SimulatedBroker(simulated_time, lambda: 0.003)


def test_an_hour_of_messages_each_seen_once_at_its_time(broker: SimulatedBroker) -> None:
    box, chance, repeats = Box(broker), Random(2), 0
    with watching(broker) as (driver, observations):
        for _ in range(600):
            threads.sleep(chance.uniform(0.5, 11.5))
            times = chance.choice((1, 1, 2))
            repeats += times - 1
            box.hears(times=times)
        threads.sleep(1.0)
        assert driver.acknowledged > 3000
    assert repeats > 100
    contained(observations, box.said_s)
    assert len(observations.all) == len(box.said_s)


def test_a_network_that_varies_leaves_few_messages_outside_their_error(broker: SimulatedBroker) -> None:
    """The longest recent round trip is an estimate, and no bound, of how long the next message takes."""
    box, chance = Box(broker), Random(2)
    broker.way_s = lambda: chance.expovariate(1 / 0.02)
    with watching(broker) as (_, observations):
        for _ in range(600):
            threads.sleep(5.0)
            box.hears()
        threads.sleep(1.0)
    wakes = observations.of(Wake)
    within = [abs(wake.at.at_s - at_s) <= wake.at.error_s for wake, at_s in zip(wakes, box.said_s, strict=True)]
    assert sum(within) >= 0.98 * len(within)


def test_stated_errors_cover_messages_during_a_host_stall(broker: SimulatedBroker) -> None:
    box, world = Box(broker), broker.world
    with watching(broker) as (_, observations):
        for number in range(60):
            threads.sleep(3.0)
            if number % 10 == 5:
                world.call_at(world.monotonic() + 0.1, lambda: world.stall(2.0))
                world.call_at(world.monotonic() + 0.4, box.hears)
            else:
                box.hears()
        threads.sleep(1.0)
        assert not observations.of(LinkLost)
    contained(observations, box.said_s)


def test_few_messages_on_a_host_that_is_often_late_lie_outside_their_error(broker: SimulatedBroker) -> None:
    """What the first such stalls cost is known only after them."""
    box, world, chance = Box(broker), broker.world, Random(2)
    with watching(broker) as (_, observations):
        threads.sleep(20.0)
        for _ in range(200):
            begins_s = world.monotonic() + chance.uniform(0.1, 0.9)
            world.call_at(begins_s, lambda: world.stall(chance.uniform(0.05, 0.1)))
            world.call_at(begins_s + 0.01, box.hears)
            threads.sleep(1.0)
        threads.sleep(1.0)
    wakes = observations.of(Wake)
    within = [abs(wake.at.at_s - at_s) <= wake.at.error_s for wake, at_s in zip(wakes, box.said_s, strict=True)]
    assert sum(within[20:]) >= 0.95 * len(within[20:])


def test_messages_delayed_by_a_lost_connection_are_marked(broker: SimulatedBroker) -> None:
    box = Box(broker)
    with watching(broker) as (_, observations):
        for number in range(100):
            threads.sleep(5.0)
            if number % 10 == 5:
                box.hears()
                threads.sleep(0.007)  # delivered, and not acknowledged yet
                broker.cut("harness-")
            box.hears()
        threads.sleep(10.0)
        assert len(observations.of(LinkLost)) == len(observations.of(LinkBack)) == 10
    contained(observations, box.said_s)


@pytest.mark.parametrize(("client_id", "rival"), [("lab-1", True), ("", False)])
def test_two_clients_of_one_id_are_named(broker: SimulatedBroker, client_id: str, rival: bool) -> None:
    with watching(broker, client_id=client_id) as (_, observations):
        for _ in range(3):  # as the broker does when the other client connects again
            threads.sleep(5.0)
            broker.cut(client_id or "harness-")
        threads.sleep(5.0)
        first, *others = [lost.what for lost in observations.of(LinkLost)]
    assert "the connection to the broker was lost" in first
    assert len(others) == 2
    for problem in others:
        assert (f"another client uses the same id. Choose a `client_id` other than {client_id!r}" in problem) is rival


def test_rare_connection_losses_are_not_blamed_on_another_client(broker: SimulatedBroker) -> None:
    with watching(broker, client_id="lab-1") as (_, observations):
        for _ in range(3):
            threads.sleep(60.0)
            broker.cut("lab-1")
        threads.sleep(5.0)
        assert not [lost for lost in observations.of(LinkLost) if "another client" in lost.what]


def test_a_frozen_broker_is_noticed_and_its_messages_are_not_lost(broker: SimulatedBroker) -> None:
    box = Box(broker)
    with watching(broker, keepalive_s=3.0) as (_, observations):
        threads.sleep(5.0)
        frozen_s = broker.world.monotonic()
        broker.freeze()
        box.hears()
        threads.sleep(20.0)
        broker.thaw()
        thawed_s = broker.world.monotonic()
        threads.sleep(10.0)
        (lost,), (back,) = observations.of(LinkLost), observations.of(LinkBack)
        assert "has not answered" in lost.what
        assert frozen_s + 2.0 <= lost.at.at_s <= frozen_s + 5.0
        assert thawed_s <= back.at.at_s <= thawed_s + 4.0
    contained(observations, box.said_s)


def test_a_killed_broker_is_reconnected_after_its_restart(broker: SimulatedBroker) -> None:
    box = Box(broker)
    with watching(broker) as (_, observations):
        threads.sleep(5.0)
        broker.kill()
        threads.sleep(60.0)
        assert [type(observation) for observation in observations.all] == [LinkLost]
        broker.start()
        box.peer.connect()
        threads.sleep(5.0)
        assert [type(observation) for observation in observations.all] == [LinkLost, LinkBack]
        box.hears()
        threads.sleep(1.0)
    contained(observations, box.said_s)
    broker.kill()
    with pytest.raises(DeviceError, match="nobody listens"), watching(broker):
        pass


def test_an_order_that_failed_is_not_sent_when_the_broker_is_back(broker: SimulatedBroker, tmp_path: Path) -> None:
    events = LinkEvents(lambda: None, lambda _: None, lambda *_: None, lambda _: None)
    options = MqttOptions(address="simulated:1883")
    link = BrokerLink("plug", options, Around().clock, tmp_path, (), events, client=broker.client)
    link.open()
    broker.kill()
    threads.sleep(1.0)
    with pytest.raises(DeviceError, match="plug: the connection to the broker is lost"):
        link.deliver("plug/set", b"OFF", 2.0)
    broker.start()
    orders: list[bytes] = []
    plug = broker.peer("plug")
    plug.subscribe("plug/set")
    plug.hears = lambda _, payload: orders.append(payload)
    link.deliver("plug/set", b"ON", 5.0)  # as soon as the connection is back
    threads.sleep(10.0)
    assert orders == [b"ON"]
    link.close()


@pytest.mark.parametrize(("device", "topics"), [("#", ()), ("box", ("a/#/b",))])
def test_a_monitor_refuses_what_is_not_a_filter(device: str, topics: tuple[str, ...]) -> None:
    profile = load_profile("reference_assistant", beside=Path())
    with pytest.raises(InputError, match="is not an MQTT filter"):
        SimulatedMqtt.source(MqttOptions(address="simulated:1883"), profile, device, topics)


def test_a_profile_without_topics_is_refused(broker: SimulatedBroker) -> None:
    profile = load_profile("esp_skainet", beside=Path())
    with pytest.raises(DeviceError, match="the profile esp_skainet has no MQTT topics"), watching(broker, profile):
        pass


def test_a_restart_and_a_lost_device_are_told_apart(broker: SimulatedBroker) -> None:
    box = Box(broker)
    box.say("text", text="yesterday", retain=True)
    threads.sleep(1.0)
    with watching(broker) as (_, observations):
        box.say("text", text="today")
        threads.sleep(1.0)
        box.peer.vanish(noticed_after_s=9.0)
        restarted = Box(broker, boot="b2")
        threads.sleep(4.0)
        restarted.say("text", text="tomorrow")
        restarted.number += 2
        restarted.say("text", text="in three days")
        threads.sleep(10.0)  # the will of the first boot comes meanwhile
        restarted.peer.vanish(noticed_after_s=9.0)
        threads.sleep(10.0)
    assert [text.text for text in observations.of(Transcript)] == ["today", "tomorrow", "in three days"]
    assert [status.state for status in observations.of(Status)] == [DeviceState.STARTED, DeviceState.GONE]
    missing, will = observations.of(LogLine)
    assert missing.text == "messages missing before this one: 2"
    assert will.text.startswith("from an earlier boot: ")


def test_a_last_will_from_before_the_first_message_makes_that_no_restart(broker: SimulatedBroker) -> None:
    earlier = Box(broker)
    earlier.hears()
    threads.sleep(1.0)
    earlier.peer.vanish(noticed_after_s=9.0)
    box = Box(broker, boot="b2")
    threads.sleep(4.0)
    with watching(broker) as (_, observations):
        threads.sleep(10.0)
        box.hears()
        threads.sleep(1.0)
    assert [status.state for status in observations.of(Status)] == [DeviceState.GONE]


def test_messages_that_are_heartbeats_are_mapped_too(broker: SimulatedBroker) -> None:
    heartbeat = Heartbeat(MessageMapping("box/#", ObservationKind.LISTENING), 10.0)
    box = Box(broker)
    with watching(broker, replace(PROFILE, heartbeat=heartbeat)) as (_, observations):
        box.hears()
        box.peer.say("box/uptime", b"7")
        threads.sleep(5.0)
        box.hears()
        threads.sleep(30.0)
        (lost,) = observations.of(LinkLost)
        assert "no sign of life" in lost.what
    contained(observations, box.said_s)
    assert not observations.of(LogLine)


def test_a_framed_board_reports_by_mappings_what_its_framing_lacks(broker: SimulatedBroker) -> None:
    timer = MessageMapping("vh/box/state/+", ObservationKind.STATE, (("name", "/name"), ("value", "/value")))
    board = broker.peer("board")
    board.subscribe("vh/box/in/hello")
    hello = {"protocol": 1, "boot": "b1", "time_us": 1, "rate_hz": 16000, "window": 8000, "firmware": "t"}
    board.hears = lambda topic, payload: board.say("vh/box/hello", json.dumps(hello).encode())
    with watching(broker, replace(PROFILE, mappings=(timer,)), framing=MessageFraming.VH) as (_, observations):
        for topic, fields in (("state/timer", {"name": "timer", "value": "5 minutes"}), ("wake", {"phrase": "alexa"})):
            board.say(f"vh/box/{topic}", json.dumps({"boot": "b1", **fields}).encode())
        threads.sleep(1.0)
    (state,), (wake,) = observations.of(StateTold), observations.of(Wake)
    assert (state.name, state.value, wake.phrase) == ("timer", "5 minutes", "alexa")


def test_a_service_that_falls_silent_is_lost_until_it_answers(broker: SimulatedBroker) -> None:
    profile = load_profile("hermes_rhasspy", beside=Path())
    service = broker.peer("rhasspy")
    service.subscribe("rhasspy/hotword/getHotwords")
    requests: list[bytes] = []

    def answers(topic: str, payload: bytes) -> None:
        requests.append(payload)
        if lives:
            service.say("rhasspy/hotword/hotwords", b'{"siteId": "default", "models": []}')

    service.hears, lives = answers, True
    with watching(broker, profile, topic_device="default") as (_, observations):
        threads.sleep(60.0)
        assert not observations.of(LinkLost)
        hung_s = broker.world.monotonic()
        lives = False
        threads.sleep(30.0)
        (lost,) = observations.of(LinkLost)
        assert "no sign of life" in lost.what
        assert hung_s + 4.0 <= lost.at.at_s <= hung_s + 8.1
        lives = True
        threads.sleep(3.0)
        assert len(observations.of(LinkBack)) == 1
        broker.kill()
        threads.sleep(30.0)
        assert len(observations.of(LinkLost)) == 2
    assert len(requests) >= 40
