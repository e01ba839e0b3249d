"""What is typed and ticked on the pages of a response."""

from __future__ import annotations

from harness.web.seats import MAX_PAGES
from tests.unit.web.visitors import Browser, Premises


def test_untouched_page_does_not_overwrite_comments_of_another(premises: Premises, ann: Browser) -> None:
    typed, blank = ann.page(), ann.page()  # as after a reload that was answered before the draft came
    ann.press("draft.quiet", typed, comment="the lamp went on", change="7.1")
    assert ann.press("label.wrong", blank, change="8.1").status_code == 303
    typed, other = ann.page(), ann.page()
    ann.press("draft.quiet", typed, comment="first", change="7.2")
    ann.press("draft.quiet", other, comment="second", change="8.2")
    ann.press("draft.quiet", other, comment="", change="8.3")
    ann.press("label.wrong", typed, comment="first", change="7.3")
    assert [row.comment for row in premises.rows] == ["the lamp went on", ""], "emptied on purpose"


def test_forgotten_page_does_not_undo_a_newer_comment(premises: Premises, ann: Browser) -> None:
    forgotten, typed = ann.page(), ann.page()
    for _ in range(MAX_PAGES):
        ann.page()
        ann.press("draft.quiet", typed, comment="a page that posts is not forgotten")
    ann.press("draft.quiet", typed, comment="the lamp went on")
    answer = ann.press("label.wrong", forgotten)
    assert (answer.status_code, premises.rows) == (409, [])
    assert "you have worked in another window since" in answer.text
    assert ann.press("label.wrong").status_code == 303
    assert [row.comment for row in premises.rows] == ["the lamp went on"]


def test_page_from_before_a_restart_does_not_undo_a_newer_comment(premises: Premises, ann: Browser) -> None:
    typed, blank = ann.page(), ann.page()
    premises.restart()
    for comment in ("the lamp", "the lamp went on"):
        assert ann.press("draft.quiet", typed, comment=comment).status_code == 204
    assert ann.press("label.wrong", blank).status_code == 409
    assert ann.press("label.wrong", typed, comment="the lamp went on").status_code == 303
    assert [row.comment for row in premises.rows] == ["the lamp went on"]


def test_all_ticked_sub_flags_are_saved(premises: Premises, ann: Browser) -> None:
    ticked = ["too_little", "too_much"]
    for button in ("draft.quiet", "draft.quiet", "label.partially_correct"):
        ann.press(button, sub_flag=ticked)
    assert premises.rows[-1].sub_flags == ("too_little", "too_much")


def test_times_and_plays_of_a_page_from_before_a_restart_stay_unknown(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    premises.restart()
    assert ann.press("label.wrong", page, plays="1", heard_ms="900").status_code == 303
    assert ann.press("label.wrong").status_code == 303
    unknown, known = premises.rows
    assert (unknown.time_to_answer_s, unknown.shown_wall_s) == (None, None)
    assert (unknown.plays, unknown.heard_ms, unknown.transcript_shown) == (None, None, None)
    assert known.time_to_answer_s is not None
    assert (known.plays, known.heard_ms, known.transcript_shown) == (0, 0, False)
