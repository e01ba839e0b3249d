"""The C core against its own host tests, and against the host's side of the protocol."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from harness.devices.wire import adpcm, frames, messages
from tests.conformance.boards import FIRMWARE, built, posix_board
from tests.unit.firmware.c_programs import CORE, build
from tests.unit.firmware.talk import Talk

SANITIZERS = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=0"}


@pytest.mark.parametrize("name", ["test_parts", "test_board"])
def test_the_host_tests_of_the_c_core_pass(firmware_host_tests: Path, name: str) -> None:
    result = subprocess.run([firmware_host_tests / name], capture_output=True, text=True, env=SANITIZERS, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", ["fuzz_frames", "fuzz_board", "fuzz_mqtt", "fuzz_json"])
def test_a_second_of_fuzzing_finds_no_crash(firmware_host_tests: Path, name: str, tmp_path: Path) -> None:
    corpus = sorted((FIRMWARE / "fuzz" / "corpus").iterdir())
    result = subprocess.run(
        [firmware_host_tests / name, "1", "7", *corpus],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=SANITIZERS,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_both_sides_number_the_messages_alike() -> None:
    """vh_messages.def is the firmware's one list; docs/reference/framing.md is what both were written from."""
    definitions = (FIRMWARE / "core" / "vh_messages.def").read_text(encoding="utf-8")
    board = {
        name: int(number, 16) for name, number in re.findall(r"^VH_\w+\((\w+), (0x\w+)\)$", definitions, re.MULTILINE)
    }
    page = (FIRMWARE.parent / "docs" / "reference" / "framing.md").read_text(encoding="utf-8")
    documented = {name: int(number, 16) for number, name in re.findall(r"^\| (0x\w\w) \| (\w+) \|", page, re.MULTILINE)}
    assert board == {kind.name: kind.value for kind in frames.FrameKind} == documented


@pytest.fixture(scope="module")
def unpack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = [Path(__file__).with_name("unpack.c"), CORE / "vh_codecs.c"]
    return build(sources, tmp_path_factory.mktemp("unpack") / "unpack")


@pytest.mark.parametrize("encoding", list(adpcm.Encoding))
def test_the_board_decodes_what_the_host_encodes(encoding: adpcm.Encoding, unpack: Path) -> None:
    """Loud noise and a quiet tone: as the host's own decoder has it, and near to what was given."""
    loud = np.random.default_rng(3).standard_normal(4000) * 6000
    quiet = 200 * np.sin(np.arange(4000) * 0.2)
    samples = np.concatenate([loud, quiet]).astype(np.int16)
    sound = adpcm.EncodedSound(samples, encoding)
    heard = []
    for start in range(0, samples.size, sound.max_chunk):
        data = sound.data(start, min(start + sound.max_chunk, samples.size))
        result = subprocess.run([unpack, str(int(encoding))], input=data, capture_output=True, check=True)
        heard.append(np.frombuffer(result.stdout, "<i2"))
        assert np.array_equal(heard[-1], adpcm.decode(encoding, data))
    error = np.concatenate(heard).astype(float) - samples
    allowed_db = {adpcm.Encoding.PCM16: -200.0, adpcm.Encoding.ULAW: -30.0, adpcm.Encoding.ADPCM: -10.0}[encoding]
    for part in (slice(0, 4000), slice(4000, 8000)):
        relative = np.sum(error[part] ** 2) / np.sum(samples[part].astype(float) ** 2)
        assert 10 * np.log10(relative + 1e-30) <= allowed_db


def test_the_board_logs_true_times_of_a_clock_with_offset_and_drift(tmp_path: Path) -> None:
    with posix_board(tmp_path, "--clock-offset-us", "5000000", "--clock-ppm", "80000") as board:
        talk = Talk(board.port)
        numbered = []
        for number in range(1, 4):
            talk.say(messages.TextCommand("turn on the light"), number)
            numbered += talk.hear(messages.ResponseEvent)
            time.sleep(0.05)
        talk.close()
        truth = board.truth()[0]
    times = [(event.time_us, truth[number]) for number, event in numbered if isinstance(event, messages.ResponseEvent)]
    (first_us, first_ns), *_, (last_us, last_ns) = times
    assert first_us > 5_000_000
    assert (last_us - first_us) * 1000 / (last_ns - first_ns) == pytest.approx(1.08, abs=1e-4)


@pytest.mark.parametrize(
    ("style", "line"),
    [
        (1, rb"I \(\d+\) vh: heard: lamp off\r\n"),
        (2, rb"\[\d\d:\d\d:\d\d\.\d{3},\d{3}\] <inf> vh: heard: lamp off\r\n"),
        (3, rb"heard: lamp off\r\n"),
    ],
)
def test_events_are_printed_in_the_chosen_style(style: int, line: bytes, tmp_path: Path) -> None:
    with posix_board(tmp_path) as board:
        talk = Talk(board.port)
        talk.say(messages.Set(messages.SetKey.CONSOLE_STYLE, style), 1)
        talk.say(messages.TextCommand("lamp off"), 2)
        talk.hear(messages.ResponseEvent)
        talk.close()
    assert re.search(line, talk.console)


def test_the_spotter_of_a_file_says_where_a_wrong_option_is(vh_spot: Path, tmp_path: Path) -> None:
    quiet = tmp_path / "quiet.s16"
    quiet.write_bytes(struct.pack("<16000h", *([0] * 16000)))
    assert subprocess.run([vh_spot, quiet], capture_output=True, check=True).stdout == b""
    assert subprocess.run([vh_spot, "--loud", quiet], capture_output=True, check=False).returncode == 2
    assert subprocess.run([vh_spot, "--operating-point", "", quiet], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize(
    "wrong",
    [("--clock-ppm", "nan"), ("--clock-offset-us", "nan"), ("--clock-offset-us", "inf"), ("--uart-noise", "nan")],
    ids=" ".join,
)
def test_invalid_number_is_refused(wrong: tuple[str, str], tmp_path: Path) -> None:
    board = built("posix") / "vh_board"
    command = [str(board), "--pty", str(tmp_path / "board"), *wrong]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert wrong[0] in result.stderr.partition("\n")[0]
