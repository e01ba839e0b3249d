"""Serves the annotators' site from this process until it is asked to end."""

from __future__ import annotations

from collections.abc import Collection

from harness.annotation.annotation_room import AnnotationRoom
from harness.web.invitations import Invitations
from harness.web.server import Servable, WebOptions, serve_site


def serve_annotation(room: AnnotationRoom, options: WebOptions) -> int:
    """Serves as `serve_site` does; `keys` and `names` of the options mean nothing here."""

    def make(invitations: Invitations, *, names: Collection[str], port: int, secure: bool) -> Servable:
        from harness.web.annotation.site import AnnotationSite

        return AnnotationSite(room, invitations, names=names, port=port, secure=secure)

    return serve_site(make, options, "annotators' site")
