"""What `harness init` takes from the device that it writes a bench for."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.command import harness, succeeded
from tests.conformance.esphome_far_end import EsphomeFarEnd
from tests.conformance.hass_far_end import KITCHEN, TOKEN, HassFarEnd
from tests.ports import free_port

NABU = {"name": "ok_nabu_v0.1", "phrase": "okay nabu", "languages": ["en"]}
JARVIS = {"name": "hey_jarvis_v0.1", "languages": ["en"]}


@contextmanager
def satellite(info: dict[str, Any]) -> Iterator[str]:
    """The address of a Wyoming satellite that reports this about itself."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            link, _ = listening.accept()
            with link:
                link.recv(1000)
                data = json.dumps(info).encode()
                link.sendall(json.dumps({"type": "info", "data_length": len(data)}).encode() + b"\n" + data)
                link.recv(1000)

        answering = threading.Thread(target=answer)
        answering.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        answering.join()


def of_satellite(version: str | None, *models: dict[str, Any], active: list[str] | None = None) -> dict[str, Any]:
    about = {"name": "hall", "installed": True, "active_wake_words": active}
    wake = [{"name": "openwakeword", "models": [*models]}] if models else []
    return {"satellite": about if version is None else {**about, "version": version}, "wake": wake}


def written(folder: Path, *options: str) -> tuple[str, str]:
    """What `init` prints, and the bench that it writes, which is valid."""
    result = succeeded(harness("init", folder, *options))
    succeeded(harness("validate", folder))
    return result.output, (folder / "bench.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("info", "phrase"),
    [
        (of_satellite("1.4.1", JARVIS), "hey jarvis"),
        (of_satellite("1.4.1", NABU, JARVIS, active=["hey_jarvis_v0.1"]), "hey jarvis"),
        (of_satellite("1.4.1", JARVIS, NABU), "okay nabu"),  # which of them is active is unknown: the usual one
        (of_satellite("1.4.1", JARVIS, {"name": "alexa_v0.1"}), "hey jarvis"),
        (of_satellite("1.4.1", {"name": "[x]: y"}), "okay nabu"),
        ({"satellite": None, "wake": 3}, "okay nabu"),
    ],
)
def test_init_takes_the_wake_phrase_of_a_wyoming_satellite(info: dict[str, Any], phrase: str, tmp_path: Path) -> None:
    with satellite(info) as address:
        _, bench = written(tmp_path, "--wyoming", address)
    assert f"profile: wyoming_events\n    wake_phrases: [{phrase}]" in bench
    assert f'mode: proxy, address: "0.0.0.0:10600", server: "{address}"' in bench


@pytest.mark.parametrize("version", [None, "1.0.0"])
def test_a_satellite_that_sends_no_detections_gets_the_harness_as_its_server(
    version: str | None, tmp_path: Path
) -> None:
    with satellite(of_satellite(version, NABU)) as address:
        output, bench = written(tmp_path, "--wyoming", address, "--phrase", "alexa")
    assert "sends no detections" in output
    assert "profile: wyoming_server\n    wake_phrases: [alexa]" in bench
    assert f'{{driver: wyoming, mode: server, address: "{address}", listen_limit_s: 3}}' in bench
    assert "with the harness as its server" in bench


def test_a_device_that_does_not_answer_gets_the_usual_bench(tmp_path: Path) -> None:
    output, bench = written(tmp_path, "--wyoming", f"127.0.0.1:{free_port()}")
    assert "cannot be reached" in output
    assert "wake_phrases: [okay nabu]" in bench


@pytest.mark.parametrize(("words", "phrase"), [(["hey_jarvis"], "Hey Jarvis"), (None, "okay nabu")])
def test_init_takes_the_wake_phrase_from_home_assistant(
    words: list[str] | None, phrase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HASS_TOKEN", TOKEN)
    with HassFarEnd(KITCHEN) as far_end:
        far_end.wake_words = words
        _, bench = written(tmp_path, "--home-assistant", far_end.url)
    assert f"wake_phrases: [{phrase}]" in bench


@pytest.mark.parametrize(("connected", "phrase"), [(False, "Hey Jarvis"), (True, "okay nabu")])
def test_init_takes_the_wake_phrase_of_an_esphome_device(connected: bool, phrase: str, tmp_path: Path) -> None:
    with EsphomeFarEnd() as far_end:
        far_end.taken = connected
        _, bench = written(tmp_path, "--esphome", far_end.address)
        assert far_end.assistant is None
    assert f"wake_phrases: [{phrase}]" in bench
