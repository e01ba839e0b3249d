"""Comments on the raters' site: kept as they were written, or refused without a loss."""

from __future__ import annotations

from pathlib import Path

from harness.model.judgment import RatingRound
from tests.rating_sessions import Talk, rating_session
from tests.unit.web.visitors import Browser, Premises, field_of


def test_a_comment_that_is_too_long_is_refused_and_stays_on_the_page(premises: Premises, ann: Browser) -> None:
    answer = ann.press("label.correct", comment="\n" + "x" * 10_000)
    assert answer.status_code == 422
    assert "10,001 characters; the limit is 10,000" in answer.text
    assert field_of(answer.text, "comment") == "\n\n" + "x" * 10_000, "browsers drop the first line end"
    assert premises.rows == []
    comment = "می\u200cخواهم\u3000a\u00a0b\t👨\u200d👩"
    ann.press("label.correct", comment=comment)
    assert premises.rows[0].comment == comment


def test_joined_letters_of_a_query_are_shown_as_they_are_spelt(tmp_path: Path) -> None:
    query = "می\u200cخواهم بخوابم"
    session = rating_session(tmp_path / "s1", 1, talks=[Talk("sleep", query, "okay", "home")])
    premises = Premises(tmp_path, RatingRound(sessions=(str(session),)))
    assert f'dir="auto">{query}</h1>' in premises.visitor("ann").page()
    premises.close()
