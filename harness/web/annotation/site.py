"""The annotators' site: each reviews proposals and labels utterances at a desk, and may find theirs to label again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from starlette.datastructures import FormData

from harness.annotation.annotation_room import AnnotationRoom
from harness.model.annotation import MOST_ON_A_PAGE
from harness.web.annotation.pages import AnnotationPage, FindingPage, pages
from harness.web.annotation.posts import AnnotationPost, apply, read_post
from harness.web.annotation.seats import AnnotationSeat
from harness.web.invitations import Invitations
from harness.web.seated import SeatedSite
from harness.web.turns import Fate

OTHER_FIELDS = 20


class AnnotationSite(SeatedSite[AnnotationSeat, AnnotationPost]):
    """Answers requests; the rest as in `Entrance`."""

    PLACE = "/annotate"
    INSTRUCTIONS, GUIDE = "annotation_instructions.html", "annotation_guide.html"
    STALE = "Nothing was saved: that page was old, it was dealt with in another window. This is the one open now."
    NOT_INVITED = "You are invited to this site, but are no annotator of this project. Tell who invited you."

    def __init__(
        self,
        room: AnnotationRoom,
        invitations: Invitations,
        *,
        names: Collection[str] = ("localhost",),
        port: int = 0,
        secure: bool = False,
    ) -> None:
        self._room = room
        templates = pages(room.label_set, room.project)
        most_fields = OTHER_FIELDS + max(MOST_ON_A_PAGE, len(room.label_set.labels))
        super().__init__(room, invitations, templates, names=names, port=port, secure=secure, most_fields=most_fields)

    def _new_seat(self, name: str, reading: int, *, adjudicating: bool) -> AnnotationSeat:
        desk = self._room.adjudication(name) if adjudicating else self._room.desk(name)
        return AnnotationSeat(self._room, desk, read=reading)

    def _take_in(self, seat: AnnotationSeat, name: str, *, adjudicating: bool) -> None:
        seat.refresh()

    def _seat_page(self, seat: AnnotationSeat, place: str, alert: str) -> AnnotationPage | FindingPage:
        if seat.is_listing:
            return FindingPage(place, seat, alert)
        return AnnotationPage(place, seat, seat.desk.view, self._room.label_set, alert)

    def _read(self, fields: Mapping[str, str], form: FormData) -> AnnotationPost:
        struck, labels = ([str(one) for one in form.getlist(name)] for name in ("struck", "label"))
        return read_post(fields, struck, labels)

    def _apply(self, seat: AnnotationSeat, post: AnnotationPost) -> Fate:
        return apply(seat, post)
