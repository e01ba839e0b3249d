"""Raters' browsers and the site that they visit, in one process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from httpx2 import Response
from starlette.testclient import TestClient

from harness.model.judgment import Judgment, RaterKeys, RatingRound
from harness.model.record import JudgmentGiven
from harness.rating.rating_room import RatingRoom
from harness.session.log.reader import rating_rows
from harness.web.invitations import Invitations, SiteReach
from harness.web.raters_site import RatersSite

BASE = "http://localhost:8765"


class Premises:
    """A site over session folders. tokens: by rater. now_s, wall_s: clocks that a test sets."""

    def __init__(self, folder: Path, round_: RatingRound, port: int = 8765) -> None:
        self.folder = folder
        self._port = port
        self.round = round_
        self.now_s = 1000.0
        self.later_s = 0.0
        self.invitations = Invitations(folder / "invitations.json")
        self.tokens = self.invitations.invite(("ann", "bob"), 30)
        self.tokens |= self.invitations.invite(("zoe",), 30, adjudicator=True)
        self._open()

    def _open(self, secure: bool = False) -> None:
        self.room = RatingRoom(self.round)
        self.site = RatersSite(
            self.room,
            Invitations(self.folder / "invitations.json"),
            RaterKeys(),
            reached=SiteReach(("localhost",), self._port, secure),
            now_s=lambda: self.now_s,
        )

    def restart(self, secure: bool = False) -> None:
        """As after a kill: nothing but what is on the disk is known."""
        self.close()
        self._open(secure)

    def close(self) -> None:
        self.site.refresher.wait()
        self.room.close()

    def browser(self, base: str = BASE) -> Browser:
        return Browser(self, TestClient(self.site.app, base_url=base, follow_redirects=False))

    def rater(self, name: str) -> Browser:
        """A browser that is logged in."""
        browser = self.browser()
        assert browser.log_in(self.tokens[name]).status_code == 303
        return browser

    @property
    def rows(self) -> list[Judgment]:
        """What is on the disk."""
        folder = Path(self.round.sessions[0])
        return [row.record.judgment for row in rating_rows(folder) if isinstance(row.record, JudgmentGiven)]


@dataclass(slots=True)
class Browser:
    """A browser without scripts: it follows what pages hold."""

    premises: Premises
    client: TestClient

    def log_in(self, token: str) -> Response:
        word = field_of(self.client.get("/login").text, "form_word")
        return self.client.post("/login", data={"form_word": word, "token": token})

    def page(self, place: str = "/judge") -> str:
        answer = self.client.get(place)
        assert answer.status_code == 200, answer.text
        return answer.text

    def press(self, do: str, page: str | None = None, place: str = "/judge", **more: str) -> Response:
        """Presses a button of a page, or of the page as it is now."""
        # The site is started anew now and then; a browser keeps its cookies.
        text = page if page is not None else self.page(place)
        return self.client.post(place, data={**fields_of(text), **more, "do": do})


def field_of(page: str, name: str) -> str:
    """The value of a hidden field."""
    match = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert match is not None, page
    return unescape(match[1])


def fields_of(page: str) -> dict[str, str]:
    """All that a form sends when nothing is changed in it, sub-flags left out."""
    fields = {
        name: field_of(page, name) for name in ("form_word", "item", "turn", "page", "plays", "heard_ms", "heard_end")
    }
    if 'name="has_draft"' in page:
        comment = re.search(r'<textarea id="comment"[^>]*>([^<]*)</textarea>', page)
        confidence = re.search(r'name="confidence" value="([^"]*)" checked', page)
        assert comment is not None
        assert confidence is not None
        fields |= {"has_draft": "1", "comment": unescape(comment[1]), "confidence": confidence[1]}
    return fields


def item_of(page: str) -> str:
    return field_of(page, "item")
