"""How an annotator's screen looks at both sizes (renew with --snapshot-update after looking at the report)."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from harness.annotation.project import AnnotationRoom
from harness.base.presence import Presence
from tests.annotation_projects import annotation_project, repeated
from tests.dashboard.annotating import SIZES, press, ready, seated
from tests.dashboard.bench import still
from tests.dashboard.test_snapshots import Compare

WHAT = ("review", "label", "guide", "settle", "finished")


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("what", WHAT)
def test_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Compare, what: str, size: tuple[int, int]
) -> None:
    # A short folder, since pytest's own is another at each run and is shown at the end.
    monkeypatch.chdir(tmp_path)
    alone = what in ("settle", "finished")
    project = annotation_project(Path("talk"), [("hm", None)] if alone else repeated(2), per_utterance=1 + alone)
    if what == "settle":
        room = AnnotationRoom(project)
        for name, label in (("yan", "filler"), ("zoe", "greeting")):
            desk = room.desk(name)
            assert desk.toggle(label)
            assert desk.save()
        room.close()
    app = seated(project, adjudicating=what == "settle")
    # No pace that differs from run to run.
    app.desk._presence = Presence(lambda: 0.0)

    async def before(pilot: Pilot[int]) -> None:
        await ready(pilot)
        match what:
            case "review":
                await press(pilot, "2", "j")
            case "label":
                await press(pilot, "l", "1", "5")
            case "guide":
                await press(pilot, "question_mark", *"yes")
            case "finished":
                await press(pilot, "5", "enter")
        await still(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)
