"""The firmware's keyword spotter: the same on every build, in every piece size; what it hears and what it does not."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soxr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.base.ports import Voice
from harness.model.stimulus import VoiceSpec, Waveform
from harness.sound.level import active_speech_level
from harness.sound.stimuli.voices.espeak import EspeakVoice
from harness.sound.stimuli.voices.hibari import HibariVoice
from tests.unit.firmware.c_programs import CORE, SANITIZED, build

PCM = npt.NDArray[np.int16]
RATE_HZ = 16_000
SOURCES = [Path(__file__).with_name("spotter_script.c"), *sorted((CORE / "spotter").glob("*.c"))]


@dataclass(frozen=True, slots=True)
class Event:
    sample: int
    score: int
    phrase: str


@dataclass(frozen=True, slots=True)
class Spotter:
    program: Path
    folder: Path

    def events(self, pcm: PCM, seed: int = 0, point: int = 50) -> list[Event]:
        rows = (line.split() for line in self._run("spot", str(seed), str(point), pcm=pcm))
        return [Event(int(sample), int(score), phrase) for sample, score, phrase in rows]

    def levels(self, pcm: PCM) -> npt.NDArray[np.int64]:
        return np.array([[int(word) for word in line.split()] for line in self._run("levels", pcm=pcm)])

    def _run(self, *arguments: str, pcm: PCM) -> list[str]:
        path = self.folder / "sound.s16"
        pcm.astype("<i2").tofile(path)
        result = subprocess.run(
            [self.program, *arguments, path], capture_output=True, text=True, check=False, timeout=60
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()


def built(folder: Path, flags: tuple[str, ...]) -> Spotter:
    return Spotter(build(SOURCES, folder / "spotter", flags), folder)


@pytest.fixture(scope="module")
def spotter(tmp_path_factory: pytest.TempPathFactory) -> Spotter:
    return built(tmp_path_factory.mktemp("fast"), ("-O2",))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Spotter:
    return built(tmp_path_factory.mktemp("checked"), SANITIZED)


def said(voice: Voice, spec: VoiceSpec, text: str, level_dbfs: float = -26) -> PCM:
    """At an active speech level, from its first to its last loud moment."""
    waveform = voice.speak(text, spec)
    samples = soxr.resample(waveform.samples.astype(np.float64), waveform.rate_hz, RATE_HZ)
    loud = np.flatnonzero(np.abs(samples) > np.abs(samples).max() * 0.02)
    samples = samples[loud[0] : loud[-1] + 1]
    level = active_speech_level(Waveform(samples.astype(np.float32), RATE_HZ))
    assert level is not None
    return np.clip(samples * 32768 * 10 ** ((level_dbfs - level.level_dbfs) / 20), -32768, 32767).astype(np.int16)


def silence(seconds: float) -> PCM:
    return np.zeros(round(seconds * RATE_HZ), np.int16)


@pytest.fixture(scope="module")
def phrase() -> PCM:
    return said(EspeakVoice(), VoiceSpec("espeak", "en-us", 160, 50, "en-US"), "Alexa")


@pytest.fixture(scope="module")
def conversation(phrase: PCM) -> PCM:
    """The phrase five times, and other speech, in noise."""
    other = said(
        EspeakVoice(), VoiceSpec("espeak", "en-gb", 170, 40, "en-GB"), "The weather is nice, is it not? Seven letters."
    )
    gap = silence(2.5)
    sound = np.concatenate(
        [gap, phrase, other, gap, phrase, gap, other, phrase, gap, phrase // 4, gap, other, gap, phrase, gap]
    )
    return (sound + np.random.default_rng(3).normal(size=len(sound)) * 20).round().astype(np.int16)


def test_the_phrase_is_one_event_soon_after_its_end(spotter: Spotter, phrase: PCM) -> None:
    for before_s in (0.0, 0.31, 1.0, 3.777):
        end = round(before_s * RATE_HZ) + len(phrase)
        [event] = spotter.events(np.concatenate([silence(before_s), phrase, silence(3)]))
        assert event.phrase == "alexa"
        assert end - 0.1 * RATE_HZ < event.sample < end + 0.35 * RATE_HZ
        assert event.score > 32768


def test_piece_size_and_sanitizers_do_not_change_events(
    spotter: Spotter, sanitized: Spotter, conversation: PCM
) -> None:
    whole = spotter.events(conversation)
    assert len(whole) == 5
    for seed in (1, 2, 3):
        assert sanitized.events(conversation, seed) == whole


@pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O3", "-march=native"), ("-Os", "-funsigned-char"), ("-O2", "-fwrapv", "-ffast-math")],
    ids=" ".join,
)
def test_every_build_finds_the_same_events(
    spotter: Spotter, conversation: PCM, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    other = built(tmp_path, flags)
    assert other.events(conversation, 7) == spotter.events(conversation)
    assert np.array_equal(other.levels(conversation), spotter.levels(conversation))


def test_the_phrase_is_found_from_minus_40_to_minus_15_dbfs(spotter: Spotter) -> None:
    voice, spec = EspeakVoice(), VoiceSpec("espeak", "en-us", 160, 50, "en-US")
    for level in (-40, -33, -26, -20, -15):
        sound = np.concatenate([silence(1), said(voice, spec, "Alexa", level), silence(1.5)])
        assert len(spotter.events(sound)) == 1, level


def test_no_second_event_within_two_seconds(spotter: Spotter, phrase: PCM) -> None:
    twice = np.concatenate([silence(1), phrase, silence(0.7), phrase, silence(3)])
    assert len(spotter.events(twice)) == 1
    apart = np.concatenate([silence(1), phrase, silence(2.2), phrase, silence(3)])
    first, second = spotter.events(apart)
    # The distance is the recording's, to within two steps of the network.
    assert abs(second.sample - first.sample - len(phrase) - 2.2 * RATE_HZ) <= 2 * 640


def test_a_higher_operating_point_hears_what_a_lower_one_heard(spotter: Spotter) -> None:
    voice = EspeakVoice()
    parts = [silence(2)]
    names = ("en-us+f2", "en-gb+m4", "en-us+klatt4", "en-029", "en-gb-scotland+max")
    for rate, name in zip((110, 150, 200, 230, 240), names, strict=True):
        parts += [said(voice, VoiceSpec("espeak", name, rate, 60, "en"), "Alexa") // 3, silence(3)]
    quiet = np.concatenate(parts)
    noisy = (quiet + np.random.default_rng(1).normal(size=len(quiet)) * 120).round().astype(np.int16)
    counts = [len(spotter.events(noisy, point=point)) for point in (0, 25, 50, 75, 100)]
    assert counts == sorted(counts)
    assert 3 <= counts[2] <= 5


def test_held_out_voices_are_heard(spotter: Spotter) -> None:
    """Espeak's variants that were kept from training: at most one in ten is missed."""
    voice = EspeakVoice()
    variants = "Annie Hugo Michael RicishayMax announcer edward2 grandpa iven2 john klatt2 m4 max"
    missed = []
    for variant in variants.split():
        for code, rate in (("en-us", 150), ("en-gb", 180)):
            sound = said(voice, VoiceSpec("espeak", f"{code}+{variant}", rate, 50, "en"), "Alexa")
            if len(spotter.events(np.concatenate([silence(0.8), sound, silence(1.2)]))) != 1:
                missed.append((variant, code, rate))
    assert len(missed) <= 2, missed


