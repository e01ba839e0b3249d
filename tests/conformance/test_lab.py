"""The lab as a whole, with its real parts, and its assistant, asked through the air and overheard over MQTT."""

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

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.places import lab_state
from harness.lab.lab import ASSISTANT, BROKER, PARTS, SOUND, Lab
from harness.model.errors import InputError, LabError
from harness.model.stimulus import SpokenText, StimulusRecipe, VoiceSpec
from harness.sound.playback import Playback
from harness.sound.stimuli.renderer import Renderer
from tests.conformance.engine_runs import wait_for
from tests.conformance.lab_runs import lab_of_its_own
from tests.files import file_with

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

PATIENCE_S = 40.0
"""For one answer: a recogniser on a machine that is busy with other things takes its time."""
MEMORY_S = 6.0
SETTINGS = f"""
assistant: lively
memory_s: {MEMORY_S}
dialogue_s: 5
faults:
  - {{do: silent, when: shirt}}
"""
Fields = dict[str, object]


class Talk:
    """Asks by loudspeaker, and hears by MQTT."""

    def __init__(self) -> None:
        state = lab_state()
        self.told: queue.SimpleQueue[tuple[str, Fields]] = queue.SimpleQueue()
        self.said: list[tuple[str, Fields]] = []
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = lambda c, u, m: self.told.put((m.topic.split("/")[-1], json.loads(m.payload)))
        self.client.connect(state.mqtt_host, state.mqtt_port)
        self.client.subscribe("vh/lively/#", 1)
        self.client.loop_start()
        self.renderer = Renderer(None)
        self.ended: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.playback = Playback(
            "harness_speaker",
            "virtual_lab",
            on_ended=lambda play_id, stamp, complete: self.ended.put(complete),
            on_fault=lambda stamp, problem: None,
        )
        self.playback.open()

    def ask(self, text: str, wake_phrase: str | None = "Alexa") -> float:
        """Says it to the end, and returns the moment of its first sample, more or less."""
        call = None if wake_phrase is None else SpokenText(wake_phrase)
        recipe = StimulusRecipe(SpokenText(text), call, VoiceSpec("flite", "slt"), gap_ms=300)
        began_s = time.monotonic()
        self.playback.play(text, self.renderer.render(recipe).waveform)
        assert self.ended.get(timeout=PATIENCE_S), "the stimulus was cut"
        return began_s

    def hear(self, topic: str, within_s: float = PATIENCE_S, **wanted: object) -> Fields:
        """The next message on that topic with these fields; AssertionError with what came instead."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                name, fields = self.told.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                last = "\n".join(str(message) for message in self.said[-12:])
                raise AssertionError(
                    f"no {topic} {wanted} within {within_s:.0f} s. The last messages:\n{last}"
                ) from None
            self.said.append((name, fields))
            if name == topic and wanted.items() <= fields.items():
                return fields

    def answer(self) -> str:
        """What it says, once it has said it."""
        text = str(self.hear("response")["text"])
        self.hear("status", state="speaking")
        return text

    def close(self) -> None:
        self.playback.close()
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    settings = file_with(tmp_path_factory.mktemp("lab") / "settings.yaml", SETTINGS)
    with lab_of_its_own(settings) as own_lab:
        yield own_lab


@pytest.fixture(scope="module")
def talk(lab: Lab) -> Iterator[Talk]:
    conversation = Talk()
    try:
        yield conversation
    finally:
        conversation.close()


def test_follow_up_is_understood_only_within_the_memory_time(talk: Talk) -> None:
    talk.ask("what is twelve plus thirty")
    assert talk.hear("wake")["phrase"] == "alexa"
    assert talk.answer() == "12 plus 30 is 42."
    idle = talk.hear("status", state="idle")
    began_s = talk.ask("add five to that")
    assert began_s - float(str(idle["time"])) < MEMORY_S
    assert "47" in talk.answer()
    idle = talk.hear("status", state="idle")
    forgotten_s = float(str(idle["time"])) + MEMORY_S + 0.5
    while time.monotonic() < forgotten_s:
        time.sleep(0.05)
    talk.ask("add five to that")
    assert "52" not in talk.answer()
    talk.hear("status", state="idle")


def test_question_back_stays_open_until_cancelled_or_timed_out(talk: Talk) -> None:
    talk.ask("set an alarm for one")
    assert talk.answer() == "Is that a.m. or p.m.?"
    talk.hear("status", state="dialogue_open")
    talk.ask("never mind", wake_phrase=None)
    assert "mind" in str(talk.hear("transcript")["text"])
    talk.hear("status", state="idle")
    assert not [fields for name, fields in talk.said[-4:] if name == "response"]
    talk.ask("set an alarm for one")
    talk.hear("status", state="dialogue_open")
    talk.hear("status", state="idle")


def test_deliberate_silence_is_reported_without_an_answer(talk: Talk) -> None:
    talk.ask("what color is my shirt")
    assert "shirt" in str(talk.hear("transcript")["text"])
    talk.hear("status", state="idle")
    assert [name for name, _ in talk.said[-3:]] == ["transcript", "intent", "status"]


def test_a_timer_rings_by_itself_until_stop(talk: Talk) -> None:
    talk.ask("set a timer for five seconds")
    assert talk.answer() == "Timer set for 5 seconds."
    ring = talk.hear("response", alert=True)
    assert ring["text"] == "Your timer for 5 seconds is done."
    talk.hear("status", state="speaking", detail="rings")
    talk.hear("status", state="dialogue_open", detail="rings")
    talk.ask("stop", wake_phrase=None)
    talk.hear("status", state="idle")


def test_changed_settings_are_refused_while_the_lab_is_up(talk: Talk, tmp_path: Path) -> None:
    other = file_with(tmp_path / "other.yaml", "assistant: lively\n")
    with pytest.raises(InputError, match="harness admin lab down"):
        Lab().up(other)
    with pytest.raises(InputError, match="living_room"):
        Lab().up(room="anechoic")
    assert Lab().up() is False


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
def test_dead_part_is_restarted_and_others_keep_running(lab: Lab, part: str) -> None:
    before = lab_state()
    pids = dict(before.pids)
    os.kill(pids[part], signal.SIGKILL)
    wait_for(lambda: not all(status.pid for status in lab.status()), 15, "its end")
    assert lab.up()
    assert lab.started == (part,)
    after = lab_state()
    changed = {name for name, pid in after.pids if pid != pids[name]}
    assert changed == {part}
    assert (after.environment, after.mqtt_port) == (before.environment, before.mqtt_port)
    assert all(status.healthy for status in lab.status())


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
    with pytest.raises(LabError, match=r"assistant exited immediately.*computer"):
        lab.up(folder / "settings.yaml")
    assert not any(part.pid for part in lab.status())
    assert not list((folder / "lab").glob("*.pid"))
    shutil.rmtree(folder)
