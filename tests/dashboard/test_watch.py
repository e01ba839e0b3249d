"""The dashboard's state while the rows of a long session arrive."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from harness.dashboard import watch as module
from harness.dashboard.watch import Watch
from harness.model.feed import Logged, StateChanged, StateWord, Welcome
from harness.session.figures.progress import Progress, SessionFigures
from tests.unit.session.figures.rows import Rows, planned


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_old_rows_are_not_counted_at_every_redraw(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    count = SessionFigures.snapshot

    def slow_count(figures: SessionFigures) -> Progress:
        clock.now_s += 1.0
        return count(figures)

    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(SessionFigures, "snapshot", slow_count)
    rows = Rows.of(*(planned(number) for number in (1, 2, 3)))
    for number in (1, 2, 3):
        rows.trial(f"time-{number}")
    watch = Watch(now=clock)
    state = StateChanged(StateWord.PREPARING, 0.0)
    watch.receive(Welcome("s", "/none", 1, len(rows.entries), state, "0", has_monitor=False))

    def take(until: int) -> int:
        for entry in rows.entries[watch.last_seq : until]:
            watch.receive(Logged(entry))
        watch.handle_messages()
        return watch.view().progress.seq

    assert take(4) == 4
    assert take(6) == 4, "counting took 1 s, so that the next 4 s are for rows"
    clock.now_s += 4.0
    assert take(8) == 8
    last = len(rows.entries)
    assert take(last) == last, "all rows are there"
    assert watch.view().progress.totals.finished == 3
