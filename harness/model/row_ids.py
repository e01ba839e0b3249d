"""Ids of new rows: random, or derived from a request that may be sent twice, so that its rows are recognised."""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.UUID("6d1c9f2e-3a57-4b5e-9c0a-7f0a4b8e2d11")


class RowIds:
    """Gives a desk the ids of the rows that it writes. writer: the person whose rows they are.

    Between `begin` and the next `begin`, ids follow from the request's name and the order of writing; without a name
    they are random. A request that is sent again after a restart is thus recognised by the id of its first row.
    """

    def __init__(self, writer: str) -> None:
        self._writer = writer
        self._request, self._count = "", 0

    def begin(self, request: str) -> None:
        """The next rows belong to the request of this name; "" if they belong to none."""
        self._request, self._count = request, 0

    def next(self) -> str:
        """The id of the next row."""
        if not self._request:
            return str(uuid.uuid4())
        self._count += 1
        return self._id(self._request, self._count)

    def first(self, request: str) -> str:
        """The id of the first row that a request writes."""
        return self._id(request, 1)

    def _id(self, request: str, number: int) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self._writer}\n{request}\n{number}"))
