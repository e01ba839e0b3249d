"""The reference assistant in its lab, asked through the air and overheard over MQTT."""

from __future__ import annotations

import json
import os
import queue
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.places import lab_state
from harness.lab.lab import Lab
from harness.model.errors import InputError
from harness.model.stimulus import SpokenText, StimulusRecipe, VoiceSpec
from harness.sound.playback import Playback
from harness.sound.stimuli.renderer import Renderer

pytestmark = [pytest.mark.sound, pytest.mark.speech]

PATIENCE_S = 40.0
"""For one answer: a recogniser on a machine that is busy with other things takes its time."""
MEMORY_S = 6.0
SETTINGS = f"""
assistant: lively
memory_s: {MEMORY_S}
dialogue_s: 10
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
            on_ended=lambda play_id, at, complete: self.ended.put(complete),
            on_fault=lambda at, what: None,
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
                last = "\n".join(str(each) for each in self.said[-12:])
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
def talk() -> Iterator[Talk]:
    folder = Path(tempfile.mkdtemp(prefix="vh-live-", dir="/tmp"))
    before = os.environ.get("HARNESS_LAB")
    os.environ["HARNESS_LAB"] = str(folder / "lab")
    lab = Lab()
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    lab.up(folder / "settings.yaml")
    try:
        one = Talk()
        try:
            yield one
        finally:
            one.close()
    finally:
        lab.down()
        if before is None:
            del os.environ["HARNESS_LAB"]
        else:
            os.environ["HARNESS_LAB"] = before
        shutil.rmtree(folder)


def test_a_follow_up_is_understood_while_it_remembers_and_not_afterwards(talk: Talk) -> None:
    talk.ask("what is twelve plus thirty")
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


def test_a_question_back_is_open_until_never_mind(talk: Talk) -> None:
    talk.ask("set an alarm for one")
    assert talk.answer() == "Is that a.m. or p.m.?"
    talk.hear("status", state="dialogue_open")
    talk.ask("never mind", wake_phrase=None)
    assert "mind" in str(talk.hear("transcript")["text"])
    talk.hear("status", state="idle")
    assert not [fields for name, fields in talk.said[-4:] if name == "response"]


def test_silence_on_purpose_is_told_and_says_nothing(talk: Talk) -> None:
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


def test_other_settings_than_those_it_has_are_refused_while_it_is_up(talk: Talk, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("assistant: lively\n", encoding="utf-8")
    with pytest.raises(InputError, match="harness lab down"):
        Lab().up(other)
    with pytest.raises(InputError, match="living_room"):
        Lab().up(room="anechoic")
    assert Lab().up() is False
