"""Home Assistant: the states of a satellite, and the runs of its Assist pipeline with their stages.

The driver subscribes and asks; it changes nothing. Messages: home-assistant/core, components `websocket_api`,
`assist_pipeline` and `assist_satellite`. Each report is a line of JSON with a `type`, which the profile maps.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from harness.base import threads
from harness.base.clocks import HostClock
from harness.base.foreign import plain_text
from harness.base.host_check import Check, check_each
from harness.base.ports import Clock
from harness.devices import websocket
from harness.devices.declared import SetupAdvice
from harness.devices.readings import ReadingsFarEnd, ReadingsSource, ReadingsStream
from harness.devices.text_streams import STOP_CHECK_S
from harness.devices.wire.device_clock import DeviceClock, PingSchedule
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError, LoginRefused, refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.time import Stamp

ANSWER_LIMIT_S = 5.0
"""If an answer takes longer, the link counts as lost, in seconds."""
RUN_POLL_S = 0.5
"""Interval at which an active run is read, in seconds. It is also read at each change of the satellite's state."""
MAX_LISTENING_DELAY_S = 0.5
"""A satellite begins to listen at most this long after the speech recognition of its run, both on one clock."""
CLOCK_TEMPLATE = "{{ utcnow().timestamp() }}"
SATELLITES = "assist_satellite."
_AWAY_STATES = ("unavailable", "unknown")
_LISTENING = "listening"
_UNREPORTED_STAGES = ("run-start", "wake_word-start", "intent-progress")


@frozen
class HomeAssistantOptions:
    """Options of Home Assistant.

    url: Address of Home Assistant, such as http://homeassistant.local:8123. https:// checks the certificate.
    token_env: Name of the environment variable that holds an administrator's long-lived access token.
    satellite: Entity of the satellite, such as assist_satellite.kitchen (empty: the only one).
    hold_back_ms: How long a satellite's report may take to reach Home Assistant, ms (part of the error of the times of
        wake events and states).
    """

    ready: ClassVar[str] = ""
    ready_within_s: ClassVar[float] = 0.0
    restart_line: ClassVar[str] = ""
    silence_limit_s: ClassVar[float] = 0.0

    url: str
    token_env: str = "HASS_TOKEN"
    satellite: str = ""
    hold_back_ms: float = 100.0  # Assumed, not measured.

    def __post_init__(self) -> None:
        _ = self.socket_url  # raises InputError for a wrong `url`
        if not self.token_env:
            raise InputError(
                "`token_env` is empty", remedy="Set `token_env` to the name of a variable, such as HASS_TOKEN"
            )
        if self.satellite and not self.satellite.startswith(SATELLITES):
            raise InputError(
                f"satellite: {self.satellite!r} is not a satellite entity",
                remedy=f"Use an entity such as {SATELLITES}kitchen",
            )
        refuse_out_of_range(self, hold_back_ms=(0, 86_400))

    @property
    def socket_url(self) -> str:
        """The URL of the WebSocket API. Raises InputError if `url` is not the address of Home Assistant."""
        remedy = "Use the form http://host:8123"
        parts = websocket.checked_url(self.url, ("http", "https"), "the address of Home Assistant", remedy)
        path = parts.path.rstrip("/") + "/api/websocket"
        scheme = "wss" if parts.scheme == "https" else "ws"
        return parts._replace(scheme=scheme, path=path, query="").geturl()


class _DriverClosing(Exception):
    """The driver closes."""


