"""What a plug-in answers is looked at before anything is built on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.model.errors import EngineError
from harness.model.offline import FileOutcome, ListKind, OfflineSpot, Said
from harness.offline.journal_lines import outcome_line, outcome_of
from harness.offline.one_file import FARTHEST, LONGEST_TEXT, checked


def test_numbers_of_numpy_become_those_of_a_journal() -> None:
    told = OfflineSpot("a", np.int64(3), np.int32(16_000), np.float32(0.5))  # type: ignore[arg-type]
    outcome = FileOutcome(ListKind.OOV, 0, 32_000, 16_000, 16_000, (checked(told),))
    assert outcome_of(outcome_line(outcome, "a.wav")).outcome.spots == (OfflineSpot("a", 3, 16_000, 0.5),)


@pytest.mark.parametrize(
    "told",
    [
        OfflineSpot("a", 0.5, 20_000.7),  # type: ignore[arg-type]
        OfflineSpot("a", 0, FARTHEST),
        OfflineSpot("a", 0, 5, math.nan),
        OfflineSpot("a", 0, 5, math.inf),
        OfflineSpot("a", 0, 5, "high"),  # type: ignore[arg-type]
        OfflineSpot(b"a", 0, 5),  # type: ignore[arg-type]
        OfflineSpot("a" * (LONGEST_TEXT + 1), 0, 5),
        Said("a", 5, 4),
        Said("a", -5, 4),
        Said(None, 0, 4),  # type: ignore[arg-type]
    ],
    ids=lambda told: repr(told)[:40],
)
def test_what_cannot_be_is_the_engines_error_and_of_this_file_alone(told: OfflineSpot | Said) -> None:
    with pytest.raises(EngineError, match="the engine tells"):
        checked(told)
