"""Hermes over a real broker: frames of a microphone, or WAV files to `playBytes`; events by a profile's mappings."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import paho.mqtt.client as mqtt
import pytest
import soundfile
from paho.mqtt.enums import CallbackAPIVersion

from harness.devices.mqtt.options import MqttInjection, MqttOptions
from harness.devices.profiles.profile import load_profile
from harness.model.bench import AudioDialogue, AudioInput, DeviceProfile, MessageMapping, ObservationKind
from harness.model.errors import DeviceError
from harness.model.observation import LinkBack, LinkLost, LogLine, StimulusStarted, Wake
from harness.model.stimulus import Waveform
from tests.conformance.mqtt_bench import Broker, Watch
from tests.known import known
from tests.seen import until

FRAMES = "hermes/audioServer/kitchen/audioFrame"
DETECTED = MessageMapping("hermes/hotword/+/detected", ObservationKind.WAKE, (("phrase", "/modelId"),))
EARS = DeviceProfile("rhasspy", "Rhasspy", "p.yaml", "0", ("hey snips",), mappings=(DETECTED,))
SPEAKER = replace(EARS, audio=AudioInput(AudioDialogue.HERMES_SPEAKER, 22050))
MICROPHONE = replace(EARS, audio=AudioInput(AudioDialogue.HERMES, 16000))


class Service:
    """One of a site's services: hears a topic of the broker."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = lambda _, __, message: self.take(
            message.topic, *soundfile.read(io.BytesIO(message.payload), dtype="int16")
        )
        self.client.connect("127.0.0.1", broker.port)
        self.client.subscribe(topic, 1)
        self.client.loop_start()
        until(self.client.is_connected)

    def take(self, topic: str, samples: np.ndarray, rate_hz: int) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()


class AudioServer(Service):
    """Plays what it is sent, in its own time, and says when it has."""

    def __init__(self, broker: Broker) -> None:
        self.played: list[tuple[str, int, np.ndarray]] = []
        self.cut_short = False
        self.silent = False
        super().__init__(broker, "hermes/audioServer/kitchen/playBytes/+")

    def take(self, topic: str, samples: np.ndarray, rate_hz: int) -> None:
        play_id = topic.rpartition("/")[2]
        self.played.append((play_id, rate_hz, samples))
        if not self.silent:
            lasts_s = 0.0 if self.cut_short else len(samples) / rate_hz
            threading.Timer(lasts_s, self._finished, (play_id,)).start()

    def _finished(self, play_id: str) -> None:
        payload = json.dumps({"id": play_id, "siteId": "kitchen"})
        self.client.publish("hermes/audioServer/kitchen/playFinished", payload, qos=1)

    def detected(self) -> None:
        content = {"siteId": "kitchen", "modelId": "hey_snips"}
        self.client.publish("hermes/hotword/default/detected", json.dumps(content), qos=1)


class WakeWordService:
    """A process that answers as Rhasspy's wake word services do, then detects. Killed, it leaves no last will."""

    _CODE = """
import json, sys
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

client = mqtt.Client(CallbackAPIVersion.VERSION2)
def asked(client, _, message):
    site = json.loads(message.payload)["siteId"]
    if site == "default":
        client.publish("rhasspy/hotword/hotwords", json.dumps({"models": [], "id": None, "siteId": sys.argv[2]}))
        client.publish("hermes/hotword/m/detected", json.dumps({"modelId": "m", "siteId": sys.argv[2]}))
client.on_message = asked
client.on_connect = lambda *_: client.subscribe("rhasspy/hotword/getHotwords")
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
"""

    def __init__(self, broker: Broker, site: str) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", self._CODE, str(broker.port), site])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class Site(Service):
    """What a wake word service of a site is given: every frame of its microphone, in order."""

    def __init__(self, broker: Broker) -> None:
        self.samples = np.zeros(0, np.int16)
        self.frames = 0
        super().__init__(broker, FRAMES)

    def take(self, topic: str, samples: np.ndarray, rate_hz: int) -> None:
        assert rate_hz == 16000
        self.samples = np.concatenate([self.samples, samples])
        self.frames += 1


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as own_broker:
        yield own_broker


@pytest.fixture
def server(broker: Broker) -> Iterator[AudioServer]:
    with AudioServer(broker) as own_server:
        yield own_server


def opened(broker: Broker, folder: Path, profile: DeviceProfile) -> Watch:
    return Watch(folder, profile, address=f"127.0.0.1:{broker.port}", topic_device="kitchen")


@pytest.fixture
def device(broker: Broker, tmp_path: Path) -> Iterator[Watch]:
    with opened(broker, tmp_path, SPEAKER) as own_watch:
        yield own_watch


def tone(seconds: float) -> Waveform:
    time_s = np.arange(round(48000 * seconds)) / 48000
    return Waveform((0.2 * np.sin(2 * np.pi * 440 * time_s)).astype(np.float32), 48000)


@pytest.mark.usefixtures("host_keeps_time")
def test_sound_plays_at_device_rate_and_reports_its_end(device: Watch, server: AudioServer) -> None:
    began_s = time.monotonic()
    device.driver.play("one", tone(0.5))
    with pytest.raises(DeviceError, match="already"):
        device.driver.play("two", tone(0.5))
    assert device.driver.level_dbfs() is not None
    server.detected()
    end = device.end("one")
    assert end.complete
    assert end.at.at_s - began_s == pytest.approx(0.5, abs=0.25)
    assert device.start("one").at.at_s - began_s < 0.25
    ((play_id, rate_hz, samples),) = server.played
    assert (play_id, rate_hz, len(samples)) == ("one", 22050, 11025)
    assert np.sqrt(np.mean((samples / 32768) ** 2)) == pytest.approx(0.2 / np.sqrt(2), rel=0.02)
    (wake,) = device.of(Wake)
    assert (wake.phrase, wake.audio_s) == ("hey_snips", None)


