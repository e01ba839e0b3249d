"""Packets survive any way of being torn apart on a pipe."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sound.child import Packet, PacketReader, Verb

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
