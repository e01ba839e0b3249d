"""A long sitting by keys in a real terminal, and one that is killed again and again."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.judgment import Category, Judgment, JudgmentStatus, in_force
from harness.model.record import JudgmentGiven
from harness.rating.guide import KEYS
from harness.session.log.reader import rating_rows
from tests.conformance.rating.terminal import Hand, RatingTerminal, opened_terminal
from tests.rating_sessions import rating_session

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
ITEMS = 300


@pytest.fixture
def terminal() -> Iterator[RatingTerminal]:
    with opened_terminal() as tmux:
        yield tmux


def rows(folder: Path) -> list[Judgment]:
    return [entry.record.judgment for entry in rating_rows(folder) if isinstance(entry.record, JudgmentGiven)]


@pytest.mark.parametrize("items", [60, pytest.param(300, marks=pytest.mark.soak)])
def test_labels_skips_and_undos_by_keys_are_stored(tmp_path: Path, terminal: RatingTerminal, items: int) -> None:
    """Labels, skips and undos in a random order: what is on the disk is what was pressed."""
    session = rating_session(tmp_path / "s1", items)
    dice, hand = random.Random(5), Hand(terminal)
    terminal.rate(str(session), "--rater", "ann", "--no-sound")
    terminal.wait(lambda screen: f"item 1 of {items}" in screen)
    pressed: list[tuple[str, int]] = []
    stands: dict[int, str] = {}
    order: list[int] = []
    while (current := terminal.position()) is not None:
        key = dice.choices(["x", "u", dice.choice(KEYS)[0]], weights=[2, 4 if order else 0, 94])[0]
        if key == "x" and stands.get(current) == "x":
            key = "1"
        pressed.append((key, current))
        if key == "u":
            back = order.pop()
            del stands[back]
            hand.press_until(key, lambda now, back=back: now == back)  # type: ignore[misc]
        else:
            stands[current] = key
            order = [*(position for position in order if position != current), current]
            hand.press_until(key, lambda now, current=current: now != current)  # type: ignore[misc]
    terminal.wait(lambda screen: "All done. Thank you." in screen)
    hand.press("q")
    assert terminal.ended() == "0"
    stored = rows(session)
    labels = dict(KEYS)
    assert len(pressed) > items
    for row, (key, current) in zip(stored, pressed, strict=True):
        if key == "u":
            assert row.status is JudgmentStatus.WITHDRAWN
        else:
            assert row.position == current
            assert row.status is (JudgmentStatus.SKIPPED if key == "x" else JudgmentStatus.SUBMITTED)
            assert row.category is labels.get(key)
    final = in_force(stored)
    assert {row.position: row.category for row in final} == {current: labels[key] for current, key in stands.items()}
    assert len(final) == items
    assert len({row.trial_id for row in final}) == items


@pytest.mark.parametrize("kills", [5, pytest.param(24, marks=pytest.mark.soak)])
def test_a_kill_after_any_key_loses_and_doubles_nothing(tmp_path: Path, terminal: RatingTerminal, kills: int) -> None:
    session = rating_session(tmp_path / "s1", ITEMS)
    dice, hand = random.Random(7), Hand(terminal)
    sure: list[Category] = []
    for number in range(kills):
        terminal.rate(str(session), "--rater", "ann", "--no-sound")
        current = len(sure) + 1
        terminal.wait(lambda screen, current=current: f"item {current} of {ITEMS}" in screen)  # type: ignore[misc]
        for _ in range(dice.randint(0, 3)):
            key, category = dice.choice(KEYS)
            current = len(sure) + 1
            hand.press_until(key, lambda now, current=current: now == current + 1)  # type: ignore[misc]
            sure.append(category)
        pid, count = terminal.pid, len(sure)
        key, category = dice.choice(KEYS)
        if number == 0:
            # This one is there, whatever the screen shows by then; the others may be.
            hand.press_for(key, lambda _, count=count: len(rows(session)) > count)  # type: ignore[misc]
        else:
            hand.press(key)
            time.sleep(dice.uniform(0.0, 0.04))
        os.kill(pid, signal.SIGKILL)
        terminal.gone()
        stored = rows(session)
        saved = len(stored) == count + 1
        assert saved or number
        sure += [category] * saved
        assert [row.category for row in stored] == sure
        assert [row.position for row in stored] == list(range(1, len(sure) + 1))
        assert len({row.trial_id for row in stored}) == len(sure)
