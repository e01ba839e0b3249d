"""Faults of broker and board under an injection in our own framing, against a real mosquitto: no count goes wrong."""

from __future__ import annotations

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
    Proof,
    ResponseText,
    Status,
    StimulusEnded,
    StimulusStarted,
    Unread,
    Wake,
)
from tests.conformance.mqtt_bench import Board, Broker, Watch
from tests.conformance.mqtt_board import RATE_HZ, FramedBoard, clicks
from tests.known import known
from tests.seen import until

LONG_S = [0.5 + step for step in range(118)]
LONG = clicks(120.0, *LONG_S)
"""Far more than goes through before a test can interfere."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    # Else it throws events away in a flood.
    with Broker(tmp_path, "allow_anonymous true", "max_queued_messages 0") as own_broker:
        yield own_broker


@pytest.fixture
def board(broker: Broker) -> Iterator[FramedBoard]:
    own_board = FramedBoard(broker)
    yield own_board
    own_board.close()


@pytest.fixture
def watch(broker: Broker, board: FramedBoard, tmp_path: Path) -> Iterator[Watch]:
    with framed(broker, tmp_path) as own_watch:
        yield own_watch


def framed(broker: Broker, folder: Path, **options: object) -> Watch:
    chosen = {"keepalive_s": 5.0, "answer_wait_s": 5.0, "framing": MessageFraming.VH, **options}
    return Watch(folder, address=f"127.0.0.1:{broker.port}", **chosen)


def play_whole(watch: Watch, play_id: str, *at_s: float, seconds: float = 5.0) -> None:
    """One that must go through, with exactly these wakes."""
    watch.driver.play(play_id, clicks(seconds, *at_s))
    last = watch.end(play_id)
    assert last.complete
    assert known(last.audio_s) - known(watch.start(play_id).audio_s) == pytest.approx(seconds)
    # ADPCM takes some samples to climb.
    assert watch.wakes_s(play_id) == pytest.approx(list(at_s), abs=0.003)
    proof = watch.between(play_id, ListeningProved)[-1]
    assert (proof.proof, proof.audio_s) == (Proof.ACKNOWLEDGED, last.audio_s)


def begun(watch: Watch, play_id: str) -> None:
    """A long one is under way, and some of it was heard."""
    watch.driver.play(play_id, LONG)
    watch.first(Wake, 20)


def audio_line_never_goes_back(watch: Watch) -> None:
    line = [
        known(observation.audio_s)
        for observation in watch.all
        if isinstance(observation, StimulusStarted | StimulusEnded)
    ]
    assert line == sorted(line)


def test_injected_sound_arrives_whole_and_events_precede_its_end(watch: Watch) -> None:
    play_whole(watch, "one", 0.5, 1.25, 4.75)
    play_whole(watch, "two", 0.0, 4.99)
    audio_line_never_goes_back(watch)
    assert watch.driver.level_dbfs() is None


def test_lost_audio_slows_it_down_and_changes_no_count(watch: Watch, board: FramedBoard) -> None:
    board.drop_audio = 0.05
    play_whole(watch, "one", 1.0, 2.0, 3.0)


def test_a_broker_that_stands_still_for_a_moment_costs_nothing(watch: Watch, broker: Broker) -> None:
    begun(watch, "one")
    broker.freeze()
    time.sleep(0.8)  # shorter than what makes it lost
    broker.thaw()
    assert watch.end("one", 30).complete
    assert watch.wakes_s("one") == pytest.approx(LONG_S)
    assert not watch.of(LinkLost)


def test_message_flood_does_not_disturb_an_injection(watch: Watch, board: FramedBoard) -> None:
    begun(watch, "one")
    board.client.publish("vh/board/log", b"x" * 2_000_000, qos=1)
    for _ in range(2000):
        board.log("a line of one kilobyte " + "." * 1000)
    assert watch.end("one", 60).complete
    assert watch.wakes_s("one") == pytest.approx(LONG_S)
    (unread,) = watch.of(Unread)
    assert unread.what == "a message on vh/board/log has 2000000 bytes, more than 65536"
    assert len(watch.of(LogLine)) > 100
    watch.assert_flood_was_limited()
    play_whole(watch, "two", 1.0)


def test_stale_retained_events_are_ignored(broker: Broker, board: FramedBoard, tmp_path: Path) -> None:
    old = '{"boot": "0000abcd", "seq": 7, "time_us": 1, "sample": 5, "score": 0.5, "phrase": "click"}'
    board.client.publish("vh/board/wake", old, qos=1, retain=True).wait_for_publish(5)
    gone = '{"boot": "0000abcd", "state": "gone"}'
    board.client.publish("vh/board/status", gone, qos=1, retain=True).wait_for_publish(5)
    with framed(broker, tmp_path) as watch:
        play_whole(watch, "one", 1.0)
        assert not watch.of(Status)


def test_a_board_that_loses_power_interrupts_an_injection(watch: Watch, broker: Broker, board: FramedBoard) -> None:
    begun(watch, "one")
    board.vanish()
    assert not watch.end("one").complete
    until(lambda: watch.states(DeviceState.GONE), 15)
    watch.first(LinkLost)
    with pytest.raises(DeviceError, match="lost its link"):
        watch.driver.play("early", LONG)
    restarted = FramedBoard(broker)
    try:
        watch.first(LinkBack)
        (started,) = watch.states(DeviceState.STARTED)
        assert started.detail
        play_whole(watch, "two", 1.0, 2.0)
        audio_line_never_goes_back(watch)
    finally:
        restarted.close()


def test_reopened_board_continues_its_audio_position(
    watch: Watch, broker: Broker, board: FramedBoard, tmp_path: Path
) -> None:
    play_whole(watch, "one", 1.0)
    watch.driver.say("first")
    until(lambda: board.texts == ["first"])
    watch.driver.close()
    with framed(broker, tmp_path) as reopened:
        play_whole(reopened, "two", 2.0)
        assert reopened.start("two").audio_s == 0.0
        reopened.driver.say("second")
        until(lambda: board.texts == ["first", "second"])
        assert board.expected == 10 * RATE_HZ


def test_device_without_our_framing_is_an_error_with_a_remedy(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"no hello on vh/board/hello.*no answer") as caught:
        framed(broker, tmp_path, hello_wait_s=0.5)
    assert "topic_device" in caught.value.remedy
    board = FramedBoard(broker)
    board.vanish()
    until(lambda: _refusal(broker, tmp_path).endswith("its last will reports that it is gone"), 15)


def _refusal(broker: Broker, folder: Path) -> str:
    try:
        framed(broker, folder, hello_wait_s=0.3).driver.close()
    except DeviceError as error:
        return error.what
    return ""


@pytest.mark.usefixtures("host_keeps_time")
def test_times_are_the_boards_own_and_their_error_holds(broker: Broker, tmp_path: Path) -> None:
    board = FramedBoard(broker, ppm=80.0)
    with framed(broker, tmp_path) as watch:
        watch.first(ClockFitted)
        truth: list[tuple[float, float]] = []
        for number in range(40):
            before_s = time.monotonic()
            board.event("response", text=str(number))
            truth.append((before_s, time.monotonic()))
            until(lambda: len(watch.of(ResponseText)) == len(truth))
        for (before_s, after_s), response in zip(truth, watch.of(ResponseText), strict=True):
            # The board read its clock between the two; they lie further apart when somebody else had the processor.
            assert before_s - response.at.error_s <= response.at.at_s <= after_s + response.at.error_s
            assert response.at.error_s < 0.02
    board.close()


def test_a_second_harness_is_refused_by_name(watch: Watch, broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"reserved by .*process \d+"):
        framed(broker, tmp_path)
    play_whole(watch, "one", 1.0)
    watch.driver.close()
    framed(broker, tmp_path).driver.close()


def test_sound_from_another_sender_ends_the_attempt(watch: Watch, broker: Broker, board: FramedBoard) -> None:
    begun(watch, "one")
    stranger = Board(broker, device="elsewhere")
    stranger.device = "board"
    stranger.say_raw("in/audio", b"\0\0" + board.expected.to_bytes(8, "little") + bytes(640))
    assert not watch.end("one").complete
    (lost,) = watch.of(LinkLost)
    # The message itself shows it, or the board's acknowledgement of samples nobody here sent: whichever comes first.
    assert lost.what.endswith("two programs use it")
    stranger.close()
    watch.first(LinkBack, 15)
    play_whole(watch, "two", 1.0)
