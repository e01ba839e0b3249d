"""The sender of sound against a board that loses frames, in simulated time; and encodings of sound."""

from __future__ import annotations

import random
import time
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.wire.adpcm import (
    ADPCM_CHUNK,
    EncodedSound,
    Encoding,
    decode,
    decode_adpcm,
    decode_ulaw,
    encode_adpcm,
    encode_ulaw,
)
from harness.devices.wire.audio_sender import PROBE_SAMPLE, AudioAnswer, AudioChunk, AudioSender
from tests.known import known

RATE_HZ = 16000
WINDOW = 4096


def sound(count: int, seed: int = 1, encoding: Encoding = Encoding.PCM16) -> tuple[np.ndarray, EncodedSound]:
    samples = np.random.default_rng(seed).integers(-20000, 20000, count).astype(np.int16)
    return samples, EncodedSound(samples, encoding)


class Board:
    """Takes only what it expects, and answers each frame; a line in each direction that loses some."""

    def __init__(self, sender: AudioSender, loss: float = 0.0, seed: int = 0, expected: int = 0, trip_s: float = 0.002):
        self.sender, self.loss, self.trip_s = sender, loss, trip_s
        self.random = random.Random(seed)
        self.expected = expected
        self.heard: list[np.ndarray] = []
        self.now_s = 100.0
        self.answers: deque[tuple[float, int]] = deque()
        self.progress: list[AudioAnswer] = []
        self.refused = 0  # samples that it already had, or that came too early
        self.still_until_s = 0.0

    def take(self, chunk: AudioChunk) -> None:
        if self.random.random() < self.loss:
            return
        if chunk.first == self.expected:
            samples = decode(chunk.encoding, chunk.data)
            assert len(samples) == chunk.count
            self.heard.append(samples)
            self.expected += chunk.count
        else:
            self.refused += chunk.count
        still = self.now_s < self.still_until_s
        if self.random.random() >= (0.3 if still else self.loss):
            at_s = max(self.now_s + self.trip_s * self.random.uniform(1, 2), self.still_until_s)
            self.answers.append((max([at_s, *(answer_s for answer_s, _ in self.answers)]), self.expected))

    def run(self, limit_s: float = 600.0) -> float:
        """Until nothing is left to be heard; the seconds that it took."""
        began_s = self.now_s
        while self.sender.acknowledged < self.sender.end:
            assert self.now_s - began_s < limit_s
            while (chunk := self.sender.due(self.now_s)) is not None:
                assert chunk.first == PROBE_SAMPLE or chunk.first + chunk.count <= self.expected + WINDOW
                self.take(chunk)
            waits = [wait_s for wait_s in (self.sender.wait_s(self.now_s),) if wait_s is not None]
            if self.answers:
                waits.append(self.answers[0][0] - self.now_s)
            assert waits, "nothing is under way, and nothing would ever be sent"
            self.now_s += max(1e-6, min(waits))
            while self.answers and self.answers[0][0] <= self.now_s:
                self.progress.append(self.sender.acknowledge(self.answers.popleft()[1], self.now_s))
        return self.now_s - began_s

    @property
    def samples(self) -> np.ndarray:
        return np.concatenate(self.heard)


def sender_and_board(**options: float) -> tuple[AudioSender, Board]:
    sender = AudioSender()
    sender.start(RATE_HZ, WINDOW, "boot")
    return sender, Board(sender, **options)  # type: ignore[arg-type]


@given(st.floats(0, 0.6), st.integers(0, 1000), st.integers(1, 20000), st.integers(0, 5000))
def test_whatever_is_lost_the_board_hears_exactly_the_sound(loss: float, seed: int, count: int, expected: int) -> None:
    sender, board = sender_and_board(loss=loss, seed=seed, expected=expected)
    samples, encoded = sound(count)
    assert sender.append(encoded) == (0, count)
    board.run()
    assert np.array_equal(board.samples, samples)
    assert sender.acknowledged == sender.sent == sender.end == count
    assert board.progress.count(AudioAnswer.FOUND) >= 1
    assert AudioAnswer.FOREIGN not in board.progress


