"""Messages of a run to people elsewhere: through a program, to an HTTP address, or to an MQTT broker."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.base import threads
from harness.base.child_process import ChildProcess, ended_words
from harness.base.clocks import HostClock
from harness.base.foreign import plain_text, shell_word
from harness.devices.mqtt.options import broker_of
from harness.model.bench import Notify, NotifyInput, NotifyOn
from harness.model.errors import DeviceError, HarnessError, InputError
from harness.model.feed import Goodbye, StateChanged, StateWord
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact
from harness.model.observation import LinkLost
from harness.model.record import DecisionReached, Entry, FaultMet, Observed, Paused, PowerSwitched, Resumed
from harness.session.wording import decision_in_words

NOTIFY_BY = "notify"
"""The author of notes about messages that were not delivered."""
WITHIN_S = 10.0
"""Time limit of one delivery, in seconds."""
BACK_OFF_S = (2.0, 10.0, 60.0)
"""Waits before each further try, in seconds."""
LAST_WORDS_S = 20.0
"""How long the end of a run waits for its last messages."""
FAULT_EVERY_S = 600.0
"""A source of faults, or a reason for a pause, is reported at most once in this time, in seconds."""
MAX_WAITING = 50


@frozen
class SessionSnapshot:
    """State of a session when a message is sent.

    - planned, finished: numbers of trials.
    - outcomes: (outcome, number of finished trials).
    - lines: the results, for people.
    """

    planned: int = 0
    finished: int = 0
    outcomes: tuple[tuple[str, int], ...] = ()
    lines: tuple[str, ...] = ()


@frozen
class NotificationEvent:
    """Something to report.

    - on: the kinds of messages to which it belongs; it is sent if one of them is wanted. event: its own kind.
    - subject: headline, which follows the name of the session. why: reason.
    - to_do: what a person should do; "" if nothing.
    - wall_s: when it happened, in Unix time.
    """

    on: frozenset[NotifyOn]
    event: NotifyOn
    subject: str
    why: str
    to_do: str
    wall_s: float


def message_of(event: NotificationEvent, session: Path, bench: str, snapshot: SessionSnapshot) -> dict[str, Any]:
    """The message as the JSON object that is sent; `text` says the same for people."""
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(event.wall_s))
    subject = plain_text(f"{session.name}: {event.subject}", 150)
    why, to_do = plain_text(event.why, 500), event.to_do
    facts = {"Why": why, "Since": began, "Bench": bench, "Session": str(session), "What to do": to_do}
    text = [f"{subject}.", *(f"{name}: {fact}" for name, fact in facts.items() if fact), "", *snapshot.lines]
    return {
        "event": event.event.value,
        "subject": subject,
        "why": why,
        "to_do": to_do,
        "since": began,
        "session": str(session),
        "bench": bench,
        "planned": snapshot.planned,
        "finished": snapshot.finished,
        "outcomes": dict(snapshot.outcomes),
        "text": "\n".join(text),
    }


def sample_message(bench: str) -> dict[str, Any]:
    """A message without a run, for trying out a way of delivery."""
    to_do = "nothing, since this is a test message"
    event = _single_event(
        NotifyOn.FINISHED, "a test message", "harness check doctor --send-test", to_do, threads.wall()
    )
    return message_of(event, Path("no-session"), bench, SessionSnapshot()) | {"event": "test"}


# Ways to deliver


def name_of(notify: Notify) -> str:
    """The name of a way of delivery, for people, without the parts of an address that may be secret."""
    if notify.command:
        return f"the program {Path(notify.command[0]).name}"
    if notify.mqtt:
        return f"the broker {notify.mqtt}"
    return f"the webhook {notify.webhook_env or urlsplit(notify.webhook).hostname}"


def demand_ready(notify: Notify) -> None:
    """Raises InputError if its program or one of its environment variables is missing on this host."""
    if notify.command and shutil.which(notify.command[0]) is None:
        raise InputError(
            f"the program {notify.command[0]!r} of `notify` does not exist or is not executable",
            remedy="Install the program, or specify its path, which is relative to the bench's folder",
        )
    for variable in filter(None, (notify.webhook_env, notify.token_env, notify.password_env)):
        if not os.environ.get(variable):
            raise InputError(
                f"the environment variable {variable}, which `notify` uses, is not set", remedy=f"export {variable}=…"
            )


def deliver(notify: Notify, message: dict[str, Any]) -> None:
    """Delivers one message within about WITHIN_S. Raises HarnessError when it was not accepted."""
    demand_ready(notify)
    message_json = json.dumps(message, ensure_ascii=False).encode()
    if notify.command:
        _run_program(notify, message, message_json)
    elif notify.mqtt:
        _publish(notify, message_json)
    else:
        _post(notify, message_json)


def _run_program(notify: Notify, message: dict[str, Any], message_json: bytes) -> None:
    """Runs the program, with the message as its standard input. Raises DeviceError if it fails or takes too long."""
    argv = [argument.replace("{subject}", message["subject"]) for argument in notify.command]
    content = message_json + b"\n" if notify.input is NotifyInput.JSON else f"{message['text']}\n".encode()
    try:
        child = ChildProcess(argv, stdout=None, guarded=True)
    except OSError as error:
        raise DeviceError(f"it cannot be started: {error.strerror}") from error
    try:
        _write_input(child, content)
        if not child.wait(WITHIN_S):
            raise DeviceError(f"it did not end within {exact(WITHIN_S)} s")
        if status := child.status:
            last_words = plain_text(child.last_error_line(), 200)
            raise DeviceError(f"it {ended_words(status)}{f': {last_words}' if last_words else ''}")
    finally:
        child.end()


def _write_input(child: ChildProcess, content: bytes) -> None:
    until_s = threads.monotonic() + WITHIN_S
    with contextlib.suppress(BrokenPipeError):  # a program need not read it
        while content and threads.monotonic() < until_s:
            try:
                content = content[os.write(child.stdin.fileno(), content) :]
            except BlockingIOError:
                threads.sleep(0.01)
    child.stdin.close()


def _publish(notify: Notify, message_json: bytes) -> None:
    from harness.devices.mqtt.link import BrokerLink, LinkEvents  # here, since it takes long to import

    nothing = LinkEvents(up=lambda: None, down=lambda _: None, message=lambda *_: None, remark=lambda _: None)
    link = BrokerLink("notify", broker_of(notify), HostClock(), Path(), (), nothing)
    link.open()
    try:
        link.deliver(notify.topic, message_json, WITHIN_S)
    finally:
        link.close()


def _post(notify: Notify, message_json: bytes) -> None:
    """Posts the message. Raises DeviceError if it is not accepted; the text never has the address or the token."""
    # Here, since few benches notify by HTTP.
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        """A redirected POST would become a GET without the message, and carry the token elsewhere."""

        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    address = os.environ[notify.webhook_env] if notify.webhook_env else notify.webhook
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "voice-harness"}
    if notify.token_env:
        headers["Authorization"] = f"Bearer {os.environ[notify.token_env]}"
    try:
        request = urllib.request.Request(address, message_json, headers, method="POST")
        if request.type not in ("http", "https"):
            raise DeviceError(f"{notify.webhook_env} does not contain an http(s) address", remedy="Set it to https://…")
        urllib.request.build_opener(NoRedirect).open(request, timeout=WITHIN_S).close()
    except urllib.error.HTTPError as error:
        error.close()
        raise DeviceError(f"it answered {error.code} {plain_text(str(error.reason), 80)}") from error
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise DeviceError(f"it cannot be reached: {plain_text(str(reason), 200)}") from error
    except (ValueError, HTTPException) as error:  # their texts may quote the address or the token
        raise DeviceError(f"its address, token or response is not valid HTTP ({type(error).__name__})") from error


# A run's messages


class Notifier:
    """Sends the messages of one run. Each way of delivery has its own thread, so none delays the run or another way.

    - snapshot: returns state and results of the session; called on those threads.
    - note: writes a note into the log.
    """

    def __init__(
        self,
        ways: Sequence[Notify],
        session: Path,
        bench: str,
        snapshot: Callable[[], SessionSnapshot],
        note: Callable[[str], None],
    ) -> None:
        self._session, self._bench, self._snapshot = session, bench, snapshot
        self._channels = tuple(_NotifyChannel(way, self._message, note) for way in ways)
        self._pause_reason = ""
        self._pause_reported = False
        self._last_sent_s: dict[str, float] = {}
        self._unpowered: set[str] = set()

    def committed(self, entry: Entry) -> None:
        """Reports a row of the log if it is worth a message. Never blocks."""
        for event in self._events_of_row(entry):
            self._send(event)

    def state_changed(self, state: StateChanged) -> None:
        """Reports a state of the run if it is worth a message. Never blocks.

        A full disk shows here first, since rows need space.
        """
        if state.word is StateWord.PAUSED:
            for event in self._pause_events(state.reason, threads.wall(), state.since_s):
                self._send(event)

    def close(self, goodbye: Goodbye) -> None:
        """Reports the end, and waits up to LAST_WORDS_S for its delivery."""
        self._send(_end_event(goodbye, self._session))
        until_s = threads.monotonic() + LAST_WORDS_S
        for channel in self._channels:
            channel.close(until_s)

    def _message(self, event: NotificationEvent) -> dict[str, Any]:
        return message_of(event, self._session, self._bench, self._snapshot())

    def _send(self, event: NotificationEvent) -> None:
        for channel in self._channels:
            channel.enqueue(event)

    def _events_of_row(self, entry: Entry) -> Iterator[NotificationEvent]:
        """What a row gives to report. Also follows pauses and power cycles, which decide about later rows."""
        match entry.record:
            case Paused(reason=reason, by=by):
                yield from self._pause_events(reason or f"by {by}", entry.wall_s, entry.at_s)
            case Resumed(by=by):
                self._pause_reason = ""
                if self._pause_reported:
                    yield _single_event(NotifyOn.RESUMED, "the run continues", f"by {by}", "", entry.wall_s)
            case FaultMet(source=source, what=problem):
                yield from self._fault_events(source, problem, entry)
            case PowerSwitched(device=device, on=on):
                if on:
                    self._unpowered.discard(device)
                else:
                    self._unpowered.add(device)
            case Observed(observation=LinkLost(source=source)) if source.partition(".")[0] in self._unpowered:
                pass  # expected: the run has cut its power
            case Observed(observation=LinkLost(source=source, what=problem)):
                yield from self._fault_events(source, problem, entry)
            case DecisionReached(passed=False) as decision:
                yield _single_event(
                    NotifyOn.LIMIT_BROKEN,
                    decision_in_words(decision),
                    "",
                    f"harness report show {shell_word(self._session)}",
                    entry.wall_s,
                )
            case _:
                pass

    def _pause_events(self, reason: str, wall_s: float, at_s: float) -> Iterator[NotificationEvent]:
        if reason == self._pause_reason:
            return  # its row and its state both come here
        self._pause_reason, self._pause_reported = reason, self._is_due(f"paused: {reason}", at_s)
        if self._pause_reported:
            to_do = f"resolve the cause. To continue manually: harness run attach {shell_word(self._session)}"
            yield _single_event(NotifyOn.PAUSED, "the run is paused", reason, to_do, wall_s)

    def _fault_events(self, source: str, problem: str, entry: Entry) -> Iterator[NotificationEvent]:
        if self._is_due(source, entry.at_s):
            to_do = f"investigate if the fault persists: harness run attach {shell_word(self._session)}"
            yield _single_event(NotifyOn.FAULT, f"a fault of {source}", problem, to_do, entry.wall_s)

    def _is_due(self, subject: str, at_s: float) -> bool:
        """Whether this subject was not reported within FAULT_EVERY_S. If so, records that it is reported now.

        at_s: time on the session's clock, which nobody can set.
        """
        last_s = self._last_sent_s.get(subject)
        if last_s is not None and at_s - last_s < FAULT_EVERY_S:
            return False
        self._last_sent_s[subject] = at_s
        return True


def _single_event(kind: NotifyOn, subject: str, why: str, to_do: str, wall_s: float) -> NotificationEvent:
    return NotificationEvent(frozenset({kind}), kind, subject, why, to_do, wall_s)


def _end_event(goodbye: Goodbye, session: Path) -> NotificationEvent:
    """The end of a run, in one message, which also goes to people who only want to know about limits."""
    match goodbye.exit_code:
        case 0:
            subject, to_do = "the run has finished", f"harness report show {shell_word(session)}"
        case 1:
            subject, to_do = "the run has finished, but a limit failed", f"harness report show {shell_word(session)}"
        case _:
            aborted = goodbye.reason == "aborted"  # cannot be resumed
            subject = "the run has ended early"
            to_do = f"harness {'report show' if aborted else 'run resume'} {shell_word(session)}"
    broken = {NotifyOn.LIMIT_BROKEN} if goodbye.exit_code == 1 else set()
    event = NotifyOn.LIMIT_BROKEN if broken else NotifyOn.FINISHED
    return NotificationEvent(
        frozenset({NotifyOn.FINISHED, *broken}), event, subject, goodbye.reason, to_do, threads.wall()
    )


class _NotifyChannel:
    """Delivers messages one after another in its own thread. A message that cannot be delivered is noted in the log."""

    def __init__(
        self, notify: Notify, message: Callable[[NotificationEvent], dict[str, Any]], note: Callable[[str], None]
    ) -> None:
        self._notify, self._message, self._note = notify, message, note
        self._waiting: queue.Queue[NotificationEvent | None] = threads.bounded_queue(MAX_WAITING)
        self._closing = threads.event()
        self._dropped_count = 0
        self._thread = threads.thread(self._work, name="notify")
        self._thread.start()

    def enqueue(self, event: NotificationEvent) -> None:
        """Queues an event if it is wanted here. It is dropped, and counted, if too many wait."""
        if event.on & set(self._notify.on):
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                self._dropped_count += 1

    def close(self, until_s: float) -> None:
        """Shortens waits between tries; returns when all is delivered, or at that time."""
        self._closing.set()
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=max(0.0, until_s - threads.monotonic()))
        self._thread.join(max(0.0, until_s - threads.monotonic()))
        # A thread that is still alive may be busy with the last message, which does not wait any more.
        undelivered = max(self._waiting.qsize(), 1 if self._thread.is_alive() else 0)
        lost = self._dropped_count + undelivered
        if lost:
            self._note(f"{name_of(self._notify)} did not get {counted(lost, 'message')} before the end of the run")

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            message = self._message(event)
            if why := self._deliver(message):
                self._note(f"{name_of(self._notify)} did not get {message['event']!r}: {why}")

    def _deliver(self, message: dict[str, Any]) -> str:
        """Tries to deliver a message a few times. Returns why it was not delivered; "" if it was."""
        why = ""
        for wait_s in (0.0, *BACK_OFF_S):
            if self._closing.wait(wait_s):
                threads.sleep(min(wait_s, 1.0))
            try:
                deliver(self._notify, message)
            except HarnessError as error:
                why = str(error)
            else:
                return ""
        return why
