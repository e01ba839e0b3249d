"""The live site: running sessions of this host, read-only. It reads the feeds of the engines, like any other client."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.base.foreign import shell_word
from harness.base.places import SessionFolder
from harness.model.errors import EngineError, HarnessError
from harness.model.feed import Goodbye, Hello, Logged, Message, StateChanged, StateWord, Welcome
from harness.model.numbers import seconds, time_left
from harness.model.observation import LinkLost, SoundKept
from harness.model.record import Clip, Entry, EventClipped, FaultMet, Observed, ResponseFrozen
from harness.model.scenario import Scenario
from harness.report.charts import charts_html
from harness.report.session_page import wake_charts
from harness.session.engine.feed import EngineClient
from harness.session.engine.launch import EnginePlace, list_running
from harness.session.figures.limits import limits_so_far
from harness.session.figures.progress import SessionFigures
from harness.session.log.reader import read_clip, read_scenario
from harness.session.summary import finished_line, totals_lines, verdict_lines
from harness.session.wording import ENDED, RowWriter
from harness.statistics.text import share_with_interval
from harness.wake.reports.figures_text import WakeLines, rate_text, ratio_text, wake_summary
from harness.web.base_site import BaseSite, SiteWords, Templates, Visit
from harness.web.invitations import Invitations, SiteReach
from harness.web.sounds import SoundCache, clip_version, serve_range

WORDS = SiteWords(
    name="Live sessions",
    welcome="Live sessions",
    kept="nothing else about you",
    go_on="Back to the sessions",
    rest="You are still logged in. You may close this window.",
)
LIVE = "/live"
SEARCH_INTERVAL_S = 1.0
MAX_VALUES_AGE_S = 0.5
"""Age at which the values of a page are computed again."""
SILENT_FROM_S = 10
"""A page says how long the engine has been silent from this time on."""
MAX_EVENTS = 40
MAX_CLIPS = 20
"""Number of last clips that are remembered, so that a slightly outdated page can still play them."""


class LiveSession:
    """The state of one session, updated with each row of its feed; thread-safe.

    The constructor raises EngineError if the session's engine does not answer.
    """

    def __init__(self, place: EnginePlace) -> None:
        self.place = place
        self.folder = Path(place.folder)
        self.key = hashlib.sha256(place.folder.encode()).hexdigest()[:12]
        self._lock = threading.Lock()
        self._figures, self._wake, self._row_writer = SessionFigures(), WakeLines(), RowWriter()
        self._events: deque[tuple[str, str, bool]] = deque(maxlen=MAX_EVENTS)
        """Time of day, text, and whether it is a fault, oldest first."""
        self._fault = ""
        self._clips: deque[Clip] = deque(maxlen=MAX_CLIPS)
        self._state: StateChanged | None = None
        self._goodbye: Goodbye | None = None
        self._scenario: Scenario | None = None
        self._cached_values: Mapping[str, object] = {}
        self._cached_values_s = 0.0
        self._charts: tuple[int, str] = -1, ""
        """Number of finished trials, and the charts that show them."""
        self._first_wall_s = 0.0
        self._received_s = time.monotonic()
        self.gone: str | None = None
        """Why the connection ended; "" after an orderly end, None while it lasts."""
        hello = Hello(client="web", since_seq=0, attended=False)
        self._client = EngineClient(Path(place.socket), hello, self._handle_message, self._on_close)

    def close(self) -> None:
        self._client.close()

    def clip(self, name: str) -> Clip | None:
        """The clip with this name, if it is one of the last MAX_CLIPS; else None."""
        with self._lock:
            return next((clip for clip in self._clips if clip.name == name), None)

    def values(self) -> Mapping[str, object]:
        """The values for its pages, at most `MAX_VALUES_AGE_S` old, and the same for all browsers."""
        with self._lock:
            if not self._cached_values or time.monotonic() - self._cached_values_s >= MAX_VALUES_AGE_S:
                self._cached_values = self._compute_values()
                self._cached_values_s = time.monotonic()
            return self._cached_values

    def charts(self) -> str:
        """The curves of its wake results as HTML. They are drawn again after each trial."""
        with self._lock:
            finished = self._figures.snapshot().totals.finished
            if self._charts[0] != finished:
                self._charts = finished, charts_html(wake_charts("live", self._wake.figures, self._first_wall_s))
            return self._charts[1]

    def _handle_message(self, message: Message) -> None:
        with self._lock:
            self._received_s = time.monotonic()
            match message:
                case Welcome():
                    self._state = message.state
                case StateChanged():
                    self._state = message
                case Goodbye():
                    self._goodbye = message
                case Logged(entry=entry):
                    self._add_row(entry)
                case _:
                    pass

    def _add_row(self, entry: Entry) -> None:
        self._figures.add(entry)
        self._first_wall_s = self._first_wall_s or entry.wall_s
        line = self._row_writer.line(entry.record)
        clock = time.strftime("%H:%M:%S", time.localtime(entry.wall_s))
        match entry.record:
            case FaultMet() | Observed(observation=LinkLost()):
                self._fault = f"{clock} {line}"
                self._events.append((clock, line or "", True))
                line = None  # it is already in the events, as a fault
            case ResponseFrozen(clip=clip) | EventClipped(clip=clip) | Observed(observation=SoundKept(clip=clip)):
                self._clips.append(clip)
            case _:
                pass
        lines = self._wake.add(entry)
        if line is not None:
            lines = [line, *lines]
        self._events.extend((clock, text.strip(), False) for text in lines)

    def _on_close(self, why: str) -> None:
        with self._lock:
            self.gone, self._cached_values = why, {}

    def _status(self) -> tuple[str, str]:
        """The state of the session in a word, and the reason."""
        finished = self._figures.snapshot().finished
        if self._goodbye is not None:
            return "ENDED", ENDED[finished] if finished else self._goodbye.reason or "the engine has ended"
        if self.gone is not None and self.place.alive:
            return "LOST", f"no connection to the engine: {self.gone}"
        if self.gone is not None or not self.place.alive:
            return (
                "NOT RUNNING",
                f"the engine was killed or has crashed. Resume: harness run resume {shell_word(self.folder)}",
            )
        if self._state is None:
            return StateWord.PREPARING.value, ""
        return self._state.word.in_words, self._state.reason

    def _compute_values(self) -> Mapping[str, object]:
        progress, wake = self._figures.snapshot(), self._wake.figures.snapshot()
        word, why = self._status()
        has_ended = word in ("ENDED", "NOT RUNNING", "LOST")
        title = progress.session.title if progress.session else self.folder.name
        results = [
            (f"{device.device}: {name}", figure)
            for device in wake.devices
            for name, figure in (
                ("false rejects", ratio_text(device.false_rejects)),
                ("false accepts", rate_text(device.after_review)),
            )
        ]
        queries = any(trial.trial.listening is None for trial in progress.trials)
        if queries:
            results.append(("recognised", share_with_interval(progress.totals.recognised)))
        lines = totals_lines(progress.totals) if queries else [finished_line(progress.totals)]
        summary = wake_summary(self._wake.figures)
        if summary:
            lines = [*lines, "", *summary]
        silent_s = time.monotonic() - self._received_s
        return {
            "key": self.key,
            "name": self.folder.name,
            "title": title or self.folder.name,
            "word": word,
            "why": why,
            "over": has_ended,
            "silent": seconds(silent_s) if not has_ended and silent_s >= SILENT_FROM_S else "",
            "finished": progress.totals.finished,
            "progress": progress.totals.finished_in_words,
            "planned": progress.totals.planned,
            "running": progress.running or "",
            "left": "" if has_ended else time_left(progress.eta_s),
            "results": results,
            "fault": self._fault,
            "faults": progress.faults,
            "pauses": progress.pauses,
            "lines": [*lines, *self._limit_lines()],
            "events": tuple(reversed(self._events)),
            "clip": self._clips[-1] if self._clips else None,
        }

    def _limit_lines(self) -> list[str]:
        if self._scenario is None:
            try:
                self._scenario = read_scenario(self.folder)
            except HarnessError as error:
                return ["", f"limits: {error}"]
        progress, wake, scenario = self._figures.snapshot(), self._wake.figures.snapshot(), self._scenario
        limits = limits_so_far(scenario.limits, scenario.stopping, progress, wake)
        return ["", *verdict_lines(limits, progress)]


class LiveSessions:
    """The sessions that run on this host, and those that ended since the site was started; thread-safe.

    only: the only session folder to show; None for all sessions of this user.
    """

    def __init__(self, only: Path | None = None) -> None:
        self._only_folder = only
        self._lock = threading.Lock()
        self._sessions: dict[str, LiveSession] = {}
        self._unreachable: tuple[tuple[str, str], ...] = ()
        self._is_stopping = threading.Event()
        self._find_sessions()
        self._thread = threading.Thread(target=self._watch, name="live sessions", daemon=True)
        self._thread.start()

    @property
    def sessions(self) -> tuple[LiveSession, ...]:
        """The sessions, newest first."""
        with self._lock:
            return tuple(reversed(self._sessions.values()))

    @property
    def unreachable(self) -> tuple[tuple[str, str], ...]:
        """(folder, reason) of each engine that runs but does not answer."""
        with self._lock:
            return self._unreachable

    def session(self, key: str) -> LiveSession | None:
        return next((session for session in self.sessions if session.key == key), None)

    def close(self) -> None:
        self._is_stopping.set()
        self._thread.join()
        for session in self.sessions:
            session.close()

    def _watch(self) -> None:
        while not self._is_stopping.wait(SEARCH_INTERVAL_S):
            try:
                self._find_sessions()
            except (OSError, RecursionError) as error:  # the page shows the error, and the search continues
                with self._lock:
                    self._unreachable = (("The search for sessions failed", str(error)),)

    def _find_sessions(self) -> None:
        unreachable = []
        for place in list_running():
            previous = self._sessions.get(place.folder)
            if self._only_folder is not None and Path(place.folder) != self._only_folder:
                continue
            # A connection that broke is made anew, but not one with an orderly end (""): that engine is about to exit.
            if previous is not None and previous.place == place and not previous.gone:
                continue
            try:
                session = LiveSession(place)
            except EngineError as error:
                unreachable.append((place.folder, str(error)))
                continue
            with self._lock:
                self._sessions.pop(place.folder, None)
                self._sessions[place.folder] = session
            if previous is not None:
                previous.close()
        with self._lock:
            self._unreachable = tuple(unreachable)


class LiveSite(BaseSite):
    """Pages of the running sessions, for everybody who is invited. They have no buttons that change anything."""

    FIRST = LIVE

    def __init__(self, sessions: LiveSessions, invitations: Invitations, *, reached: SiteReach) -> None:
        self._sessions = sessions
        self._sounds = SoundCache()
        routes = [
            Route(LIVE, self._overview),
            Route(LIVE + "/{key}", self._session_page),
            Route("/sound/{key}/{clip}", self._sound),
            Route("/charts.css", self._chart_styles),
        ]
        templates = Templates(("live.html", "live_session.html", "live_state.html"), WORDS, {})
        super().__init__(invitations, templates, routes, reached)

    def close(self) -> None:
        self._sessions.close()

    def _place(self, visit: Visit) -> str:
        return LIVE

    def _overview(self, request: Request) -> Response:
        visit = self._rater(request)
        session_values = [session.values() for session in self._sessions.sessions]
        return self._page(
            "live.html", visit, sessions=session_values, unreachable=self._sessions.unreachable, now=_time_of_day()
        )

    def _session_page(self, request: Request) -> Response:
        visit = self._rater(request)
        session = self._session(request)
        values = session.values()
        return self._page("live_session.html", visit, 200, **values, charts=session.charts(), now=_time_of_day())

    def _session(self, request: Request) -> LiveSession:
        session = self._sessions.session(request.path_params["key"])
        if session is None:
            raise HTTPException(404, "That session has not run since this site was started.")
        return session

    def _sound(self, request: Request) -> Response:
        self._rater(request)
        session = self._session(request)
        clip = session.clip(request.path_params["clip"])
        if clip is None:
            raise HTTPException(404, "Newer clips have replaced this one. Load the page again.")
        clips, fault = SessionFolder(session.folder).clips, "The clip cannot be read on the site's host."
        name = session.key, clip.sha256, clip_version(clips / clip.name)
        content = self._sounds.get(name, lambda: read_clip(clips, clip), fault)
        return serve_range(content, "audio/wav", request.headers.get("range"))

    def _chart_styles(self, _: Request) -> Response:
        styles = resources.files("harness.report") / "templates" / "charts.css"
        return Response(styles.read_bytes(), media_type="text/css", headers={"cache-control": "no-cache"})


def _time_of_day() -> str:
    return time.strftime("%H:%M:%S")
