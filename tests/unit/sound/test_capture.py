"""What a recording gives of a stream that has just begun: nothing of doubtful time, and nothing lost for it."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.errors import SoundError
from harness.model.time import Stamp
from harness.sound.capture import Block, Capture, Ring
from harness.sound.child import Packet, Verb

RATE_HZ, FRAMES = 48000, 480
OVERFLOW = 0x2
BUFFER_S = FRAMES / RATE_HZ


def recorded(ring: Ring, backs: list[Stamp], flags: dict[int, int] | None = None) -> float:
    """A stream of 60 callbacks from 50 s on, which is one that came back; the moment at which that was told."""
    told_s = 0.0
    capture = Capture("mic", "virtual_lab", on_block=ring.put, on_fault=lambda at, what: None, on_back=backs.append)
    capture.opened(Packet(Verb.OPENED), True)
    for n in range(60):
        first, moment_s = n * FRAMES, 50.0 + (n + 1) * BUFFER_S
        samples = np.arange(first, first + FRAMES).astype("<i2").tobytes()
        capture.received(Packet(Verb.BLOCK, (flags or {}).get(n, 0), FRAMES, first, moment_s, -BUFFER_S, samples))
        told_s = told_s or (moment_s if backs else 0.0)
    return told_s


def test_sound_of_just_before_its_return_was_told_can_be_cut() -> None:
    ring, backs = Ring(10.0), list[Stamp]()
    told_s = recorded(ring, backs)
    assert told_s - 50.0 > 0.3, "times settle first"
    sound, at_s = ring.cut(told_s - 0.2, told_s + 0.1, wait_s=0.0)
    assert at_s == pytest.approx(told_s - 0.2, abs=1 / RATE_HZ)
    steps = np.diff(np.rint(sound.samples * 32768))
    assert (steps == 1).all(), "sample after sample, also over the moment at which it settled"
    assert backs[0].at_s < told_s - 0.2


def test_what_came_while_buffers_filled_or_before_a_loss_has_no_time() -> None:
    ring, backs = Ring(10.0), list[Stamp]()
    recorded(ring, backs, {20: OVERFLOW})
    with pytest.raises(SoundError, match="never"):
        ring.cut(50.0 + 15 * BUFFER_S, 50.5, wait_s=0.0)
    ring.cut(50.0 + 21 * BUFFER_S, 50.5, wait_s=0.0)


def test_blocks_come_in_order_and_once() -> None:
    given: list[Block] = []
    capture = Capture("mic", "virtual_lab", on_block=given.append, on_fault=lambda at, what: None)
    for life in range(2):
        capture.opened(Packet(Verb.OPENED), bool(life))
        for n in range(50):
            moment_s = 50.0 + 10 * life + n * BUFFER_S
            capture.received(Packet(Verb.BLOCK, 0, FRAMES, n * FRAMES, moment_s, -BUFFER_S, bytes(2 * FRAMES)))
    places = [(one.epoch, one.first_sample // FRAMES) for one in given]
    assert places == [(epoch, n) for epoch in (1, 2) for n in range(10, 50)]
