"""An annotator's terminal: each key, what is on the disk after it, and what is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.annotation.worklist import Worklist
from harness.base.written import LONGEST_WRITTEN
from harness.dashboard.messages import RoomRead
from harness.dashboard.sitting_app import run_annotation_app
from harness.dashboard.widgets.annotating import UtteranceText
from harness.model.annotation import (
    LINE_KEYS,
    Accepted,
    Adjudicated,
    AnnotationRow,
    Example,
    Label,
    Labelled,
    LabelProposal,
    LabelProposalShown,
    LabelSet,
    Proposed,
    Skipped,
    Struck,
    Withdrawn,
    label_keys,
)
from harness.model.errors import InputError, LogFull
from harness.model.understanding import Slot, Utterance
from tests.annotation_projects import CONCEPTS, LABELS, annotation_project, repeated, rows
from tests.dashboard.annotating import SIZES, SMALL, WIDE, AnnotatorApp, press, ready, seated, sitting
from tests.dashboard.bench import screen_text, shows, until
from tests.dashboard.test_hostile import HOSTILE, raw


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return annotation_project(tmp_path / "talk", repeated(2))


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_a_page_is_accepted_with_what_is_struck(project: Path, size: tuple[int, int]) -> None:
    async with sitting(seated(project), size) as (_app, pilot):
        for words in (
            "group 1 of 4", "yes_please", "Says yes to what was asked", "0 of 12 done", "1   yes please", "4   yes",
            "enter accept all 4", "1-4 strike", "? guide", "annotator ann",
        ):  # fmt: skip
            assert words in screen_text(pilot)
        await press(pilot, "2", "j", "space")
        assert rows(project) == []
        assert "2 ✗ yes please 1" in screen_text(pilot)
        assert "›3 ✗ yes that is fine" in screen_text(pilot)
        assert "enter accept 2, label 2 by hand" in screen_text(pilot)
        await press(pilot, "2", "enter")
        accepted, struck = rows(project)
        assert isinstance(accepted, Accepted)
        assert isinstance(struck, Struck)
        assert (accepted.utterances, struck.utterances) == (("u0", "u6", "u7"), ("u1",))
        for words in ("group 2 of 4", "accepted 3, struck 1", "3 of 12 done", "u undo"):
            assert words in screen_text(pilot)


async def test_labels_toggle_by_their_keys_and_rules_refuse_at_once(project: Path) -> None:
    async with sitting(seated(project)) as (_app, pilot):
        await press(pilot, "l")
        assert "1 [ ] greeting" in screen_text(pilot)
        await press(pilot, "1", "5")
        assert "1 [x] greeting" in screen_text(pilot)
        assert "not allowed: filler stands alone" in screen_text(pilot)
        await press(pilot, "enter")
        assert rows(project) == []
        await press(pilot, "5")
        assert "not allowed" not in screen_text(pilot)
        await press(pilot, "down", "down", "space", "c", *"a [/b] word", "enter")
        assert "› 3" not in screen_text(pilot)
        for words in ("›3 [x] booking", "chosen    greeting + booking", "“a [/b] word”"):
            assert words in screen_text(pilot)
        await press(pilot, "enter")
        (row,) = rows(project)
        assert isinstance(row, Labelled)
        assert (row.intents, row.comment, row.proposal_shown) == (("booking", "greeting"), "a [/b] word", False)
        assert "saved as booking#greeting" in screen_text(pilot)


async def test_nothing_chosen_is_refused_with_the_reason(project: Path) -> None:
    async with sitting(seated(project)) as (_app, pilot):
        await press(pilot, "l", "enter")
        assert rows(project) == []
        assert "an utterance has at least one label" in screen_text(pilot)


@pytest.mark.parametrize("policy", LabelProposalShown)
async def test_when_the_proposal_shows(tmp_path: Path, policy: LabelProposalShown) -> None:
    project = annotation_project(
        tmp_path / "talk", [("hm", ("greeting",))], proposal=policy, per_utterance=2, double_share=1.0
    )
    room = AnnotationRoom(project)
    assert room.desk("bob").accept_page()
    room.close()
    async with sitting(seated(project)) as (_app, pilot):
        assert "Labelling u0" in screen_text(pilot), "the second annotator works by hand"
        assert ("proposed  greeting" in screen_text(pilot)) is (policy is LabelProposalShown.BEFORE)
        await press(pilot, "5", "enter")
        if policy is LabelProposalShown.AFTER:
            for words in ("proposed  greeting", "it differs from yours", "chosen    filler  saved", "enter next"):
                assert words in screen_text(pilot)
            await press(pilot, "5", "1")
            assert "filler" not in re.findall(r"chosen.*", screen_text(pilot))[0]
            assert "enter save" in screen_text(pilot)
            await press(pilot, "enter")
        assert "All is done" in screen_text(pilot)
        own = [row for row in rows(project) if isinstance(row, Labelled)]
        assert [row.intents for row in own] == (
            [("filler",), ("greeting",)] if policy is LabelProposalShown.AFTER else [("filler",)]
        )


async def test_undo_takes_back_a_page_as_a_whole_also_after_a_restart(project: Path) -> None:
    async with sitting(seated(project)) as (_app, pilot):
        await press(pilot, "1", "4", "enter")
    again = seated(project)
    async with again.run_test(size=SMALL) as pilot:
        await ready(pilot)
        await press(pilot, "u")
        for words in ("taken back", "1 ✗ yes please", "4 ✗ yes that is fine 1", "0 of 12 done"):
            assert words in screen_text(pilot)
        accepted, struck, withdrawn = rows(project)
        assert isinstance(withdrawn, Withdrawn)
        assert set(withdrawn.rows) == {row.id for row in (accepted, struck) if not isinstance(row, Proposed)}
        await press(pilot, "u")
        assert "nothing is left to undo" in screen_text(pilot)


async def test_what_is_out_of_sight_comes_into_sight_before_it_is_accepted(tmp_path: Path) -> None:
    talk = [(f"{n:02} " + "yes " * 30, ("yes_please",)) for n in range(20)]
    project = annotation_project(tmp_path / "talk", talk, page_size=20)
    async with sitting(seated(project)) as (_app, pilot):
        assert "more below" in screen_text(pilot)
        assert "00 yes" in screen_text(pilot)
        await press(pilot, LINE_KEYS[19])
        assert "that line is not on screen" in screen_text(pilot)
        seen: set[str] = set()
        for _ in range(20):
            before = screen_text(pilot)
            seen |= set(re.findall(r"\b(\d\d) yes", before))
            await press(pilot, "enter")
            await until(pilot, lambda before=before: rows(project) or screen_text(pilot) != before)  # type: ignore[misc]
            if rows(project):
                break
            await until(pilot, shows(pilot, "not on screen yet"))
        assert seen == {f"{n:02}" for n in range(20)}
        (row,) = rows(project)
        assert isinstance(row, Accepted)
        assert len(row.utterances) == 20


async def test_a_full_disk_keeps_the_page_with_its_draft(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = seated(project)

    def full(rows: Sequence[AnnotationRow]) -> None:
        raise LogFull("the disk is full", remedy="Make room")

    async with app.run_test(size=SMALL) as pilot:
        await ready(pilot)
        with monkeypatch.context() as patched:
            patched.setattr(app.desk._work, "_keep", full)
            await press(pilot, "3", "enter")
            for words in ("NOT SAVED, so the page stays on screen", "the disk is full", "Make room", "3 ✗ yes that"):
                assert words in screen_text(pilot)
        assert rows(project) == []
        await press(pilot, "enter")
        assert "NOT SAVED" not in screen_text(pilot)
        assert [type(row) for row in rows(project)] == [Accepted, Struck]


async def test_skip_and_going_between_the_two(project: Path) -> None:
    async with sitting(seated(project)) as (_app, pilot):
        await press(pilot, "x")
        assert "group left for later" in screen_text(pilot)
        await press(pilot, "l", "x")
        assert isinstance(rows(project)[0], Skipped)
        assert "1 skipped" in screen_text(pilot)
        await press(pilot, "r")
        assert "Reviewing" in screen_text(pilot)


async def test_the_guide_is_searched(project: Path) -> None:
    async with sitting(seated(project), WIDE) as (_app, pilot):
        await press(pilot, "question_mark")
        for words in (
            "Label what is wanted", "never beside another label: filler", "never together: yes_please and information",
            "yes “good morning”", "not “good”  is yes_please  It says yes to what was asked.",
        ):  # fmt: skip
            assert words in screen_text(pilot)
        await press(pilot, *"ASKED yes")
        await until(pilot, lambda: "Wants a room" not in screen_text(pilot))
        assert "1 greeting" in screen_text(pilot), "its counterexample has the words"
        await press(pilot, *"zzz")
        await until(pilot, shows(pilot, "no label in the guide has these words"))
        await press(pilot, "escape")
        assert "Reviewing" in screen_text(pilot)
        assert rows(project) == []


async def test_who_settles_sees_both_side_by_side_without_names(tmp_path: Path) -> None:
    project = annotation_project(tmp_path / "talk", [("hm", None)], per_utterance=2)
    room = AnnotationRoom(project)
    for name, labels in (("yan", ("booking", "greeting")), ("zoe", ("greeting",))):
        desk = room.desk(name)
        for label in labels:
            desk.toggle(label)
        desk.comment(f"why {len(labels)}")
        assert desk.save()
    room.close()
    async with sitting(seated(project, "ann", adjudicating=True)) as (_app, pilot):
        assert re.search(r"annotator 1 +annotator 2", screen_text(pilot))
        assert re.search(r"≠ booking +(= greeting)", screen_text(pilot))
        for words in ("Settling", "“why 1”", "“why 2”"):
            assert words in screen_text(pilot)
        assert not re.search(r"yan|zoe", screen_text(pilot))
        await press(pilot, "3", "enter")
        row = rows(project)[-1]
        assert isinstance(row, Adjudicated)
        assert (row.intents, len(row.inputs)) == (("booking",), 2)
        assert "All is done" in screen_text(pilot)


async def test_rows_from_elsewhere_are_taken_in_and_the_page_stays(project: Path) -> None:
    async with sitting(seated(project)) as (app, pilot):
        await press(pilot, "2")
        other = AnnotationRoom(project)
        desk = other.desk("bob")
        assert desk.skip(), "he begins with another group"
        assert desk.accept_page()
        other.close()
        app.room.refresh()
        app.sitting.on_room_read(RoomRead(""))
        await until(pilot, shows(pilot, "0 of 10 done"))
        assert "2 ✗ yes please 1" in screen_text(pilot)


async def test_thirty_labels_all_have_a_place_and_a_key(tmp_path: Path) -> None:
    many = "".join(f"  - id: label_number_{n}\n    description: About {n}.\n" for n in range(30))
    labels = f"label_set: many\nlabels:\n{many}"
    project = annotation_project(tmp_path / "talk", [("hm", None)], labels)
    async with sitting(seated(project)) as (app, pilot):
        keys = label_keys(app.desk.label_set)
        assert len(set(keys.values())) == 30
        for n in range(30):
            assert re.search(rf"{keys[f'label_number_{n}']} \[ \] label_number_{n}\b", screen_text(pilot))
        await press(pilot, keys["label_number_29"], "enter")
        (row,) = rows(project)
        assert isinstance(row, Labelled)
        assert row.intents == ("label_number_29",)


async def test_five_hundred_labels_are_scrolled(tmp_path: Path) -> None:
    many = "".join(f"  - id: label_number_{n}\n    description: About {n}.\n" for n in range(500))
    project = annotation_project(tmp_path / "talk", [("hm", None)], f"label_set: many\nlabels:\n{many}")
    async with sitting(seated(project)) as (_app, pilot):
        await pilot.press(*["down"] * 60)
        await press(pilot, "space")
        assert re.search(r"›[^\n]* \[x\] label_num", screen_text(pilot))
        await press(pilot, "enter")
        (row,) = rows(project)
        assert isinstance(row, Labelled)
        assert row.intents == ("label_number_60",)


async def test_a_label_may_take_a_key_and_the_action_keeps_another(tmp_path: Path) -> None:
    labels = LABELS.replace("  - id: filler\n", "  - id: filler\n    key: u\n").replace(
        "  - id: booking\n", "  - id: booking\n    key: q\n"
    )
    project = annotation_project(tmp_path / "talk", [("hm", None), ("ha", None)], labels)
    async with sitting(seated(project)) as (_app, pilot):
        assert "ctrl+q quit" in screen_text(pilot)
        await press(pilot, "u", "enter")
        assert "backspace undo" in screen_text(pilot)
        await press(pilot, "q", "backspace")
        assert [type(row) for row in rows(project)] == [Labelled, Withdrawn]


@pytest.mark.parametrize("size", [(40, 10), (20, 6), (200, 60)])
async def test_smaller_and_larger_terminals_show_what_matters(project: Path, size: tuple[int, int]) -> None:
    async with sitting(seated(project), size) as (_app, pilot):
        assert "yes please" in screen_text(pilot)
        await press(pilot, "l")
        assert "er" in screen_text(pilot)
        assert "[ ]" in screen_text(pilot)


def test_a_terminal_without_a_screen_is_told_of_plain(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    room = AnnotationRoom(project)
    with pytest.raises(InputError, match="--plain"):
        run_annotation_app(room, room.desk("ann"))
    room.close()


EXAMPLE = Example(HOSTILE, (HOSTILE,), HOSTILE)
HOSTILE_LABELS = LabelSet(
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
    room.label_set = HOSTILE_LABELS
    room.project = replace(room.project, id=HOSTILE)
    utterances = [Utterance(f"{HOSTILE}{n}", (HOSTILE,)) for n in range(3)]
    batch = Proposed("b", HOSTILE, tuple(LabelProposal(one.id, (HOSTILE,)) for one in utterances[:2]))
    desk = AnnotationDesk(Worklist(HOSTILE, room.project, HOSTILE_LABELS, utterances, [batch], lambda rows: None))
    app = AnnotatorApp(room, desk)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        assert WORDS in screen_text(pilot)
        assert raw(pilot) == []
        await pilot.press("v")
        await until(pilot, shows(pilot, "x" * 60))
        assert raw(pilot) == []
        await press(pilot, "escape", "question_mark")
        await until(pilot, shows(pilot, "search the guide"))
        assert raw(pilot) == []
        await press(pilot, "escape", "1", "enter", "l", "1", "2")
        await until(pilot, shows(pilot, "not allowed"))
        assert raw(pilot) == []
        desk.comment(HOSTILE[:LONGEST_WRITTEN])
        await press(pilot, "c")
        assert raw(pilot) == []
        await press(pilot, "escape", "2", "enter")
        assert raw(pilot) == []
        exported = app.export_screenshot()
        assert not any(c in exported for c in "\x1b\x07\x9b\u202e\u200b")


async def test_hostile_labels_of_others_before_who_settles(tmp_path: Path) -> None:
    room = AnnotationRoom(annotation_project(tmp_path / "talk"))
    room.label_set = HOSTILE_LABELS
    project = replace(room.project, per_utterance=2)
    utterances = [Utterance(HOSTILE, (HOSTILE,))]
    given = [
        Labelled("r1", "yan", HOSTILE, (HOSTILE,), comment=HOSTILE),
        Labelled("r2", "zoe", HOSTILE, ("b",), comment=HOSTILE),
    ]
    desk = AnnotationDesk(
        Worklist("ann", project, HOSTILE_LABELS, utterances, given, lambda rows: None, adjudicating=True)
    )
    async with AnnotatorApp(room, desk).run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        assert "annotator 2" in screen_text(pilot)
        assert WORDS in screen_text(pilot)
        assert raw(pilot) == []


async def test_words_are_marked_as_slots_with_keys_and_mouse(tmp_path: Path) -> None:
    talk = [("two nights in new york please", None), ("and a bus", None)]
    project = annotation_project(tmp_path / "talk", talk, LABELS + CONCEPTS, seed=1)
    async with sitting(seated(project), WIDE) as (app, pilot):
        item = app.desk.view.item
        assert item is not None
        if item.text == "and a bus":
            await press(pilot, "x")
        assert "[ ] greeting" in screen_text(pilot)
        await press(pilot, "right", ">")
        assert "1 [ ] city" in screen_text(pilot)
        assert "[ ] greeting" not in screen_text(pilot)
        await press(pilot, "2")
        assert "two nights·nights in" in screen_text(pilot)
        assert "'two nights' is nights" in screen_text(pilot)
        assert "[ ] greeting" in screen_text(pilot), "nothing is selected any more"
        text = app.screen.query_one(UtteranceText)
        at = screen_text(pilot).splitlines()[text.region.y].index("new york") - text.region.x
        await pilot.mouse_down(text, offset=(at + 5, 0))
        await pilot.hover(text, offset=(at, 0))
        await pilot.mouse_up(text, offset=(at, 0))
        await pilot.click("#concepts", offset=(5, 0))
        assert "in new york·city please" in screen_text(pilot)
        await press(pilot, "right", "d")
        assert "please·date" in screen_text(pilot)
        await press(pilot, "left", "-", "escape", "3", "enter")
        (row, *_rest) = [row for row in rows(project) if isinstance(row, Labelled)]
        assert (row.intents, row.slots) == (("booking",), (Slot("nights", None, 0, 2), Slot("city", None, 3, 5)))
        assert "saved as booking (nights: two nights, city: new york)" in screen_text(pilot)
        await press(pilot, "u")
        assert "two nights·nights in new york·city please" in screen_text(pilot)
