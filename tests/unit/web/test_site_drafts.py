"""What is typed and ticked on the pages of a response."""

from __future__ import annotations

from harness.web.seats import MAX_PAGES
from tests.unit.web.visitors import Premises, fields_of


def test_untouched_page_does_not_overwrite_comments_of_another(premises: Premises) -> None:
    ann = premises.rater("ann")
    typed, blank = ann.page(), ann.page()  # as after a reload that was answered before the draft came
    ann.press("draft.quiet", typed, comment="the lamp went on", change="7.1")
    assert ann.press("label.wrong", blank, change="8.1").status_code == 303
    typed, other = ann.page(), ann.page()
    ann.press("draft.quiet", typed, comment="first", change="7.2")
    ann.press("draft.quiet", other, comment="second", change="8.2")
    ann.press("draft.quiet", other, comment="", change="8.3")
    ann.press("label.wrong", typed, comment="first", change="7.3")
    assert [row.comment for row in premises.rows] == ["the lamp went on", ""], "emptied on purpose"


def test_forgotten_page_does_not_undo_a_newer_comment(premises: Premises) -> None:
    ann = premises.rater("ann")
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


def test_page_from_before_a_restart_does_not_undo_a_newer_comment(premises: Premises) -> None:
    ann = premises.rater("ann")
    typed, blank = ann.page(), ann.page()
    premises.restart()
    ann = premises.rater("ann")
    word = fields_of(ann.page())["form_word"]
    for comment in ("the lamp", "the lamp went on"):
        assert ann.press("draft.quiet", typed, comment=comment, form_word=word).status_code == 204
    assert ann.press("label.wrong", blank, form_word=word).status_code == 409
    assert ann.press("label.wrong", typed, comment="the lamp went on", form_word=word).status_code == 303
    assert [row.comment for row in premises.rows] == ["the lamp went on"]


def test_all_ticked_sub_flags_are_saved(premises: Premises) -> None:
    ann = premises.rater("ann")
    ticked = ["too_little", "too_much"]
    for button in ("draft.quiet", "draft.quiet", "label.partially_correct"):
        ann.client.post("/judge", data={**fields_of(ann.page()), "sub_flag": ticked, "do": button})
    assert premises.rows[-1].sub_flags == ("too_little", "too_much")


def test_times_and_plays_of_a_page_from_before_a_restart_stay_unknown(premises: Premises) -> None:
    page = premises.rater("ann").page()
    premises.restart()
    ann = premises.rater("ann")
    word = fields_of(ann.page())["form_word"]
    assert ann.press("label.wrong", page, form_word=word, plays="1", heard_ms="900").status_code == 303
    assert ann.press("label.wrong").status_code == 303
    unknown, known = premises.rows
    assert (unknown.time_to_answer_s, unknown.shown_wall_s) == (None, None)
    assert (unknown.plays, unknown.heard_ms, unknown.transcript_shown) == (None, None, None)
    assert known.time_to_answer_s is not None
    assert (known.plays, known.heard_ms, known.transcript_shown) == (0, 0, False)
