"""The sound child's own parts, without a sound server."""

from __future__ import annotations

import array
import itertools
import subprocess
import sys
from queue import SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sound.child import Packet, PacketOutlet, PacketReader, Player, Verb

PACKETS = st.builds(
    Packet,
    word=st.sampled_from(Verb),
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
    found = []
    for start, end in itertools.pairwise(edges):
        found += reader.feed(whole[start:end])
    assert found == packets


def test_bytes_of_somebody_else_are_refused() -> None:
    with pytest.raises(ValueError):
        PacketReader().feed(b"\xff" * 100)


NO_TIME = {"output_buffer_dac_time": 0.0, "current_time": 0.0}


class Sent(PacketOutlet):
    """An outlet that keeps what was put."""

    def __init__(self) -> None:
        super().__init__(1000)
        self.packets: list[Packet] = []

    def put(self, packet: Packet) -> None:
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
    told = [(packet.word, packet.number, packet.first_sample) for packet in sent.packets if packet.word != Verb.TICK]
    assert told == [(Verb.STARTED, 1, 480), (Verb.ENDED, 1, 1180), (Verb.STARTED, 2, 1180), (Verb.ENDED, 2, 1280)]


def test_a_play_that_fills_its_last_block_exactly_ends_with_it() -> None:
    sent = Sent()
    player = Player(sent, 0)
    player.play(1, ramp(1, 960))
    assert played(player, 3) == [*range(1, 961), *[0] * 480]
    ended = next(packet for packet in sent.packets if packet.word is Verb.ENDED)
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
        (packet.number, packet.frames, packet.first_sample) for packet in sent.packets if packet.word is Verb.ENDED
    ]
    assert ended == [(1, 0, 480), (2, 0, 480), (3, 1, 490)]
    player.stop()
    assert played(player, 1) == [0] * 480


def test_blocks_that_nobody_reads_are_dropped_and_told() -> None:
    outlet = PacketOutlet(3)
    queue: SimpleQueue[Packet] = outlet._queue
    for number in range(6):
        outlet.put(Packet(Verb.BLOCK, frames=480, first_sample=480 * number))
    first = [queue.get().first_sample for _ in range(4)]
    outlet.put(Packet(Verb.BLOCK, frames=480, first_sample=480 * 6))
    assert first == [0, 480, 960, 1440]
    lost = queue.get()
    assert (lost.word, lost.frames) == (Verb.LOST, 960)
    assert queue.get().first_sample == 480 * 6


def test_the_child_starts_without_numpy() -> None:
    code = "import sys, harness.sound.child; print('numpy' in sys.modules, 'pyaudio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["False", "False"]
