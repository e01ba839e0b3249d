"""Recordings in noise, rooms and channels: the same samples as in a scenario, and results of each condition."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from harness.devices.active_play import to_pcm
from harness.model.errors import InputProblems
from harness.model.offline import (
    CountingRules,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    LabelledPhrase,
    ListedFile,
    ListKind,
    ScoreTrack,
    SpotRule,
    Task,
)
from harness.model.stimulus import AS_IT_IS, Band, Channel, SoundCondition, Waveform
from harness.offline.file_sources import CollectedFiles
from harness.offline.journal_lines import JournalHeader, differences
from harness.offline.lists import read_lists
from harness.offline.one_file import FilePlayer
from harness.offline.score_cache import ScoreCache
from harness.scenario.bench import load_bench
from harness.scenario.conditions import load_conditions
from harness.scenario.scenario import load_scenario
from harness.session.plan import plan
from harness.sound.level import active_speech_level
from harness.sound.stimuli.channel import apply_channel, at_speed
from harness.sound.stimuli.renderer import Renderer
from tests.known import known

RATE_HZ = 16_000
AXES = """\
    noise: [null, {kind: pink, snr_db: 5}, {kind: recording, recording: babble.wav, snr_db: 0}]
    room: [null, living]
    distance_m: [1, 2]
    speed: [1, 1.1]
    codec: [null, opus 8, mulaw, gsm]
    gain_db: [0, -20]
    band_hz: [null, [300, 3400]]
    clipping_db: [null, 6]
