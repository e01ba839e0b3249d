"""`harness voices` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile
from click.testing import CliRunner

from harness.cli.voices import command
from harness.model.errors import HarnessError, InputError, PluginError
from harness.model.stimulus import Waveform
from harness.sound.stimuli.level import active_speech_level


def test_the_table_names_every_engine() -> None:
    shown = CliRunner().invoke(command, ["list"])
    assert shown.exit_code == 0
    for word in ("espeak-ng 1.", "flite 2.", "hibari-tts 0.", "kal16", "heart", "GPL-3.0", "Apache-2.0"):
        assert word in shown.output


def test_an_engine_that_is_missing_is_listed_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    shown = CliRunner().invoke(command, ["list"])
    assert shown.exit_code == 0
    said = " ".join(shown.output.split())
    assert "not here" in said
    assert "espeak-ng" in said
    assert "Apache-2.0" in said


def test_the_voices_of_an_engine_are_listed_with_their_variants() -> None:
    shown = CliRunner().invoke(command, ["list", "--engine", "espeak"])
    assert "en-us" in shown.output
    assert "f3" in shown.output
    assert len(shown.output) < 4000


def test_a_text_is_written_with_its_level(tmp_path: Path) -> None:
    out = tmp_path / "said.wav"
    argv = ["say", "What time is it?", "--voice", "espeak:en-us+f3", "--rate-wpm", "160", "--wake-phrase", "Alexa"]
    shown = CliRunner().invoke(command, [*argv, "--level-dbfs", "-30", "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "-30.00 dBFS" in shown.output
    assert "wake_phrase" in shown.output
    samples, rate = soundfile.read(out, dtype="float32")
    found = active_speech_level(Waveform(samples, rate))
    assert found is not None
    assert found.level_dbfs == pytest.approx(-30, abs=0.05)


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["say", "hello", "--voice", "espeak"], InputError),
        (["say", "hello", "--voice", "espeek:en"], PluginError),
        (["say", "hello", "--level-dbfs", "0"], InputError),
        (["say", "hello", "--out", "/nonexistent/x.wav"], InputError),
        (["list", "--engine", "espeek"], PluginError),
    ],
)
def test_wrong_usage_is_an_error_of_ours(argv: list[str], kind: type[HarnessError]) -> None:
    assert isinstance(CliRunner().invoke(command, argv).exception, kind)
