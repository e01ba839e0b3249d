"""How a rater's screen looks at both sizes (renew with --snapshot-update after looking at the report)."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from harness.base.presence import Presence
from harness.model.judgment import Category, Exercise, RatingRound
from tests.dashboard.bench import still
from tests.dashboard.seats import SIZES, adjudication, press, ready, seated
from tests.dashboard.test_snapshots import Compare
from tests.rating_sessions import rating_session

WHAT = ("item", "aid", "explained", "settling", "finished")
TRAINING = RatingRound(
    title="Autumn round",
    exercises=(Exercise("one", "name two rivers", "the danube", Category.PARTIALLY_CORRECT, "It names one of two."),),
)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("screen", WHAT)
def test_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Compare, screen: str, size: tuple[int, int]
) -> None:
    # A short folder, since pytest's own is another at each run and is shown at the end.
    monkeypatch.chdir(tmp_path)
    session = rating_session(Path("s1"), 2 if screen == "finished" else 12, effects=screen != "finished")
    if screen == "settling":
        adjudication(session)
    round_ = TRAINING if screen == "explained" else RatingRound(title="Autumn round", seed=4)
    app = seated(session, round_=round_, adjudicating=screen == "settling")
    # No pace that differs from run to run.
    app.desk._presence = Presence(lambda: 0.0)

    async def before(pilot: Pilot[int]) -> None:
        await ready(pilot)
        match screen:
            case "item":
                await press(pilot, "t", "k", "c", *"mumbled", "enter", then="“mumbled”")
            case "aid":
                await press(pilot, "question_mark", then="of at most")
            case "explained":
                await press(pilot, "9", then="any key continues")
            case "finished":
                for left in ("1 left", "0 left"):
                    await press(pilot, "1" if left == "1 left" else "2", then=left)
        await still(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)
