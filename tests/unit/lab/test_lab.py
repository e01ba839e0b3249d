"""The lab as a whole, with its real parts, and the assistant asked through the air."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.places import lab_state
from harness.lab.lab import ASSISTANT, BROKER, PARTS, SOUND, Lab
from harness.model.errors import InputError, LabError
from harness.model.stimulus import Waveform
from harness.sound.playback import Playback
from tests.unit.engines.spoken import spoken

pytestmark = [pytest.mark.sound, pytest.mark.speech]

SETTINGS = """
assistant: parrot
voice: {engine: espeak, name: en-gb+m3, language: en-GB}
dialogue_s: 3
faults:
  - {do: mishear, when: moons, times: 1, as: the movies of Mars}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    folder = Path(tempfile.mkdtemp(prefix="vh-lab-", dir="/tmp"))
    before = os.environ.get("HARNESS_LAB")
    os.environ["HARNESS_LAB"] = str(folder / "lab")
    one = Lab()
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    assert one.up(folder / "settings.yaml", "anechoic")
    yield one
    one.down()
    if before is None:
        del os.environ["HARNESS_LAB"]
    else:
        os.environ["HARNESS_LAB"] = before
    shutil.rmtree(folder)


class Talk:
    """Asks by loudspeaker, and hears by MQTT."""

    def __init__(self) -> None:
        state = lab_state()
        self.told: queue.SimpleQueue[tuple[str, dict[str, object]]] = queue.SimpleQueue()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = lambda c, u, m: self.told.put((m.topic, json.loads(m.payload)))
        self.client.connect(state.mqtt_host, state.mqtt_port)
        self.client.subscribe("vh/parrot/#", 1)
        self.client.loop_start()
        self.playback = Playback("harness_speaker", "virtual_lab", on_fault=lambda at, what: None)
        self.playback.open()

    def ask(self, *texts: str) -> None:
        pieces = [np.zeros(1600, np.float32)]
        for text in texts:
            pieces += [spoken(text), np.zeros(4800, np.float32)]
        self.playback.play("query", Waveform(np.concatenate(pieces), 16000))

    def hear(self, topic: str, **wanted: object) -> dict[str, object]:
        deadline = time.monotonic() + 20
        while True:
            name, fields = self.told.get(timeout=max(0.1, deadline - time.monotonic()))
            if name == f"vh/parrot/{topic}" and wanted.items() <= fields.items():
                return fields

    def close(self) -> None:
        self.playback.close()
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def talk(lab: Lab) -> Iterator[Talk]:
    one = Talk()
    yield one
    one.close()


def test_it_wakes_understands_and_answers(talk: Talk) -> None:
    talk.ask("alexa", "what time is it")
    assert talk.hear("wake")["phrase"] == "alexa"
    assert "time" in str(talk.hear("transcript")["text"]).lower()
    assert str(talk.hear("response")["text"]).startswith("It is")
    talk.hear("status", state="speaking")
    talk.hear("status", state="idle")


def test_it_asks_back_and_gives_up_when_nobody_answers(talk: Talk) -> None:
    talk.ask("alexa", "set an alarm for one")
    assert talk.hear("response")["text"] == "Is that a.m. or p.m.?"
    talk.hear("status", state="dialogue_open")
    talk.hear("status", state="idle")


def test_a_lab_that_is_up_is_left_alone(lab: Lab) -> None:
    pids = lab_state().pids
    assert lab.up() is False
    assert lab_state().pids == pids
    assert {name for name, _ in pids} == set(PARTS)
    status = {part.name: part for part in lab.status()}
    assert all(part.healthy and part.pid and part.uptime_s is not None for part in status.values())
    assert status[SOUND].health == "answers"
    assert "127.0.0.1" in status[BROKER].health
    assert status[ASSISTANT].health == "idle"


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_died_is_brought_back_and_the_others_are_left_alone(lab: Lab, part: str) -> None:
    before = lab_state()
    pids = dict(before.pids)
    os.kill(pids[part], signal.SIGKILL)
    deadline = time.monotonic() + 5
    while lab.is_up():
        assert time.monotonic() < deadline
    assert lab.up()
    assert lab.started == (part,)
    after = lab_state()
    changed = {name for name, pid in after.pids if pid != pids[name]}
    assert changed == {part}
    assert (after.environment, after.mqtt_port) == (before.environment, before.mqtt_port)
    assert all(one.healthy for one in lab.status())


def test_wrong_words_are_refused_before_anything_starts(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "lab")
    with pytest.raises(InputError, match="living_room"):
        lab.up(room="livingroom")
    with pytest.raises(InputError, match="no such file"):
        lab.up(tmp_path / "nothing.yaml")
    assert not (tmp_path / "lab").exists()
    assert lab.down() == ()


def test_an_assistant_that_cannot_start_takes_the_lab_down_with_it() -> None:
    folder = Path(tempfile.mkdtemp(prefix="vh-bad-", dir="/tmp"))
    lab = Lab(folder / "lab")
    (folder / "settings.yaml").write_text("assistant: a\nwake_phrase: computer\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"assistant ended at once.*computer"):
        lab.up(folder / "settings.yaml")
    assert not any(part.pid for part in lab.status())
    assert not list((folder / "lab").glob("*.pid"))
    shutil.rmtree(folder)
