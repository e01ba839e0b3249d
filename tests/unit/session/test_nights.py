"""Nights drawn from seeds, held against what the devices did; `make soak` plays ten thousand.

A fault of tests/nights/planted.md that nights alone find takes up to 25 of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.model.observation import StimulusEnded
from tests.nights import __main__ as nights
from tests.nights.check import broken
from tests.nights.night import played

TREE = Path(__file__).parents[3]


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_the_first_simulated_nights_count_correctly(first: int) -> None:
    outcomes = [nights.play(seed) for seed in range(first, first + 50)]
    wrong = {outcome.seed: outcome.problems[:3] for outcome in outcomes if outcome.problems}
    assert not wrong, f"{wrong}: python -m tests.nights --seeds {next(iter(wrong))}"
    faults = sum((outcome.faults for outcome in outcomes), Counter[str]())
    assert faults.total() >= 500
    assert len(faults) >= 30
    assert sum(outcome.trials for outcome in outcomes) >= 1000


@pytest.mark.parametrize(
    ("seed", "without", "templates"),
    [
        (287, (2, 5, 7, 8), (0, 2, 4, 5)),  # a late report of the run before
        (358, (2, *range(6, 20)), (0, 5)),  # heartbeats that stopped before a kill
        (2721, (0, 2, 3, 4, 5, 6, 9, 11, 13, 14), (1, 2, 3, 4)),  # a late report of the trial before
        (154, (), None),  # an answer whose end nobody heard
        (41, (), None),  # a heartbeat in the lead-in
        (8976, (), None),  # a clip that was due while the host stood still
        (9797, (), None),  # an event that a board kept while its link was lost
        (10090, (), None),  # a broker that stood still before the host did
    ],
)
def test_nights_that_once_failed_count_correctly(
    seed: int, without: tuple[int, ...], templates: tuple[int, ...] | None
) -> None:
    assert nights.play(seed, without, templates).problems == []


@pytest.fixture(scope="module")
def four_digests() -> str:
    return nights.joined([nights.play(seed, with_digest=True).digest for seed in range(44, 48)])


@pytest.mark.parametrize(
    "surroundings", [{"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu"}, {"PYTHONHASHSEED": "2", "LC_ALL": "C"}]
)
def test_equal_seeds_are_equal_nights(surroundings: dict[str, str], four_digests: str) -> None:
    command = [sys.executable, "-m", "tests.nights", "--seeds", "44:48", "--digest", "--processes", "1"]
    shown = subprocess.run(
        command, cwd=TREE, env=os.environ | surroundings, capture_output=True, text=True, check=True, timeout=300
    )
    assert f"digest {four_digests}" in shown.stdout


def test_a_broken_night_is_found_and_reduced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of a cut sound counts as the end of a whole one: such a trial must not count."""
    from harness.session import listening_trial

    real = listening_trial.ListeningMachine.feed

    def blind(self: listening_trial.ListeningMachine, seen: object, now_s: float) -> object:
        if isinstance(seen, StimulusEnded):
            seen = StimulusEnded(seen.source, seen.at, seen.play_id, True, seen.audio_s)
        return real(self, seen, now_s)  # type: ignore[arg-type]

    monkeypatch.setattr(listening_trial.ListeningMachine, "feed", blind)
    seed = next(seed for seed in (36, *range(50)) if nights.play(seed).problems)  # 36: a short night
    assert nights.main(["--seeds", str(seed), "--processes", "1"]) == 1
    command = next(line for line in capsys.readouterr().out.splitlines() if "--without" in line).split()
    assert nights.main(command[3:]) == 1
    without = [int(number) for number in command[command.index("--without") + 1].split(",")]
    whole = played(seed, tmp_path)
    assert broken(whole)
    assert len(without) > whole.settings["faults"] / 2
