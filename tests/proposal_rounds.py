"""A judged session to learn proposals from, and another one to judge with them."""

from __future__ import annotations

from pathlib import Path

from harness.model.judgment import Category, JudgmentStatus, ProposalRule, ProposalShown, RatingRound
from harness.model.record import JudgmentGiven
from harness.rating.items import new_row
from harness.rating.judgment_log import JudgmentLog
from harness.rating.rating_room import open_room
from tests.rating_sessions import rating_session

ADMITTED = ("shirt", "moon")
"""Queries that got no answer; all others are judged correct."""


def judged_source(folder: Path, count: int = 32, *, session_id: str = "s0") -> Path:
    """A session that bob has judged as a whole."""
    rating_session(folder, count, session_id=session_id)
    room = open_room([folder])
    log = JudgmentLog(folder)
    for item in room.items:
        log.append(
            JudgmentGiven(new_row(item.subject, "bob", JudgmentStatus.SUBMITTED, right_for(item.hidden.query_id)))
        )
    log.close()
    room.close()
    return folder


def right_for(query: str) -> Category:
    return Category.ADMITTED_DEFEAT if query in ADMITTED else Category.CORRECT


def proposing_round(source: Path, show: ProposalShown = ProposalShown.AFTER, *sessions: Path) -> RatingRound:
    return RatingRound(
        sessions=tuple(map(str, sessions)), seed=4, proposals=ProposalRule((str(source.resolve()),), show=show)
    )
