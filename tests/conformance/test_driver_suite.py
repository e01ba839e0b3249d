"""The suite that every driver passes, each against its real far end. A new driver is one row in driver_rows.py."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.plugins import Group, load, names
from harness.base.ports import Driver, Stimulates
from harness.devices.declared import takes_orders
from harness.lab.sound_server import LabSoundServer
from harness.model.errors import DeviceError
from harness.model.observation import LinkBack, LinkLost, StimulusEnded, StimulusStarted
from tests.conformance.driver_rows import APART, PLAYING, ROWS, Row, driver_of, hum, opened
from tests.known import known
from tests.seen import Seen, until

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]

CLOSE_LIMIT_S = 10.0
LONG_S = 90.0
"""No test waits so long for something to happen while a sound plays."""


@pytest.fixture(params=list(ROWS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def row(name: str, tmp_path: Path, lab_sound: LabSoundServer) -> Iterator[Row]:
    with ROWS[name](tmp_path, lab_sound) as driver_row:
        yield driver_row


of_players = pytest.mark.parametrize("name", PLAYING)


def closed_in_time(driver: Driver) -> None:
    began_s = time.monotonic()
    driver.close()
    assert time.monotonic() - began_s < CLOSE_LIMIT_S


def nothing_more(seen: Seen, for_s: float = 0.5) -> None:
    """Nothing is told for a while: there is no event to wait for."""
    count = len(seen.all)
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert len(seen.all) == count, f"told after close: {seen.all[count:]}"
        time.sleep(0.01)


def ended(seen: Seen, play_id: str) -> StimulusEnded | None:
    return next((end for end in seen.of(StimulusEnded) if end.play_id == play_id), None)


def started(seen: Seen, play_id: str) -> StimulusStarted | None:
    return next((start for start in seen.of(StimulusStarted) if start.play_id == play_id), None)


def playing(driver: Driver, seen: Seen) -> Stimulates:
    """It has begun to play `one`, which is long."""
    player = stimulates(driver)
    player.play("one", hum(LONG_S))
    seen.wait(lambda: started(seen, "one"), 20.0, "the start")
    return player


def provoked(row: Row, driver: Driver, seen: Seen) -> None:
    count = len(seen.all)
    row.provoke(driver)
    seen.wait(lambda: len(seen.all) > count, 30, "a word of it")


def stimulates(driver: Driver) -> Stimulates:
    assert isinstance(driver, Stimulates)
    return driver


def play_whole(driver: Driver, seen: Seen, play_id: str, seconds: float = 0.4) -> None:
    stimulates(driver).play(play_id, hum(seconds))
    seen.wait(lambda: ended(seen, play_id), 15, f"the end of {play_id}")
    assert known(ended(seen, play_id)).complete


def test_every_installed_driver_has_its_row() -> None:
    reached = {name for name in names(Group.DRIVERS) if not takes_orders(name)}
    assert {driver_of(row) for row in ROWS} == reached  # stands and switches: test_positioners.py, test_power.py
    for name in names(Group.DRIVERS):
        options = load(Group.DRIVERS, name).Options
        assert dataclasses.is_dataclass(options)
        assert options.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_a_row_covers_every_ability_of_its_driver(name: str, row: Row) -> None:
    assert isinstance(row.make(), Stimulates) == (name in PLAYING)
    assert (row.absent is not None) == (name in APART)


def test_constructing_does_no_io(row: Row, tmp_path: Path) -> None:
    def held() -> tuple[object, ...]:
        return len(os.listdir("/proc/self/fd")), set(threading.enumerate()), sorted(tmp_path.rglob("*"))

    def made() -> bool:
        before = held()
        driver = row.make()
        assert driver.id == "it"
        after = held()
        closed_in_time(driver)
        return before == after

    until(made, 20.0, "it opens files or starts threads")  # a far end that is still starting opens some, too


@pytest.mark.parametrize("name", APART)
def test_an_absent_far_end_is_refused_with_a_remedy_and_leaves_nothing_behind(row: Row) -> None:
    driver, seen, before = known(row.absent)(), Seen(), set(threading.enumerate())
    with pytest.raises(DeviceError) as caught:
        driver.open(seen)
    assert caught.value.remedy
    closed_in_time(driver)
    seen.wait(lambda: not set(threading.enumerate()) - before, 20.0, "the end of its threads")
    nothing_more(seen, 0.1)


def test_a_driver_can_be_closed_twice_and_reopened(row: Row) -> None:
    seen, before = Seen(), set(threading.enumerate())
    driver = row.make()
    for _ in range(2):
        driver.open(seen)
        provoked(row, driver, seen)
        closed_in_time(driver)
        closed_in_time(driver)
        seen.wait(lambda: not set(threading.enumerate()) - before, 20.0, "the end of its threads")


def test_no_observations_arrive_after_close(row: Row) -> None:
    seen = Seen()
    with opened(row, seen) as driver:
        row.provoke(driver)
        closed_in_time(driver)
        nothing_more(seen)


def test_a_driver_closes_while_its_far_end_is_gone(row: Row) -> None:
    seen = Seen()
    with opened(row, seen) as driver:
        row.lose(driver)
        try:
            closed_in_time(driver)
        finally:
            row.mend(driver)
        nothing_more(seen)


def test_link_loss_and_return_are_each_reported_once(row: Row) -> None:
    seen = Seen()
    with opened(row, seen) as driver:
        row.lose(driver)
        try:
            seen.wait(lambda: seen.of(LinkLost), 30, "the loss")
        finally:
            row.mend(driver)
        seen.wait(lambda: seen.of(LinkBack), 30, "the return")
        assert [type(observation) for observation in seen.of(LinkLost, LinkBack)] == [LinkLost, LinkBack]
        (lost,) = seen.of(LinkLost)
        assert lost.what
        provoked(row, driver, seen)


def test_stamps_lie_between_start_and_end_of_the_session(row: Row) -> None:
    seen, before_s = Seen(), time.monotonic()
    with opened(row, seen) as driver:
        if isinstance(driver, Stimulates):
            play_whole(driver, seen, "one")
        provoked(row, driver, seen)
    after_s = time.monotonic()
    for observation in seen.all:
        assert observation.source == "it"
        assert before_s - observation.at.error_s <= observation.at.at_s <= after_s + observation.at.error_s, observation
        assert observation.at.error_s < 1.0


@of_players
def test_a_sound_begins_and_ends(row: Row) -> None:
    seen = Seen()
    with opened(row, seen) as driver:
        for play_id in ("one", "two"):
            play_whole(driver, seen, play_id)
    order = [
        (type(observation), observation.play_id)
        for observation in seen.all
        if isinstance(observation, StimulusStarted | StimulusEnded)
    ]
    assert order == [(StimulusStarted, "one"), (StimulusEnded, "one"), (StimulusStarted, "two"), (StimulusEnded, "two")]
    for play_id in ("one", "two"):
        first, last = known(started(seen, play_id)), known(ended(seen, play_id))
        if first.audio_s is not None and last.audio_s is not None:
            assert last.audio_s - first.audio_s == pytest.approx(0.4, abs=0.01)
        if row.on_air:
            assert last.at.at_s - first.at.at_s == pytest.approx(0.4, abs=0.05)


@of_players
def test_two_sounds_never_mix(row: Row) -> None:
    seen = Seen()
    with opened(row, seen) as driver:
        player = playing(driver, seen)
        if row.queues:
            player.play("two", hum(0.2))
        else:
            with pytest.raises(DeviceError, match="already"):
                player.play("two", hum(0.2))
        player.stop()
        seen.wait(lambda: ended(seen, "one"), 20.0, "the end of the first")
        second = started(seen, "two")
        assert second is None or second.at.at_s >= known(ended(seen, "one")).at.at_s


@of_players
def test_a_stop_ends_a_sound_at_once(row: Row) -> None:
    seen = Seen()
    with opened(row, seen) as driver:
        stimulates(driver).stop()
        assert not seen.of(StimulusEnded)
        player = playing(driver, seen)
        stopped_s = time.monotonic()
        player.stop()
        seen.wait(lambda: ended(seen, "one"), 20.0, "the end")
        end = known(ended(seen, "one"))
        assert not end.complete
        assert end.at.at_s - stopped_s <= 0.05 + end.at.error_s
        player.stop()
        play_whole(driver, seen, "two")
        assert len(seen.of(StimulusEnded)) == 2


@of_players
def test_link_loss_cuts_playback_and_next_sound_is_complete(row: Row) -> None:
    seen = Seen()
    with opened(row, seen) as driver:
        playing(driver, seen)
        row.lose(driver)
        try:
            seen.wait(lambda: ended(seen, "one") and seen.of(LinkLost), 30, "the loss and the end")
            assert not known(ended(seen, "one")).complete
        finally:
            row.mend(driver)
        seen.wait(lambda: seen.of(LinkBack), 30, "the return")
        play_whole(driver, seen, "two")


@of_players
def test_a_driver_closes_while_it_plays(row: Row) -> None:
    seen, before = Seen(), set(threading.enumerate())
    with opened(row, seen) as driver:
        playing(driver, seen)
        closed_in_time(driver)
        nothing_more(seen)
        seen.wait(lambda: not set(threading.enumerate()) - before, 20.0, "the end of its threads")


@of_players
def test_closed_driver_refuses_to_play(row: Row) -> None:
    driver = row.make()
    for _ in range(2):
        player = stimulates(driver)
        with pytest.raises(DeviceError):
            player.play("one", hum(0.1))
        player.stop()
        assert player.level_dbfs() is None
        driver.open(Seen())
        driver.close()
