"""What a classifier says, in the browser: after the choice, and with the item only where that is wanted."""

from __future__ import annotations

import re
from pathlib import Path

from harness.model.judgment import ProposalShown
from tests.proposal_rounds import judged_source, proposing_round
from tests.unit.web.visitors import Premises


def test_what_a_classifier_says_comes_after_the_choice_and_with_the_item_only_where_wanted(
    premises: Premises, tmp_path: Path
) -> None:
    source, session = judged_source(tmp_path / "s0"), Path(premises.round.sessions[0])
    premises.round = proposing_round(source, ProposalShown.AFTER, session)
    premises.restart()
    ann = premises.rater("ann")
    page = ann.page()
    assert "classifier" not in page
    ann.press("label.wrong", page)
    (row,) = premises.rows
    assert row.proposed is not None
    assert row.proposal_shown is ProposalShown.AFTER
    after = ann.page()
    assert re.search(r"the classifier would have said [A-Z][a-z ]+ \(\d+ %\); saved as Wrong", after)
    assert "The classifier says" not in after
    ann.press("undo", after)
    assert "The classifier says" in ann.page(), "it has been seen"
    premises.round = proposing_round(source, ProposalShown.BEFORE, session)
    premises.restart()
    page = premises.rater("bob").page()
    assert re.search(r"The classifier says: [A-Z][a-z ]+ \(\d+ %\)", page)
