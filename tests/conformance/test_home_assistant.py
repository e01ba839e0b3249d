"""Home Assistant as a device: logins, stages of runs, satellites beside others, times, losses and refusals."""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.base.plugins import Group, load
from harness.devices import home_assistant
from harness.devices.home_assistant import HomeAssistant, HomeAssistantOptions
from harness.devices.profiles.profile import load_profile
from harness.model.errors import DeviceError, InputError, LoginRefused
from harness.model.observation import (
    DeviceDescribed,
    Intent,
    LinkBack,
    LinkLost,
    ResponseText,
    Status,
    Transcript,
    Wake,
)
from tests.conformance.engine_runs import Runs, wait_for, watching
from tests.conformance.hass_far_end import HALL, KITCHEN, TOKEN, HassFarEnd
from tests.conformance.test_first_table import SHORTER, Hearing, changed, run, table
from tests.seen import Around, Seen

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "measure-home-assistant.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASS_TOKEN", TOKEN)


def made(far_end: HassFarEnd, folder: Path, **options: object) -> HomeAssistant:
    profile = load_profile("home_assistant", beside=folder)
    return HomeAssistant("it", HomeAssistantOptions(far_end.url, **options), Around(folder, profile))  # type: ignore[arg-type]


@contextmanager
def following(far_end: HassFarEnd, folder: Path, **options: object) -> Iterator[Seen]:
    observations, driver = Seen(), made(far_end, folder, **options)
    driver.open(observations)
    try:
        observations.wait(lambda: observations.of(Status), 30, "the first state")
        yield observations
    finally:
        driver.close()


def test_the_entry_point_loads_it() -> None:
    assert load(Group.DRIVERS, "home_assistant") is HomeAssistant


def test_home_assistant_run_reports_stages_and_satellite_states(tmp_path: Path) -> None:
    with HassFarEnd() as far_end, following(far_end, tmp_path) as observations:
        far_end.query("1", "turn on the kitchen light", "Turned on the light")
        observations.wait(lambda: observations.of(Intent), 30, "the intent")
        far_end.query("2", "purple monkey dishwasher", "Sorry, no", code="no_intent_match")
        far_end.query("3", "turn on the cellar light", "There is none", code="no_valid_targets")
        far_end.query("4", "", "")
        # A stage may be reported before the state that follows it.
        observations.wait(
            lambda: len(observations.of(Intent)) == 4 and len(observations.of(Status)) == 15, 30, "the fourth run"
        )
        assert len(observations.of(Wake)) == 4
        states = [status.state.value for status in observations.of(Status)]
        assert states == ["idle", *(["listening", "thinking", "speaking", "idle"] * 3), "listening", "idle"]
        queries = ["turn on the kitchen light", "purple monkey dishwasher", "turn on the cellar light"]
        assert [transcript.text for transcript in observations.of(Transcript)] == queries
        assert [response.text for response in observations.of(ResponseText)] == [
            "Turned on the light",
            "Sorry, no",
            "There is none",
        ]
        intents = [(intent.name, intent.slots) for intent in observations.of(Intent)]
        assert intents == [("HassTurnOn", (("name", "kitchen light"),)), ("", ()), ("", ()), ("", ())]
        assert observations.of(DeviceDescribed)[0].firmware == "2025.9.4"
        allowed = ("assist_pipeline/pipeline", "conversation/agent/homeassistant/debug", "get_", "subscribe_entities")
        others = {request for request in far_end.asked if not request.startswith(allowed)}
        assert others == {"render_template", "unsubscribe_events"}, "it only reads"


@pytest.mark.parametrize("names_satellites", [True, False], ids=["named", "by time"])
def test_runs_of_another_satellite_and_earlier_runs_are_not_reported(names_satellites: bool, tmp_path: Path) -> None:
    with HassFarEnd(KITCHEN, HALL, names_satellites=names_satellites) as far_end:
        far_end.query("before", "earlier words", "earlier answer")
        with pytest.raises(DeviceError, match="has 2 satellites") as several:
            made(far_end, tmp_path).open(Seen())
        assert HALL in several.value.remedy
        with following(far_end, tmp_path, satellite=KITCHEN) as observations:
            far_end.query("1", "words in the hall", "answer", satellite=HALL)
            # Two satellites within that time are not told apart by time.
            time.sleep(home_assistant.MAX_LISTENING_DELAY_S)
            far_end.query("2", "words in the kitchen", "answer", satellite=KITCHEN)
            observations.wait(lambda: observations.of(ResponseText), 30, "the answer")
            assert [transcript.text for transcript in observations.of(Transcript)] == ["words in the kitchen"]
            assert len(observations.of(Wake)) == 1


@pytest.mark.usefixtures("host_keeps_time")
@pytest.mark.parametrize("ahead_s", [0.0, -34 * 3600.0, 34 * 3600.0])
def test_times_hold_though_the_clocks_differ(ahead_s: float, tmp_path: Path) -> None:
    with HassFarEnd(ahead_s=ahead_s) as far_end, following(far_end, tmp_path, hold_back_ms=0) as observations:
        times_s: list[float] = []
        for number in range(20):
            times_s.append(time.monotonic())
            far_end.change("listening")
            far_end.change("idle")
            observations.wait(lambda number=number: len(observations.of(Wake)) > number, 30, "a wake event")  # type: ignore[misc]
        for wake, when in zip(observations.of(Wake), times_s, strict=True):
            assert abs(wake.at.at_s - when) <= wake.at.error_s + 0.005, "5 ms for the far end's own thread"
            assert wake.at.error_s < 0.5


