"""Messages of real runs: engines in processes of their own, a web server, a broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.clocks import HostClock
from harness.devices.mqtt.link import BrokerLink, LinkEvents
from harness.devices.mqtt.options import MqttOptions
from harness.model.bench import Notify
from harness.model.errors import DeviceError
from harness.model.feed import Goodbye
from harness.model.record import NoteWritten
from harness.session.engine.launch import start_engine
from harness.session.engine.notify import deliver
from tests.conformance.engine_runs import HERE, Runs, Watcher, records
from tests.conformance.mqtt_bench import Broker
from tests.files import file_with
from tests.ports import free_port
from tests.seen import until
from tests.unit.session.engine.test_notify import Hook, hook

__all__ = ["hook"]


def bench(folder: Path, notify: str) -> Path:
    text = (HERE / "bench.yaml").read_text(encoding="utf-8").replace("device.yaml", str(HERE / "device.yaml"))
    return file_with(folder / "bench.yaml", f"{text}notify:\n  - {notify}\n")


def test_end_of_run_message_includes_its_counts(runs: Runs, hook: Hook, tmp_path: Path) -> None:
    folder = runs.prepare("three.yaml", bench(tmp_path, f"{{webhook: '{hook.address}', on: [finished]}}"))
    assert Watcher(start_engine(folder)).goodbye() == Goodbye(0, "")
    (message,) = hook.posted
    assert message["subject"] == f"{folder.name}: the run has finished"
    assert (message["planned"], message["finished"], message["bench"]) == (3, 3, "in_process")
    assert "finished             3 of 3 trials: " in message["text"]
    assert "\nruns 1 · faults 0 · pauses 0 · " in message["text"]
    assert "\nMARGINAL  recognised ≥" in message["text"]
    assert records(folder, NoteWritten) == []


def test_run_is_unaffected_by_undeliverable_messages(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("three.yaml", bench(tmp_path, f"webhook: 'http://127.0.0.1:{free_port()}/'"))
    assert Watcher(start_engine(folder)).goodbye() == Goodbye(0, "")
    (note,) = records(folder, NoteWritten)
    assert note.text.startswith("the webhook 127.0.0.1 did not get 'finished': it cannot be reached: ")
    assert note.by == "notify"


def test_a_broker_gets_the_message_and_an_absent_one_is_named(tmp_path: Path) -> None:
    with Broker(tmp_path, kind="embedded") as broker:
        address, got = f"127.0.0.1:{broker.port}", list[bytes]()
        events = LinkEvents(lambda: None, lambda _: None, lambda _, payload, *__: got.append(payload), lambda _: None)
        link = BrokerLink("reader", MqttOptions(address), HostClock(), tmp_path, ("lab/nights",), events)
        link.open()
        try:
            deliver(Notify(mqtt=address, topic="lab/nights"), {"event": "paused", "text": "ä"})
            until(lambda: got)
        finally:
            link.close()
        assert [json.loads(payload) for payload in got] == [{"event": "paused", "text": "ä"}]
    with pytest.raises(DeviceError, match=f"the MQTT broker at {address} cannot be used"):
        deliver(Notify(mqtt=address, topic="lab/nights"), {"event": "paused"})
