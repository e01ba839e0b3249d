"""A rater's desk in the site, where the seats of a site are kept, and when it reads what came from elsewhere."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from harness.model.errors import HarnessError
from harness.rating.aid import AidState
from harness.rating.desk import Desk
from harness.web.turns import Turns

REFRESH_S = 60.0
"""So often what comes from elsewhere is read again while somebody works."""
WAITING_S = 5.0
"""… and while somebody has judged all and waits for more."""
NEW_PLAYS = 50
"""At most so many plays are believed of one report."""
SLACK_MS = 2000


@dataclass(slots=True)
class Heard:
    """What a page has told so far of playing the response. sent_s: when it was sent."""

    sent_s: float
    plays: int = 0
    heard_ms: int = 0


@dataclass(slots=True)
class Seat(Turns):
    """A rater's: one for all windows of theirs. pages: those that were sent and may tell of plays."""

    desk: Desk
    aid: AidState | None = None
    pages: dict[str, Heard] = field(default_factory=dict)

    @property
    def sight(self) -> str:
        """The id of the item in sight; "" when there is none."""
        item = self.desk.view.item
        return item.id if item else ""

    @property
    def waits(self) -> bool:
        return not self.sight

    def present(self) -> None:
        self.desk.present()

    def wrote(self, request: str) -> bool:
        return self.desk.wrote(request)

    def next_turn(self, done: tuple[str, str] | None = None) -> None:
        Turns.next_turn(self, done)  # super() knows no class that has slots
        self.aid = None
        self.pages.clear()

    def new_page(self, now_s: float) -> str:
        """Names a page that is being sent; it may tell of plays under this name."""
        while len(self.pages) > 20:
            del self.pages[next(iter(self.pages))]
        name = secrets.token_hex(4)
        self.pages[name] = Heard(now_s)
        return name

    def heard(self, page: str, plays: int, heard_ms: int, now_s: float, *, to_end: bool = False) -> None:
        """Takes what a page tells of all plays since it was sent; more than there was time for is not believed.

        to_end: one of them came from the start to the end.
        """
        known = self.pages.get(page)
        if known is None:
            return
        limit_ms = int((now_s - known.sent_s) * 1000) + SLACK_MS
        new_ms = max(0, min(heard_ms, limit_ms) - known.heard_ms)
        new_plays = max(0, min(plays - known.plays, NEW_PLAYS))
        known.heard_ms += new_ms
        known.plays += new_plays
        if new_ms or new_plays or to_end:
            self.desk.heard(new_ms, began=new_plays > 0, to_end=to_end)
        for _ in range(new_plays - 1):
            self.desk.heard(0, began=True, to_end=False)

    def open_aid(self) -> None:
        self.aid = self.desk.begin_aid() or self.aid


AnySeat = TypeVar("AnySeat", bound=Turns)


class Seats(Generic[AnySeat]):
    """The seats of one kind, made at a rater's first request from the rows on the disk; thread-safe.

    make: of a rater and the number of the reading that the seat is made from.
    """

    def __init__(self, make: Callable[[str, int], AnySeat]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._seats: dict[str, AnySeat] = {}

    def of(self, rater: str, reading: int) -> AnySeat:
        """The rater's seat. reading: the number of the reading of the sessions that a new one is made from."""
        with self._lock:
            if rater not in self._seats:
                self._seats[rater] = self._make(rater, reading)
            return self._seats[rater]


class Refreshes(Protocol):
    """A room: it reads again what it is made of. HarnessError when that cannot be read."""

    def refresh(self) -> object: ...


class Readings:
    """Reads what came from elsewhere now and then, beside the requests, so that nobody waits for it."""

    def __init__(self, room: Refreshes, now_s: Callable[[], float] = time.monotonic) -> None:
        self._room = room
        self._now_s = now_s
        self._lock = threading.Lock()
        self._read_s = now_s()
        self._running: threading.Thread | None = None
        self.number = 0
        self.failed = ""

    def maybe(self, after_s: float = REFRESH_S) -> None:
        """Begins a reading when the last one is so long ago."""
        with self._lock:
            if self._running is not None and self._running.is_alive():
                return
            if self._now_s() - self._read_s < after_s:
                return
            self._read_s = self._now_s()
            self._running = threading.Thread(target=self._read, name="reading sessions", daemon=True)
            self._running.start()

    def wait(self) -> None:
        """Returns when no reading is under way."""
        with self._lock:
            running = self._running
        if running is not None:
            running.join()

    def _read(self) -> None:
        try:
            self._room.refresh()
        except HarnessError as error:
            # What was read before stands; saving would tell of the same fault.
            self.failed = str(error)
            return
        self.failed = ""
        self.number += 1
