"""Messages of a run: what is sent, how often, and what happens when nobody takes them."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.model.bench import Notify, NotifyInput, NotifyOn
from harness.model.errors import DeviceError, InputError
from harness.model.feed import Goodbye, StateChanged, StateWord
from harness.model.observation import LinkLost
from harness.model.record import Entry, FaultMet, Observed, Paused, PowerSwitched, Record, Resumed
from harness.model.time import Stamp
from harness.session.engine import notify
from harness.session.engine.notify import Notifier, SessionSnapshot, deliver, demand_ready
from tests.seen import until

SO_FAR = SessionSnapshot(60, 12, (("responded", 11), ("interrupted", 1)), ("finished 12 of 60",))
MESSAGE = {"event": "paused", "subject": "night: the run is paused", "text": "night: the run is paused."}


class Hook:
    """A web server that keeps what is posted to it, and answers with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.posted: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []
        hook = self

        class Takes(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                hook.tokens.append(self.headers["Authorization"])
                if hook.status == 200:
                    hook.posted.append(json.loads(content))
                self.send_response(hook.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


def test_a_webhook_gets_one_json_object_and_the_token(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHT_TOKEN", "s3cret")
    deliver(Notify(webhook=hook.address, token_env="NIGHT_TOKEN"), MESSAGE)
    assert hook.posted == [MESSAGE]
    assert hook.tokens == ["Bearer s3cret"]
    monkeypatch.setenv("NIGHT_HOOK", hook.address)
    deliver(Notify(webhook_env="NIGHT_HOOK"), MESSAGE)
    assert hook.tokens[1:] == [None]


@pytest.mark.parametrize("status", [302, 401, 500])
def test_only_an_answer_of_success_means_delivered(hook: Hook, status: int) -> None:
    hook.status = status
    with pytest.raises(DeviceError, match=f"it answered {status}"):
        deliver(Notify(webhook=hook.address), MESSAGE)


def test_no_error_quotes_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHT_HOOK", "http://127.0.0.1:1/s3cret path")
    monkeypatch.setenv("NIGHT_TOKEN", "s3cret\n")
    for way in (Notify(webhook_env="NIGHT_HOOK"), Notify(webhook="http://127.0.0.1:1/", token_env="NIGHT_TOKEN")):
        with pytest.raises(DeviceError) as caught:
            deliver(way, MESSAGE)
        assert "s3cret" not in str(caught.value)


def program(folder: Path, code: str) -> tuple[str, ...]:
    path = folder / "tell.py"
    path.write_text(code, encoding="utf-8")
    return (sys.executable, str(path), str(folder / "said"), "{subject}")


def test_a_program_gets_the_message_on_its_input_and_the_subject_in_its_arguments(tmp_path: Path) -> None:
    command = program(tmp_path, "import sys; open(sys.argv[1], 'w').write(sys.argv[2] + '\\n' + sys.stdin.read())")
    deliver(Notify(command=command), MESSAGE)
    subject, content = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
    assert (subject, json.loads(content)) == (MESSAGE["subject"], MESSAGE)
    deliver(Notify(command=command, input=NotifyInput.TEXT), MESSAGE)
    assert (tmp_path / "said").read_text(encoding="utf-8").splitlines() == [MESSAGE["subject"], MESSAGE["text"]]


def test_a_program_that_fails_or_hangs_is_ended_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=r"ended with status 3: no mail server"):
        deliver(Notify(command=program(tmp_path, "import sys; print('no mail server'); sys.exit(3)")), MESSAGE)
    monkeypatch.setattr(notify, "WITHIN_S", 0.3)
    with pytest.raises(DeviceError, match=r"did not end within 0\.3 s"):
        deliver(Notify(command=program(tmp_path, "import time; time.sleep(600)")), MESSAGE)


def test_missing_program_or_token_is_refused_with_a_remedy() -> None:
    with pytest.raises(InputError, match="'no-such-program' of `notify` does not exist"):
        demand_ready(Notify(command=("no-such-program",)))
    with pytest.raises(InputError, match="VH_NO_TOKEN, which `notify` uses, is not set"):
        demand_ready(Notify(webhook="https://x/", token_env="VH_NO_TOKEN"))


# A run's messages


class Run:
    """Rows of a run, one after another, and what its notifier noted."""

    def __init__(self, *ways: Notify, folder: Path = Path("/s/night")) -> None:
        self.notes: list[str] = []
        self.notifier = Notifier(ways, folder, "desk", lambda: SO_FAR, self.notes.append)
        self._seq = 0

    def row(self, record: Record, wall_s: float = 0.0) -> None:
        self._seq += 1
        self.notifier.committed(Entry(self._seq, 1, wall_s, wall_s, record))


def test_a_pause_is_sent_once_with_its_reason_and_the_counts(hook: Hook) -> None:
    run = Run(Notify(webhook=hook.address, on=(NotifyOn.PAUSED, NotifyOn.RESUMED)))
    run.row(Paused("speaker is lost", "on_fault"), 1_800_000_000.0)
    run.notifier.state_changed(StateChanged(StateWord.PAUSED, 1.0, reason="speaker is lost"))
    run.row(Resumed("on_fault: speaker is back"))
    run.notifier.close(Goodbye(0, ""))
    paused, resumed = hook.posted
    assert paused["event"] == "paused"
    assert paused["subject"] == "night: the run is paused"
    assert (paused["planned"], paused["finished"], paused["outcomes"]["interrupted"]) == (60, 12, 1)
    assert paused["text"].splitlines() == [
        "night: the run is paused.",
        "Why: speaker is lost",
        "Since: 2027-01-15 08:00:00 UTC",
        "Bench: desk",
        "Session: /s/night",
        "What to do: resolve the cause. To continue manually: harness run attach /s/night",
        "",
        "finished 12 of 60",
    ]
    assert (resumed["event"], resumed["why"]) == ("resumed", "by on_fault: speaker is back")
    assert run.notes == []


def test_a_full_disk_is_sent_before_its_rows_can_be_written(hook: Hook) -> None:
    run = Run(Notify(webhook=hook.address))
    run.notifier.state_changed(StateChanged(StateWord.PAUSED, 1.0, reason="disk full: no space"))
    until(lambda: hook.posted)
    assert hook.posted[0]["why"] == "disk full: no space"
    run.notifier.close(Goodbye(3, "stopped"))
    assert [post["event"] for post in hook.posted] == ["paused", "finished"]
    assert hook.posted[1]["to_do"] == "harness run resume /s/night"


def test_a_source_that_keeps_failing_is_sent_every_ten_minutes(hook: Hook) -> None:
    run = Run(Notify(webhook=hook.address, on=(NotifyOn.FAULT,)))
    for second in range(0, 900, 10):
        run.row(FaultMet("speaker", f"the port is gone ({second})"), float(second))
    run.row(Observed(LinkLost("mic", Stamp(1.0), "the plug is pulled")), 900.0)
    run.notifier.close(Goodbye(0, ""))
    assert [(post["subject"], post["why"]) for post in hook.posted] == [
        ("night: a fault of speaker", "the port is gone (0)"),
        ("night: a fault of speaker", "the port is gone (600)"),
        ("night: a fault of mic", "the plug is pulled"),
    ]


def test_a_loss_caused_by_a_power_cycle_is_not_sent(hook: Hook) -> None:
    run = Run(Notify(webhook=hook.address, on=(NotifyOn.FAULT,)))
    run.row(PowerSwitched("lamp", False, "before call.r1"))
    run.row(Observed(LinkLost("lamp.led", Stamp(1.0), "no power")))
    run.row(PowerSwitched("lamp", True, "before call.r1", 3.0))
    run.row(Observed(LinkLost("lamp", Stamp(9.0), "the plug is pulled")))
    run.notifier.close(Goodbye(0, ""))
    assert [post["why"] for post in hook.posted] == ["the plug is pulled"]


def test_the_end_of_a_run_is_sent_once_to_its_subscribers(hook: Hook) -> None:
    ways = [Notify(webhook=hook.address, on=events) for events in ((NotifyOn.LIMIT_BROKEN,), (NotifyOn.PAUSED,), ())]
    run = Run(*ways, Notify(webhook=hook.address))
    run.notifier.close(Goodbye(1, "failed: latency, p95 ≤ 900 ms"))
    assert [(post["event"], post["why"]) for post in hook.posted] == [
        ("limit_broken", "failed: latency, p95 ≤ 900 ms")
    ] * 2


def test_undelivered_message_is_retried_and_then_noted(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "BACK_OFF_S", (0.01, 0.01))
    hook.status = 503
    run = Run(Notify(webhook=hook.address))
    run.row(FaultMet("speaker", "gone"))
    until(lambda: run.notes)
    assert run.notes == ["the webhook 127.0.0.1 did not get 'fault': it answered 503 Service Unavailable"]
    assert len(hook.tokens) == 3
    hook.status = 200
    run.notifier.close(Goodbye(0, ""))
    assert [post["event"] for post in hook.posted] == ["finished"]


def test_a_hanging_notification_delays_the_end_only_briefly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "LAST_WORDS_S", 0.2)
    monkeypatch.setattr(notify, "WITHIN_S", 1.0)
    run = Run(Notify(command=program(tmp_path, "import time; time.sleep(20)")))
    run.row(FaultMet("speaker", "gone"))
    run.notifier.close(Goodbye(0, ""))
    assert len(run.notes) == 1
    assert "before the end of the run" in run.notes[0]


@pytest.mark.parametrize(("reason", "command"), [("aborted", "report show"), ("stopped", "run resume")])
def test_a_run_that_ended_early_is_resumed_unless_it_was_aborted(hook: Hook, reason: str, command: str) -> None:
    Run(Notify(webhook=hook.address)).notifier.close(Goodbye(3, reason))
    assert hook.posted[0]["to_do"] == f"harness {command} /s/night"


def test_the_command_to_resume_can_be_pasted_although_the_folder_has_a_space(hook: Hook) -> None:
    Run(Notify(webhook=hook.address), folder=Path("/s/our night")).notifier.close(Goodbye(3, "stopped"))
    assert hook.posted[0]["to_do"] == "harness run resume '/s/our night'"
