"""Home Assistant's web socket as far as the driver uses it, by the messages of home-assistant/core 2025.9."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from tests.conformance.far_end import FarEnd
from tests.ports import free_port

TOKEN = "a.long-lived.token"
KITCHEN, HALL = "assist_satellite.kitchen", "assist_satellite.hall"
PIPELINE = "01hp2qn3txcy889v4ceffyw0nj"


class HassFarEnd(FarEnd):
    """Satellites and pipeline runs. ahead_s: how far its clock is ahead of this host's."""

    def __init__(self, *satellites: str, ahead_s: float = 0.0, names_satellites: bool = True) -> None:
        self.states = dict.fromkeys(satellites or (KITCHEN,), "idle")
        self.since: dict[str, float] = {}
        self.runs: dict[str, list[dict[str, Any]]] = {}
        self.ahead_s, self.names_satellites = ahead_s, names_satellites
        self.token, self.admin, self.frozen, self.garbage = TOKEN, True, False, ""
        self.wake_words: list[str] | None = None
        self.logins: list[str] = []
        self.asked: list[str] = []
        self._lock = threading.RLock()
        self._peers: dict[ServerConnection, int] = {}
        self._server: Server | None = None
        self.port = free_port()
        self.mend()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def now_s(self) -> float:
        return time.time() + self.ahead_s

    def mend(self) -> None:
        self._server = serve(self._handle, "127.0.0.1", self.port, close_timeout=0.5)
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def lose(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
        self.cut()

    def cut(self) -> None:
        """Closes the connections, as it does when a token is revoked."""
        with self._lock:
            peers = list(self._peers)
        for peer in peers:
            peer.close(1000)

    def change(self, state: str, satellite: str = KITCHEN) -> None:
        with self._lock:
            self.states[satellite], self.since[satellite] = state, self.now_s()
            for peer, number in self._peers.items():
                change = {satellite: {"+": {"s": state, "lc": self.since[satellite]}}}
                if number:
                    self._send(peer, {"id": number, "type": "event", "event": {"c": change}})

    def stage(self, run: str, kind: str, data: dict[str, Any] | None = None) -> None:
        """An event of a run."""
        with self._lock:
            timestamp = datetime.fromtimestamp(self.now_s(), UTC).isoformat()
            self.runs.setdefault(run, []).append({"type": kind, "data": data, "timestamp": timestamp})

    def query(self, run: str, text: str, answer: str, *, satellite: str = KITCHEN, code: str = "") -> None:
        """A run as a satellite causes it, each state after the event that leads to it."""
        device = {"satellite_id": satellite} if self.names_satellites else {}
        self.stage(run, "run-start", {"pipeline": PIPELINE, "language": "en", **device})
        with self._lock:
            self.stage(run, "stt-start", {"engine": "stt.faster_whisper", "metadata": {}})
            self.change("listening", satellite)
        if not text:
            self.stage(run, "error", {"code": "stt-no-text-recognized", "message": "No text recognized"})
        else:
            with self._lock:
                self.stage(run, "stt-end", {"stt_output": {"text": text}})
                start = {"engine": "conversation.home_assistant", "language": "en", "intent_input": text}
                self.stage(run, "intent-start", {**start, "device_id": "9d", **device})
                self.change("processing", satellite)
            kind = {"response_type": "error", "data": {"code": code}} if code else {"response_type": "action_done"}
            response = {"speech": {"plain": {"speech": answer, "extra_data": None}}, "card": {}, "language": "en"}
            output = {"response": {"data": {}, **response, **kind}, "conversation_id": "01HS6SP2XD1E5HEHVDZE8R2WMR"}
            with self._lock:
                self.stage(run, "intent-end", {"processed_locally": True, "intent_output": output})
                self.stage(run, "tts-start", {"engine": "tts.piper", "language": "en_US", "tts_input": answer})
                self.change("responding", satellite)
            self.stage(run, "tts-end", {"tts_output": {"url": "/api/tts_proxy/1.mp3", "mime_type": "audio/mpeg"}})
        with self._lock:
            self.stage(run, "run-end")
            self.change("idle", satellite)

    def _accept(self, server: Server) -> None:
        with suppress(OSError):  # shut down before it began
            server.serve_forever()

    def _send(self, link: ServerConnection, message: dict[str, Any]) -> None:
        with suppress(ConnectionClosed):
            link.send(json.dumps(message))

    def _handle(self, link: ServerConnection) -> None:
        try:
            link.send(json.dumps({"type": "auth_required", "ha_version": "2025.9.4"}))
            login = json.loads(link.recv(timeout=60))
            self.logins.append(login["access_token"])
            if login["access_token"] != self.token:
                link.send(json.dumps({"type": "auth_invalid", "message": "Invalid access token or password"}))
                return
            link.send(json.dumps({"type": "auth_ok", "ha_version": "2025.9.4"}))
            with self._lock:
                self._peers[link] = 0
            for message in link:
                if not self.frozen:
                    self._carry_out(link, json.loads(message))
        except (ConnectionClosed, TimeoutError):
            pass
        finally:
            with self._lock:
                self._peers.pop(link, None)

    def _carry_out(self, link: ServerConnection, request: dict[str, Any]) -> None:
        number, kind = request["id"], request["type"]
        self.asked.append(kind)
        if self.garbage:
            link.send(self.garbage)
            return
        with self._lock:
            if kind.startswith("assist_pipeline/pipeline_debug") and not self.admin:
                error = {"code": "unauthorized", "message": "Unauthorized"}
                self._send(link, {"id": number, "type": "result", "success": False, "error": error})
                return
            result: Any = None
            event: Any = None
            match kind:
                case "get_states":
                    result = [{"entity_id": entity_id, "state": state} for entity_id, state in self.states.items()]
                    result.append({"entity_id": "light.kitchen", "state": "off"})
                case "render_template":
                    event = {"result": self.now_s(), "listeners": {"time": True}}
                case "assist_pipeline/pipeline/list":
                    result = {"pipelines": [{"id": PIPELINE, "name": "Home"}], "preferred_pipeline": PIPELINE}
                case "subscribe_entities":
                    self._peers[link] = number
                    states = {entity_id: self.states[entity_id] for entity_id in request["entity_ids"]}
                    event = {
                        "a": {
                            entity_id: {"s": s, "a": {}, "lc": self.since.get(entity_id, 1.0)}
                            for entity_id, s in states.items()
                        }
                    }
                case "assist_pipeline/pipeline_debug/list":
                    result = {"pipeline_runs": [{"pipeline_run_id": run_id, "timestamp": ""} for run_id in self.runs]}
                case "assist_pipeline/pipeline_debug/get":
                    result = {"events": self.runs[request["pipeline_run_id"]]}
                case "assist_satellite/get_configuration" if self.wake_words is None:
                    error = {"code": "unknown_error", "message": "Unknown error"}  # as for a Wyoming satellite
                    self._send(link, {"id": number, "type": "result", "success": False, "error": error})
                    return
                case "assist_satellite/get_configuration":
                    phrases = {"okay_nabu": "Okay Nabu", "hey_jarvis": "Hey Jarvis"}
                    offered = [
                        {"id": id, "wake_word": word, "trained_languages": ["en"]} for id, word in phrases.items()
                    ]
                    result = {"active_wake_words": self.wake_words, "available_wake_words": offered}
                case "conversation/agent/homeassistant/debug":
                    intent = {"name": "HassTurnOn"}
                    match = {"intent": intent, "slots": {"name": "kitchen light"}, "match": True, "source": "builtin"}
                    result = {"results": [match if "light" in request["sentences"][0] else None]}
            self._send(link, {"id": number, "type": "result", "success": True, "result": result})
            if event is not None:
                self._send(link, {"id": number, "type": "event", "event": event})