def test_a_neural_voice_is_heard(spotter: Spotter) -> None:
    voice = HibariVoice()
    for rate in (137, 163, 191):
        sound = said(voice, VoiceSpec("hibari", "heart", rate, None, "en-US"), "Alexa.")
        assert len(spotter.events(np.concatenate([silence(0.8), sound, silence(1.2)]))) == 1, rate


def test_other_speech_silence_noise_and_tones_are_not_the_phrase(spotter: Spotter) -> None:
    voice = EspeakVoice()
    rng = np.random.default_rng(4)
    t = np.arange(20 * RATE_HZ) / RATE_HZ
    sounds = [
        silence(20),
        rng.normal(size=20 * RATE_HZ) * 3000,
        8000 * np.sin(2 * np.pi * 440 * t) * (np.sin(2 * np.pi * 3 * t) > 0),
        np.where(np.arange(20 * RATE_HZ) % 100 < 50, 32767, -32768),
        *(
            said(voice, VoiceSpec("espeak", name, 160, 50, "en"), text)
            for name in ("en-us", "en-gb+f3", "en-us+john")
            for text in (
                "Play some music in the kitchen. What is the weather like tomorrow? Set a timer for ten minutes.",
                "She sells the letters to a lawyer, and eleven people relax at the lake in the morning sun.",
                "Good evening. The election is on Sunday. Collect the tickets, please, and turn the light off.",
            )
        ),
    ]
    events = spotter.events(
        np.concatenate([np.concatenate([sound, np.zeros(8000)]) for sound in sounds]).astype(np.int16)
    )
    assert events == []


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_samples_are_processed_without_a_fault(sanitized: Spotter, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from([-32768, 32767, 0, 1, -1, 16384]), min_size=1, max_size=30))
    stretch = data.draw(st.integers(1, 900))
    sanitized.events(
        np.repeat(np.array(values, np.int16), stretch),
        seed=data.draw(st.integers(0, 9)),
        point=data.draw(st.integers(0, 255)),
    )


