"""The small understander learns slots and intents, and takes any text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.understanding import Utterance
from harness.understanding.crf_understander import CRF_FILE, NAMES_FILE, CrfUnderstander
from tests.unit.understanding.learned_from import tea


def silent(line: str) -> None:
    pass


@cache
def learned() -> tuple[CrfUnderstander, list[Utterance]]:
    with TemporaryDirectory() as folder:
        train, test = tea(Path(folder))
    made = CrfUnderstander({"iterations": "40"}, seed=1)
    made.fit(train, (), silent)
    return made, test


def test_it_understands_what_it_has_not_seen() -> None:
    made, test = learned()
    said = made.predict([one.words for one in test])
    right = sum((one.intents, one.tags) == (it.intents, it.tags) for one, it in zip(test, said, strict=True))
    assert right / len(test) > 0.85
    assert any(len(it.intents) == 2 for it in said)


def test_the_slots_depend_on_the_intent_that_it_gives() -> None:
    made, _ = learned()
    time = ("at", "half", "past", "seven")
    (brewed, stopped) = made.predict([("brew", "some", "mint", "tea", *time), ("stop", "the", "kettle", *time)])
    assert brewed.tags[-3:] == ("B-time-start", "I-time-start", "I-time-start")
    assert stopped.tags[-3:] == ("B-time-end", "I-time-end", "I-time-end")


def test_a_kept_model_says_the_same(tmp_path: Path) -> None:
    made, test = learned()
    made.save(tmp_path)
    words = [one.words for one in test]
    assert CrfUnderstander.load(tmp_path).predict(words) == made.predict(words)


@given(st.lists(st.lists(st.text(max_size=12), max_size=8).map(tuple), max_size=4))
@settings(deadline=None, max_examples=60)
def test_any_text_has_an_answer(texts: list[tuple[str, ...]]) -> None:
    made, _ = learned()
    said = made.predict(texts)
    assert [len(one.tags) for one in said] == [len(text) for text in texts]
    for one in said:
        assert all(0 <= score <= 1 for _, score in one.scores)
        assert one.intents == tuple(sorted(label for label, score in one.scores if score > 0.5))


def test_texts_without_slots_and_of_one_label_can_be_learned(tmp_path: Path) -> None:
    made = CrfUnderstander({}, seed=1)
    made.fit([Utterance(str(n), ("hello", str(n)), ("greet",), ("O", "O")) for n in range(4)], (), silent)
    made.save(tmp_path)
    (said,) = CrfUnderstander.load(tmp_path).predict([("hello", "you", "two")])
    assert said.tags == ("O", "O", "O")
    assert said.intents == ("greet",)


def test_it_does_not_learn_from_nothing() -> None:
    with pytest.raises(ValueError, match="nothing to learn"):
        CrfUnderstander({}, seed=1).fit([], (), silent)


@pytest.mark.parametrize("given_", [{"l1": "-1"}, {"iterations": "many"}, {"l3": "1"}, {"strength": "nan"}])
def test_wrong_settings_are_refused(given_: dict[str, str]) -> None:
    with pytest.raises(InputError):
        CrfUnderstander(given_, seed=1)


@pytest.mark.parametrize("keep", [0, 3, 20, 200, -1])
def test_a_damaged_field_is_refused(tmp_path: Path, keep: int) -> None:
    made, _ = learned()
    made.save(tmp_path)
    path = tmp_path / CRF_FILE
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError) as caught:
        CrfUnderstander.load(tmp_path)
    assert CRF_FILE in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": 3, "seed": 1}', "[" * 9000])
def test_damaged_names_are_refused(tmp_path: Path, text: str) -> None:
    made, _ = learned()
    made.save(tmp_path)
    (tmp_path / NAMES_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="the model is damaged"):
        CrfUnderstander.load(tmp_path)
