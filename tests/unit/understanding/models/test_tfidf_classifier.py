"""The linear classifier tells labels apart, is kept without pickles, and damaged files are refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.model.errors import InputError
from harness.understanding.models.tfidf_classifier import (
    NAMES_FILE,
    WEIGHTS_FILE,
    LinearModel,
    LinearRule,
    fit_linear,
    load_linear,
)

TEXTS = [f"{verb} the {thing}" for verb in ("open", "close") for thing in ("door", "window", "box", "lid")] * 3
INTENTS = [tuple(sorted({"all", text.split()[0]} | ({"glass"} if "window" in text else set()))) for text in TEXTS]
LABELS = ("close", "open", "glass", "all", "none")


DEFAULT = LinearRule()


def _fitted(rule: LinearRule = DEFAULT) -> LinearModel:
    return fit_linear(TEXTS, INTENTS, LABELS, rule, seed=1)


@pytest.mark.parametrize("rule", [LinearRule(), LinearRule(words=1, pieces=3, balanced=True)])
def test_a_trained_classifier_is_the_same_after_reloading(tmp_path: Path, rule: LinearRule) -> None:
    model = _fitted(rule)
    texts = ["open the window", "close it", "never heard of", ""]
    probabilities = model.probabilities(texts)
    assert (probabilities[:2] > 0.5).tolist() == [[False, True, True, True, False], [True, False, False, True, False]]
    assert (probabilities[:, 3] == 1).all()
    assert (probabilities[:, 4] == 0).all()
    model.save(tmp_path)
    assert np.array_equal(load_linear(tmp_path).probabilities(texts), probabilities)
    assert np.array_equal(_fitted(rule).probabilities(texts), probabilities)
    assert model.probabilities([]).shape == (0, 5)


def test_model_uses_the_second_text_when_the_first_is_unfamiliar(tmp_path: Path) -> None:
    second = [" ".join(["<thing>" if word in ("door", "window", "box", "lid") else word for word in text.split()])
              for text in TEXTS]  # fmt: skip
    rule = LinearRule(words=1, second=2)
    shuts = [("whole",) if text.startswith("close") else ("half",) for text in TEXTS]
    strange = [f"w{number}" for number in range(len(TEXTS))]
    model = fit_linear(strange, shuts, ["half", "whole"], rule, second_forms=second, seed=1)
    texts = ["never heard of"] * 2, ["close the <thing>", "open the <thing>"]
    probabilities = model.probabilities(*texts)
    assert (probabilities > 0.5).tolist() == [[False, True], [True, False]]
    model.save(tmp_path, "again")
    assert np.array_equal(load_linear(tmp_path, "again").probabilities(*texts), probabilities)
    with pytest.raises(ValueError, match="0 second forms"):
        fit_linear(strange, shuts, ["half", "whole"], rule, seed=1)


def test_texts_without_words_are_no_error() -> None:
    model = fit_linear(["", "…", "!"], [("a",), (), ()], ["a", "b"], LinearRule(), seed=1)
    assert model.probabilities(["word"]).tolist() == [[pytest.approx(1 / 3), 0]]


@pytest.mark.parametrize("name", [NAMES_FILE, WEIGHTS_FILE])
def test_damage_is_refused_with_the_file(tmp_path: Path, name: str) -> None:
    _fitted().save(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"\x00" * 50, b'{"labels": []}'):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=name):
            load_linear(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=name):
        load_linear(tmp_path)


def test_parts_of_two_models_are_refused(tmp_path: Path) -> None:
    _fitted().save(tmp_path)
    names = (tmp_path / NAMES_FILE).read_bytes()
    fit_linear(TEXTS[:3], INTENTS[:3], LABELS, LinearRule(), seed=1).save(tmp_path)
    (tmp_path / NAMES_FILE).write_bytes(names)
    with pytest.raises(InputError, match="do not match"):
        load_linear(tmp_path)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    _fitted().save(tmp_path)
    np.savez(tmp_path / WEIGHTS_FILE, weights=np.array([{"a": 1}], dtype=object), intercepts=np.zeros(5))
    with pytest.raises(InputError, match=WEIGHTS_FILE):
        load_linear(tmp_path)
