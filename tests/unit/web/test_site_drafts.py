"""What is typed on several pages of the same response."""

from __future__ import annotations

from tests.unit.web.visitors import Premises


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
