"""The message bus of OVOS: recorded traffic of ovos-core and ovos-dinkum-listener, and the real bus if installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.sync.client import connect

from harness.devices.profiles.profile import load_profile
from harness.devices.websocket import WebSocketLog, WebSocketOptions
from harness.model.observation import (
    Intent,
    LinkBack,
    LinkLost,
    Observation,
    ResponseText,
    Status,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.record import Observed, TrialFinished
from harness.model.trial import Outcome
from harness.session.engine.launch import start_engine
from harness.session.engine.prepare import prepare
from tests.conformance.engine_runs import Runs, rows, wait_for
from tests.conformance.web_far_ends import WebServer
from tests.ports import free_port, listens
from tests.seen import Around, Seen

RECORDED = (Path(__file__).parents[1] / "data" / "ovos" / "session.jsonl").read_text(encoding="utf-8").splitlines()
EXPECTED: list[Callable[[Observation], bool]] = [
    lambda observation: isinstance(observation, Wake) and observation.phrase == "hey mycroft",
    lambda observation: isinstance(observation, Status) and observation.state.value == "listening",
    lambda observation: isinstance(observation, Status) and observation.state.value == "thinking",
    lambda observation: isinstance(observation, Transcript) and observation.text == "what time is it",
    lambda observation: isinstance(observation, Intent) and observation.name == "what.time.is.it",
    lambda observation: isinstance(observation, ResponseText) and observation.text == "It's nine twenty nine",
    lambda observation: isinstance(observation, Status) and observation.state.value == "idle",
    lambda observation: isinstance(observation, Wake) and observation.phrase == "hey mycroft",
    lambda observation: isinstance(observation, Status) and observation.state.value == "listening",
    lambda observation: isinstance(observation, Status) and observation.state.value == "thinking",
    lambda observation: isinstance(observation, Intent) and not observation.name,
]
TEXT = '{"type": "recognizer_loop:utterance", "data": {"utterances": ["{text}"], "lang": "en-us"}}'
BENCH = """\
bench: kitchen
operator: absent
devices:
  ovos:
    profile: ovos_bus
    connection:
      driver: websocket
      url: {url}
      text_message: '{text}'
"""
SCENARIO = """\
scenario: text
needs: [intents]
stimuli:
  - {id: time, text: what time is it}
  - {id: other, text: 'a "quoted" word'}
defaults:
  reprompt: {until: understood, max_attempts: 1, context_wait_s: 0.3, response_timeout_s: 1.5, evidence_wait_s: 1}
  between_trials_s: 0.1
trials:
  - {kind: understand, query: time, wake: false, expects: {intents: [what.time.is.it]}}
  - {kind: understand, query: other, wake: false, expects: {intents: []}}
"""


def assert_session(sink: Seen) -> None:
    observations = sink.of(Wake, Status, Transcript, Intent, ResponseText)
    assert len(observations) == len(EXPECTED), observations
    for observation, holds in zip(observations, EXPECTED, strict=True):
        assert holds(observation), observation
    assert not sink.of(Unread)


def test_a_recorded_session_gives_its_events_in_order(tmp_path: Path) -> None:
    with WebServer() as server:
        profile = load_profile("ovos_bus", beside=tmp_path)
        driver, sink = WebSocketLog("ovos", WebSocketOptions(url=server.url), Around(tmp_path, profile)), Seen()
        driver.open(sink)
        try:
            for line in RECORDED:
                server.say(line)
            sink.wait(lambda: len(sink.of(Intent)) == 2, 30, "the last message")
            assert_session(sink)
        finally:
            driver.close()


class Core:
    """A bus with an assistant behind it: returns what is sent, as the bus does, and answers as recorded."""

    def __init__(self, server: WebServer) -> None:
        self._server = server
        self._done = 0
        self.texts: list[str] = []

    def answer(self) -> None:
        for message in self._server.heard[self._done :]:
            self._done += 1
            self._server.say(message)
            (text,) = json.loads(message)["data"]["utterances"]
            self.texts.append(text)
            kinds = (".intent", "speak", "handled") if text == "what time is it" else ("complete_intent_failure",)
            for line in [*RECORDED, '{"type": "complete_intent_failure", "data": {}, "context": {}}']:
                if json.loads(line)["type"].endswith(kinds):
                    self._server.say(line)


def test_queries_as_text_are_understood_and_their_echo_is_no_transcript(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "text.yaml").write_text(SCENARIO, encoding="utf-8")
    with WebServer() as server:
        bench = tmp_path / "bench.yaml"
        bench.write_text(BENCH.format(url=server.url, text=TEXT), encoding="utf-8")
        folder = prepare(tmp_path / "text.yaml", bench, tmp_path / "sessions")
        runs.folders.append(folder)
        core, place = Core(server), start_engine(folder, watched=False)

        def ended() -> bool:
            core.answer()
            return not place.alive

        wait_for(ended, 300, "the end of the run")
    assert core.texts == ["what time is it", 'a "quoted" word']
    records = [entry.record for entry in rows(folder)]
    assert [record.outcome for record in records if isinstance(record, TrialFinished)] == [Outcome.UNDERSTOOD] * 2
    observed = [record.observation for record in records if isinstance(record, Observed)]
    assert [observation.name for observation in observed if isinstance(observation, Intent)] == ["what.time.is.it", ""]
    assert not [observation for observation in observed if isinstance(observation, Transcript)]
    assert len([observation for observation in observed if isinstance(observation, StimulusStarted)]) == 2


@contextmanager
def real_bus(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "mycroft").mkdir(exist_ok=True)
    bus = {"websocket": {"host": "127.0.0.1", "port": port, "route": "/core", "ssl": False}}
    (folder / "mycroft" / "mycroft.conf").write_text(json.dumps(bus), encoding="utf-8")
    places = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME")
    around = {**os.environ, **dict.fromkeys(places, str(folder))}
    with (folder / "bus.log").open("ab") as log:
        process = subprocess.Popen(["ovos-messagebus"], env=around, stdout=log, stderr=log)
    try:
        wait_for(lambda: listens(port), 60, "the message bus")
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


@pytest.mark.extra
def test_the_real_bus_carries_a_session_freezes_and_returns(tmp_path: Path) -> None:
    port = free_port()
    options = WebSocketOptions(url=f"ws://127.0.0.1:{port}/core", ready='"connected"', ping_s=1.0)
    driver = WebSocketLog("ovos", options, Around(tmp_path, load_profile("ovos_bus", beside=tmp_path)))
    observations = Seen()
    try:
        with real_bus(tmp_path, port) as bus:
            driver.open(observations)
            with connect(options.url, compression=None) as other:
                for line in RECORDED:
                    other.send(line)
                observations.wait(lambda: len(observations.of(Intent)) == 2, 30, "the last message")
                other.send('{"type": "big", "data": "' + "x" * 2_000_000 + '"}')
                observations.wait(lambda: observations.of(Unread), 30, "the message that is too long")
            assert len(observations.of(Wake)) == 2
            bus.send_signal(signal.SIGSTOP)
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        with real_bus(tmp_path, port):
            observations.wait(lambda: observations.of(LinkBack), 20, "the return")
            with connect(options.url, compression=None) as other:
                for line in RECORDED:
                    other.send(line)
                observations.wait(lambda: len(observations.of(Wake)) == 4, 30, "wake events after the return")
    finally:
        driver.close()
