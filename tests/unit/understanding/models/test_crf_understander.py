"""The small understander learns slots and intents, and takes any text."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.understanding import Utterance
from harness.understanding.models.crf_understander import CRF_FILE, NAMES_FILE, SECOND_REGRESSION, CrfUnderstander
from harness.understanding.models.tfidf_classifier import NAMES_FILE as FIRST_FILE
from tests.unit.understanding.models.learned_from import silent, tea


@cache
def learned() -> tuple[CrfUnderstander, list[Utterance]]:
    with TemporaryDirectory() as folder:
        train, test = tea(Path(folder))
    model = CrfUnderstander({"iterations": "40"}, seed=1)
    model.fit(train, (), silent)
    return model, test


def test_understander_generalises_to_unseen_utterances() -> None:
    model, test = learned()
    predictions = model.predict([utterance.words for utterance in test])
    right = sum(
        (utterance.intents, utterance.tags) == (it.intents, it.tags)
        for utterance, it in zip(test, predictions, strict=True)
    )
    assert right / len(test) > 0.85
    assert any(len(it.intents) == 2 for it in predictions)


def test_the_slots_depend_on_the_intent_that_it_gives() -> None:
    model, _ = learned()
    time = ("at", "half", "past", "seven")
    (brewed, stopped) = model.predict([("brew", "some", "mint", "tea", *time), ("stop", "the", "kettle", *time)])
    assert brewed.tags[-3:] == ("B-time-start", "I-time-start", "I-time-start")
    assert stopped.tags[-3:] == ("B-time-end", "I-time-end", "I-time-end")


def test_unseen_value_does_not_hide_the_intent() -> None:
    """The end of a word tells the field what it is, and with that the intents are decided again."""
    kinds = (("travel", "place", ("hamburg", "freiburg", "marburg")), ("call", "who", ("nelson", "jackson", "wilson")))
    utterances = [
        Utterance(f"{name} {number}", tuple(text.format(name).split()), (intent,), tags)
        for intent, concept, names in kinds
        for name in names
        for number, (text, tags) in enumerate((("{} please", (f"B-{concept}", "O")), ("now {}", ("O", f"B-{concept}"))))
    ]
    predictions_by_passes = {}
    for passes in ("1", "2"):
        model = CrfUnderstander({"passes": passes, "pieces": "0"}, seed=1)
        model.fit(utterances, (), silent)
        predictions_by_passes[passes] = model.predict([("oldenburg", "please"), ("now", "peterson")])
    for predictions in predictions_by_passes.values():
        assert [it.tags for it in predictions] == [("B-place", "O"), ("O", "B-who")]
    assert [it.intents for it in predictions_by_passes["2"]] == [("travel",), ("call",)]
    assert [it.intents for it in predictions_by_passes["1"]] != [("travel",), ("call",)]


def test_a_model_from_before_the_second_pass_is_read(tmp_path: Path) -> None:
    train, test = tea(tmp_path, train=40)
    model = CrfUnderstander({"iterations": "10", "passes": "1"}, seed=1)
    model.fit(train, (), silent)
    words = [utterance.words for utterance in test]
    model.save(tmp_path)
    assert not (tmp_path / f"{SECOND_REGRESSION}.json").exists()
    for name, keys in ((NAMES_FILE, ()), (FIRST_FILE, ("rule",))):
        config = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        config.pop("passes", None)
        config.get("settings", {}).pop("passes", None)
        for key in keys:
            del config[key]["second"]
        (tmp_path / name).write_text(json.dumps(config), encoding="utf-8")
    assert CrfUnderstander.load(tmp_path).predict(words) == model.predict(words)


@given(st.lists(st.lists(st.text(max_size=12), max_size=8).map(tuple), max_size=4))
def test_any_text_has_an_answer(texts: list[tuple[str, ...]]) -> None:
    model, _ = learned()
    predictions = model.predict(texts)
    assert [len(prediction.tags) for prediction in predictions] == [len(text) for text in texts]
    for text, prediction in zip(texts, predictions, strict=True):
        assert all(0 <= score <= 1 for _, score in prediction.scores)
        above = tuple(sorted(label for label, score in prediction.scores if score > 0.5))
        best = max(prediction.scores, key=lambda pair: pair[1])[0]
        assert prediction.intents == (() if not any(text) else above or (best,)), (
            "every utterance of the training had one"
        )


def test_intents_may_be_empty_only_where_the_training_has_such_an_utterance(tmp_path: Path) -> None:
    utterances = [
        Utterance(f"{word}{n}", (word, "it"), (word,), ("O", "O")) for word in ("brew", "stop") for n in range(9)
    ]
    unknown = [("quite", "another", "thing")]
    must, may = (CrfUnderstander({"iterations": "5"}, seed=1) for _ in range(2))
    must.fit(utterances, (), silent)
    may.fit([*utterances, *(Utterance(f"none{n}", ("quite", "so"), (), ("O", "O")) for n in range(40))], (), silent)
    assert [prediction.intents for prediction in may.predict(unknown)] == [()]
    (best,) = must.predict(unknown)
    assert best.intents == (max(best.scores, key=lambda pair: pair[1])[0],)
    must.save(tmp_path)
    assert CrfUnderstander.load(tmp_path).predict(unknown) == [best]
    names = json.loads((tmp_path / NAMES_FILE).read_text())
    del names["may_be_empty"]
    (tmp_path / NAMES_FILE).write_text(json.dumps(names))
    older = CrfUnderstander.load(tmp_path).predict(unknown)
    above = [tuple(label for label, score in prediction.scores if score > 0.5) for prediction in older]
    assert [prediction.intents for prediction in older] == above, "a model of the earlier version says what it said"


def test_texts_without_slots_and_of_one_label_can_be_learned(tmp_path: Path) -> None:
    model = CrfUnderstander({}, seed=1)
    model.fit([Utterance(str(n), ("hello", str(n)), ("greet",), ("O", "O")) for n in range(4)], (), silent)
    model.save(tmp_path)
    (prediction,) = CrfUnderstander.load(tmp_path).predict([("hello", "you", "two")])
    assert prediction.tags == ("O", "O", "O")
    assert prediction.intents == ("greet",)


def test_training_without_utterances_is_refused() -> None:
    with pytest.raises(ValueError, match="no training utterances"):
        CrfUnderstander({}, seed=1).fit([], (), silent)


@pytest.mark.parametrize("options", [{"l1": "-1"}, {"iterations": "many"}, {"l3": "1"}, {"strength": "nan"}])
def test_wrong_settings_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InputError):
        CrfUnderstander(options, seed=1)


@pytest.mark.parametrize("damage", [0, 3, 20, 200, -1, "", "[]", "{}", '{"settings": 3, "seed": 1}', "[" * 9000])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, damage: int | str) -> None:
    """The field cut off after so many bytes, or other names."""
    model, _ = learned()
    model.save(tmp_path)
    path = tmp_path / (NAMES_FILE if isinstance(damage, str) else CRF_FILE)
    path.write_bytes(damage.encode() if isinstance(damage, str) else path.read_bytes()[:damage])
    with pytest.raises(InputError, match="the model is damaged") as caught:
        CrfUnderstander.load(tmp_path)
    assert path.name in str(caught.value)
