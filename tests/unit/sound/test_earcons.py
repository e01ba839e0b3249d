"""Learned chimes are found by what they sound like: in noise, speech and rooms, with a time whose error holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from click.testing import CliRunner

from harness.base.plugins import Group, load
from harness.cli.earcons import learn_earcon
from harness.model.bench import EarconMeaning
from harness.model.errors import InputError, InputProblems
from harness.model.observation import Earcon, Intent, SpeechEnded, SpeechStarted, Wake
from harness.model.stimulus import Waveform
from harness.scenario.bench import load_bench
from harness.sound.earcon_file import cut_chime, learn, read_earcons, refuse_alike, store
from harness.sound.earcons import EarconDetection, EarconFinder, LearnedEarcon
from harness.sound.hearing import ChimeFilter, Hearing
from harness.sound.own_sound import GatedSound
from tests.known import known
from tests.unit.sound.spoken import Mono, scene, speech, told, tone

HZ = 16000
TALK = (
    "what time is it in new york please tell me now",
    "seven hundred oranges were sold on monday morning to a man in a blue coat",
    "oh no, you know, we go slow although the show is over",
)


def low(sound: Mono) -> Mono:
    return soxr.resample(sound, 48000, HZ).astype(np.float32)


def two_tones() -> Mono:
    return np.concatenate([tone(660, seconds=0.12), tone(880, seconds=0.12)])


CHIMES = {
    "beep": lambda: tone(1000, seconds=0.25),
    "two tones": two_tones,
    "chord": lambda: tone(523, 659, 784, seconds=0.3),
    "sweep": lambda: tone(500, to_hz=1500, seconds=0.3),
}


def earcon(name: str = "two tones", meaning: EarconMeaning = EarconMeaning.WAKE) -> LearnedEarcon:
    return LearnedEarcon("kitchen.earcon", meaning, low(CHIMES[name]()))


def background(kind: str, seconds: float, chance: np.random.Generator) -> Mono:
    if kind == "noise":
        return chance.normal(0, 1, int(seconds * HZ)).astype(np.float32)
    talk = np.concatenate([low(speech(text, voice)) for text in TALK for voice in ("en-us", "flite:slt", "flite:rms")])
    talk = talk / np.sqrt(np.mean(talk**2))
    return np.resize(np.roll(talk, int(chance.integers(len(talk)))), int(seconds * HZ)).astype(np.float32)


def reverberation(seconds: float, chance: np.random.Generator) -> Mono:
    """A direct sound, and an exponential decay that has half of its energy."""
    count = int(seconds * HZ)
    decay = chance.normal(size=count) * 10 ** (-3 * np.arange(count) / count)
    decay[:32] = 0
    decay *= np.sqrt(0.5 / np.sum(decay**2))
    decay[0] = 1.0
    return decay.astype(np.float32)


def heard(earcons: tuple[LearnedEarcon, ...], samples: Mono) -> list[EarconDetection]:
    """In blocks of 10 ms, and then half a second of almost silence."""
    whole = np.concatenate((samples, np.full(2 * HZ, 1e-6, np.float32)))
    finder = EarconFinder(earcons)
    return [chime for first in range(0, len(whole), 160) for chime in finder.feed(whole[first : first + 160])]


def test_chimes_are_found_in_noise_speech_and_rooms_and_the_error_of_the_time_holds() -> None:
    """Of 120 chimes, learned without reverberation; each in another room."""
    chance = np.random.default_rng(8)
    played = hits = astray = false = 0
    for name in CHIMES:
        learned = earcon(name)
        for kind, snr_db, room_s in [
            *((kind, snr_db, 0.0) for kind in ("noise", "speech") for snr_db in (20, 10, 5)),
            *((kind, 10, room_s) for kind in ("noise", "speech") for room_s in (0.3, 0.6)),
        ]:
            samples = background(kind, 5.6, chance)
            level = np.sqrt(np.mean(learned.samples**2))
            samples *= level * 10 ** (-snr_db / 20)
            truth = []
            for number in range(3):
                first = int((0.6 + 1.6 * number + chance.uniform(0, 0.4)) * HZ)
                sound = learned.samples
                if room_s:
                    sound = np.convolve(sound, reverberation(room_s, chance))[: int(1.5 * HZ)]
                samples[first : first + len(sound)] += sound[: len(samples) - first]
                truth.append(first)
            times = heard((learned,), samples)
            for place in truth:
                near = [chime for chime in times if abs(chime.start - place) < 0.2 * HZ]
                hits += bool(near)
                astray += any(abs(chime.start - place) / HZ > chime.error_s for chime in near[:1])
            played += len(truth)
            false += sum(all(abs(chime.start - place) >= 0.2 * HZ for place in truth) for chime in times)
    assert played == 120
    assert hits >= 0.97 * played
    assert astray <= 0.01 * hits
    assert false <= 2


@pytest.mark.parametrize("kind", ["noise", "speech"])
def test_sound_without_a_chime_has_none(kind: str) -> None:
    samples = 0.05 * background(kind, 40.0, np.random.default_rng(3))
    assert not heard(tuple(earcon(name) for name in ("two tones", "chord", "sweep")), samples)


@pytest.mark.parametrize("level_db", [-40, -20, 0, 15])
def test_the_level_changes_nothing(level_db: int) -> None:
    learned = earcon()
    samples = np.pad(learned.samples * np.float32(10 ** (level_db / 20)), (HZ, HZ))
    (chime,) = heard((learned,), samples)
    assert chime.start == pytest.approx(HZ, abs=2)
    assert chime.score > 0.99


def test_a_chime_is_told_from_another_one_that_follows_closely() -> None:
    wake, done = earcon("two tones"), earcon("sweep", EarconMeaning.DONE)
    gap = np.zeros(HZ // 10, np.float32)
    samples = np.concatenate((gap, gap, wake.samples, gap, done.samples, gap))
    chimes = heard((wake, done), samples)
    assert [chime.earcon.meaning for chime in chimes] == [EarconMeaning.WAKE, EarconMeaning.DONE]
    assert [round(chime.start / HZ, 2) for chime in chimes] == [0.2, 0.54]


@pytest.mark.parametrize("piece", [777, HZ, 3 * HZ])
def test_chimes_are_found_in_whatever_pieces_the_sound_comes(piece: int) -> None:
    """While the harness speaks, sound comes in pieces of up to 3 s."""
    wake, done = earcon("two tones"), earcon("sweep", EarconMeaning.DONE)
    samples = np.full(6 * HZ, 1e-6, np.float32)
    for at_s, chime, gain in ((0.5, wake, 0.5), (1.4, done, 1.0), (2.5, wake, 0.9), (3.1, wake, 1.0)):
        samples[round(at_s * HZ) :][: len(chime.samples)] += np.float32(gain) * chime.samples
    finder = EarconFinder((wake, done))
    pieces = (samples[first : first + piece] for first in range(0, len(samples), piece))
    chimes = [chime for sound in pieces for chime in finder.feed(sound)]
    assert [round(chime.start / HZ, 2) for chime in chimes] == [0.5, 1.4, 2.5, 3.1]


def hearing(*earcons: LearnedEarcon) -> Hearing:
    return Hearing("mic", load(Group.SPEECH_DETECTORS, "webrtcvad")(), earcons=earcons)


def buzz(seconds: float = 0.3) -> Mono:
    """A chime that a speech detector takes for speech: a voice."""
    return speech("hello there", "flite:slt")[: int(seconds * 48000)]


def test_a_chime_is_a_report_and_never_the_beginning_of_the_response() -> None:
    chime, answer = buzz(), speech("it is half past ten in the morning", "flite:rms")
    learned = LearnedEarcon("kitchen.earcon", EarconMeaning.WAKE, low(chime))
    samples = scene(7.0, (2.0, chime), (2.6, answer))
    deaf = next(observation for observation in told(hearing(), samples) if isinstance(observation, SpeechStarted))
    assert deaf.at.at_s == pytest.approx(2.0, abs=0.1), "without the learned chime it begins the response"
    observations = told(hearing(learned), samples)
    begins = [observation for observation in observations if isinstance(observation, SpeechStarted)]
    assert [start.at.at_s for start in begins] == [pytest.approx(2.6, abs=0.1)]
    assert len([observation for observation in observations if isinstance(observation, SpeechEnded)]) == 1
    (wake,) = [observation for observation in observations if isinstance(observation, Wake)]
    assert (wake.source, wake.at.at_s) == ("kitchen.earcon", pytest.approx(2.0, abs=wake.at.error_s))
    (sound,) = [observation for observation in observations if isinstance(observation, Earcon)]
    assert (sound.source, sound.of, sound.meaning) == ("mic", "kitchen.earcon", "wake")
    assert sound.ends.at_s == pytest.approx(2.3, abs=0.02)


@pytest.mark.parametrize(("level_db", "count"), [(-45, 0), (-6, 1)])
def test_faint_chime_under_removed_playback_is_ignored(level_db: int, count: int) -> None:
    learned = earcon()
    samples = np.pad(learned.samples * np.float32(10 ** (level_db / 20)), (HZ, 2 * HZ))
    filtered = ChimeFilter((learned,))
    filtered.feed([GatedSound(samples, np.ones(len(samples), np.bool_), removed=True)])
    assert len(filtered.take_chimes()) == count
    assert len(heard((learned,), samples)) == 1


@pytest.mark.parametrize("at_s", [2.5, 3.0, 4.1])
@pytest.mark.parametrize("level_db", [-6, 6])
def test_a_chime_while_the_harness_speaks_is_found_and_no_other(at_s: float, level_db: int) -> None:
    """Removing its voice must not make a chime out of what is left of it."""
    playback = speech("alexa what are the names of the moons of mars", "flite:slt")
    chance = np.random.default_rng(5)
    room = np.repeat(reverberation(0.3, chance), 3) / 3
    echo = np.concatenate((np.zeros(960, np.float32), np.convolve(playback, room).astype(np.float32)))
    beep = low(tone(880, seconds=0.12))
    chime = np.convolve(tone(880, seconds=0.12), room).astype(np.float32) * np.float32(10 ** (level_db / 20))
    ear = hearing(LearnedEarcon("kitchen.earcon", EarconMeaning.WAKE, beep))
    ear.own_sound("p1", Waveform(playback, 48000), 2.0)
    observations = told(ear, scene(8.0, (2.0, echo), (at_s, chime), noise_dbfs=-65.0))
    times = [observation.at for observation in observations if isinstance(observation, Wake)]
    assert [stamp.at_s for stamp in times] == [pytest.approx(at_s, abs=times[0].error_s if times else 0.0)]


def test_the_chime_of_an_error_says_that_nothing_was_understood() -> None:
    learned = earcon("chord", EarconMeaning.ERROR)
    observations = told(hearing(learned), scene(4.0, (1.0, CHIMES["chord"]())))
    assert [(intent.source, intent.name) for intent in observations if isinstance(intent, Intent)] == [
        ("kitchen.earcon", "")
    ]


def test_a_chime_is_cut_stored_and_read_again(tmp_path: Path) -> None:
    recording = Waveform(scene(5.0, (2.0, two_tones()), noise_dbfs=-60.0), 48000)
    chime = cut_chime(recording)
    assert chime.duration_s == pytest.approx(0.24, abs=0.03)
    path, sound = store(chime, EarconMeaning.WAKE, "kitchen", tmp_path)
    store(cut_chime(Waveform(scene(5.0, (2.0, CHIMES["sweep"]())), 48000)), EarconMeaning.ERROR, "kitchen", tmp_path)
    earcons = read_earcons(path)
    assert [earcon.meaning for earcon in earcons.sounds] == [EarconMeaning.WAKE, EarconMeaning.ERROR]
    known_chimes = tuple(learn("kitchen.earcon", earcons))
    refuse_alike(known_chimes)
    (heard_chime,) = heard(known_chimes, low(scene(4.0, (1.0, two_tones()), noise_dbfs=-50.0)))
    assert (heard_chime.earcon.meaning, heard_chime.start / HZ) == (EarconMeaning.WAKE, pytest.approx(1.0, abs=0.03))
    sound.write_bytes(sound.read_bytes()[:-100])
    with pytest.raises(InputError):
        list(learn("kitchen.earcon", earcons))


def test_a_chime_that_is_refused_replaces_nothing(tmp_path: Path) -> None:
    chime = Waveform(two_tones(), 48000)
    path, sound = store(chime, EarconMeaning.WAKE, "kitchen", tmp_path)
    content = sound.read_bytes()
    for refused, meaning, message in (
        (chime.samples[:480], EarconMeaning.WAKE, "a chime of 10 ms cannot be detected"),
        (np.zeros(9600, np.float32), EarconMeaning.WAKE, "a silent chime"),
        (chime.samples, EarconMeaning.DONE, "sound alike"),
    ):
        with pytest.raises(InputError, match=message):
            store(Waveform(refused, 48000), meaning, "kitchen", tmp_path)
    assert sound.read_bytes() == content
    assert [earcon.meaning for earcon in read_earcons(path).sounds] == [EarconMeaning.WAKE]


def test_a_chime_is_learned_beside_others_in_folders_and_again_after_its_loss(tmp_path: Path) -> None:
    chime, sweep = Waveform(two_tones(), 48000), Waveform(CHIMES["sweep"](), 48000)
    path, sound = store(chime, EarconMeaning.WAKE, "kitchen", tmp_path)
    (tmp_path / "chimes").mkdir()
    sound.rename(tmp_path / "chimes" / "my wake: 1.wav")
    path.write_text("earcons: kitchen\nwake: 'chimes/my wake: 1.wav'\n")
    _, error = store(sweep, EarconMeaning.ERROR, "kitchen", tmp_path)
    assert len(list(learn("kitchen.earcon", read_earcons(path)))) == 2
    error.unlink()
    store(sweep, EarconMeaning.ERROR, "kitchen", tmp_path)
    assert len(list(learn("kitchen.earcon", read_earcons(path)))) == 2


@pytest.mark.parametrize("named", ["unit.earcons.yaml", "chimes/other.yaml"])
def test_a_lost_chime_of_a_bench_is_learned_again(tmp_path: Path, named: str) -> None:
    (tmp_path / "chimes").mkdir()
    recording = tmp_path / "recording.wav"
    soundfile.write(recording, two_tones(), 48000)
    _, sound = store(Waveform(two_tones(), 48000), EarconMeaning.WAKE, "unit", tmp_path, named)
    path = tmp_path / "bench.yaml"
    path.write_text(
        "bench: room\nmicrophone: {driver: microphone, sound_device: x}\n"
        f"devices: {{unit: {{profile: reference_assistant_black_box, earcons: {named}}}}}\n"
    )
    sound.unlink()
    with pytest.raises(InputProblems, match="Learn the chime again"):
        load_bench(path)
    options = [str(path), "--from", str(recording), "--start", "0", "--end", f"{len(two_tones()) / 48000:.3f}"]
    result = CliRunner().invoke(learn_earcon, options, catch_exceptions=False)
    assert result.exit_code == 0
    assert "Add to the bench" not in result.output
    assert known(load_bench(path).devices[0].earcons).sounds


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (scene(3.0), "no chime stands out"),
        (scene(6.0, (1.0, tone(500, seconds=3.0))), "lasts 3."),
        (scene(3.0, (1.0, tone(500, seconds=0.04))), "lasts 0.0"),
        (scene(5.0, (1.0, two_tones()), (3.0, CHIMES["chord"]())), "at 1.*several of them are tones"),
        (scene(6.0, (1.0, speech(TALK[0])), (4.5, speech("yes"))), "none of them is a tone"),
        (np.clip(scene(3.0, (1.0, 20 * two_tones())), -1, 1), "clipped"),
    ],
)
def test_sound_without_a_usable_chime_is_refused(samples: Mono, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cut_chime(Waveform(samples, 48000))


def test_a_span_beyond_the_recording_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "chime.wav"
    soundfile.write(path, two_tones(), 48000)
    duration_s = len(two_tones()) / 48000
    options = ["--device", "kitchen", "--from", str(path), "--start", "0", "--end", f"{duration_s + 0.002:.3f}"]
    with pytest.raises(InputError, match=rf"--end .+ is after the end of the sound \({duration_s:.3f} s\)"):
        CliRunner().invoke(learn_earcon, options, catch_exceptions=False)


def test_the_chime_is_told_from_the_voice_that_asked_for_it() -> None:
    recording = scene(5.0, (0.8, speech("hey nova", level_dbfs=-20.0)), (2.5, two_tones()), noise_dbfs=-60.0)
    chime = cut_chime(Waveform(recording, 48000))
    assert chime.duration_s == pytest.approx(0.24, abs=0.03)
    (heard_chime,) = heard((LearnedEarcon("k", EarconMeaning.WAKE, low(chime.samples)),), low(recording))
    assert heard_chime.start / HZ == pytest.approx(2.5, abs=0.02)


def test_chimes_that_sound_alike_are_refused() -> None:
    with pytest.raises(InputError, match="sound alike"):
        refuse_alike((earcon(), earcon(meaning=EarconMeaning.DONE)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("earcons: kitchen\n", ":1:1: the file names no chime"),
        ("earcons: kitchen\nwake: no.wav\n", ":2:7: no.wav: No such file"),
        ("earcons: kitchen\nwaek: no.wav\n", ":2:1: there is no key 'waek'"),
        ("earcons: kitchen\nthreshold: 2\nwake: no.wav\n", ":2:12: 2 is too large"),
    ],
)
def test_errors_name_their_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "kitchen.earcons.yaml"
    path.write_text(text)
    with pytest.raises(InputProblems) as raised:
        read_earcons(path)
    assert f"kitchen.earcons.yaml{message}" in str(raised.value)
