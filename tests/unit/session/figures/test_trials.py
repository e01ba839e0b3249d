"""The rows from which the progress of trials is computed."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args

from harness.model.record import JudgmentGiven, SessionStarted
from harness.session.figures.trials import ROWS_OF_TRIALS, TrialRow


def test_readers_of_trials_read_every_kind_that_changes_one() -> None:
    record_types = (SessionStarted, JudgmentGiven, *get_args(TrialRow))
    kinds = [field.default for record in record_types for field in fields(record) if field.name == "kind"]
    assert sorted(re.findall(r"'(\w+)'", ROWS_OF_TRIALS)) == sorted(kinds)