@pytest.mark.parametrize("encoding", list(Encoding))
def test_every_encoding_is_cut_so_that_it_arrives_whole(encoding: Encoding) -> None:
    sender, board = sender_and_board(loss=0.2)
    samples, encoded = sound(ADPCM_CHUNK * 20 + 10, encoding=encoding)
    sender.append(encoded)
    sender.append(encoded)
    board.run()
    assert len(board.samples) == 2 * len(samples)


def test_nothing_is_sent_twice_on_a_clean_line() -> None:
    sender, board = sender_and_board()
    sender.append(sound(RATE_HZ * 10)[1])
    took_s = board.run()
    assert (board.refused, sender.went_back) == (1, 0)  # the probe alone
    # A window for each round trip, and no pauses.
    assert took_s < RATE_HZ * 10 / WINDOW * board.trip_s * 1.5 + 0.1


@pytest.mark.parametrize("trip_s", [0.002, 0.05, 0.15])
@pytest.mark.parametrize("still_s", [0.6, 1.2, 2.5])
def test_answers_that_come_late_do_not_send_the_rest_twice(trip_s: float, still_s: float) -> None:
    sender, board = sender_and_board(trip_s=trip_s, seed=26)
    sender.append(sound(RATE_HZ)[1])
    board.run()
    sender.append(sound(RATE_HZ * 20)[1])
    board.still_until_s = board.now_s + still_s  # the board, or the way to it, stands still, and loses some answers
    board.run()
    assert sender.went_back > 0
    assert board.refused <= 3 * WINDOW


def test_the_line_goes_on_over_a_reset_and_never_goes_back() -> None:
    sender, board = sender_and_board()
    sender.append(sound(RATE_HZ)[1])
    board.run()
    assert sender.sample_s(8000) == pytest.approx(0.5)
    sender.append(sound(RATE_HZ)[1])
    while (chunk := sender.due(board.now_s)) is not None:
        board.take(chunk)
    under_way = sender.sent
    assert under_way > RATE_HZ
    sender.start(RATE_HZ, WINDOW, "another boot")
    assert not sender.ready
    assert sender.sample_s(0) is None
    assert sender.audio_line_s(sender.end) == pytest.approx(under_way / RATE_HZ)
    replacement = Board(sender)
    start, _ = sender.append(sound(RATE_HZ)[1])
    replacement.run()
    assert start == under_way
    assert sender.sample_s(0) == pytest.approx(under_way / RATE_HZ)
    assert sender.sample_s(RATE_HZ) == pytest.approx(under_way / RATE_HZ + 1)


def test_another_rate_after_a_reset_leaves_the_seconds_in_order() -> None:
    sender, board = sender_and_board()
    sender.append(sound(RATE_HZ)[1])
    board.run()
    sender.start(8000, WINDOW, "another boot")
    slower = Board(sender)
    sender.append(sound(8000)[1])
    slower.run()
    assert sender.audio_line_s(sender.end) == pytest.approx(2.0)
    assert sender.sample_s(4000) == pytest.approx(1.5)


def test_cancelled_sound_is_not_sent_but_sent_sound_still_arrives() -> None:
    sender, board = sender_and_board()
    samples, encoded = sound(RATE_HZ * 5)
    sender.append(encoded)
    while sender.due(board.now_s) is not None:  # the probe, lost
        pass
    board.now_s += 1
    board.take(known(sender.due(board.now_s)))
    board.now_s += board.trip_s
    sender.acknowledge(board.answers.popleft()[1], board.now_s)
    under_way = 0
    while (chunk := sender.due(board.now_s)) is not None:
        under_way += chunk.count  # lost as well
    assert sender.drop_unsent() == under_way == sender.end
    other, encoded = sound(1000, seed=2)
    assert sender.append(encoded) == (under_way, under_way + 1000)
    board.run()
    assert np.array_equal(board.samples, np.concatenate([samples[:under_way], other]))


