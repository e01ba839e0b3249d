"""Faults of broker and board under an injection in our own framing, against a real mosquitto: no count goes wrong."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.devices.mqtt.options import MessageFraming
from harness.model.errors import DeviceError
from harness.model.observation import (
    ClockFitted,
    DeviceState,
    LinkBack,
    LinkLost,
    ListeningProved,
    LogLine,
    Observation,
    Proof,
    ResponseText,
    Status,
    StimulusEnded,
    StimulusStarted,
    Wake,
)
from tests.conformance.mqtt_bench import Board, Broker, Watch, until
from tests.conformance.mqtt_board import RATE_HZ, FramedBoard, clicks

LONG = clicks(120.0, *(0.5 + step for step in range(118)))
"""Far more than goes through before a test can interfere."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    one = Broker("mosquitto", tmp_path)
    one.start("allow_anonymous true", "max_queued_messages 0")  # else it throws events away in a flood
    yield one
    if one.process is not None:
        os.kill(one.process.pid, signal.SIGCONT)
        one.kill()


@pytest.fixture
def board(broker: Broker) -> Iterator[FramedBoard]:
    one = FramedBoard(broker)
    yield one
    one.close()


@pytest.fixture
def watch(broker: Broker, board: FramedBoard, tmp_path: Path) -> Iterator[Watch]:
    one = framed(broker, tmp_path)
    yield one
    one.driver.close()


def framed(broker: Broker, folder: Path, **options: object) -> Watch:
    chosen = {"keepalive_s": 2.0, "answer_wait_s": 2.0, "framing": MessageFraming.VH, **options}
    return Watch(folder, address=f"127.0.0.1:{broker.port}", **chosen)


def ended(watch: Watch, play_id: str) -> StimulusEnded | None:
    found = [one for one in watch.seen if isinstance(one, StimulusEnded) and one.play_id == play_id]
    assert len(found) <= 1
    return found[0] if found else None


def span(watch: Watch, play_id: str) -> tuple[StimulusStarted, StimulusEnded, list[Observation]]:
    """Start and end of a play, and what was told between them."""
    (start,) = (
        place for place, one in enumerate(watch.seen) if isinstance(one, StimulusStarted) and one.play_id == play_id
    )
    (end,) = (
        place for place, one in enumerate(watch.seen) if isinstance(one, StimulusEnded) and one.play_id == play_id
    )
    first, last = watch.seen[start], watch.seen[end]
    assert isinstance(first, StimulusStarted)
    assert isinstance(last, StimulusEnded)
    return first, last, watch.seen[start + 1 : end]


def wakes_s(watch: Watch, play_id: str) -> list[float]:
    """Where in its sound the device woke, from its events between start and end."""
    first, _, between = span(watch, play_id)
    assert first.audio_s is not None
    found = []
    for one in between:
        if isinstance(one, Wake):
            assert one.audio_s is not None
            found.append(round(one.audio_s - first.audio_s, 4))
    return found


def play_whole(watch: Watch, play_id: str, *at_s: float, seconds: float = 5.0) -> None:
    """One that must go through, with exactly these wakes."""
    watch.driver.play(play_id, clicks(seconds, *at_s))
    until(lambda: ended(watch, play_id), 20)
    first, last, between = span(watch, play_id)
    assert last.complete
    assert first.audio_s is not None
    assert last.audio_s is not None
    assert last.audio_s - first.audio_s == pytest.approx(seconds)
    # ADPCM takes some samples to climb.
    assert wakes_s(watch, play_id) == pytest.approx(list(at_s), abs=0.003)
    (proof,) = [one for one in between if isinstance(one, ListeningProved)][-1:]
    assert (proof.proof, proof.audio_s) == (Proof.ACKNOWLEDGED, last.audio_s)


def begun(watch: Watch, play_id: str) -> None:
    """A long one is under way, and some of it was heard."""
    watch.driver.play(play_id, LONG)
    until(lambda: any(isinstance(one, Wake) for one in watch.seen), 20)


def audio_line_never_goes_back(watch: Watch) -> None:
    line = [one.audio_s for one in watch.seen if isinstance(one, StimulusStarted | StimulusEnded)]
    assert all(one is not None for one in line)
    assert line == sorted(one for one in line if one is not None)


def test_what_is_given_is_heard_in_full_and_what_was_heard_is_told_before_the_end(watch: Watch) -> None:
    play_whole(watch, "one", 0.5, 1.25, 4.75)
    play_whole(watch, "two", 0.0, 4.99)
    audio_line_never_goes_back(watch)
    assert watch.driver.level_dbfs() is None


