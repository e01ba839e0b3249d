"""A site with two raters and an adjudicator, asked without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.judgment import RatingRound
from tests.rating_sessions import rating_session
from tests.unit.web.visitors import Browser, Premises


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of twelve responses, four of which want an effect; copied, never changed."""
    return rating_session(tmp_path_factory.mktemp("stored") / "s1", 12, effects=True)


@pytest.fixture
def premises(stored: Path, tmp_path: Path) -> Iterator[Premises]:
    """Open, and raters ann, bob and the adjudicator zoe are invited."""
    session = tmp_path / "s1"
    shutil.copytree(stored, session)
    site_premises = Premises(tmp_path, RatingRound(sessions=(str(session),), seed=4))
    yield site_premises
    site_premises.close()


@pytest.fixture
def ann(premises: Premises) -> Browser:
    """The browser of ann, who is logged in."""
    return premises.visitor("ann")
