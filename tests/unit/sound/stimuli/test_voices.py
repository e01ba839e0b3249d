"""Every installed engine, with texts that engines stumble over; `harness voices`."""

from __future__ import annotations

import struct
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from harness.base.plugins import Group, load
from harness.base.ports import Voice
from harness.cli.voices import command
from harness.model.errors import HarnessError, InputError, PluginError, VoiceError
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.level import active_speech_level
from harness.sound.stimuli.voices import program
from harness.sound.stimuli.voices.espeak import EspeakVoice
from tests.command import succeeded
from tests.known import known

SPECS = [
    VoiceSpec("espeak", "en-us"),
    VoiceSpec("espeak", "en-us+f3", rate_wpm=150, pitch=60),
    VoiceSpec("flite", "slt"),
    VoiceSpec("flite", "kal16", rate_wpm=140),
    VoiceSpec("hibari", "heart"),
    VoiceSpec("hibari", "heart", rate_wpm=200),
]
ENGINES = [spec for spec in SPECS if spec.rate_wpm is None]
OWN_MARKS = {"espeak": "[[h@l@U]] there", "flite": "<emphasis>hello</emphasis>", "hibari": "say [tea](/kˈɔfi/) now"}


def engine(spec: VoiceSpec) -> Voice:
    """A new one, which loads its model when it speaks."""
    voice: Voice = load(Group.VOICES, spec.engine)()
    return voice


@cache
def ready(name: str) -> Voice:
    """One for all texts."""
    return engine(VoiceSpec(name))


@pytest.mark.parametrize("spec", SPECS, ids=VoiceSpec.label)
def test_the_same_text_gives_the_same_samples(spec: VoiceSpec) -> None:
    first = engine(spec).speak("What time is it?", spec)
    second = engine(spec).speak("What time is it?", spec)
    assert first.rate_hz == second.rate_hz
    np.testing.assert_array_equal(first.samples, second.samples)
    assert 0.4 < first.duration_s < 3


@pytest.mark.parametrize("spec", ENGINES, ids=VoiceSpec.label)
@pytest.mark.parametrize(
    "text",
    [
        "say \"hello\" & 'bye'",
        "-h",
        "--help me",
        "one\ntwo\n\nthree",
        "<b>loud</b> there",
        "$(id) `id` ; id",
        "50 % of it",
    ],
)
def test_awkward_texts_are_spoken(spec: VoiceSpec, text: str) -> None:
    assert ready(spec.engine).speak(text, spec).duration_s > 0.2


@pytest.mark.parametrize("spec", ENGINES, ids=VoiceSpec.label)
@pytest.mark.parametrize("text", ["", "  \n ", "\x00\x01", "...", "\ud800", "a" * 20_001], ids=repr)
def test_inaudible_text_is_refused(spec: VoiceSpec, text: str) -> None:
    with pytest.raises(VoiceError):
        engine(spec).speak(text, spec)


@pytest.mark.parametrize("spec", ENGINES, ids=VoiceSpec.label)
def test_control_characters_are_read_as_blanks(spec: VoiceSpec) -> None:
    voice = engine(spec)
    plain = voice.speak("turn 9 it off", spec)
    # 0x01 opens an embedded command in eSpeak.
    np.testing.assert_array_equal(voice.speak("turn\x019\tit\r\noff", spec).samples, plain.samples)


def test_markup_is_read_and_not_obeyed() -> None:
    voice, spec = EspeakVoice(), VoiceSpec()
    assert voice.speak('go <break time="9s"/> on', spec).duration_s > voice.speak("go on", spec).duration_s + 1
    phonemes = voice.speak("[[h@l@U]]", spec)
    np.testing.assert_array_equal(phonemes.samples, voice.speak("[ [h@l@U]]", spec).samples)
    hibari = VoiceSpec("hibari", "heart")
    obeyed = ready("hibari").speak("say tea now", hibari).duration_s
    assert ready("hibari").speak(OWN_MARKS["hibari"].replace("ˈɔ", "o"), hibari).duration_s > obeyed


def test_emoji_have_names_in_espeak_and_are_refused_elsewhere() -> None:
    assert EspeakVoice().speak("😀", VoiceSpec()).duration_s > 0.5
    for spec in ENGINES[1:]:
        with pytest.raises(VoiceError, match="cannot pronounce 😀"):
            engine(spec).speak("hello 😀", spec)


@pytest.mark.parametrize("spec", [VoiceSpec("espeak", "en-us"), VoiceSpec("flite", "kal16")], ids=VoiceSpec.label)
def test_ten_kilobytes_are_spoken_whole(spec: VoiceSpec) -> None:
    short, long = (ready(spec.engine).speak("The cat sat on the mat. " * n, spec) for n in (40, 400))
    assert long.duration_s == pytest.approx(10 * short.duration_s, rel=0.05)


