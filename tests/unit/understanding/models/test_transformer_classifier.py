"""The Transformer classifier learns on a tiny checkpoint made here, and the packaged one can be read.

Damaged ones are refused by their folder.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.model.errors import InputError
from harness.understanding.models.encoder import load_encoder
from harness.understanding.models.tritraining import TriRule, classifier_maker, tri_train
from tests.unit.understanding.models.learned_from import Learned

pytestmark = pytest.mark.transformer

LABELS = ("ask", "brew", "sing", "stop")
QUICK = [("learning-rate", "0.005"), ("epochs", "12"), ("dropout", "0")]


def test_training_is_reproducible_and_can_continue(checkpoint: Path, data: Learned) -> None:
    train, test = data
    make = classifier_maker("transformer", [("checkpoint", str(checkpoint)), *QUICK])
    texts, intents = [utterance.text for utterance in train], [utterance.intents or () for utterance in train]
    test_texts = [utterance.text for utterance in test]
    first, second = make(1), make(1)
    first.fit(texts, intents, LABELS)
    second.fit(texts, intents, LABELS)
    probabilities = first.probabilities(test_texts)
    assert np.array_equal(probabilities, second.probabilities(test_texts))
    gold = np.array([[label in (utterance.intents or ()) for label in LABELS] for utterance in test])
    assert ((probabilities > 0.5) == gold).all(axis=1).mean() > 0.8
    assert (probabilities[:, 2] == 0).all()
    # What it is shown next, it learns on top: a word that means another intent from now on.
    first.fit([*texts, *["sing to the kettle"] * 30], [*intents, *[("sing",)] * 30], LABELS)
    shares = first.probabilities(["sing to the kettle", *test_texts])
    assert shares[0].tolist() == pytest.approx([0, 0, 1, 0], abs=0.4)
    assert ((shares[1:] > 0.5) == gold).all(axis=1).mean() > 0.8
    assert first.probabilities([]).shape == (0, 4)


def test_three_classifiers_train_each_other(checkpoint: Path, data: Learned) -> None:
    train, test = data
    make = classifier_maker("transformer", [("checkpoint", str(checkpoint)), *QUICK, ("epochs", "6")])
    training = tri_train(train[:70], train[70:], test, make, LABELS, rule=TriRule(episodes=1))
    right = sum(utterance.intents == outcome.intents for utterance, outcome in zip(test, training.voted, strict=True))
    assert right > 0.7 * len(test)


def test_the_packaged_encoder_is_complete() -> None:
    encoder = load_encoder()
    assert (encoder.width, encoder.pieces) == (384, 128)
    assert encoder.tokenizer.tokenize("green tea") == ["green", "tea"]


def test_a_damaged_checkpoint_is_refused_with_its_folder(checkpoint: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    def spoilt(name: str) -> Path:
        return Path(shutil.copytree(checkpoint, tmp_path / name))

    with pytest.raises(InputError, match=r"no config\.json"):
        load_encoder(str(tmp_path / "nowhere"))
    half = spoilt("half")
    weights = half / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    lacking = spoilt("lacking")
    tensors = load_file(lacking / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, lacking / "model.safetensors", metadata={"format": "pt"})
    larger = spoilt("larger")
    config = json.loads((larger / "config.json").read_text())
    (larger / "config.json").write_text(json.dumps({**config, "hidden_size": 64}))
    silent = spoilt("silent")
    (silent / "tokenizer.json").unlink()
    spoilt_ones = ((half, "cannot be read"), (lacking, "lacks weights"), (larger, "shapes|cannot"), (silent, "token"))
    for folder, message in spoilt_ones:
        with pytest.raises(InputError, match=message) as caught:
            load_encoder(str(folder))
        assert str(folder) in str(caught.value)
        assert "save_pretrained" in str(caught.value)