class _CommandError(Exception):
    """Home Assistant did not carry out a command. code: its error code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class _AssistRun:
    """A run of the pipeline.

    - reported_events: number of its events that were reported.
    - is_ours: whether it is a run of the satellite; None if not known yet.
    - is_over: whether it has ended.
    """

    reported_events: int = 0
    is_ours: bool | None = None
    is_over: bool = False


class AssistLink:
    """A connection that is logged in and has found the satellite. Raises DeviceError if either fails."""

    def __init__(self, options: HomeAssistantOptions, clock: Clock, stop: threading.Event) -> None:
        self.version = ""
        self.satellite = options.satellite
        self._options, self._now_s, self._stop = options, clock.now_s, stop
        self._ids = itertools.count(1)
        self._last_id = 0
        self._states_id = 0
        """Number of the last command, and of the subscription to state changes."""
        self._state = ""  # of the satellite; "" if not known yet
        self._listened_s = deque[float](maxlen=8)
        self._runs: dict[str, _AssistRun] = {}
        # Fewer pings than a board gets: for each, Home Assistant renders a template.
        self._clock, self._schedule = DeviceClock(), PingSchedule(2.0, burst=8, gap_s=0.05)
        self._runs_due_s = float("-inf")
        self._on_line: Callable[[str, Stamp], None] = lambda line, stamp: None
        token = websocket.read_token(options.token_env)
        _, self._errors = websocket.demand_library()
        self._socket = websocket.open_socket(options.socket_url)
        try:
            self._convert_errors(lambda: self._log_in(token))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def measure(self, report: Callable[[str, Stamp], None], stop: threading.Event) -> str:
        """Reports until the connection ends or `stop` is set. Returns why it ended."""
        self._on_line, self._stop = report, stop
        try:
            self._convert_errors(self._follow)
        except _DriverClosing:
            pass
        finally:
            self.close()
        return ""

    def _convert_errors(self, action: Callable[[], None]) -> None:
        """Runs an action, and turns every failure of the connection into DeviceError."""
        remedy = "Read Home Assistant's log"
        try:
            action()
        except (OSError, self._errors.WebSocketException) as error:
            why = plain_text(str(error), 300) or "closed"
            raise DeviceError(f"{self._options.url}: {why}", remedy=remedy) from error
        except _CommandError as error:
            if error.code == "unauthorized":
                token = f"Set {self._options.token_env} to an administrator's token"
                raise LoginRefused(
                    f"{self._options.url} shows pipeline runs to administrators only",
                    remedy=f"{token}, then start again",
                ) from error
            raise DeviceError(
                f"{self._options.url} did not carry out a command: {plain_text(error.code, 80)}",
                remedy="Update Home Assistant to 2024.10 or later, with Assist set up",
            ) from error
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise DeviceError(
                f"{self._options.url} sent a message that does not follow Home Assistant's protocol",
                remedy="Correct `url`",
            ) from error

    def _log_in(self, token: str) -> None:
        """Logs in, finds the satellite, reads the clock, and notes the runs so far, which are not reported."""
        if self._next_message()["type"] != "auth_required":
            raise ValueError("no login")
        self._socket.send(json.dumps({"type": "auth", "access_token": token}))
        answer = self._next_message()
        if answer["type"] == "auth_invalid":
            variable = self._options.token_env
            why = plain_text(str(answer.get("message", "")), 100)
            raise LoginRefused(
                f"{self._options.url} refuses the token in {variable}: {why}",
                remedy=f"Create a long-lived access token in your Home Assistant profile, set {variable}, then restart",
            )
        self.version = plain_text(str(answer["ha_version"]), 40)
        self._find_satellite()
        self._ping_clock()
        pipelines = self._request("assist_pipeline/pipeline/list")["pipelines"]
        self._pipelines = [str(pipeline["id"]) for pipeline in pipelines]
        for pipeline, run in self._list_runs():
            events = self._run_events(pipeline, run)
            self._runs[run] = _AssistRun(len(events), is_over=_has_event(events, "run-end"))

    def _find_satellite(self) -> None:
        """Sets `satellite` to the one that the options name, or the only one; DeviceError without such a satellite."""
        entities = (str(entity["entity_id"]) for entity in self._request("get_states"))
        satellites = sorted(plain_text(entity_id, 80) for entity_id in entities if entity_id.startswith(SATELLITES))
        hint = f"Its satellites: {', '.join(satellites)}"
        if not satellites:
            raise DeviceError(
                f"{self._options.url} has no satellite",
                remedy="Add a satellite to Home Assistant under Settings, Voice assistants",
            )
        if not self.satellite and len(satellites) > 1:
            raise DeviceError(
                f"{self._options.url} has {len(satellites)} satellites", remedy=f"Set `satellite`. {hint}"
            )
        self.satellite = self.satellite or satellites[0]
        if self.satellite not in satellites:
            raise DeviceError(f"{self._options.url} has no {self.satellite}", remedy=f"Correct `satellite`. {hint}")

    def _follow(self) -> None:
        """Reports states and runs, and reads the clock now and then, until the driver closes."""
        self._report("home-assistant", {"version": self.version, "satellite": self.satellite}, self._stamp_now())
        self._request("subscribe_entities", subscribes=True, entity_ids=[self.satellite])
        while not self._stop.is_set():
            now_s = self._now_s()
            if now_s >= self._runs_due_s:
                self._runs_due_s = float("inf")  # a change of the state while the runs are read makes them due again
                if self._read_runs():
                    self._runs_due_s = min(self._runs_due_s, now_s + RUN_POLL_S)
            if not self._schedule.wait_s(self._now_s()):
                self._ping_clock()
            wait_s = min(STOP_CHECK_S, self._schedule.wait_s(now_s), self._runs_due_s - self._now_s())
            self._receive_answers(max(0.0, wait_s))  # handles changes of the state; no command waits for an answer

    def wake_phrases(self) -> tuple[str, ...]:
        """The phrases that the satellite listens for now; () if Home Assistant does not know them, as with Wyoming."""
        phrases: list[str] = []

        def ask() -> None:
            with contextlib.suppress(_CommandError):
                configuration = self._request("assist_satellite/get_configuration", entity_id=self.satellite)
                words = {
                    wake_word["id"]: plain_text(str(wake_word["wake_word"]), 80)
                    for wake_word in configuration["available_wake_words"]
                }
                phrases.extend(words[id] for id in configuration["active_wake_words"] if id in words)

        self._convert_errors(ask)
        return tuple(phrases)

    def _next_message(self) -> Any:
        """The next message of the login."""
        return json.loads(self._socket.recv(timeout=ANSWER_LIMIT_S))

    def _receive_answers(self, limit_s: float) -> list[Any]:
        """Messages that answer the last command; [] if none arrives within limit_s. Handles changes of the state."""
        try:
            document = json.loads(self._socket.recv(timeout=limit_s))
        except TimeoutError:
            return []
        messages = document if isinstance(document, list) else [document]
        for message in messages:
            if message.get("id") == self._states_id and message["type"] == "event":
                self._handle_states(message["event"])
        return [message for message in messages if message.get("id") == self._last_id]

    def _request(self, kind: str, *, subscribes: bool = False, answer: str = "result", **keys: object) -> Any:
        """Sends a command. Returns its result or its first event. Raises _CommandError if it is not carried out.

        - subscribes: whether its events are changes of the state, from now on.
        - answer: kind of message to wait for.
        """
        self._last_id = next(self._ids)
        if subscribes:
            self._states_id = self._last_id
        self._socket.send(json.dumps({"id": self._last_id, "type": kind, **keys}))
        until_s = self._now_s() + ANSWER_LIMIT_S
        while self._now_s() < until_s:
            if self._stop.is_set():
                raise _DriverClosing
            for message in self._receive_answers(STOP_CHECK_S):
                if message["type"] == "result" and not message["success"]:
                    raise _CommandError(str(message["error"]["code"]))
                if message["type"] == answer:
                    return message[answer]
        raise OSError(f"no answer arrived within {exact(ANSWER_LIMIT_S)} s")

    def _ping_clock(self) -> None:
        """Reads Home Assistant's clock, which it does at some time between question and answer."""
        sent_s = self._now_s()
        self._schedule.record_sent(sent_s)
        read_us = round(
            float(self._request("render_template", answer="event", template=CLOCK_TEMPLATE)["result"]) * 1e6
        )
        self._clock.add_ping(sent_s, read_us, read_us, self._now_s())
        self._schedule.record_answer()
        self._request("unsubscribe_events", subscription=self._last_id)

    def _stamp_now(self) -> Stamp:
        return Stamp(self._now_s())

    def _host_stamp(self, at_s: float) -> Stamp:
        """A time on Home Assistant's clock, converted to the host's clock."""
        return self._clock.host_time(round(at_s * 1e6))

    def _report(self, kind: str, data: object, stamp: Stamp) -> None:
        self._on_line(json.dumps({"type": kind, "data": data}), stamp)

    def _handle_states(self, event: Any) -> None:
        """Handles an event of `subscribe_entities`: a, c and r are entities added, changed and removed."""
        changes = [
            *event.get("a", {}).items(),
            *((id, change.get("+", {})) for id, change in event.get("c", {}).items()),
        ]
        changes += [(id, {"s": _AWAY_STATES[0], "lc": None}) for id in event.get("r", ())]
        for id, change in changes:
            if id == self.satellite and "s" in change:
                self._handle_state(str(change["s"]), change.get("lc", change.get("lu")))

    def _handle_state(self, state: str, since_s: float | None) -> None:
        """Reports a state of the satellite. since_s: when it began, on Home Assistant's clock; None if not known."""
        previous, self._state = self._state, state
        way_s = self._options.hold_back_ms / 2000
        stamp = self._stamp_now()
        if previous and since_s is not None:  # the first state may have begun long ago
            host_stamp = self._host_stamp(since_s)
            stamp = Stamp(host_stamp.at_s - way_s, host_stamp.error_s + way_s)
        if state == _LISTENING and since_s is not None:
            self._listened_s.append(since_s)
            if previous and previous not in _AWAY_STATES:
                self._report("satellite-woke", {"from": previous}, stamp)
        self._report("satellite", {"state": state, "from": previous}, stamp)
        self._runs_due_s = self._now_s()

    def _list_runs(self) -> list[tuple[str, str]]:
        """(pipeline, run) of each run that Home Assistant still has in memory."""
        runs = []
        for pipeline in self._pipelines:
            records = self._request("assist_pipeline/pipeline_debug/list", pipeline_id=pipeline)["pipeline_runs"]
            runs += [(pipeline, str(run["pipeline_run_id"])) for run in records]
        return runs

    def _run_events(self, pipeline: str, run: str) -> list[Any]:
        """The events of a run so far; [] if Home Assistant no longer has it."""
        try:
            record = self._request("assist_pipeline/pipeline_debug/get", pipeline_id=pipeline, pipeline_run_id=run)
        except _CommandError as error:
            if error.code == "not_found":  # newer runs took its place
                return []
            raise
        return list(record["events"])

    def _read_runs(self) -> bool:
        """Reports what is new. Returns whether a run of the satellite is under way."""
        is_running = False
        run_ids = self._list_runs()
        self._runs = {run: self._runs.get(run, _AssistRun()) for _, run in run_ids}
        for pipeline, id in run_ids:
            run = self._runs[id]
            if run.is_over or run.is_ours is False:
                continue
            events = self._run_events(pipeline, id)
            run.is_over = _has_event(events, "run-end")
            if run.is_ours is None:
                run.is_ours = self._is_ours(events)
            if run.is_ours:
                new_events, run.reported_events = events[run.reported_events :], len(events)
                for event in new_events:
                    self._report_stage(event, events)
                is_running = is_running or (not run.is_over and _has_event(events, "stt-start"))
        return is_running

    def _is_ours(self, events: list[Any]) -> bool | None:
        """Whether a run is the satellite's; None if not known yet.

        Newer versions name the satellite in the events. In older ones, the time at which it listened decides.
        """
        for event in events:
            satellite = (event["data"] or {}).get("satellite_id")
            if satellite is not None:
                return bool(satellite == self.satellite)
        starts_s = [_event_time_s(event) for event in events if event["type"] == "stt-start"]
        if not starts_s:
            return None
        return any(
            0 <= listened_s - start_s <= MAX_LISTENING_DELAY_S
            for start_s in starts_s
            for listened_s in self._listened_s
        )

    def _report_stage(self, event: Any, events: list[Any]) -> None:
        """Reports an event of a run, and at its end the intent. events: all events of the run."""
        kind, data, stamp = str(event["type"]), event["data"] or {}, self._host_stamp(_event_time_s(event))
        if kind in _UNREPORTED_STAGES:
            return
        self._report(kind, data, stamp)
        if kind == "intent-end":
            response = data["intent_output"]["response"]
            if response.get("response_type") == "error":  # no_intent_match, no_valid_targets and others
                self._report("no-intent", {"code": response.get("data", {}).get("code", "")}, stamp)
            elif data.get("processed_locally", True):
                start = next(run_event for run_event in events if run_event["type"] == "intent-start")
                self._report_intent(start["data"], stamp)

    def _report_intent(self, start: Any, stamp: Stamp) -> None:
        """Reports the intent. Runs do not name it, so this asks Home Assistant what it understands from the words."""
        keys = {name: start[name] for name in ("language", "device_id") if start.get(name)}
        try:
            answer = self._request("conversation/agent/homeassistant/debug", sentences=[start["intent_input"]], **keys)
        except _CommandError:
            return  # an agent that cannot say
        results = answer["results"]
        outcome = (results[0] if results else None) or {}
        if outcome.get("match") and outcome.get("intent"):
            self._report("intent", {"name": outcome["intent"]["name"], "slots": outcome.get("slots", {})}, stamp)


