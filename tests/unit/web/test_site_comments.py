"""Comments on the raters' site: kept as they were written, or refused without a loss."""

from __future__ import annotations

from tests.unit.web.visitors import Premises, fields_of


def test_a_comment_that_is_too_long_is_refused_and_stays_on_the_page(premises: Premises) -> None:
    ann = premises.rater("ann")
    answer = ann.press("label.correct", comment="\n" + "x" * 10_000)
    assert answer.status_code == 422
    assert "10,001 characters; the limit is 10,000" in answer.text
    assert fields_of(answer.text)["comment"] == "\n\n" + "x" * 10_000, "browsers drop the first line end"
    assert premises.rows == []
    comment = "می\u200cخواهم\u3000a\u00a0b\t👨\u200d👩"
    ann.press("label.correct", comment=comment)
    assert premises.rows[0].comment == comment