def test_duplicates_count_once(watch: Watch, board: FramedBoard) -> None:
    board.twice = True
    play_whole(watch, "one", 1.0, 2.0, 3.0)
    until(lambda: watch.driver.duplicates == 3)


def test_lost_audio_slows_it_down_and_changes_no_count(watch: Watch, board: FramedBoard) -> None:
    board.drop_audio = 0.05
    play_whole(watch, "one", 1.0, 2.0, 3.0)


def test_a_broker_killed_under_an_injection(watch: Watch, broker: Broker, board: FramedBoard) -> None:
    begun(watch, "one")
    broker.kill()
    until(lambda: ended(watch, "one"))
    assert not span(watch, "one")[1].complete
    until(lambda: watch.of(LinkLost))
    with pytest.raises(DeviceError, match="lost its link"):
        watch.driver.play("early", LONG)
    broker.start()
    until(lambda: watch.of(LinkBack), 20)
    assert not [one for one in watch.of(Status) if isinstance(one, Status) and one.state is DeviceState.STARTED]
    play_whole(watch, "two", 1.0, 3.5)
    audio_line_never_goes_back(watch)
    assert (len(watch.of(LinkLost)), len(watch.of(LinkBack))) == (1, 1)


def test_a_broker_that_stands_still_for_a_moment_costs_nothing(watch: Watch, broker: Broker) -> None:
    assert broker.process is not None
    begun(watch, "one")
    os.kill(broker.process.pid, signal.SIGSTOP)
    time.sleep(0.8)  # shorter than what makes it lost
    os.kill(broker.process.pid, signal.SIGCONT)
    until(lambda: ended(watch, "one"), 30)
    assert span(watch, "one")[1].complete
    assert wakes_s(watch, "one") == [0.5 + step for step in range(118)]
    assert not watch.of(LinkLost)


def test_a_frozen_broker_is_a_lost_link(watch: Watch, broker: Broker, board: FramedBoard) -> None:
    assert broker.process is not None
    until(lambda: watch.driver.acknowledged > 0)
    begun(watch, "one")
    os.kill(broker.process.pid, signal.SIGSTOP)
    until(lambda: watch.of(LinkLost), 10)
    until(lambda: ended(watch, "one"))
    assert not span(watch, "one")[1].complete
    os.kill(broker.process.pid, signal.SIGCONT)
    until(lambda: watch.of(LinkBack), 20)
    until(lambda: board.client.is_connected(), 20)
    until(lambda: _can_play(watch, "two"), 20)
    until(lambda: ended(watch, "two"), 20)
    assert span(watch, "two")[1].complete
    assert wakes_s(watch, "two") == [1.0]


def _can_play(watch: Watch, play_id: str) -> bool:
    """The board may lose its own connection only now that the broker is thawed."""
    try:
        watch.driver.play(play_id, clicks(5.0, 1.0))
    except DeviceError:
        return False
    return True


def test_a_flood_is_borne(watch: Watch, board: FramedBoard) -> None:
    begun(watch, "one")
    board.client.publish("vh/board/log", b"x" * 2_000_000, qos=1)
    for _ in range(2000):
        board.log("a line of one kilobyte " + "." * 1000)
    until(lambda: ended(watch, "one"), 60)
    assert span(watch, "one")[1].complete
    assert wakes_s(watch, "one") == [0.5 + step for step in range(118)]
    assert watch.driver.too_long == 1
    lines = [one for one in watch.of(LogLine) if isinstance(one, LogLine)]
    assert 100 < len(lines) < 1500
    play_whole(watch, "two", 1.0)


def test_old_events_that_the_broker_kept_are_none_of_now(broker: Broker, board: FramedBoard, tmp_path: Path) -> None:
    old = '{"boot": "0000abcd", "seq": 7, "time_us": 1, "sample": 5, "score": 0.5, "phrase": "click"}'
    board.client.publish("vh/board/wake", old, qos=1, retain=True).wait_for_publish(5)
    gone = '{"boot": "0000abcd", "state": "gone"}'
    board.client.publish("vh/board/status", gone, qos=1, retain=True).wait_for_publish(5)
    watch = framed(broker, tmp_path)
    try:
        play_whole(watch, "one", 1.0)
        assert watch.driver.retained >= 2
        assert not watch.of(Status)
    finally:
        watch.driver.close()


