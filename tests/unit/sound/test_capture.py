"""Recordings: a stream that has just begun, clips by host time, and the sound child's own parts."""

from __future__ import annotations

import array
import itertools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import DeviceError, SoundError
from harness.model.time import Stamp
from harness.sound.capture import Block, Capture, RingBuffer
from harness.sound.child import TICKS_PER_WRITE, Packet, PacketKind, PacketOutlet, PacketReader, Player, run_commands

RATE_HZ, FRAMES = 48000, 480
OVERFLOW = 0x2
BUFFER_S = FRAMES / RATE_HZ


def recorded(ring: RingBuffer, backs: list[Stamp], flags: dict[int, int] | None = None) -> float:
    """A stream of 60 callbacks from 50 s on, which is one that came back; the moment at which that was told."""
    told_s = 0.0
    capture = Capture("mic", "virtual_lab", on_block=ring.put, on_fault=lambda stamp, fault: None, on_back=backs.append)
    capture.opened(Packet(PacketKind.OPENED), True)
    for n in range(60):
        first, moment_s = n * FRAMES, 50.0 + (n + 1) * BUFFER_S
        samples = np.arange(first, first + FRAMES).astype("<i2").tobytes()
        capture.received(Packet(PacketKind.BLOCK, (flags or {}).get(n, 0), FRAMES, first, moment_s, -BUFFER_S, samples))
        told_s = told_s or (moment_s if backs else 0.0)
    return told_s


def test_sound_of_just_before_its_return_was_told_can_be_cut() -> None:
    ring, backs = RingBuffer(10.0), list[Stamp]()
    told_s = recorded(ring, backs)
    assert told_s - 50.0 > 0.3, "times settle first"
    sound, at_s = ring.cut(told_s - 0.2, told_s + 0.1, wait_s=0.0)
    assert at_s == pytest.approx(told_s - 0.2, abs=1 / RATE_HZ)
    steps = np.diff(np.rint(sound.samples * 32768))
    assert (steps == 1).all(), "sample after sample, also over the moment at which it settled"
    assert backs[0].at_s < told_s - 0.2


def test_sound_before_times_settle_or_a_loss_cannot_be_cut() -> None:
    ring, backs = RingBuffer(10.0), list[Stamp]()
    recorded(ring, backs, {20: OVERFLOW})
    with pytest.raises(SoundError, match="does not contain the sound"):
        ring.cut(50.0 + 15 * BUFFER_S, 50.5, wait_s=0.0)
    ring.cut(50.0 + 21 * BUFFER_S, 50.5, wait_s=0.0)