def test_an_answer_that_this_boot_cannot_give_is_foreign() -> None:
    sender, board = sender_and_board(expected=100_000)
    sender.append(sound(RATE_HZ)[1])
    board.run()
    assert sender.acknowledge(0, board.now_s) is AudioAnswer.FOREIGN
    assert sender.acknowledge(100_000 + RATE_HZ + 1, board.now_s) is AudioAnswer.FOREIGN
    assert sender.acknowledge(100_000 + RATE_HZ, board.now_s) is AudioAnswer.REPEATED


def test_stale_acknowledgement_does_not_repair_a_wrong_start() -> None:
    sender = AudioSender()
    sender.start(RATE_HZ, WINDOW, "boot")
    assert known(sender.due(0.0)).first == PROBE_SAMPLE
    assert sender.acknowledge(500, 0.1) is AudioAnswer.FOUND
    assert sender.acknowledge(980, 0.1) is AudioAnswer.FOUND
    sender.append(sound(100)[1])
    assert known(sender.due(0.2)).first == 980


def test_real_time_sound_is_sent_at_its_own_speed() -> None:
    sender = AudioSender(realtime=True)
    sender.start(RATE_HZ, WINDOW, "boot")
    board = Board(sender)
    sender.append(sound(RATE_HZ * 3)[1])
    assert 2.8 < board.run() < 3.1
    sender.append(sound(RATE_HZ * 2)[1])
    assert 1.8 < board.run() < 2.1


def test_silence_is_answered_by_sending_again_after_half_a_second_at_most() -> None:
    sender, board = sender_and_board()
    sender.append(sound(200)[1])
    board.take(known(sender.due(0.0)))
    sender.acknowledge(0, 0.001)
    first = known(sender.due(0.001))
    assert sender.due(0.002) is None
    assert sender.wait_s(0.002) == pytest.approx(0.499)
    assert sender.due(0.4) is None
    assert sender.due(0.502) == first


def test_a_lost_link_has_nothing_due_until_it_starts_again() -> None:
    sender, board = sender_and_board()
    sender.append(sound(100_000)[1])
    while (chunk := sender.due(board.now_s)) is not None:
        board.take(chunk)
    sender.disconnect()
    assert sender.due(board.now_s + 10) is None
    assert sender.wait_s(board.now_s + 10) is None
    assert sender.end == sender.sent == sender.acknowledged
    with pytest.raises(ValueError, match="window"):
        sender.start(RATE_HZ, 0, "boot")


@pytest.mark.parametrize(("boot", "audio_s"), [("boot", 400 / RATE_HZ), ("another", (1000 - 700 + 400) / RATE_HZ)])
def test_what_was_heard_before_a_lost_link_keeps_its_place(boot: str, audio_s: float) -> None:
    sender = AudioSender()
    sender.start(RATE_HZ, WINDOW, "boot")
    sender.acknowledge(0, 0.0)
    sender.append(sound(1000)[1])
    while sender.due(0.0) is not None:  # the board loses the last 300 samples
        pass
    sender.disconnect()
    sender.start(RATE_HZ, WINDOW, boot)
    for _ in range(2):
        assert sender.acknowledge(700, 1.0) is AudioAnswer.FOUND
    assert sender.sample_s(400) == audio_s
    assert sender.sample_s(701) == 1001 / RATE_HZ


def speech_like(count: int) -> np.ndarray:
    time_s = np.arange(count) / 16000
    swell = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time_s)
    tones = np.sin(2 * np.pi * 180 * time_s) + 0.4 * np.sin(2 * np.pi * 720 * time_s)
    noise = np.random.default_rng(3).normal(0, 0.02, count)
    return (6000 * swell * tones + 6000 * noise).astype(np.int16)


def snr_db(samples: np.ndarray, decoded: np.ndarray) -> float:
    rest = samples.astype(float) - decoded
    return float(10 * np.log10(np.mean(samples.astype(float) ** 2) / np.mean(rest**2)))