def test_a_board_that_loses_its_power_under_an_injection(watch: Watch, broker: Broker, board: FramedBoard) -> None:
    begun(watch, "one")
    board.vanish()
    until(lambda: ended(watch, "one"), 15)
    assert not span(watch, "one")[1].complete
    until(lambda: any(isinstance(one, Status) and one.state is DeviceState.GONE for one in watch.seen), 15)
    until(lambda: watch.of(LinkLost))
    again = FramedBoard(broker)
    try:
        until(lambda: watch.of(LinkBack), 10)
        (started,) = [one for one in watch.of(Status) if isinstance(one, Status) and one.state is DeviceState.STARTED]
        assert started.detail
        play_whole(watch, "two", 1.0, 2.0)
        audio_line_never_goes_back(watch)
    finally:
        again.close()


def test_a_board_that_is_met_again_goes_on_where_it_is(
    watch: Watch, broker: Broker, board: FramedBoard, tmp_path: Path
) -> None:
    play_whole(watch, "one", 1.0)
    watch.driver.say("first")
    until(lambda: board.texts == ["first"])
    watch.driver.close()
    again = framed(broker, tmp_path)
    try:
        play_whole(again, "two", 2.0)
        assert again.of(StimulusStarted)[0].audio_s == 0.0  # type: ignore[attr-defined]
        again.driver.say("second")
        until(lambda: board.texts == ["first", "second"])
        assert board.expected == 10 * RATE_HZ
    finally:
        again.driver.close()


def test_nobody_who_speaks_our_framing_is_an_error_with_a_remedy(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"no board says hello on vh/board/hello.*nobody answers") as caught:
        framed(broker, tmp_path, hello_wait_s=0.5)
    assert "topic_device" in caught.value.remedy
    board = FramedBoard(broker)
    board.vanish()
    until(lambda: _refusal(broker, tmp_path).endswith("its last will says that it is gone"), 15)


def _refusal(broker: Broker, folder: Path) -> str:
    try:
        framed(broker, folder, hello_wait_s=0.3).driver.close()
    except DeviceError as error:
        return error.what
    return ""


def test_times_are_the_boards_own_and_their_error_holds(broker: Broker, tmp_path: Path) -> None:
    board = FramedBoard(broker, ppm=80.0)
    watch = framed(broker, tmp_path)
    try:
        until(lambda: watch.of(ClockFitted))
        truth: list[tuple[float, float]] = []
        for number in range(40):
            before_s = time.monotonic()
            board.event("response", text=str(number))
            truth.append((before_s, time.monotonic()))
            until(lambda: len(watch.of(ResponseText)) == len(truth))
        for (before_s, after_s), one in zip(truth, watch.of(ResponseText), strict=True):
            # The board read its clock between the two; they lie further apart when somebody else had the processor.
            assert before_s - one.at.error_s <= one.at.at_s <= after_s + one.at.error_s
            assert one.at.error_s < 0.02
    finally:
        watch.driver.close()
        board.close()


def test_a_foreign_boot_id_ends_nothing(watch: Watch, broker: Broker, board: FramedBoard) -> None:
    stranger = Board(broker, boot="deadbeef", device="elsewhere")
    stranger.device = "board"
    stranger.say("wake", seq=3, time_us=1, sample=100, score=1.0, phrase="alexa")
    until(lambda: [one for one in watch.of(LogLine) if "deadbeef" in one.text])  # type: ignore[attr-defined]
    play_whole(watch, "one", 1.0)
    assert not watch.of(LinkLost)
    stranger.close()


def test_a_second_harness_is_refused_by_name(watch: Watch, broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"reserved by .*process \d+"):
        framed(broker, tmp_path)
    play_whole(watch, "one", 1.0)
    watch.driver.close()
    framed(broker, tmp_path).driver.close()


def test_sound_of_somebody_else_ends_the_attempt(watch: Watch, broker: Broker, board: FramedBoard) -> None:
    begun(watch, "one")
    stranger = Board(broker, device="elsewhere")
    stranger.device = "board"
    stranger.say_raw("in/audio", b"\0\0" + board.expected.to_bytes(8, "little") + bytes(640))
    until(lambda: ended(watch, "one"))
    assert not span(watch, "one")[1].complete
    (lost,) = watch.of(LinkLost)
    assert isinstance(lost, LinkLost)
    assert "somebody else gives this board sound" in lost.what
    stranger.close()
    until(lambda: watch.of(LinkBack), 15)
    play_whole(watch, "two", 1.0)