def test_blocks_come_in_order_and_once() -> None:
    blocks: list[Block] = []
    capture = Capture("mic", "virtual_lab", on_block=blocks.append, on_fault=lambda stamp, fault: None)
    for life in range(2):
        capture.opened(Packet(PacketKind.OPENED), bool(life))
        for n in range(50):
            moment_s = 50.0 + 10 * life + n * BUFFER_S
            capture.received(Packet(PacketKind.BLOCK, 0, FRAMES, n * FRAMES, moment_s, -BUFFER_S, bytes(2 * FRAMES)))
    places = [(block.epoch, block.first_sample // FRAMES) for block in blocks]
    assert places == [(epoch, n) for epoch in (1, 2) for n in range(10, 50)]


def test_stream_that_fails_while_reopening_is_not_reported_back() -> None:
    faults: list[str] = []
    capture = Capture("mic", "virtual_lab", on_block=lambda _: None, on_fault=lambda _, fault: faults.append(fault))
    capture.opened(Packet(PacketKind.OPENED), False)
    capture.faulted(Stamp(50.0), "frozen")
    capture.opened(Packet(PacketKind.OPENED), True)
    capture.faulted(Stamp(51.0), "frozen again")
    capture.opened(Packet(PacketKind.OPENED), True)
    assert faults == ["frozen"]


PACKETS = st.builds(
    Packet,
    kind=st.sampled_from(PacketKind),
    number=st.integers(0, 2**32 - 1),
    frames=st.integers(0, 2**32 - 1),
    first_sample=st.integers(0, 2**64 - 1),
    moment_s=st.floats(allow_nan=False),
    reported_s=st.floats(allow_nan=False),
    payload=st.binary(max_size=2000),
)


@given(packets=st.lists(PACKETS, max_size=8), cuts=st.lists(st.integers(0, 20_000), max_size=20))
def test_torn_bytes_become_the_same_packets(packets: list[Packet], cuts: list[int]) -> None:
    whole = b"".join(packet.encode() for packet in packets)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    reader = PacketReader()
    decoded_packets = []
    for start, end in itertools.pairwise(edges):
        decoded_packets += reader.feed(whole[start:end])
    assert decoded_packets == packets


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(ValueError):
        PacketReader().feed(b"\xff" * 100)


NO_TIME = {"output_buffer_dac_time": 0.0, "current_time": 0.0}


class Sent(PacketOutlet):
    """An outlet that keeps what was put."""

    def __init__(self) -> None:
        super().__init__(1000)
        self.packets: list[Packet] = []

    def put(self, packet: Packet, *, can_wait: bool = False) -> None:
        self.packets.append(packet)


def ramp(first: int, count: int) -> bytes:
    return array.array("h", range(first, first + count)).tobytes()


def played(player: Player, callbacks: int, frames: int = 480) -> list[int]:
    out = b"".join(player.callback(None, frames, NO_TIME, 0)[0] for _ in range(callbacks))
    return array.array("h", out).tolist()


def test_plays_follow_one_another_without_a_gap_and_silence_is_around_them() -> None:
    sent = Sent()
    player = Player(sent, 0)
    assert played(player, 1) == [0] * 480
    player.play(1, ramp(1, 700))
    player.play(2, ramp(1000, 100))
    assert played(player, 2) == [*range(1, 701), *range(1000, 1100), *[0] * 160]
    events = [
        (packet.kind, packet.number, packet.first_sample) for packet in sent.packets if packet.kind != PacketKind.TICK
    ]
    assert events == [
        (PacketKind.STARTED, 1, 480),
        (PacketKind.ENDED, 1, 1180),
        (PacketKind.STARTED, 2, 1180),
        (PacketKind.ENDED, 2, 1280),
    ]


def test_a_play_that_fills_its_last_block_exactly_ends_with_it() -> None:
    sent = Sent()
    player = Player(sent, 0)
    player.play(1, ramp(1, 960))
    assert played(player, 3) == [*range(1, 961), *[0] * 480]
    ended = next(packet for packet in sent.packets if packet.kind is PacketKind.ENDED)
    assert (ended.first_sample, ended.frames) == (960, 1)


def test_stop_ends_what_plays_and_what_would_follow_before_the_next_block() -> None:
    sent = Sent()
    player = Player(sent, 0)
    player.play(1, ramp(1, 4800))
    player.play(2, ramp(1, 4800))
    played(player, 1)
    player.stop()
    player.play(3, ramp(5, 10))
    assert played(player, 1) == [*range(5, 15), *[0] * 470]
    ended = [
        (packet.number, packet.frames, packet.first_sample)
        for packet in sent.packets
        if packet.kind is PacketKind.ENDED
    ]
    assert ended == [(1, 0, 480), (2, 0, 480), (3, 1, 490)]
    player.stop()
    assert played(player, 1) == [0] * 480


def test_commands_after_a_packet_that_is_none_are_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [Packet(PacketKind.TICK), Packet(PacketKind.PLAY, 1, payload=b"\1\0" * 10)]
    chunks = [b"".join(packet.encode() for packet in sent), b""]
    monkeypatch.setattr(os, "read", lambda descriptor, size: chunks.pop(0))
    monkeypatch.setattr(os, "_exit", lambda status: None)
    player = Player(PacketOutlet(1000), 0)
    run_commands(player)
    assert played(player, 1)[:10] == [1] * 10


def test_blocks_that_nobody_reads_are_dropped_and_told() -> None:
    outlet = PacketOutlet(3)
    for number in range(6):
        outlet.put(Packet(PacketKind.BLOCK, frames=480, first_sample=480 * number))
    assert [packet.first_sample for packet in PacketReader().feed(outlet.take_all())] == [0, 480, 960, 1440]
    outlet.put(Packet(PacketKind.BLOCK, frames=480, first_sample=480 * 6))
    lost, block = PacketReader().feed(b"".join(outlet.take_all() for _ in range(4)))
    assert (lost.kind, lost.frames) == (PacketKind.LOST, 960)
    assert block.first_sample == 480 * 6


def test_player_and_recorder_ticks_wait_only_for_each_other() -> None:
    outlet = PacketOutlet(3)
    for number in range(TICKS_PER_WRITE):
        outlet.put(Packet(PacketKind.TICK, first_sample=480 * number), can_wait=True)
    assert len(PacketReader().feed(outlet.take_all())) == TICKS_PER_WRITE
    outlet.put(Packet(PacketKind.TICK, first_sample=480), can_wait=True)
    outlet.put(Packet(PacketKind.STARTED, 7, first_sample=960))
    assert [packet.kind for packet in PacketReader().feed(outlet.take_all())] == [PacketKind.TICK, PacketKind.STARTED]


def test_the_child_starts_without_numpy() -> None:
    code = "import sys, harness.sound.child; print('numpy' in sys.modules, 'pyaudio' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert result.stdout.split() == ["False", "False"]


RING_RATE_HZ = 48000
RING_FRAMES = 480


def block(number: int, *, start_s: float = 100.0, epoch: int = 1, drift: float = 0.0) -> Block:
    """A block whose samples are their own numbers, scaled."""
    first = number * RING_FRAMES
    samples = (np.arange(first, first + RING_FRAMES) / 2**20).astype(np.float32)
    return Block(first, start_s + first / RING_RATE_HZ * (1 + drift), 0.0005, samples, epoch)


def filled(blocks: int, seconds: float = 60.0) -> RingBuffer:
    ring = RingBuffer(seconds)
    for number in range(blocks):
        ring.put(block(number))
    return ring


@settings(max_examples=25)
@given(start=st.integers(0, 40_000), length=st.integers(1, 7_000))
def test_a_cut_has_exactly_the_samples_of_its_span(start: int, length: int) -> None:
    sound, at_s = filled(100).cut(100.0 + start / RING_RATE_HZ, 100.0 + (start + length) / RING_RATE_HZ, wait_s=0.0)
    assert np.array_equal(sound.samples * 2**20, np.arange(start, start + length))
    assert at_s == pytest.approx(100.0 + start / RING_RATE_HZ, abs=1e-9)


def test_a_time_between_two_samples_is_answered_with_the_time_of_the_sample() -> None:
    sound, at_s = filled(100).cut(100.0 + 10.4 / RING_RATE_HZ, 100.5, wait_s=0.0)
    assert sound.samples[0] * 2**20 == 10
    assert at_s == pytest.approx(100.0 + 10 / RING_RATE_HZ, abs=1e-9)


def test_a_drifting_recording_is_cut_by_the_times_of_its_blocks() -> None:
    ring = RingBuffer(60)
    for number in range(3000):
        ring.put(block(number, drift=100e-6))
    sound, _ = ring.cut(100.0, 125.0, wait_s=0.0)
    assert len(sound.samples) == pytest.approx(25.0 / (1 + 100e-6) * RING_RATE_HZ, abs=2)


def test_cut_of_expired_sound_is_refused() -> None:
    ring = filled(300, seconds=1.0)
    with pytest.raises(SoundError, match="does not contain the sound"):
        ring.cut(100.5, 101.0, wait_s=0.0)
    sound, _ = ring.cut(102.1, 103.0, wait_s=0.0)
    assert len(sound.samples) == round(0.9 * RING_RATE_HZ)


def test_a_cut_over_a_gap_is_refused_and_beside_it_is_not() -> None:
    ring = filled(100)
    for number in range(100):
        ring.put(block(number, start_s=103.0, epoch=2))
    with pytest.raises(DeviceError, match="gap"):
        ring.cut(100.5, 103.5, wait_s=0.0)
    with pytest.raises(DeviceError):
        ring.cut(102.0, 103.5, wait_s=0.0)
    sound, at_s = ring.cut(103.2, 103.4, wait_s=0.0)
    assert len(sound.samples) == round(0.2 * RING_RATE_HZ)
    assert at_s == pytest.approx(103.2)


def test_a_short_gap_is_filled_with_silence_so_that_what_follows_keeps_its_time() -> None:
    ring = filled(50)
    # 30 ms are missing: samples 24000 to 25439 were never counted.
    for number in range(50, 100):
        ring.put(block(number, start_s=100.030, epoch=2))
    sound, at_s = ring.cut(100.4, 100.8, wait_s=0.0)
    assert len(sound.samples) == round(0.4 * RING_RATE_HZ)
    assert at_s == pytest.approx(100.4)
    assert not sound.samples[4800 : 4800 + 1440].any()
    assert sound.samples[4799] * 2**20 == 23_999
    assert sound.samples[4800 + 1440] * 2**20 == 24_000


def test_a_cut_waits_for_samples_that_are_to_come() -> None:
    ring = filled(50)

    def feed() -> None:
        for number in range(50, 120):
            ring.put(block(number))

    feeder = threading.Timer(0.05, feed)
    feeder.start()
    sound, _ = ring.cut(100.4, 101.0, wait_s=60.0)
    feeder.join()
    assert len(sound.samples) == round(0.6 * RING_RATE_HZ)


def test_cut_of_missing_sound_times_out() -> None:
    begun_s = time.monotonic()
    with pytest.raises(SoundError, match="has not arrived"):
        filled(50).cut(100.4, 200.0, wait_s=0.1)
    with pytest.raises(SoundError, match="has not arrived"):
        RingBuffer(10).cut(0.0, 1.0, wait_s=0.1)
    assert time.monotonic() - begun_s < 10


def test_empty_cut_is_refused_and_cleared_sound_is_gone() -> None:
    ring = filled(50)
    with pytest.raises(SoundError, match="cannot have a length"):
        ring.cut(100.2, 100.2)
    assert ring.end_s() == pytest.approx(100.5)
    ring.clear()
    assert ring.end_s() is None
