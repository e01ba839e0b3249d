"""Utterances to learn from, and a tiny Transformer checkpoint that knows their words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.understanding.models.learned_from import Learned, tea, tiny_checkpoint


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Learned:
    return tea(tmp_path_factory.mktemp("tea"), train=100, test=40)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, data: Learned) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("tiny"), [word for utterance in data[0] for word in utterance.words])