def test_a_rate_changes_the_duration_alike_with_every_engine() -> None:
    text = "Please remind me to call my sister about the party on Saturday afternoon."
    for spec in ENGINES:
        slow, fast = (
            ready(spec.engine).speak(text, VoiceSpec(spec.engine, spec.name, rate_wpm=rate)).duration_s
            for rate in (120, 240)
        )
        # hibari stretches a little more than it is told (2.3 for 2).
        assert 1.6 < slow / fast < 2.4
        assert fast == pytest.approx(2.9, rel=0.25)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (VoiceSpec("espeak", "en-uss"), "Did you mean .*en-us"),
        (VoiceSpec("espeak", "en-US"), "Did you mean .*en-us"),
        (VoiceSpec("espeak", "en-us+f33"), r"Did you mean .*en-us\+f3"),
        (VoiceSpec("espeak", "en-us+demonic"), r"Did you mean .*en-us\+Demonic"),
        (VoiceSpec("espeak", "en-us+"), "no voice named"),
        (VoiceSpec("espeak", "de"), "Set `language: de`"),
        (VoiceSpec("espeak", rate_wpm=20), "rate_wpm 20 is out of range"),
        (VoiceSpec("espeak", pitch=100), "pitch 100 is out of range"),
        (VoiceSpec("flite", "smt"), "Did you mean slt"),
        (VoiceSpec("flite", "slt", pitch=40), "does not support pitch"),
        (VoiceSpec("flite", "slt", language="de-DE"), "speaks en-US"),
        (VoiceSpec("flite", "slt", rate_wpm=9999), "rate_wpm 9999 is out of range"),
        (VoiceSpec("hibari", "heard"), "Did you mean heart"),
        (VoiceSpec("hibari", "heart", pitch=40), "does not support pitch"),
        (VoiceSpec("hibari", "heart", rate_wpm=20), "rate_wpm 20 is out of range"),
    ],
    ids=str,
)
def test_unsupported_voice_settings_are_refused(spec: VoiceSpec, message: str) -> None:
    with pytest.raises(VoiceError, match=message):
        engine(spec).speak("hello", spec)


def test_engine_lists_its_voice_names_and_version() -> None:
    for spec in SPECS:
        assert spec.name in engine(spec).names()
        assert engine(spec).version()
    assert len([name for name in EspeakVoice().names() if name.startswith("en-us+")]) >= 90


def test_another_language_is_spoken_by_its_voice() -> None:
    assert EspeakVoice().speak("Wie spät ist es?", VoiceSpec(name="de", language="de-DE")).duration_s > 0.5
    assert EspeakVoice().speak("hei", VoiceSpec(name="nb", language="no")).duration_s > 0.1


def test_a_missing_program_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(VoiceError, match=r"espeak-ng is not installed\. Install it"):
        EspeakVoice().names()


def test_faults_of_a_voice_program_are_reported() -> None:
    with pytest.raises(VoiceError, match=r"failed with status 3: no such thing"):
        program.run([sys.executable, "-c", "import sys; sys.stderr.write('no such\\nthing'); sys.exit(3)"])
    with pytest.raises(VoiceError, match="signal 9"):
        program.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    with pytest.raises(VoiceError, match=r"did not finish within 0\.3 s"):
        program.run([sys.executable, "-c", "import signal; signal.pause()"], timeout_s=0.3)
    with pytest.raises(VoiceError, match="cannot be started"):
        program.run(["/nonexistent/espeak-ng"])


def streamed(size: int, pcm: bytes) -> bytes:
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 22_050, 44_100, 2, 16)
    return b"RIFF" + struct.pack("<I", 0x7FFFF024) + b"WAVE" + form + struct.pack("<4sI", b"data", size) + pcm


@pytest.mark.parametrize("size", [0, 6, 0x7FFFF000, 0xFFFFFFFF])
def test_a_streamed_header_may_lie_about_its_size(size: int) -> None:
    pcm = struct.pack("<3h", 16384, -32768, 0)
    sound = program.parse_wav(streamed(size, pcm), "it")
    np.testing.assert_array_equal(sound.samples, np.array([0.5, -1, 0], dtype=np.float32))
    assert sound.rate_hz == 22_050
    for cut in (0, 20, 44):
        with pytest.raises(VoiceError):
            program.parse_wav(streamed(size, pcm)[:cut], "it")


def test_the_table_names_every_engine() -> None:
    shown = succeeded(CliRunner().invoke(command, ["list"]))
    for word in ("espeak-ng 1.", "flite 2.", "hibari-tts 0.", "kal16", "heart", "GPL-3.0", "Apache-2.0"):
        assert word in shown.output


def test_an_engine_that_is_missing_is_listed_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    shown = succeeded(CliRunner().invoke(command, ["list"]))
    output = " ".join(shown.output.split())
    assert "not installed" in output
    assert "espeak-ng" in output
    assert "Apache-2.0" in output


def test_a_text_is_written_with_its_level(tmp_path: Path) -> None:
    out = tmp_path / "said.wav"
    argv = ["say", "What time is it?", "--voice", "espeak:en-us+f3", "--rate-wpm", "160", "--phrase", "Alexa"]
    shown = succeeded(CliRunner().invoke(command, [*argv, "--level-dbfs", "-30", "--output", str(out)]))
    assert "-30.00 dBFS" in shown.output
    assert "wake_phrase" in shown.output
    samples, rate = soundfile.read(out, dtype="float32")
    level = known(active_speech_level(Waveform(samples, rate)))
    assert level.level_dbfs == pytest.approx(-30, abs=0.05)


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["say", "hello", "--voice", "espeak"], InputError),
        (["say", "hello", "--voice", "espeek:en"], PluginError),
        (["say", "hello", "--level-dbfs", "0"], InputError),
        (["say", "hello", "--output", "/nonexistent/x.wav"], InputError),
        (["list", "--engine", "espeek"], PluginError),
    ],
)
def test_wrong_usage_is_refused_with_an_error(argv: list[str], kind: type[HarnessError]) -> None:
    assert isinstance(CliRunner().invoke(command, argv).exception, kind)
