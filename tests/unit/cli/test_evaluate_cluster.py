"""What `harness evaluate --cluster` refuses before it looks for a cluster."""

from __future__ import annotations

import wave
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.model.errors import InputError

NOWHERE = "tcp://127.0.0.1:1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-t", "microwakeword:okay_nabu", "-j", "2"), "-j is of this machine's processes"),
        (("-t", "microwakeword:okay_nabu", "--continuous"), "one worker has to hear all of them"),
        (("-t", "device:bench.yaml#kitchen"), "device is at this machine"),
        (("-t", "microwakeword:okay_nabu"), f"there is no Dask scheduler at {NOWHERE}"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with wave.open("a.wav", "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(32000))
    Path("oov.txt").write_text("a.wav\n")
    done = CliRunner().invoke(group, ["evaluate", *options, "-o", "oov.txt", "-l", "a.log", "--cluster", NOWHERE])
    assert isinstance(done.exception, InputError), done.output
    assert words in str(done.exception)
    assert not list(tmp_path.glob("a.log*"))
