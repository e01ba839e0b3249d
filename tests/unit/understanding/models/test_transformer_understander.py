"""The joint Transformer learns, on a tiny checkpoint that is made here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.understanding import Prediction, Utterance
from harness.understanding.models.transformer_understander import HEADS_FILE, NAMES_FILE, TransformerUnderstander
from tests.unit.understanding.models.learned_from import Learned, silent

pytestmark = pytest.mark.transformer


def learn(checkpoint: Path, data: Learned, **settings: str) -> TransformerUnderstander:
    options = {"checkpoint": str(checkpoint), "epochs": "3", "learning-rate": "0.003", **settings}
    model = TransformerUnderstander({name.replace("_", "-"): value for name, value in options.items()}, seed=3)
    model.fit(data[0], (), silent)
    return model


@pytest.fixture(scope="module")
def small_data(data: Learned) -> Learned:
    return data[0][:40], data[1][:12]


@pytest.fixture(scope="module")
def learned(checkpoint: Path, small_data: Learned) -> TransformerUnderstander:
    return learn(checkpoint, small_data, epochs="70", batch="8")


def test_the_model_memorises_a_small_set(learned: TransformerUnderstander, small_data: Learned) -> None:
    predictions = learned.predict([utterance.words for utterance in small_data[0]])
    right = sum(
        (utterance.intents, utterance.tags) == (it.intents, it.tags)
        for utterance, it in zip(small_data[0], predictions, strict=True)
    )
    assert right >= 0.9 * len(small_data[0])  # floating point differs between processors


def test_a_saved_model_gives_the_same_answers(
    learned: TransformerUnderstander, small_data: Learned, tmp_path: Path
) -> None:
    learned.save(tmp_path)
    words = [utterance.words for utterance in small_data[1]]
    model = TransformerUnderstander.load(tmp_path)
    assert model.predict(words) == learned.predict(words)
    assert not any(path.suffix in (".bin", ".pt", ".pkl") for path in tmp_path.rglob("*"))


def test_the_same_seed_gives_the_same_model(checkpoint: Path, small_data: Learned) -> None:
    words = [utterance.words for utterance in small_data[1]]
    first, second = (learn(checkpoint, small_data).predict(words) for _ in range(2))
    assert first == second
    assert learn(checkpoint, small_data, batch="5").predict(words) != first


def test_words_beyond_the_maximum_length_are_ignored_and_reported(checkpoint: Path, small_data: Learned) -> None:
    model = learn(checkpoint, small_data, max_length="6", epochs="1")
    assert "were cut off" in model.notes[0]
    (prediction,) = model.predict([("green",) * 30])
    assert len(prediction.tags) == 30
    assert prediction.tags[4:] == ("O",) * 26


def test_any_text_has_an_answer(learned: TransformerUnderstander) -> None:
    texts: list[tuple[str, ...]] = [
        (), ("",), ("\0", "\ud800", "tea"), ("🫖" * 50,), ("a" * 5000, "tea"), ("\u200b", "\u200f", "green"),
        ("[CLS]", "[SEP]"),
    ]  # fmt: skip
    predictions = learned.predict(texts)
    assert [len(prediction.tags) for prediction in predictions] == [len(text) for text in texts]
    assert all(0 <= score <= 1 for prediction in predictions for _, score in prediction.scores)
    assert learned.predict([]) == []


def test_an_answer_does_not_depend_on_its_neighbours(learned: TransformerUnderstander, small_data: Learned) -> None:
    def plain(predictions: list[Prediction]) -> list[tuple[object, object]]:
        return [(prediction.intents, prediction.tags) for prediction in predictions]

    words = [utterance.words for utterance in small_data[1]]
    assert plain(learned.predict(words)) == plain([learned.predict([text])[0] for text in words])


def test_training_stops_when_the_held_out_score_stops_improving(checkpoint: Path, small_data: Learned) -> None:
    lines: list[str] = []
    options = {"checkpoint": str(checkpoint), "epochs": "50", "patience": "2", "learning-rate": "1e-8"}
    model = TransformerUnderstander(options, seed=3)
    model.fit(small_data[0], [replace(utterance, intents=("never",)) for utterance in small_data[1]], lines.append)
    assert len([line for line in lines if line.startswith("epoch")]) < 10


def test_the_model_learns_from_intents_or_slots_alone(checkpoint: Path, tmp_path: Path) -> None:
    model = TransformerUnderstander({"checkpoint": str(checkpoint), "epochs": "1"}, seed=1)
    model.fit([Utterance("1", ("green", "tea"), (), ("O", "O"))], (), silent)
    model.save(tmp_path)
    (prediction,) = TransformerUnderstander.load(tmp_path).predict([("tea",)])
    assert prediction == Prediction((), ("O",), ())


@pytest.mark.parametrize("options", [{"epochs": "0"}, {"batch": "x"}, {"max-length": "3"}, {"chekpoint": "a"}])
def test_wrong_settings_are_refused_before_anything_is_loaded(options: dict[str, str]) -> None:
    with pytest.raises(InputError):
        TransformerUnderstander(options, seed=1)


def test_a_folder_without_checkpoint_is_refused(small_data: Learned, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        learn(tmp_path, small_data)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(("name", "content"), [(HEADS_FILE, b""), (HEADS_FILE, b"\0" * 99), (NAMES_FILE, b"{}")])
def test_damaged_weights_are_refused(
    learned: TransformerUnderstander, tmp_path: Path, name: str, content: bytes
) -> None:
    learned.save(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        TransformerUnderstander.load(tmp_path)
    assert name in str(caught.value)