def test_ulaw_matches_g711() -> None:
    # Decoder output values of G.711, table 2a, times 4 (14 bits there, 16 here).
    assert decode_ulaw(bytes([0x80, 0x00, 0xFF, 0x7F, 0xF0, 0x8F])).tolist() == [32124, -32124, 0, 0, 120, 16764]
    codes = bytes(range(256))
    recoded = encode_ulaw(decode_ulaw(codes))
    assert [a for a, b in zip(recoded, codes, strict=True) if a != b] == [0xFF]  # −0 comes back as +0


@given(st.integers(-32768, 32767))
def test_ulaw_is_off_by_half_a_step_at_most(sample: int) -> None:
    back = int(decode_ulaw(encode_ulaw(np.array([sample], dtype=np.int16)))[0])
    assert abs(back - sample) <= max(4, (abs(sample) + 132) / 32, abs(sample) - 32124 if abs(sample) > 32124 else 0)


def test_adpcm_steps_match_the_recommendation() -> None:
    # Worked by hand from the rule: step 7, nibble 4 adds 7 + 7>>3 = 7; the index goes to 2 (step 9); nibble 0xC takes
    # 9 + 9>>3 = 10 away; the index goes to 4 (step 11).
    assert decode_adpcm(bytes.fromhex("64000000") + b"\xc4").tolist() == [107, 97]
    assert decode_adpcm(bytes.fromhex("ff7f5800") + b"\x77").tolist() == [32767, 32767]


def test_each_adpcm_frame_decodes_alone_and_approximately() -> None:
    samples = speech_like(16000)
    frames = encode_adpcm(samples)
    assert len(frames) == -(-16000 // ADPCM_CHUNK)
    decoded = np.concatenate([decode_adpcm(frame) for frame in frames])
    assert len(decoded) == len(samples)
    assert snr_db(samples, decoded) > 22


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("count", [0, 1, 2, 239, 240, 241, 1001])
def test_frames_are_cut_from_the_encoded_sound(encoding: Encoding, count: int) -> None:
    samples = speech_like(count)
    sound = EncodedSound(samples, encoding)
    assert len(sound) == count + (count % 2 if encoding is Encoding.ADPCM else 0)
    parts, start = [np.zeros(0, np.int16)], 0
    while start < len(sound):
        end = min(len(sound), start + sound.max_chunk)
        parts.append(decode(encoding, sound.data(start, end)))
        assert len(parts[-1]) == end - start
        start = end
    whole = np.concatenate(parts)[:count]
    if encoding is Encoding.PCM16:
        assert np.array_equal(whole, samples)
    elif count > 200:
        assert snr_db(samples, whole) > 20


def test_adpcm_is_cut_on_its_grid_only() -> None:
    sound = EncodedSound(speech_like(1000), Encoding.ADPCM)
    with pytest.raises(ValueError, match="not a frame"):
        sound.data(10, 250)


@pytest.mark.parametrize("data", [b"", b"abc", b"\0\0\x59\0"])
def test_invalid_adpcm_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="ADPCM"):
        decode_adpcm(data)


def test_encoding_a_minute_of_sound_is_fast() -> None:
    samples, began_s = speech_like(16000 * 60), time.process_time()
    EncodedSound(samples, Encoding.ADPCM)
    assert time.process_time() - began_s < 2


def test_a_wait_ends_with_something_to_send() -> None:
    """However the times are rounded: else a thread would wait for nothing again and again."""
    chance, silence = random.Random(1), EncodedSound(np.zeros(9 * 480, dtype=np.int16), Encoding.PCM16)
    for _ in range(200):
        sender = AudioSender()
        sender.start(RATE_HZ, WINDOW, "boot")
        now_s = chance.uniform(0.0, 1e5)
        assert sender.due(now_s) is not None
        sender.acknowledge(0, now_s)
        sender.append(silence)
        for heard in range(8):  # the length of a wait has as many digits as its time only at first
            chunk = known(sender.due(now_s))
            assert chunk.first == heard * chunk.count
            now_s += chance.uniform(0.01, 0.05)
            sender.acknowledge(chunk.first + chunk.count, now_s)
        assert sender.due(now_s) is not None
        now_s += known(sender.wait_s(now_s))
        assert known(sender.wait_s(now_s)) > 0 or sender.due(now_s) is not None
