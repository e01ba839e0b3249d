"""A site over a project of twelve utterances, asked without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.annotation_projects import annotation_project, repeated
from tests.unit.web.annotation.visitors import Premises
from tests.unit.web.visitors import Browser


@pytest.fixture
def premises(tmp_path: Path) -> Iterator[Premises]:
    """Open; ann, bob and the adjudicator zoe are invited."""
    site_premises = Premises(tmp_path, annotation_project(tmp_path / "talk", repeated(2), per_utterance=2))
    yield site_premises
    site_premises.close()


@pytest.fixture
def ann(premises: Premises) -> Browser:
    """The browser of ann, who is logged in."""
    return premises.visitor("ann")