def test_truncated_playback_does_not_count(device: Watch, server: AudioServer) -> None:
    server.cut_short = True
    device.driver.play("one", tone(1.0))
    assert not device.end("one").complete
    assert device.end("one").why.endswith("s too early")


def test_stop_and_broker_loss_end_playback(device: Watch, server: AudioServer, broker: Broker) -> None:
    server.silent = True
    device.driver.play("one", tone(5.0))
    device.driver.stop()
    assert not device.end("one").complete
    device.driver.play("two", tone(5.0))
    broker.kill()
    assert not device.end("two").complete
    device.first(LinkLost)


def test_listen_only_device_is_sent_no_sound(broker: Broker, tmp_path: Path) -> None:
    assert MqttOptions("h").injection_of(None) is MqttInjection.NONE
    with opened(broker, tmp_path, EARS) as ears:
        with pytest.raises(DeviceError, match="does not accept sound") as caught:
            ears.driver.play("one", tone(0.1))
        assert "injection" in caught.value.remedy


@pytest.mark.usefixtures("host_keeps_time")
def test_a_stimulus_is_what_the_sites_microphone_hears_in_real_time(broker: Broker, tmp_path: Path) -> None:
    with Site(broker) as site, opened(broker, tmp_path, MICROPHONE) as device:
        sound = np.random.default_rng(3).integers(-9000, 9000, 16000).astype(np.int16)
        began_s = time.monotonic()
        device.driver.play("one", Waveform((sound / 32768).astype(np.float32), 16000))
        end, start = device.end("one"), device.start("one")
        assert end.complete
        assert (start.audio_s, end.audio_s) == (None, None)
        assert -0.04 <= start.at.at_s - began_s < 0.5
        assert end.at.at_s - start.at.at_s == pytest.approx(1.02, abs=0.03 + start.at.error_s + end.at.error_s)
        until(lambda: site.samples.any() and not site.samples[-480:].any(), 10, "the silence after it")
        (heard,) = np.nonzero(site.samples)
        assert np.array_equal(site.samples[heard[0] : heard[0] + len(sound)], sound), "sample for sample"


def test_a_site_that_is_given_no_sound_keeps_its_own_microphone(broker: Broker, tmp_path: Path) -> None:
    with Site(broker) as site, opened(broker, tmp_path, MICROPHONE) as device:
        wav = io.BytesIO()
        soundfile.write(wav, np.ones(480, np.int16), 16000, format="WAV", subtype="PCM_16")
        for count in range(1, 11):  # the time of ten frames, by the device's own
            site.client.publish(FRAMES, wav.getvalue())
            until(lambda count=count: site.frames >= count, 10, "its own frame")
            time.sleep(0.03)
        assert site.frames == 10
        assert site.samples.all(), "nothing was sent to it"
        assert not [line for line in device.of(LogLine) if "another microphone" in line.text]


def test_another_microphone_on_the_same_site_is_named_and_nothing_is_mixed_with_it(
    broker: Broker, tmp_path: Path
) -> None:
    with Site(broker) as site, opened(broker, tmp_path, MICROPHONE) as device:
        device.driver.play("one", tone(5.0))
        device.first(StimulusStarted)
        wav = io.BytesIO()
        soundfile.write(wav, np.ones(480, np.int16), 16000, format="WAV", subtype="PCM_16")
        site.client.publish(FRAMES, wav.getvalue())
        end = device.end("one")
        assert (end.complete, end.why) == (False, f"another microphone feeds {FRAMES}")
        with pytest.raises(DeviceError, match="another microphone feeds") as caught:
            device.driver.play("two", tone(1.0))
        assert "off" in caught.value.remedy


def test_a_service_that_dies_without_a_last_will_is_noticed(broker: Broker, tmp_path: Path) -> None:
    profile = load_profile("hermes_rhasspy", beside=tmp_path)
    profile = replace(profile, audio=None, heartbeat=replace(known(profile.heartbeat), within_s=1.5))
    with WakeWordService(broker, "elsewhere"), Watch(tmp_path, profile, address=f"127.0.0.1:{broker.port}") as device:
        with WakeWordService(broker, "default"):
            device.first(Wake)
        assert "no sign of life" in device.first(LinkLost).what
        with WakeWordService(broker, "default"):
            device.first(LinkBack)
        assert not [line for line in device.of(LogLine) if "hotwords" in line.text]


def test_a_sound_ends_with_the_service_that_should_hear_it(broker: Broker, tmp_path: Path) -> None:
    profile = load_profile("hermes_rhasspy", beside=tmp_path)
    profile = replace(profile, heartbeat=replace(known(profile.heartbeat), within_s=1))
    with Watch(tmp_path, profile, address=f"127.0.0.1:{broker.port}") as device:
        with WakeWordService(broker, "default"):
            device.driver.play("one", tone(30.0))
            device.first(Wake)
        device.first(LinkLost)
        assert not device.end("one").complete


def test_a_service_that_has_never_answered_is_not_lost(broker: Broker, tmp_path: Path) -> None:
    profile = load_profile("hermes_rhasspy", beside=tmp_path)
    profile = replace(profile, audio=None, heartbeat=replace(known(profile.heartbeat), within_s=1))
    with Watch(tmp_path, profile, address=f"127.0.0.1:{broker.port}") as device:
        time.sleep(1.5)  # longer than the limit
        assert not device.of(LinkLost)
