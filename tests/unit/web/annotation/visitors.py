"""The annotators' site over a project, in one process with its visitors."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from harness.annotation.project import AnnotationRoom
from harness.model.annotation import AnnotationRow
from harness.web.annotators_site import AnnotationSite
from harness.web.invitations import Invitations
from tests.annotation_projects import rows
from tests.unit.web.visitors import BasePremises


class Premises(BasePremises):
    """The annotators' site over a project."""

    PLACE = "/annotate"

    site: AnnotationSite

    def __init__(self, folder: Path, project: Path) -> None:
        self.project = project
        super().__init__(folder)

    def open(self) -> None:
        self.room = AnnotationRoom(self.project)
        self.site = AnnotationSite(self.room, Invitations(self.folder / "invitations.json"))

    def close(self) -> None:
        self.site.close()
        self.room.close()

    @property
    def rows(self) -> list[AnnotationRow]:
        """What is on the disk."""
        return rows(self.project)


def heading(page: str) -> str:
    """Of what is in sight: the proposed labels, or an utterance."""
    match = re.search(r'<h1 id="query"[^>]*>(.*?)</h1>', page, re.DOTALL)
    assert match is not None, page
    return unescape(match[1]).strip()