def _has_event(events: list[Any], kind: str) -> bool:
    return any(event["type"] == kind for event in events)


def _event_time_s(event: Any) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def _open_far_end(options: HomeAssistantOptions, clock: Clock, stop: threading.Event) -> ReadingsFarEnd:
    try:
        return ReadingsFarEnd("home assistant", AssistLink(options, clock, stop).measure)
    except _DriverClosing:
        raise DeviceError("the driver closes") from None


class HomeAssistant(ReadingsStream):
    """A satellite of Home Assistant."""

    Options: ClassVar[type] = HomeAssistantOptions

    def connect(self) -> ReadingsFarEnd:
        return _open_far_end(self._options, self._clock, self._stop)

    @staticmethod
    def source(
        options: HomeAssistantOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]
    ) -> ReadingsSource:
        return ReadingsSource(options.url, lambda: _open_far_end(options, HostClock(), threads.event()))

    @staticmethod
    def demand_host(options: HomeAssistantOptions) -> None:
        """Raises InputError when the token's variable is not set, PluginError when the library is not installed."""
        websocket.read_token(options.token_env)
        websocket.demand_library()

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, HomeAssistantOptions]]) -> Iterator[Check]:
        def attempt(options: HomeAssistantOptions) -> str:
            with contextlib.closing(AssistLink(options, HostClock(), threads.event())) as link:
                return f"{options.url} answers: Home Assistant {link.version}, {link.satellite}"

        return check_each("home_assistant", connections, attempt)

    @staticmethod
    def setup_advice(options: HomeAssistantOptions) -> SetupAdvice:
        with contextlib.closing(AssistLink(options, HostClock(), threads.event())) as link:
            return SetupAdvice(link.wake_phrases())

    @staticmethod
    def far_end(options: HomeAssistantOptions, id: str) -> str:
        return f"{options.url} {options.satellite}".strip()