"""
ROOMS = "rooms:\n  living: {size_m: [4, 3, 2.5], rt60_s: 0.2, device_m: [1, 1.5, 1]}\n"
CONDITIONS = f"conditions: kitchen\n{ROOMS}matrix:\n  axes:\n{AXES}"
SCENARIO = (
    f"scenario: said\n{ROOMS}trials:\n"
    "  - {id: call, kind: wake, repeat: 1, recordings: said.csv, level: as_recorded, lead_in_s: 0, tail_s: 0}\n"
    f"matrix:\n  axes:\n{AXES}"
)
BENCH = "bench: one\ndevices:\n  box: {profile: box, connection: {driver: in_process, injection: true}}\n"
PROFILE = "device: box\nwake_phrases: [alexa]\nreports: [wake]\n"


class Hears:
    """An engine that keeps what it hears. Its scores are the mean power of 10 ms."""

    facts = EngineFacts(EngineKind.WAKE, "1", RATE_HZ, ("alexa",), "0" * 64, rule=SpotRule(0.5, RATE_HZ, 100))

    def __init__(self) -> None:
        self.heard: list[npt.NDArray[np.int16]] = []

    def begin(self) -> Hears:
        return self

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self.heard.append(samples.copy())

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        sound = np.concatenate(self.heard) if flush else np.zeros(0)
        steps = sound[: len(sound) // 160 * 160].reshape(-1, 160) / 32768
        return (ScoreTrack("alexa", np.mean(steps**2, axis=1).astype(np.float32), 160, 160),)

    def close(self) -> None:
        """Keeps what it has."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chance = np.random.default_rng(4)
    times_s = np.arange(RATE_HZ) / RATE_HZ
    tone = 0.3 * np.sin(2 * math.pi * 300 * times_s) * np.sin(math.pi * times_s) ** 2
    soundfile.write(tmp_path / "said.wav", np.concatenate([np.zeros(4000), tone, np.zeros(4000)]), RATE_HZ)
    soundfile.write(tmp_path / "babble.wav", 0.1 * chance.standard_normal(30_000), 48_000)
    (tmp_path / "said.csv").write_text("recording,phrase_end_ms\nsaid.wav,1200\n", encoding="utf-8")
    for name, text in (("c", CONDITIONS), ("said", SCENARIO), ("bench", BENCH), ("box", PROFILE)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def played(folder: Path, condition: SoundCondition, cache: ScoreCache | None = None) -> tuple[FileOutcome, Hears]:
    engine = Hears()
    player = FilePlayer(engine, Evaluation(Task("tiny", ""), conditions=(condition,)), cache)
    return player.play(ListedFile(ListKind.OOV, 0, "said.wav", str(folder / "said.wav"))), engine


def test_conditions_are_the_same_samples_offline_and_live(folder: Path) -> None:
    conditions = {condition.axes: condition for condition in load_conditions(folder / "c.yaml")}
    trials = plan(load_scenario(folder / "said.yaml"), load_bench(folder / "bench.yaml"), 1)
    assert (len(conditions), len(trials)) == (3 * 3 * 64, 3 * 4 * 64)  # no distance without a room
    renderer = Renderer(None)
    compared = 0
    for trial in trials[::29]:
        cell = dict(trial.conditions)
        if cell["room"] == "none":
            cell["distance_m"] = "none"
        condition = conditions[tuple((name, cell[name]) for name, _ in next(iter(conditions)))]
        live = renderer.render(trial.recipe).waveform
        assert live.rate_hz == RATE_HZ
        outcome, engine = played(folder, condition)
        assert outcome.rejected is None, outcome
        np.testing.assert_array_equal(np.concatenate(engine.heard), to_pcm(live, RATE_HZ))
        assert outcome.samples == len(live.samples)
        compared += 1
    assert compared == 27


def test_scores_are_kept_by_recipe_and_the_sound_is_then_not_rendered(folder: Path) -> None:
    pink = next(condition for condition in load_conditions(folder / "c.yaml") if condition.label() == "pink 5 dB")
    cache = ScoreCache(folder / "scores", print)
    first, engine = played(folder, pink, cache)
    assert engine.heard
    cached, engine = played(folder, pink, cache)
    assert not engine.heard
    assert replace(cached, cpu_s=0.0) == replace(first, cpu_s=0.0)
    other, engine = played(folder, replace(pink, seed=2), cache)
    assert engine.heard
    assert other.sha256 != first.sha256
    as_it_is, _ = played(folder, SoundCondition(), cache)
    assert (as_it_is.samples, as_it_is.sha256 == first.sha256) == (24_000, False)


def test_each_file_is_listed_in_each_condition(folder: Path) -> None:
    fast = SoundCondition((("speed", "2"), ("codec", "none")), channel=Channel(speed=2.0))
    as_it_is = SoundCondition((("speed", "1"), ("codec", "none")))
    labels = ((LabelledPhrase(0.5, 1.0, "alexa"),),)
    long = CollectedFiles("x", ("said.wav",), {"talker": ("ann",)}, str(folder), labels)
    inside = CollectedFiles("y", ("babble.wav", "b.wav"), {"talker": ("bob", "cat")}, str(folder))
    listing = read_lists([], [], [], [inside], [], [long], (as_it_is, fast))
    assert [(file.kind.value, file.number, file.listed) for file in listing.files] == [
        ("inv", 0, "babble.wav"),
        ("inv", 1, "babble.wav @ speed 2"),
        ("inv", 2, "b.wav"),
        ("inv", 3, "b.wav @ speed 2"),
        ("labelled", 0, "said.wav"),
        ("labelled", 1, "said.wav @ speed 2"),
    ]
    assert [source.files for source in listing.lists] == [4, 2]
    assert listing.files[5].labels == (LabelledPhrase(0.25, 0.5, "alexa"),)
    assert list(listing.columns["talker"][ListKind.INV]) == ["bob", "bob", "cat", "cat"]
    assert list(listing.columns["condition"][ListKind.INV]) == [AS_IT_IS, "speed 2"] * 2
    assert list(listing.columns["speed"][ListKind.LABELLED]) == ["1", "2"]
    evaluation = Evaluation(Task("tiny", ""), conditions=(as_it_is, fast))
    assert [evaluation.condition(file.number) for file in listing.files[:2]] == [None, fast]
    header = JournalHeader(evaluation, CountingRules(), Hears().facts, (), 1, 0.0)
    slow = replace(header, evaluation=replace(evaluation, conditions=(as_it_is,)))
    assert differences(header, slow) == ["conditions are speed 2; as it is then, as it is now"]


def test_a_changed_noise_file_changes_the_condition(folder: Path) -> None:
    before = load_conditions(folder / "c.yaml")
    assert load_conditions(folder / "c.yaml") == before
    soundfile.write(folder / "babble.wav", 0.1 * np.random.default_rng(5).standard_normal(30_000), 48_000)
    after = load_conditions(folder / "c.yaml")
    assert {old.noise.kind.value for old, now in zip(before, after, strict=True) if old != now and old.noise} == {
        "recording"
    }
    evaluation = Evaluation(Task("tiny", ""), conditions=before)
    header = JournalHeader(evaluation, CountingRules(), Hears.facts, (), 1, 0.0)
    changed = replace(header, evaluation=replace(evaluation, conditions=after))
    assert "conditions are different ones with the same names then" in differences(header, changed)[0]


MISTAKES = """\
conditions: kitchen
rooms:
  living: {size_m: [4, 3, 2.5], rt60_s: 0.2, device_m: [1, 1.5, 1]}
matrix:
  axes:
    noise: [{kind: pink, snr_db: 5, level_dbfs: -30}, {kind: recording, recording: nowhere.wav, snr_db: 0}]
    room: [livin]
    codec: [opus 300, amr]
    band_hz: [[3400, 300]]
    speeds: [1]
"""


def test_all_mistakes_of_a_file_are_listed_with_their_places(folder: Path) -> None:
    (folder / "wrong.yaml").write_text(MISTAKES, encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        load_conditions(folder / "wrong.yaml")
    report = "\n".join(map(str, refused.value.problems))
    for message in (
        "wrong.yaml:8:13: there is no codec 'opus 300'",
        "wrong.yaml:8:23: there is no codec 'amr'",
        "wrong.yaml:9:15: the band begins at 3400 Hz",
        "wrong.yaml:10:5: there is no key 'speeds' here. Did you mean 'speed'?",
    ):
        assert message in report
    (folder / "wrong.yaml").write_text("\n".join(MISTAKES.splitlines()[:7]) + "\n", encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        load_conditions(folder / "wrong.yaml")
    report = "\n".join(map(str, refused.value.problems))
    for message in (
        "wrong.yaml:6:13: the noise has snr_db and level_dbfs",
        "wrong.yaml:6:",
        "wrong.yaml:7:12: there is no room",
    ):
        assert message in report


def test_a_distance_without_a_room_is_refused(folder: Path) -> None:
    (folder / "far.yaml").write_text("conditions: far\nmatrix:\n  axes:\n    distance_m: [1, 3]\n", encoding="utf-8")
    with pytest.raises(InputProblems, match=r"far.yaml:4:5: this axis has no effect without a room"):
        load_conditions(folder / "far.yaml")


def tone(hertz: float, seconds: float = 1.0) -> Waveform:
    times_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return Waveform((0.25 * np.sin(2 * math.pi * hertz * times_s)).astype(np.float32), RATE_HZ)


def power(samples: npt.NDArray[np.float32]) -> float:
    return float(np.mean(np.square(samples[2000:-2000], dtype=np.float64)))


def test_channel_settings_are_applied() -> None:
    voice = tone(1000)
    quiet = apply_channel(voice, replace(Channel(), gain_db=-20.0))
    assert power(quiet.samples) == pytest.approx(power(voice.samples) / 100, rel=1e-3)
    loud = apply_channel(voice, replace(Channel(), gain_db=20.0)).samples
    assert float(np.abs(loud).max()) < 1.0
    clipped = apply_channel(voice, replace(Channel(), clipping_db=6.0)).samples
    assert float(np.abs(clipped).max()) == pytest.approx(0.25 * 10 ** (-6 / 20), rel=1e-3)
    narrow = Channel(band=Band(300, 3400))
    for hertz, passes in ((100, 0.0), (300, 0.25), (1000, 1.0), (3400, 0.25), (6000, 0.0)):
        ratio = power(apply_channel(tone(hertz), narrow).samples) / power(tone(hertz).samples)
        assert ratio == pytest.approx(passes, abs=0.03), hertz
    fast = at_speed(voice, 1.25)
    assert len(fast.samples) == 12_800
    assert int(np.argmax(np.abs(np.fft.rfft(fast.samples)))) * RATE_HZ / 12_800 == pytest.approx(1250, abs=2)


@pytest.mark.parametrize("codec", ["opus 8", "opus 64", "mulaw", "alaw", "gsm", "adpcm"])
@pytest.mark.parametrize("rate_hz", [16_000, 44_100])
def test_a_codec_leaves_the_sound_in_its_place(codec: str, rate_hz: int) -> None:
    chance = np.random.default_rng(1)
    times_s = np.arange(rate_hz) / rate_hz
    voice = np.sin(2 * math.pi * 400 * times_s + 3 * np.sin(2 * math.pi * 5 * times_s)) * np.abs(
        np.sin(2 * math.pi * 3 * times_s)
    )
    samples = (0.3 * voice + 0.001 * chance.standard_normal(rate_hz)).astype(np.float32)
    samples = np.concatenate([np.zeros(rate_hz // 2, np.float32), samples, np.zeros(rate_hz // 2, np.float32)])
    coded = apply_channel(Waveform(samples, rate_hz), Channel(codec=codec))
    repeated = apply_channel(Waveform(samples, rate_hz), Channel(codec=codec))
    np.testing.assert_array_equal(coded.samples, repeated.samples)
    assert len(coded.samples) == len(samples)
    alike = np.fft.irfft(np.fft.rfft(coded.samples) * np.conj(np.fft.rfft(samples)))
    assert min(int(np.argmax(alike)), len(samples) - int(np.argmax(alike))) <= rate_hz // 4000
    assert 0.8 < float(np.corrcoef(coded.samples, samples)[0, 1]) < 1.0
    before, after = (
        known(active_speech_level(waveform)).level_dbfs for waveform in (Waveform(samples, rate_hz), coded)
    )
    assert after == pytest.approx(before, abs=1.5)
