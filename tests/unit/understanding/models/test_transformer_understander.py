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
    given = {"checkpoint": str(checkpoint), "epochs": "3", "learning-rate": "0.003", **settings}
    made = TransformerUnderstander({name.replace("_", "-"): value for name, value in given.items()}, seed=3)
    made.fit(data[0], (), silent)
    return made


@pytest.fixture(scope="module")
def few(data: Learned) -> Learned:
    return data[0][:40], data[1][:12]


@pytest.fixture(scope="module")
def learned(checkpoint: Path, few: Learned) -> TransformerUnderstander:
    return learn(checkpoint, few, epochs="70", batch="8")


def test_the_model_memorises_a_small_set(learned: TransformerUnderstander, few: Learned) -> None:
    predictions = learned.predict([utterance.words for utterance in few[0]])
    right = sum(
        (utterance.intents, utterance.tags) == (it.intents, it.tags)
        for utterance, it in zip(few[0], predictions, strict=True)
    )
    assert right >= 0.9 * len(few[0])  # floating point differs between processors


def test_a_saved_model_gives_the_same_answers(learned: TransformerUnderstander, few: Learned, tmp_path: Path) -> None:
    learned.save(tmp_path)
    words = [utterance.words for utterance in few[1]]
    model = TransformerUnderstander.load(tmp_path)
    assert model.predict(words) == learned.predict(words)
    assert not any(path.suffix in (".bin", ".pt", ".pkl") for path in tmp_path.rglob("*"))


def test_the_same_seed_gives_the_same_model(checkpoint: Path, few: Learned) -> None:
    words = [utterance.words for utterance in few[1]]
    first, second = (learn(checkpoint, few).predict(words) for _ in range(2))
    assert first == second
    assert learn(checkpoint, few, batch="5").predict(words) != first


def test_words_beyond_the_maximum_length_are_ignored_and_reported(checkpoint: Path, few: Learned) -> None:
    made = learn(checkpoint, few, max_length="6", epochs="1")
    assert "were cut off" in made.notes[0]
    (prediction,) = made.predict([("green",) * 30])
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


def test_an_answer_does_not_depend_on_its_neighbours(learned: TransformerUnderstander, few: Learned) -> None:
    def plain(predictions: list[Prediction]) -> list[tuple[object, object]]:
        return [(prediction.intents, prediction.tags) for prediction in predictions]

    words = [utterance.words for utterance in few[1]]
    assert plain(learned.predict(words)) == plain([learned.predict([text])[0] for text in words])


def test_training_stops_when_the_held_out_score_stops_improving(checkpoint: Path, few: Learned) -> None:
    lines: list[str] = []
    given = {"checkpoint": str(checkpoint), "epochs": "50", "patience": "2", "learning-rate": "1e-8"}
    made = TransformerUnderstander(given, seed=3)
    made.fit(few[0], [replace(utterance, intents=("never",)) for utterance in few[1]], lines.append)
    assert len([line for line in lines if line.startswith("epoch")]) < 10


def test_the_model_learns_from_intents_or_slots_alone(checkpoint: Path, tmp_path: Path) -> None:
    made = TransformerUnderstander({"checkpoint": str(checkpoint), "epochs": "1"}, seed=1)
    made.fit([Utterance("1", ("green", "tea"), (), ("O", "O"))], (), silent)
    made.save(tmp_path)
    (prediction,) = TransformerUnderstander.load(tmp_path).predict([("tea",)])
    assert prediction == Prediction((), ("O",), ())


@pytest.mark.parametrize("given", [{"epochs": "0"}, {"batch": "x"}, {"max-length": "3"}, {"chekpoint": "a"}])
def test_wrong_settings_are_refused_before_anything_is_loaded(given: dict[str, str]) -> None:
    with pytest.raises(InputError):
        TransformerUnderstander(given, seed=1)


def test_a_folder_without_checkpoint_is_refused(few: Learned, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        learn(tmp_path, few)
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
