"""`validate` refuses what a run refuses, in the same words, and all of it at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import InputError, InputProblems
from harness.session.engine.prepare import prepare

BENCH = Path(__file__).parents[3] / "conformance" / "in_process" / "bench.yaml"
RATE_HZ = 16_000
TONE = (0.3 * np.sin(2 * np.pi * 440 * np.arange(RATE_HZ) / RATE_HZ)).astype(np.float32)
SCENARIO = """
scenario: recorded
title: Recordings
needs: [loudspeaker, microphone, transcripts]
stimuli:
"""


def harness(*arguments: str | Path) -> Result:
    return CliRunner().invoke(group, list(map(str, arguments)))


def written(folder: Path, *stimuli: str, trial: str = "") -> Path:
    """A scenario that plays each of these stimuli, given as their keys beside the id."""
    lines = [f"  - {{id: s{number}, {keys}}}" for number, keys in enumerate(stimuli)]
    trials = [f"  - {{id: t{number}, query: s{number}{trial}}}" for number in range(len(stimuli))]
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO + "\n".join([*lines, "trials:", *trials, ""]))
    return path


def recording(folder: Path, name: str, samples: np.ndarray, rate_hz: int = RATE_HZ, share: float = 1) -> str:
    path = folder / name
    soundfile.write(path, samples, rate_hz, subtype="FLOAT" if name.endswith("wav") else None)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    return f"recording: {name}, transcript: hello"


def refused(scenario: Path, tmp_path: Path) -> set[str]:
    """What is wrong by `validate`, alone and with a bench, and before a run: the same. Nothing is left behind."""
    with pytest.raises(InputError) as caught:
        prepare(scenario, BENCH, tmp_path / "sessions")
    assert not (tmp_path / "sessions").exists()
    error = caught.value
    at_run = {str(one) for one in (error.problems if isinstance(error, InputProblems) else [error])}
    for paths in ([scenario], [scenario, BENCH]):
        done = harness("validate", *paths)
        assert done.exit_code == 2, done.output
        assert at_run <= set(done.stderr.splitlines())
    return at_run


@pytest.mark.parametrize(
    ("name", "samples", "rate_hz", "share", "said"),
    [
        ("nan.wav", np.append(TONE, np.float32("nan")), RATE_HZ, 1, "no numbers"),
        ("inf.wav", np.append(TONE, np.float32("inf")), RATE_HZ, 1, "no numbers"),
        ("silent.wav", TONE * 0, RATE_HZ, 1, "is silent"),
        ("many.wav", np.repeat(TONE[:, None], 96, axis=1), RATE_HZ, 1, "96 channels"),
        ("slow.wav", TONE, 1, 1, "1 samples a second"),
        ("half.wav", TONE, RATE_HZ, 0.5, "cut off"),
        ("half.flac", TONE, RATE_HZ, 0.5, "lost sync"),
    ],
)
def test_a_recording_that_cannot_be_played_is_refused_by_both(
    tmp_path: Path, name: str, samples: np.ndarray, rate_hz: int, share: float, said: str
) -> None:
    scenario = written(tmp_path, recording(tmp_path, name, samples, rate_hz, share))
    (line,) = refused(scenario, tmp_path)
    assert f"'{name}'" in line
    assert said in line
    assert line.startswith(f"{scenario}:6:"), "where it is named"


@pytest.mark.parametrize(
    ("voice", "said"),
    [
        ("{engine: flite, name: sltt}", "Did you mean slt"),
        ("{engine: espeak, name: en-uss}", "en-us"),
        ("{engine: flite, name: slt, pitch: 3}", "Leave pitch out"),
    ],
)
def test_a_voice_that_cannot_speak_is_refused_by_both(tmp_path: Path, voice: str, said: str) -> None:
    (line,) = refused(written(tmp_path, "text: what time is it", trial=f", voice: {voice}"), tmp_path)
    assert said in line


def test_a_probe_whose_voice_cannot_speak_is_refused_by_both(tmp_path: Path) -> None:
    soak = "{kind: ambient, hours: 0.01, sources: [{noise: pink}], probe: {every_s: 60, voice: {name: en-uss}}}"
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"scenario: soak\ntrials:\n  - {soak}\n")
    (line,) = refused(scenario, tmp_path)
    assert "en-us" in line


def test_a_language_is_the_devices_and_without_a_bench_nothing_is_said_of_it(tmp_path: Path) -> None:
    scenario = written(tmp_path, "text: wie spät ist es", trial=", voice: {engine: espeak, name: de}")
    assert harness("validate", scenario).exit_code == 0
    done = harness("validate", scenario, BENCH)
    assert done.exit_code == 2
    assert "Set language: de" in done.output


def test_all_that_lose_sync_are_named_at_once_and_those_of_a_folder_too(tmp_path: Path) -> None:
    names = [f"{number}.flac" for number in range(6)]
    noise = np.random.default_rng(1).uniform(-0.3, 0.3, RATE_HZ).astype(np.float32)
    stimuli = [recording(tmp_path, name, noise, share=0.6 if int(name[0]) % 2 else 1) for name in names]
    assert len(refused(written(tmp_path, *stimuli), tmp_path)) == 3
    done = harness("sound", "recordings", tmp_path)
    assert done.exit_code == 2
    lines = done.output.splitlines()
    assert [Path(line.partition(":")[0]).name for line in lines[:-1]] == names[1::2]
    assert lines[-1] == "6 recordings, 3 cannot be played"
    told = json.loads(harness("sound", "recordings", "--json", tmp_path).output)
    assert (told["files"], [Path(one["file"]).name for one in told["refused"]]) == (6, names[1::2])
    assert harness("sound", "recordings", tmp_path / "0.flac").output == "1 recording, 0 cannot be played\n"
    gone = harness("sound", "recordings", tmp_path / "gone.flac")
    assert (gone.exit_code, "there is no such recording" in gone.output) == (2, True)
