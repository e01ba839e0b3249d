"""Annotators' browsers without scripts, and the site that they visit, in one process."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

from httpx2 import Response
from starlette.testclient import TestClient

from harness.annotation.project import AnnotationRoom
from harness.model.annotation import AnnotationRow
from harness.web.annotators_site import AnnotationSite
from harness.web.invitations import Invitations
from tests.annotation_projects import rows

BASE = "http://localhost:8765"
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
_CHECKED = re.compile(r'<input type="checkbox" name="(\w+)" value="([^"]*)"[^>]* checked>')
_COMMENT = re.compile(r'<textarea id="comment"[^>]*>([^<]*)</textarea>')


class Premises:
    """A site over a project. tokens: by annotator; zoe settles what others disagree on."""

    def __init__(self, folder: Path, project: Path) -> None:
        self.project = project
        self.file = folder / "invitations.json"
        invitations = Invitations(self.file)
        self.tokens = invitations.invite(("ann", "bob"), 30)
        self.tokens |= invitations.invite(("zoe",), 30, adjudicator=True)
        self._open()

    def _open(self) -> None:
        self.room = AnnotationRoom(self.project)
        self.site = AnnotationSite(self.room, Invitations(self.file))

    def restart(self) -> None:
        """As after a kill: nothing but what is on the disk is known."""
        self.close()
        self._open()

    def close(self) -> None:
        self.site.close()
        self.room.close()

    def annotator(self, name: str) -> Browser:
        """A browser that is logged in."""
        browser = Browser(self)
        word = fields_of(browser.client.get("/login").text)["form_word"][0]
        answer = browser.client.post("/login", data={"form_word": word, "token": self.tokens[name]})
        assert answer.headers["location"] == "/instructions"
        return browser

    @property
    def rows(self) -> list[AnnotationRow]:
        """What is on the disk."""
        return rows(self.project)


class Browser:
    """It follows what pages hold."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._cookies: dict[str, str] = {}
        self._app = premises.site.app
        self._client = self._made()

    def _made(self) -> TestClient:
        return TestClient(self._premises.site.app, base_url=BASE, follow_redirects=False, cookies=self._cookies)

    @property
    def client(self) -> TestClient:
        """Of the site as it runs now: cookies outlast its restart."""
        if self._app is not self._premises.site.app:
            self._cookies = dict(self._client.cookies)
            self._app, self._client = self._premises.site.app, self._made()
        return self._client

    def page(self, place: str = "/annotate") -> str:
        answer = self.client.get(place)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def press(self, do: str, page: str | None = None, place: str = "/annotate", **changed: list[str]) -> Response:
        """Presses a button of a page, or of the page as it is now. changed: fields that were filled in anew."""
        fields = {**fields_of(page if page is not None else self.page(place)), **changed, "do": [do]}
        content = urlencode([(name, value) for name, values in fields.items() for value in values])
        return self.client.post(place, content=content, headers={"content-type": "application/x-www-form-urlencoded"})


def fields_of(page: str) -> dict[str, list[str]]:
    """All that the form of a page sends when nothing is changed in it."""
    fields: dict[str, list[str]] = {}
    for name, value in (*_HIDDEN.findall(page), *_CHECKED.findall(page)):
        fields.setdefault(name, []).append(unescape(value))
    comment = _COMMENT.search(page)
    return fields | ({"comment": [unescape(comment[1])]} if comment else {})


def heading(page: str) -> str:
    """Of what is in sight: the proposed labels, or an utterance."""
    match = re.search(r'<h1 id="query"[^>]*>(.*?)</h1>', page, re.DOTALL)
    assert match is not None, page
    return unescape(match[1]).strip()
