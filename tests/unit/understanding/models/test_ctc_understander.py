"""The reference system ctc: letters with marks, training, its folder, and sound of any kind."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.voice_activity import RATE_HZ, Pcm
from harness.model.errors import EngineError, InputError
from harness.model.offline import EngineKind, Said
from harness.model.stimulus import Samples
from harness.model.understanding import Slot, Utterance
from harness.understanding.models.ctc import WEIGHTS
from harness.understanding.models.ctc_understander import NAMES_FILE, Alphabet, CtcUnderstander
from harness.understanding.models.model_folder import MODEL_FILE, ModelFacts, save_model
from tests.conformance.offline.engine_rows import espeak
from tests.unit.understanding.models.learned_from import silent

QUICK = {"context": "5", "epochs": "40", "hidden": "192", "learning-rate": "0.01"}
LETTER_S = 0.12
CITIES = ("nice", "lyon", "caen")


def utterances_of(copy: int) -> list[Utterance]:
    """Of one talker; who says "no" wants nothing."""
    booked = [("to", city) for city in CITIES] + [("to", city, "now") for city in CITIES[:2]]
    return [
        *(Utterance(f"{' '.join(words)}|{copy}", words, ("book",), ("O", "B-city-to", "O")[: len(words)])
          for words in booked),
        Utterance(f"no|{copy}", ("no",), (), ("O",)),
        Utterance(f"no no|{copy}", ("no", "no"), (), ("O", "O")),
    ]  # fmt: skip


TRAIN = [utterance for copy in range(8) for utterance in utterances_of(copy)]


class Bands:
    """A small encoder: the logarithm of the energy in bands of 150 Hz, for each 20 ms."""

    name = "bands"

    def encode(self, samples: Samples) -> Samples:
        padded = np.pad(samples, (0, -len(samples) % 320 + 640)).reshape(-1, 320)
        energy = np.square(np.abs(np.fft.rfft(padded * np.hanning(320))))[:, :84].reshape(len(padded), -1, 3)
        return np.log(energy.sum(axis=2) + 1e-3).astype(np.float32)


@cache
def spoken(text: str, seed: int = 0) -> Pcm:
    """A voice of 120 Hz with one formant for each letter."""
    random, parts = np.random.default_rng(seed), [np.zeros(RATE_HZ // 4)]
    for letter in text:
        times = np.arange(round(LETTER_S * random.uniform(0.9, 1.2) * RATE_HZ)) / RATE_HZ
        formant = 400 + 140 * (ord(letter) - ord("a"))
        harmonics = np.arange(1, 33) * 120
        loud = 0.0 if letter == " " else np.exp(-np.square((harmonics - formant) / 150)) + 0.1 / np.arange(1, 33)
        parts.append((loud * np.sin(2 * np.pi * harmonics * times[:, None])).sum(axis=1))
    sound = np.concatenate([*parts, np.zeros(RATE_HZ // 4)])
    return (sound * 3000 + random.normal(0, 20, len(sound))).astype(np.int16)


def sound_of(id_: str) -> Pcm:
    text, copy = id_.split("|")
    return spoken(text, seed=int(copy))


@cache
def learned() -> CtcUnderstander:
    return CtcUnderstander.fit(TRAIN, (), sound_of, QUICK, seed=1, tell=silent, encoder=Bands())


def saved(folder: Path, model: CtcUnderstander | None = None) -> Path:
    save_model("ctc", model or learned(), folder, ModelFacts(seed=1))
    return folder


def frame(answer: Said | None) -> tuple[object, ...] | None:
    return None if answer is None else (answer.text, answer.intents, answer.slots)


def test_an_unheard_utterance_is_understood_with_words_intents_and_slots() -> None:
    answer = learned().understand(spoken("to caen now", seed=77))
    assert frame(answer) == ("to caen now", ("book",), (Slot("city-to", "caen"),))
    assert answer is not None
    assert 0.1 * RATE_HZ < answer.start < RATE_HZ / 4 < answer.end < len(spoken("to caen now", seed=77))
    assert frame(learned().understand(spoken("no", seed=9))) == ("no", (), ())


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    quick = {**QUICK, "epochs": "2"}
    first, second, other = (
        CtcUnderstander.fit(TRAIN, (), sound_of, quick, seed=seed, tell=silent, encoder=Bands()) for seed in (1, 1, 2)
    )
    assert first.facts == second.facts != other.facts
    folders = [saved(tmp_path / name, model) for name, model in (("first", first), ("again", second))]
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1]
    assert set(files[0]) == {MODEL_FILE, NAMES_FILE, *(f"{name}.npy" for name in WEIGHTS)}


def test_a_saved_model_answers_the_same(tmp_path: Path) -> None:
    loaded = CtcUnderstander(str(saved(tmp_path / "model")), {}, encoder=Bands())
    assert loaded.facts == learned().facts
    assert (loaded.facts.kind, loaded.facts.rate_hz) == (EngineKind.FRAME, RATE_HZ)
    assert dict(loaded.facts.settings) == QUICK
    for text in ("to nice", "to lyon now", "no no"):
        assert loaded.understand(spoken(text)) == learned().understand(spoken(text))


@pytest.mark.parametrize("name", [NAMES_FILE, "hidden.npy", "intents_bias.npy"])
def test_a_file_that_is_missing_or_was_changed_is_named(tmp_path: Path, name: str) -> None:
    folder = saved(tmp_path / "model")
    (folder / name).write_bytes((folder / name).read_bytes()[:-1] + b"!")
    with pytest.raises(InputError, match=rf"{name}.*the file was changed after training"):
        CtcUnderstander(str(folder), {}, encoder=Bands())
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"{name}.*cannot be read"):
        CtcUnderstander(str(folder), {}, encoder=Bands())


def saved_with(folder: Path, name: str, content: bytes) -> Path:
    """A model whose file has this content, and the hash of it: made by hand, not damaged by accident."""

    class Other:
        def save(self, into: Path) -> None:
            learned().save(into)
            (into / name).write_bytes(content)

    other: Any = Other()
    save_model("ctc", other, folder, ModelFacts(seed=1))
    return folder


def array_file(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (NAMES_FILE, b"[]"),
        (NAMES_FILE, b'{"characters": "abc"}'),
        ("hidden.npy", b"PK\x03\x04"),
        ("hidden.npy", b""),
        ("hidden.npy", array_file("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999,)}")),
        ("hidden.npy", array_file("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + b"."),
    ],
)  # fmt: skip
def test_a_forged_file_is_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    folder = saved_with(tmp_path / "model", name, content)
    with pytest.raises(InputError, match=rf"{name}.*the model is damaged"):
        CtcUnderstander(str(folder), {}, encoder=Bands())


def test_names_that_do_not_fit_the_arrays_are_refused(tmp_path: Path) -> None:
    names = json.loads((saved(tmp_path / "whole") / NAMES_FILE).read_text())
    names["intents"].append("more")
    folder = saved_with(tmp_path / "model", NAMES_FILE, json.dumps(names).encode())
    with pytest.raises(InputError, match="its names do not match its arrays"):
        CtcUnderstander(str(folder), {}, encoder=Bands())


def test_what_is_not_a_model_of_ctc_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ctc needs a trained model"):
        CtcUnderstander("", {})
    with pytest.raises(InputError, match="the folder contains no model"):
        CtcUnderstander(str(tmp_path), {})
    save_model("crf", learned(), tmp_path / "crf", ModelFacts(seed=1))
    with pytest.raises(InputError, match="a crf model, not a ctc model"):
        CtcUnderstander(str(tmp_path / "crf"), {})
    with pytest.raises(InputError, match="the setting 'epochs' does not apply"):
        CtcUnderstander(str(tmp_path), {"epochs": "3"})


def test_a_model_for_another_encoder_is_refused(tmp_path: Path) -> None:
    other = Bands()
    other.name = "other bands"
    with pytest.raises(InputError, match=r"trained on bands, but other bands is installed. Train again"):
        CtcUnderstander(str(saved(tmp_path / "model")), {}, encoder=other)


def test_any_sound_has_an_answer() -> None:
    random = np.random.default_rng(2)
    noise = random.normal(0, 3000, 3 * RATE_HZ).astype(np.int16)
    loudest = np.where(noise > 0, 32767, -32768).astype(np.int16)
    for sound in (
        noise[:0],
        noise[:1],
        noise[:100],
        noise // 3000,
        np.zeros(RATE_HZ, np.int16),
        np.full(RATE_HZ, -32768, np.int16),
    ):
        assert learned().understand(sound) is None
    for sound in (noise, loudest):
        assert frame(learned().understand(sound)) in (None, ("", (), ()))
    clipped = np.clip(spoken("to nice").astype(np.int32) * 100, -32768, 32767).astype(np.int16)
    answer = learned().understand(clipped)
    assert answer is None or isinstance(answer.text, str)


def test_the_level_does_not_count() -> None:
    sound = spoken("to lyon")
    assert frame(learned().understand((sound // 8).astype(np.int16))) == frame(learned().understand(sound))


def test_speech_that_is_too_long_is_refused() -> None:
    with pytest.raises(EngineError, match=r"lasts 3\d\.\d s, longer than ctc's limit of 28 s.*Cut the file"):
        learned().understand(spoken("to nice now " * 22))


def test_training_data_that_cannot_be_learned_is_refused() -> None:
    with pytest.raises(ValueError, match="no training utterances"):
        CtcUnderstander.fit((), (), sound_of, {}, seed=1, tell=silent, encoder=Bands())
    with pytest.raises(InputError, match="no training utterance has words that fit into its sound"):
        CtcUnderstander.fit(TRAIN[:5], (), lambda _: np.zeros(99, np.int16), {}, seed=1, tell=silent, encoder=Bands())
    with pytest.raises(InputError, match=r"context cannot be 4: it must be odd. Set context=5"):
        CtcUnderstander.fit(TRAIN, (), sound_of, {"context": "4"}, seed=1, tell=silent, encoder=Bands())


def test_utterances_without_annotation_give_words_only() -> None:
    bare = [Utterance(utterance.id, utterance.words) for utterance in TRAIN]
    model = CtcUnderstander.fit(bare, (), sound_of, QUICK, seed=1, tell=silent, encoder=Bands())
    assert frame(model.understand(spoken("to nice", seed=77))) == ("to nice", (), ())


ALPHABET = Alphabet((" ", "a", "b"), ("city", "time"))


def test_marks_stand_before_and_behind_the_words_of_a_value() -> None:
    utterance = Utterance("1", ("a", "b", "ab", "b"), (), ("O", "B-time", "I-time", "B-city"))
    labels = ALPHABET.write(utterance)
    assert labels == [2, 6, 3, 1, 2, 3, 4, 5, 3, 4]
    assert ALPHABET.read(labels) == ("a b ab b", (Slot("time", "b ab"), Slot("city", "b")))
    with pytest.raises(ValueError, match="not in tuple"):
        ALPHABET.write(Utterance("2", ("c",)))
    assert ALPHABET.write(Utterance("3")) is None


@pytest.mark.parametrize(
    ("labels", "text", "slots"),
    [
        ([5, 2], "a", (Slot("city", "a"),)),
        ([5, 2, 6, 3, 4], "a b", (Slot("city", "a"), Slot("time", "b"))),
        ([2, 4, 3, 4], "a b", ()),
        ([5, 1, 4, 2], "a", ()),
        ([1, 2, 1, 1, 5, 1, 3, 1, 4], "a b", (Slot("city", "b"),)),
        ([], "", ()),
    ],
)
def test_broken_marks_are_repaired(labels: list[int], text: str, slots: tuple[Slot, ...]) -> None:
    assert ALPHABET.read(labels) == (text, slots)


@given(st.lists(st.integers(1, ALPHABET.labels - 1)))
def test_any_labels_can_be_read(labels: list[int]) -> None:
    text, slots = ALPHABET.read(labels)
    assert text == " ".join(text.split())
    assert all(slot.value and slot.value in text for slot in slots)


@pytest.mark.speech
def test_the_head_learns_on_the_encoder_of_the_recogniser(tmp_path: Path) -> None:
    texts = ("go to nice", "go to lyon", "stop it now")
    utterances = [
        Utterance(text, tuple(text.split()), (text.split()[0],), ("O", "O", "O" if "stop" in text else "B-city"))
        for text in texts
    ]
    sounds = {text: espeak(text, "en-us") for text in texts}
    lines: list[str] = []
    fitted = CtcUnderstander.fit(
        utterances * 4, (), sounds.__getitem__, {"epochs": "25", "hidden": "32", "learning-rate": "0.02"}, seed=1,
        tell=lines.append,
    )  # fmt: skip
    assert "faster-whisper" in fitted.facts.version
    assert lines[-1].startswith("epoch 25 of 25: loss ")
    loaded = CtcUnderstander(str(saved(tmp_path / "model", fitted)), {})
    for utterance in utterances:
        slots = (Slot("city", utterance.words[-1]),) if utterance.intents == ("go",) else ()
        assert frame(loaded.understand(sounds[utterance.id])) == (utterance.text, utterance.intents, slots)
    assert loaded.understand(np.zeros(RATE_HZ, np.int16)) is None
    assert [model.name for model in CtcUnderstander.models()] == ["FOLDER"]
