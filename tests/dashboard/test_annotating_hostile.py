"""Foreign text before an annotator that tries to be markup, a terminal command or a page of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.model.annotation import Example, Label, Labelled, LabelProposal, LabelSet, Proposed
from harness.model.understanding import Utterance
from tests.annotation_projects import annotation_project
from tests.dashboard.annotating import SIZES, AnnotatorApp, press, ready, shown
from tests.dashboard.bench import shows, until
from tests.dashboard.test_hostile import HOSTILE, raw

EXAMPLE = Example(HOSTILE, (HOSTILE,), HOSTILE)
LABELS = LabelSet(
    HOSTILE,
    HOSTILE,
    (Label(HOSTILE, HOSTILE, HOSTILE, True, "", (EXAMPLE,), (EXAMPLE,)), Label("b", "[b]", HOSTILE)),
    ((HOSTILE, "b"),),
    intro=HOSTILE,
)
WORDS = "[/red] [wake]"


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_hostile_text_in_every_field(tmp_path: Path, size: tuple[int, int]) -> None:
    room = AnnotationRoom(annotation_project(tmp_path / "talk"))
    room.label_set = LABELS
    room.project = replace(room.project, id=HOSTILE)
    utterances = [Utterance(f"{HOSTILE}{n}", (HOSTILE,)) for n in range(3)]
    batch = Proposed("b", HOSTILE, tuple(LabelProposal(one.id, (HOSTILE,)) for one in utterances[:2]))
    desk = AnnotationDesk(HOSTILE, room.project, LABELS, utterances, [batch], lambda rows: None)
    app = AnnotatorApp(room, desk)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        assert WORDS in shown(pilot)
        assert raw(pilot) == []
        await pilot.press("v")
        await until(pilot, shows(pilot, "x" * 60))
        assert raw(pilot) == []
        await press(pilot, "escape", "question_mark")
        await until(pilot, shows(pilot, "search the guide"))
        assert raw(pilot) == []
        await press(pilot, "escape", "1", "enter", "l", "1", "2")
        await until(pilot, shows(pilot, "not like this"))
        assert raw(pilot) == []
        desk.comment(HOSTILE)
        await press(pilot, "c")
        assert raw(pilot) == []
        await press(pilot, "escape", "2", "enter")
        assert raw(pilot) == []
        exported = app.export_screenshot()
        assert not any(c in exported for c in "\x1b\x07\x9b\u202e\u200b")


async def test_hostile_labels_of_others_before_who_settles(tmp_path: Path) -> None:
    room = AnnotationRoom(annotation_project(tmp_path / "talk"))
    room.label_set = LABELS
    project = replace(room.project, per_utterance=2)
    utterances = [Utterance(HOSTILE, (HOSTILE,))]
    given = [
        Labelled("r1", "yan", HOSTILE, (HOSTILE,), comment=HOSTILE),
        Labelled("r2", "zoe", HOSTILE, ("b",), comment=HOSTILE),
    ]
    desk = AnnotationDesk("ann", project, LABELS, utterances, given, lambda rows: None, adjudicating=True)
    async with AnnotatorApp(room, desk).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        assert "annotator 2" in shown(pilot)
        assert WORDS in shown(pilot)
        assert raw(pilot) == []
