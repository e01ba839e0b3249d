"""Light as evidence: rendered videos and a live stream with known times, faults, and hostile input."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.devices.camera import Camera, CameraOptions
from harness.devices.declared import options_of, source_of
from harness.devices.device_monitor import DeviceMonitor
from harness.devices.device_sources import ShowsPicture, take_outputs
from harness.devices.profiles.profile import load_profile
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError, PluginError
from harness.model.observation import DeviceState, LinkBack, LinkLost, Observation, Status, Wake
from tests.conformance.picture_far_ends import RING, PictureServer, video
from tests.seen import Around, Seen, until

PULSE = ["off"] * 15 + ["blue"] * 10


@pytest.fixture
def profile(tmp_path: Path) -> DeviceProfile:
    return load_profile("light_ring", beside=tmp_path)


def opened(options: CameraOptions, around: Around) -> tuple[Camera, Seen]:
    driver, observations = Camera("ring", options, around), Seen()
    driver.open(observations)
    return driver, observations


def held(observations: list[Observation], true_s: list[float]) -> float:
    """The share of times that lie within their stated errors."""
    gaps = [
        abs(observation.at.at_s - when) <= observation.at.error_s
        for observation, when in zip(observations, true_s, strict=True)
    ]
    return float(np.mean(gaps))


def test_a_video_gives_each_change_at_its_recorded_time(tmp_path: Path, profile: DeviceProfile) -> None:
    path = video(tmp_path / "ring.avi", [*PULSE * 6, *["off"] * 15], fps=100.0)
    options = CameraOptions(source=str(path), rectangle=RING)
    # A fast lamp: states count after 30 ms instead of 100 and 400.
    (ring,) = profile.thresholds
    quick = replace(ring, states=tuple(replace(state, min_s=0.03) for state in ring.states))
    driver, observations = opened(options, Around(tmp_path, replace(profile, thresholds=(quick,))))
    try:
        observations.wait(lambda: observations.of(LinkLost), 30, "the end of the video")
        assert "the video ended after 165 frames" in observations.of(LinkLost)[0].what
        start_s = observations.of(Status)[0].at.at_s
        woken = observations.of(Wake)
        expected = [start_s + (number * 25 + 15) / 100 - 0.005 for number in range(6)]
        assert held([*woken], expected) == 1.0
        assert all(wake.at.error_s <= 0.015 + 0.01 for wake in woken)
        assert len(observations.of(Status)) == 7
    finally:
        driver.close()


def test_a_video_does_not_begin_again(tmp_path: Path, profile: DeviceProfile) -> None:
    path = video(tmp_path / "ring.avi", ["off"] * 60, fps=100.0)
    driver, observations = opened(CameraOptions(source=str(path)), Around(tmp_path, profile))
    try:
        observations.wait(lambda: observations.of(LinkLost), 30, "the end of the video")
        waited_until_s = time.monotonic() + 1.0
        until(lambda: time.monotonic() > waited_until_s)
        assert not observations.of(LinkBack)
    finally:
        driver.close()


@pytest.mark.usefixtures("host_keeps_time")
def test_times_of_a_live_stream_lie_within_their_errors(tmp_path: Path, profile: DeviceProfile) -> None:
    lit: list[float] = []
    with PictureServer(fps=50.0) as server:
        options = CameraOptions(source=server.url, rectangle=RING, hold_back_ms=30.0)
        driver, observations = opened(options, Around(tmp_path, profile))
        try:
            observations.wait(lambda: observations.of(Status), 30, "the first state")
            for number in range(5):
                lit.append(time.monotonic())
                server.show("blue")
                observations.wait(lambda number=number: len(observations.of(Wake)) > number, 30, "a wake event")  # type: ignore[misc]
                server.show("off")
                observations.wait(lambda number=number: len(observations.of(Status)) > number + 1, 30, "the end")  # type: ignore[misc]
        finally:
            driver.close()
    assert [status.state for status in observations.of(Status)] == [DeviceState.IDLE] * 6
    # The lamp changes with the first picture after the switch: up to 20 ms later.
    late = [wake.at.at_s + wake.at.error_s - when for wake, when in zip(observations.of(Wake), lit, strict=True)]
    early = [
        wake.at.at_s - wake.at.error_s - when - 0.02 for wake, when in zip(observations.of(Wake), lit, strict=True)
    ]
    assert min(late) >= 0
    assert max(early) <= 0


def test_a_frozen_stream_is_lost_and_comes_back(tmp_path: Path, profile: DeviceProfile) -> None:
    with PictureServer() as server:
        options = CameraOptions(source=server.url, rectangle=RING, silence_limit_s=1.0)
        driver, observations = opened(options, Around(tmp_path, profile))
        try:
            observations.wait(lambda: observations.of(Status), 30, "the first state")
            server.frozen = True
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
            assert "arrived for" in observations.of(LinkLost)[0].what
            server.frozen = False
            observations.wait(lambda: observations.of(LinkBack), 30, "the return")
            began_s = time.monotonic()
            server.frozen = True
        finally:
            driver.close()
        assert time.monotonic() - began_s < 10


def test_light_that_is_there_at_first_is_not_an_event(tmp_path: Path, profile: DeviceProfile) -> None:
    with PictureServer() as server:
        server.show("blue")
        driver, observations = opened(CameraOptions(source=server.url, rectangle=RING), Around(tmp_path, profile))
        try:
            until_s = time.monotonic() + 0.6
            until(lambda: time.monotonic() > until_s)
            server.show("off")
            observations.wait(lambda: observations.of(Status), 30, "the end of the light")
            assert not observations.of(Wake)
        finally:
            driver.close()


def test_a_truncated_video_ends_where_it_is_cut(tmp_path: Path, profile: DeviceProfile) -> None:
    path = video(tmp_path / "ring.avi", ["off"] * 120, fps=100.0)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    driver, observations = opened(CameraOptions(source=str(path)), Around(tmp_path, profile))
    try:
        observations.wait(lambda: observations.of(LinkLost), 30, "the end")
    finally:
        driver.close()


@pytest.mark.parametrize(
    ("source", "rectangle", "message"),
    [
        ("noise.avi", (), "delivers no picture"),
        ("missing.avi", (), "does not exist"),
        ("63", (), "the camera 63 delivers no picture"),
        ("ring.avi", (150, 100, 20, 20), "the rectangle 20×20 at 150, 100 is outside the picture (160×120)"),
    ],
)
def test_video_without_a_usable_light_is_refused(
    source: str, rectangle: tuple[int, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.avi").write_bytes(np.random.default_rng(1).bytes(50_000))
    video(tmp_path / "ring.avi", ["off"])
    with pytest.raises(DeviceError) as caught:
        Camera("ring", CameraOptions(source=source, rectangle=rectangle), Around(tmp_path)).open(Seen())
    assert message in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs `source`"),
        ({"source": -1}, "needs `source`"),
        ({"source": "http://user:secret@camera/"}, "contains a user name or a password"),
        ({"source": 0, "username": "lab"}, "only a URL can have a user"),
        ({"source": 0, "rectangle": (1, 2, 3)}, "is not four whole numbers"),
        ({"source": 0, "rectangle": "1,2,3,x"}, "is not four whole numbers"),
        ({"source": 0, "rectangle": (1, 2, 0, 5)}, "covers no area"),
        ({"source": 0, "rectangle": (-1, 2, 5, 5)}, "covers no area"),
        ({"source": 0, "hold_back_ms": float("nan")}, "hold_back_ms is nan"),
        ({"source": 0, "silence_limit_s": -1}, "silence_limit_s is -1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        options_of("camera", options)


def test_the_password_comes_from_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    options = CameraOptions(source="rtsp://camera/1", username="lab", password_env="VH_CAMERA_WORD")
    with pytest.raises(InputError, match="VH_CAMERA_WORD for the password is not set"):
        Camera.demand_host(options)
    monkeypatch.setenv("VH_CAMERA_WORD", "p@ss/word")
    Camera.demand_host(options)
    assert options.address() == "rtsp://lab:p%40ss%2Fword@camera/1"
    assert "p@ss" not in Camera.far_end(options, "ring") + repr(options)


def test_a_missing_library_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(PluginError) as caught:
        Camera.demand_host(CameraOptions(source="http://camera/"))
    assert "pip install 'opencv-python-headless>=" in str(caught.value)


def test_the_monitor_shows_the_picture_and_the_numbers(tmp_path: Path) -> None:
    path = video(tmp_path / "ring.avi", ["off"] * 20 + ["red"] * 20, fps=100.0)
    options = options_of("camera", {"source": str(path), "rectangle": "100,60,40,30"})
    source = source_of("camera", options, load_profile("light_ring", beside=tmp_path))
    assert isinstance(source, ShowsPicture)
    monitor = DeviceMonitor("light_ring", tmp_path)
    source.open()
    try:
        rows = []
        until(lambda: source.ended)
        for heard in take_outputs(source, 1_000_000):
            rows += monitor.feed(heard)
        whole, inside = source.picture(32, 20)
    finally:
        source.close()
    assert whole.shape == inside.shape == (20, 32, 3)
    red = inside.astype(int)
    assert red[..., 0].max() > 150 > 60 > red[..., 2].max()
    assert (whole == (255, 255, 0)).all(axis=2).any()
    assert "160×120, rectangle 100,60,40,30" in source.name
    assert monitor.lines == 40
    assert 1 < len(rows) < 10
    assert any("state: gone" in row.made and row.error_s for row in rows)
    assert "red=" in monitor.latest
    assert "ring: red" in monitor.latest
