"""Visitors' browsers and the sites that they visit, in one process."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, ClassVar

from httpx2 import Response
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from harness.model.judgment import Judgment, RaterKeys, RatingRound
from harness.model.record import JudgmentGiven
from harness.rating.rating_room import RatingRoom
from harness.session.log.reader import rating_rows
from harness.web.base_site import BaseSite
from harness.web.invitations import Invitations, SiteReach
from harness.web.raters_site import RatersSite

BASE = "http://localhost:8765"
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
_CHECKED = re.compile(r'<input type="(?:checkbox|radio)" name="(\w+)" value="([^"]*)"[^>]* checked>')
_COMMENT = re.compile(r'<textarea id="comment"[^>]*>([^<]*)</textarea>')


class BasePremises(ABC):
    """A site and its invitations. tokens: by visitor; zoe settles what others disagree on."""

    PLACE: ClassVar[str]
    """Where a visitor works."""

    site: BaseSite

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.invitations = Invitations(folder / "invitations.json")
        self.tokens = self.invitations.invite(("ann", "bob"), 30)
        self.tokens |= self.invitations.invite(("zoe",), 30, adjudicator=True)
        self.open()

    @abstractmethod
    def open(self) -> None:
        """Makes the room and its site, from what is on the disk."""

    @abstractmethod
    def close(self) -> None: ...

    def restart(self) -> None:
        """As after a kill: nothing but what is on the disk is known."""
        self.close()
        self.open()

    def browser(self, base: str = BASE) -> Browser:
        return Browser(self, base)

    def visitor(self, name: str) -> Browser:
        """A browser that is logged in."""
        browser = self.browser()
        assert browser.log_in(self.tokens[name]).headers["location"] == "/instructions"
        return browser


class Premises(BasePremises):
    """The raters' site over session folders. now_s: a clock that a test sets."""

    PLACE = "/judge"

    site: RatersSite

    def __init__(self, folder: Path, round_: RatingRound, port: int = 8765) -> None:
        self.round = round_
        self.reached = SiteReach(("localhost",), port, False)
        self.now_s = 1000.0
        super().__init__(folder)

    def open(self) -> None:
        self.room = RatingRoom(self.round)
        invitations = Invitations(self.folder / "invitations.json")
        self.site = RatersSite(self.room, invitations, RaterKeys(), reached=self.reached, now_s=lambda: self.now_s)

    def close(self) -> None:
        self.site.close()
        self.room.close()

    def change_round(self, **changes: Any) -> None:
        """The site is started again with another round."""
        self.round = replace(self.round, **changes)
        self.restart()

    @property
    def rows(self) -> list[Judgment]:
        """What is on the disk."""
        folder = Path(self.round.sessions[0])
        return [row.record.judgment for row in rating_rows(folder) if isinstance(row.record, JudgmentGiven)]


class Browser:
    """A browser without scripts: it follows what pages hold. Its cookies outlast a restart of the site."""

    def __init__(self, premises: BasePremises, base: str = BASE) -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await premises.site.app(scope, receive, send)

        self._place = premises.PLACE
        self.client = TestClient(app, base_url=base, follow_redirects=False)

    def log_in(self, token: str) -> Response:
        word = field_of(self.client.get("/login").text, "form_word")
        return self.client.post("/login", data={"form_word": word, "token": token})

    def page(self, place: str | None = None) -> str:
        answer = self.client.get(place or self._place)
        assert answer.status_code == 200, answer.text
        return answer.text

    def press(self, do: str, page: str | None = None, place: str | None = None, **changed: str | list[str]) -> Response:
        """Presses a button of a page, or of the page as it is now. changed: fields that were filled in anew."""
        fields = fields_of(page if page is not None else self.page(place))
        return self.client.post(place or self._place, data={**fields, **changed, "do": do})


def fields_of(page: str) -> dict[str, list[str]]:
    """All that the form of a page sends when nothing is changed in it."""
    fields: dict[str, list[str]] = {}
    for name, value in (*_HIDDEN.findall(page), *_CHECKED.findall(page)):
        fields.setdefault(name, []).append(unescape(value))
    comment = _COMMENT.search(page)
    return fields | ({"comment": [unescape(comment[1])]} if comment else {})


def field_of(page: str, name: str) -> str:
    """The value of a field that has one."""
    return fields_of(page)[name][0]


def item_of(page: str) -> str:
    return field_of(page, "item")
