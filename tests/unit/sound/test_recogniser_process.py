from __future__ import annotations

import os
import queue
import signal
import threading
from typing import Any

import numpy as np
import pytest

from harness.base.child_process import ChildProcess
from harness.model.errors import EngineError, HarnessError
from harness.model.stimulus import Waveform
from harness.sound import recogniser_process
from harness.sound.recogniser_process import RecogniserProcess
from tests.heard import MAX_WRONG, word_error
from tests.known import known
from tests.seen import until
from tests.unit.engines.wake_sound import spoken

pytestmark = pytest.mark.speech
Answers = queue.SimpleQueue[str | HarnessError]
ANSWERS_S = 240.0
"""Longer than a child of low priority takes beside other work."""


def started() -> RecogniserProcess:
    return RecogniserProcess("faster_whisper", limit_s=ANSWERS_S, load_limit_s=ANSWERS_S)


def wait_for_child(process: RecogniserProcess) -> int:
    until(lambda: process.pid)
    return known(process.pid)


def test_a_recogniser_works_again_after_a_crash() -> None:
    process = started()
    answers: Answers = queue.SimpleQueue()
    sound = Waveform(spoken("what time is it"), 16000)
    try:
        process.transcribe_later(sound, answers.put)
        assert word_error("what time is it", str(answers.get(timeout=2 * ANSWERS_S))) <= MAX_WRONG
        assert process.name.startswith("faster-whisper")
        os.kill(wait_for_child(process), signal.SIGKILL)
        process.transcribe_later(sound, answers.put)
        assert word_error("what time is it", str(answers.get(timeout=2 * ANSWERS_S))) <= MAX_WRONG
    finally:
        process.close()
    assert process.pid is None


def test_a_hanging_child_is_ended_and_replaced() -> None:
    process = started()
    answers: Answers = queue.SimpleQueue()
    quiet = Waveform(np.zeros(1600, np.float32), 16000)
    try:
        process.transcribe_later(quiet, answers.put)
        assert answers.get(timeout=2 * ANSWERS_S) == ""
        first = wait_for_child(process)
        os.kill(first, signal.SIGSTOP)
        process._limit_s = 1.0  # a busy host may need it for an answer
        process.transcribe_later(quiet, answers.put)
        answer = answers.get(timeout=2 * ANSWERS_S)
        assert isinstance(answer, EngineError)
        assert "in time" in str(answer)
        process._limit_s = ANSWERS_S
        process.transcribe_later(quiet, answers.put)
        assert answers.get(timeout=2 * ANSWERS_S) == ""
        assert wait_for_child(process) != first
    finally:
        process.close()


def test_unknown_recogniser_and_closed_process_report_errors() -> None:
    process = RecogniserProcess("nobody")
    answers: Answers = queue.SimpleQueue()
    quiet = Waveform(np.zeros(1600, np.float32), 16000)
    process.transcribe_later(quiet, answers.put)
    answer = answers.get(timeout=ANSWERS_S)
    assert isinstance(answer, EngineError)
    assert "faster_whisper" in str(answer)
    process.transcribe_later(quiet, answers.put)
    process.close()
    assert isinstance(answers.get(timeout=2 * ANSWERS_S), EngineError)


def test_closing_while_a_child_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    starting, goes_on, started = threading.Event(), threading.Event(), list[ChildProcess]()

    def start(*arguments: Any, **options: Any) -> ChildProcess:
        starting.set()
        assert goes_on.wait(60)
        started.append(ChildProcess(*arguments, **options))
        return started[0]

    monkeypatch.setattr(recogniser_process, "ChildProcess", start)
    process = RecogniserProcess("faster_whisper")
    answers: Answers = queue.SimpleQueue()
    process.transcribe_later(Waveform(np.zeros(1600, np.float32), 16000), answers.put)
    assert starting.wait(60)
    closing = threading.Thread(target=process.close)
    closing.start()
    until(process._closing.is_set)
    goes_on.set()
    assert isinstance(answers.get(timeout=60), EngineError)
    closing.join()
    assert started[0].status == -signal.SIGKILL


def test_a_process_that_cannot_start_gives_an_error_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(recogniser_process, "ChildProcess", refuse)
    answers: queue.SimpleQueue[str | HarnessError] = queue.SimpleQueue()
    process = RecogniserProcess("moonshine")
    for _ in range(2):
        process.transcribe_later(Waveform(np.zeros(160, np.float32), 16000), answers.put)
        assert "too many open files" in str(answers.get(timeout=ANSWERS_S))
    process.close()
