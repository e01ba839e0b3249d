"""Hermes over a real broker: frames of a microphone, or WAV files to `playBytes`; events by a profile's mappings."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import paho.mqtt.client as mqtt
import pytest
import soundfile
from paho.mqtt.enums import CallbackAPIVersion

from harness.devices.mqtt.device import MqttDevice
from harness.devices.mqtt.options import MqttInjection, MqttOptions
from harness.model.bench import AudioDialogue, AudioInput, DeviceProfile, MessageMapping, ObservationKind
from harness.model.errors import DeviceError
from harness.model.observation import LinkLost, Observation, StimulusEnded, StimulusStarted, Wake
from harness.model.stimulus import Waveform
from tests.conformance.mqtt_bench import Around, Broker, until

DETECTED = MessageMapping("hermes/hotword/+/detected", ObservationKind.WAKE, (("phrase", "/modelId"),))
PROFILE = DeviceProfile(
    "rhasspy", "Rhasspy", "p.yaml", "0", ("hey snips",),
    mappings=(DETECTED,), audio=AudioInput(AudioDialogue.HERMES_SPEAKER, 22050),
)  # fmt: skip


class AudioServer:
    """Plays what it is sent, in its own time, and says when it has."""

    def __init__(self, broker: Broker, site: str) -> None:
        self.site = site
        self.played: list[tuple[str, int, np.ndarray]] = []
        self.cut_short = False
        self.silent = False
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = self._message
        self.client.connect("127.0.0.1", broker.port)
        self.client.subscribe(f"hermes/audioServer/{site}/playBytes/+", 1)
        self.client.loop_start()
        until(self.client.is_connected)

    def _message(self, _: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
        samples, rate_hz = soundfile.read(io.BytesIO(message.payload), dtype="int16")
        play_id = message.topic.rpartition("/")[2]
        self.played.append((play_id, rate_hz, samples))
        if not self.silent:
            lasts_s = 0.0 if self.cut_short else len(samples) / rate_hz
            threading.Timer(lasts_s, self._finished, (play_id,)).start()

    def _finished(self, play_id: str) -> None:
        self.client.publish(
            f"hermes/audioServer/{self.site}/playFinished", json.dumps({"id": play_id, "siteId": self.site}), qos=1
        )

    def detected(self) -> None:
        content = {"siteId": self.site, "modelId": "hey_snips"}
        self.client.publish("hermes/hotword/default/detected", json.dumps(content), qos=1)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    one = Broker("mosquitto", tmp_path)
    one.start()
    yield one
    if one.process is not None:
        one.kill()


@pytest.fixture
def server(broker: Broker) -> Iterator[AudioServer]:
    one = AudioServer(broker, "kitchen")
    yield one
    one.close()


class Open:
    def __init__(self, broker: Broker, folder: Path, profile: DeviceProfile) -> None:
        self.seen: list[Observation] = []
        options = MqttOptions(f"127.0.0.1:{broker.port}", topic_device="kitchen")
        self.driver = MqttDevice("speaker", options, Around(folder, profile))
        self.driver.open(self.seen.append)

    def of(self, kind: type) -> list[Observation]:
        return [one for one in self.seen if isinstance(one, kind)]

    @property
    def end(self) -> StimulusEnded:
        until(lambda: self.of(StimulusEnded), 10)
        (one,) = self.of(StimulusEnded)
        assert isinstance(one, StimulusEnded)
        return one


@pytest.fixture
def device(broker: Broker, tmp_path: Path) -> Iterator[Open]:
    one = Open(broker, tmp_path, PROFILE)
    yield one
    one.driver.close()


def tone(seconds: float) -> Waveform:
    time_s = np.arange(round(48000 * seconds)) / 48000
    return Waveform((0.2 * np.sin(2 * np.pi * 440 * time_s)).astype(np.float32), 48000)


def test_a_sound_is_played_at_the_devices_rate_and_its_end_is_told(device: Open, server: AudioServer) -> None:
    began_s = time.monotonic()
    device.driver.play("one", tone(0.5))
    with pytest.raises(DeviceError, match="already"):
        device.driver.play("two", tone(0.5))
    level = device.driver.level_dbfs()
    assert level is not None
    server.detected()
    end = device.end
    assert end.complete
    assert end.at.at_s - began_s == pytest.approx(0.5, abs=0.25)
    (start,) = device.of(StimulusStarted)
    assert start.at.at_s - began_s < 0.25
    ((play_id, rate_hz, samples),) = server.played
    assert (play_id, rate_hz, len(samples)) == ("one", 22050, 11025)
    assert np.sqrt(np.mean((samples / 32768) ** 2)) == pytest.approx(0.2 / np.sqrt(2), rel=0.02)
    (wake,) = device.of(Wake)
    assert isinstance(wake, Wake)
    assert (wake.phrase, wake.audio_s) == ("hey_snips", None)


def test_one_that_is_cut_off_does_not_count(device: Open, server: AudioServer) -> None:
    server.cut_short = True
    device.driver.play("one", tone(1.0))
    assert not device.end.complete
    assert device.end.why.endswith("s too early")


def test_a_stop_and_a_lost_broker_end_it_for_us(device: Open, server: AudioServer, broker: Broker) -> None:
    server.silent = True
    device.driver.play("one", tone(5.0))
    device.driver.stop()
    assert not device.end.complete
    device.driver.play("two", tone(5.0))
    broker.kill()
    until(lambda: len(device.of(StimulusEnded)) == 2)
    until(lambda: device.of(LinkLost))


def test_a_device_with_ears_only_is_given_nothing(broker: Broker, tmp_path: Path) -> None:
    ears = Open(broker, tmp_path, DeviceProfile("p", "p", "p.yaml", "0", (), mappings=(DETECTED,)))
    try:
        assert MqttOptions("h").injection_of(None) is MqttInjection.NONE
        with pytest.raises(DeviceError, match="takes no sound") as caught:
            ears.driver.play("one", tone(0.1))
        assert "injection" in caught.value.remedy
    finally:
        ears.driver.close()


FRAMES = "hermes/audioServer/kitchen/audioFrame"


class Site:
    """What a wake word service of a site is given: every frame of its microphone, in order."""

    def __init__(self, broker: Broker) -> None:
        self.samples = np.zeros(0, np.int16)
        self.frames = 0
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = self._message
        self.client.connect("127.0.0.1", broker.port)
        self.client.subscribe(FRAMES)
        self.client.loop_start()
        until(self.client.is_connected)

    def _message(self, _: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
        samples, rate_hz = soundfile.read(io.BytesIO(message.payload), dtype="int16")
        assert rate_hz == 16000
        self.samples = np.concatenate([self.samples, samples])
        self.frames += 1

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


MICROPHONE = DeviceProfile(
    "rhasspy", "Rhasspy", "p.yaml", "0", ("hey snips",),
    mappings=(DETECTED,), audio=AudioInput(AudioDialogue.HERMES, 16000),
)  # fmt: skip


def test_a_stimulus_is_what_the_sites_microphone_hears_in_real_time(broker: Broker, tmp_path: Path) -> None:
    site, device = Site(broker), Open(broker, tmp_path, MICROPHONE)
    try:
        until(lambda: site.frames >= 5)
        assert not site.samples.any(), "it hears silence while nothing is played"
        sound = np.random.default_rng(3).integers(-9000, 9000, 16000).astype(np.int16)
        began_s = time.monotonic()
        device.driver.play("one", Waveform((sound / 32768).astype(np.float32), 16000))
        end = device.end
        (start,) = device.of(StimulusStarted)
        assert isinstance(start, StimulusStarted)
        assert end.complete
        assert (start.audio_s, end.audio_s) == (None, None)
        assert -0.04 <= start.at.at_s - began_s < 0.5
        assert end.at.at_s - start.at.at_s == pytest.approx(1.02, abs=0.03 + start.at.error_s + end.at.error_s)
        until(lambda: len(site.samples) and not site.samples[-480:].any())
        (heard,) = np.nonzero(site.samples)
        assert np.array_equal(site.samples[heard[0] : heard[0] + len(sound)], sound), "sample for sample"
    finally:
        device.driver.close()
        site.close()


def test_another_microphone_on_the_same_site_is_named_and_nothing_is_mixed_with_it(
    broker: Broker, tmp_path: Path
) -> None:
    site, device = Site(broker), Open(broker, tmp_path, MICROPHONE)
    try:
        device.driver.play("one", tone(5.0))
        until(lambda: device.of(StimulusStarted))
        wav = io.BytesIO()
        soundfile.write(wav, np.ones(480, np.int16), 16000, format="WAV", subtype="PCM_16")
        site.client.publish(FRAMES, wav.getvalue())
        assert (device.end.complete, device.end.why) == (False, f"another microphone feeds {FRAMES}")
        with pytest.raises(DeviceError, match="another microphone feeds") as caught:
            device.driver.play("two", tone(1.0))
        assert "off" in caught.value.remedy
    finally:
        device.driver.close()
        site.close()