def test_band_levels_match_a_fourier_transform(spotter: Spotter) -> None:
    rng = np.random.default_rng(8)
    t = np.arange(RATE_HZ) / RATE_HZ
    sound = 4000 * np.sin(2 * np.pi * (300 + 3000 * t) * t) + rng.normal(size=RATE_HZ) * 40
    pcm = sound.round().astype(np.int16)
    edges = [3, 7, 11, 16, 22, 28, 36, 44, 54, 65, 78, 93, 110, 129, 152, 177, 206, 240]
    window = np.sin(np.pi * (np.arange(400) + 0.5) / 400) ** 2
    peak, expected = -np.inf, []
    for start in range(0, len(pcm) - 399, 320):
        power = np.abs(np.fft.rfft(pcm[start : start + 400] * window, 512)) ** 2
        bands = []
        for low, middle, high in zip(edges, edges[1:], edges[2:], strict=False):
            up = (np.arange(low, middle) - low) / (middle - low)
            down = 1 - (np.arange(middle, high) - middle) / (high - middle)
            bands.append(10 * np.log10((power[low:middle] * up).sum() + (power[middle:high] * down).sum()))
        peak = max(peak - 0.2, max(bands))
        expected.append([127 - (peak - band) / 0.3763 for band in bands])
    away = np.abs(spotter.levels(pcm) - np.clip(expected, 0, 127))
    # Within 0.1 dB on average, and 1.3 dB where a band is 48 dB below the loudest one.
    assert away.mean() < 0.5
    assert away.max() < 3.5


def test_the_spotter_fits_a_small_microcontroller(spotter: Spotter, tmp_path: Path) -> None:
    state = int(subprocess.run([spotter.program, "size"], capture_output=True, text=True, check=True).stdout)
    assert state <= 24 * 1024
    tables = 0
    for source in SOURCES[1:]:
        target = tmp_path / f"{source.stem}.o"
        subprocess.run(["gcc", "-Os", "-std=c11", "-c", source, "-o", target], check=True)
        sizes = subprocess.run(["size", "-A", target], capture_output=True, text=True, check=True).stdout
        tables += sum(
            int(line.split()[1]) for line in sizes.splitlines() if line.startswith((".rodata", ".data", ".bss"))
        )
    assert 20_000 < tables <= 48 * 1024