def test_a_refused_token_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HassFarEnd() as far_end:
        monkeypatch.setenv("HASS_TOKEN", "old")
        with pytest.raises(LoginRefused, match="refuses the token in HASS_TOKEN") as refused:
            made(far_end, tmp_path).open(Seen())
        assert "Create a long-lived access token" in refused.value.remedy
        (check,) = HomeAssistant.host_checks([("it", HomeAssistantOptions(far_end.url))])
        assert check.level.name == "FAIL"
        monkeypatch.setenv("HASS_TOKEN", TOKEN)
        far_end.admin = False
        with pytest.raises(LoginRefused, match="administrators only"):
            made(far_end, tmp_path).open(Seen())
        far_end.admin = True
        (check,) = HomeAssistant.host_checks([("it", HomeAssistantOptions(far_end.url))])
        assert f"Home Assistant 2025.9.4, {KITCHEN}" in check.says
        monkeypatch.delenv("HASS_TOKEN")
        with pytest.raises(InputError, match="HASS_TOKEN for the token is not set"):
            HomeAssistant.demand_host(HomeAssistantOptions(far_end.url))


def test_a_token_revoked_during_a_run_is_lost_with_a_remedy_and_not_tried_again(tmp_path: Path) -> None:
    with HassFarEnd() as far_end, following(far_end, tmp_path) as observations:
        far_end.token = "another"
        far_end.cut()
        observations.wait(lambda: len(observations.of(LinkLost)) == 2, 30, "the refusal")
        assert "Create a long-lived access token" in observations.of(LinkLost)[1].what
        tried = len(far_end.logins)
        time.sleep(1.0)  # the first attempts would come after 0.2, 0.4 and 0.8 s
        assert len(far_end.logins) == tried == 2
        assert not observations.of(LinkBack)


@contextmanager
def impatient() -> Iterator[None]:
    """Only while an answer is not to come: a busy host's may take as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home_assistant, "ANSWER_LIMIT_S", 0.5)
        yield


def test_a_frozen_far_end_is_lost_and_returns(tmp_path: Path) -> None:
    with HassFarEnd() as far_end, following(far_end, tmp_path) as observations:
        far_end.frozen = True
        with impatient():
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        assert "no answer arrived" in observations.of(LinkLost)[0].what
        far_end.frozen = False
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")
        far_end.query("1", "turn on the light", "done")
        observations.wait(lambda: observations.of(ResponseText), 30, "an answer")


@pytest.mark.parametrize("garbage", ["no JSON", "[1, 2]", "{}" * 2, "[" * 100_000, "null", '{"id": 1}'])
def test_garbage_loses_the_link_which_returns(garbage: str, tmp_path: Path) -> None:
    with HassFarEnd() as far_end, following(far_end, tmp_path) as observations:
        far_end.garbage = garbage
        with impatient():
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        far_end.garbage = ""
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")


def test_an_unavailable_satellite_is_gone_and_its_return_is_not_a_wake(tmp_path: Path) -> None:
    with HassFarEnd() as far_end, following(far_end, tmp_path) as observations:
        for state in ("unavailable", "listening", "idle"):
            far_end.change(state)
        observations.wait(lambda: len(observations.of(Status)) == 4, 30, "its states")
        assert [status.state.value for status in observations.of(Status)] == ["idle", "gone", "listening", "idle"]
        assert not observations.of(Wake)


def test_the_page_leads_to_a_first_table(runs: Runs, tmp_path: Path) -> None:
    with HassFarEnd() as far_end:
        init, measure = [line[2:] for line in PAGE.splitlines() if line.startswith(("$ harness init", "$ harness run"))]
        run(init.replace("http://homeassistant.local:8123", far_end.url), tmp_path)
        changed(tmp_path / "assist" / "bench.yaml", {"loudspeaker, sound_device: default": "in_process"})
        changed(tmp_path / "assist" / "scenario.yaml", SHORTER)
        numbers = itertools.count()
        hearing = Hearing(lambda: far_end.query(str(next(numbers)), "what time is it", "It is noon"))
        sessions = tmp_path / "sessions"
        words = [str(tmp_path / word) if word.startswith("assist/") else word for word in shlex.split(measure)[1:]]
        table(watching(*words, "--sessions", sessions), hearing, sessions)


def test_a_monitor_reads_the_reports(tmp_path: Path) -> None:
    with HassFarEnd() as far_end:
        profile = load_profile("home_assistant", beside=tmp_path)
        source = HomeAssistant.source(HomeAssistantOptions(far_end.url), profile, "it", ())
        source.open()
        wait_for(lambda: any(b'"satellite"' in piece.data for piece in source.queue.take(10_000)), 30, "the state")
        source.close()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("url", "", "not the address of Home Assistant"),
        ("url", "ws://hass:8123", "not the address of Home Assistant"),
        ("url", "http://me:secret@hass", "contains a user name or a password"),
        ("satellite", "light.kitchen", "not a satellite entity"),
        ("token_env", "", "`token_env` is empty"),
        ("hold_back_ms", float("nan"), "hold_back_ms is nan"),
    ],
)
def test_wrong_options_are_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        HomeAssistantOptions(**{"url": "http://hass:8123", key: value})  # type: ignore[arg-type]
    assert caught.value.remedy


def test_an_address_behind_a_path_keeps_it() -> None:
    assert HomeAssistantOptions("https://home.example/ha/").socket_url == "wss://home.example/ha/api/websocket"
