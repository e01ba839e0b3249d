"""What the command line of `harness evaluate` comes to: names of logs, engines that fit, the line of progress."""

from __future__ import annotations

import pty
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.evaluate import on_terminal, progress_text
from harness.cli.options import EngineAsked
from harness.model.errors import InputError
from harness.model.offline import EngineFacts, EngineKind, Task
from harness.offline.asked import EvaluationAsked, log_name
from harness.offline.run import RunProgress


@pytest.mark.parametrize(
    ("text", "task", "wanted"),
    [
        ("microwakeword:okay_nabu", Task("microwakeword", "okay_nabu"), "microwakeword-okay_nabu"),
        ("openwakeword:alexa", Task("openwakeword", "alexa"), "openwakeword-alexa"),
        ("alexa-fr.tflite", Task("microwakeword", "alexa-fr.tflite"), "alexa-fr"),
        ("models/alexa-fr.v2.onnx", Task("openwakeword", "models/alexa-fr.v2.onnx"), "alexa-fr.v2"),
        ("openwakeword:models/a.tflite", Task("openwakeword", "models/a.tflite"), "openwakeword-a"),
        ('pocketsphinx:"hey jarvis"', Task("pocketsphinx", "hey jarvis"), "pocketsphinx-hey_jarvis"),
        ("moonshine", Task("moonshine", ""), "moonshine"),
        ("process:./engine --fast", Task("process", "./engine --fast"), "process-engine_--fast"),
        ("pocketsphinx:..", Task("pocketsphinx", ".."), "pocketsphinx"),
        ("pocketsphinx:" + "a" * 500, Task("pocketsphinx", "a" * 500), ("pocketsphinx-" + "a" * 500)[:120]),
    ],
)
def test_a_log_has_the_tasks_name_without_its_extension(text: str, task: Task, wanted: str) -> None:
    assert log_name(text, task) == wanted


FACTS = EngineFacts(EngineKind.WAKE, "1", 16_000, ("a",), "0" * 64)
WAKE = EvaluationAsked(inv=("i",), oov=("o",))
TEXT = EvaluationAsked(referenced=("c",))


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        (EngineKind.WAKE, WAKE, None),
        (EngineKind.WAKE, replace(WAKE, count_in_vocabulary=True), None),
        (EngineKind.WAKE, TEXT, None),  # several phrases, each file with the one that is said
        (EngineKind.WAKE, replace(TEXT, words=True), "tells no words for -w"),
        (EngineKind.WAKE, replace(WAKE, vad=True), "-a is of recognisers"),
        (EngineKind.COMMAND, WAKE, "-i is of wake engines"),
        (EngineKind.COMMAND, replace(TEXT, oov=("o",)), "does not listen all the time"),
        (EngineKind.COMMAND, replace(TEXT, count_in_vocabulary=True), None),
        (EngineKind.COMMAND, replace(TEXT, words=True), None),
        (EngineKind.TRANSCRIPT, replace(TEXT, words=True, vad=True), None),
        (EngineKind.TRANSCRIPT, TEXT, None),
        (EngineKind.TRANSCRIPT, WAKE, "-i is of wake engines"),
        (EngineKind.TRANSCRIPT, replace(TEXT, oov=("o",)), "does not listen all the time"),
        (EngineKind.TRANSCRIPT, replace(TEXT, count_in_vocabulary=True), "-u is of wake words and commands"),
    ],
)
def test_engines_and_lists_must_fit(kind: EngineKind, asked: EvaluationAsked, said: str | None) -> None:
    facts = replace(FACTS, kind=kind)
    if said is None:
        asked.demand_fit("engine:a", facts)
        return
    with pytest.raises(InputError, match=said):
        asked.demand_fit("engine:a", facts)


def test_the_line_of_progress() -> None:
    begun = RunProgress(3298, 0, 0, 0, 0.0, 0.1, None, None, None, 6)
    assert progress_text(begun) == "0 of 3,298 files, 0.000 hr"
    going = RunProgress(3298, 1234, 3, 1, 220_330.8, 300.0, 734.4, 658.94, 71.7, 6)
    assert progress_text(going) == (
        "1,234 of 3,298 files, 61.203 hr, 658.9x RT, 3 rejected, 1 with errors, 0:01:12 left"
    )


def test_no_line_is_drawn_anew_but_on_a_terminal_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal, open(ours, "rb"):
        monkeypatch.setenv("TERM", "xterm")
        assert on_terminal(terminal)
        monkeypatch.setenv("TERM", "dumb")
        assert not on_terminal(terminal)
        monkeypatch.delenv("TERM")
        assert not on_terminal(terminal)
    assert not on_terminal(None)


def test_the_last_of_a_setting_wins_and_the_earlier_ones_are_not_judged() -> None:
    asked = EngineAsked("microwakeword:alexa", ("operating-point=21", "operating-point=5"))
    assert asked.checked().settings == (("operating-point", "5"),)
    with pytest.raises(InputError, match="at most 20"):
        replace(asked, settings=("operating-point=5", "operating-point=21")).checked()
    with pytest.raises(InputError, match="no setting 'operatin-point'"):
        replace(asked, settings=("operatin-point=1", "operating-point=5")).checked()


def test_a_file_is_loaded_into_any_setting(tmp_path: Path) -> None:
    point, phrases, binary = tmp_path / "point.txt", tmp_path / "phrases.txt", tmp_path / "binary"
    point.write_text("7\n", encoding="utf-8")
    phrases.write_text("hey jarvis\n", encoding="utf-8")
    binary.write_bytes(b"\xff\x00")
    asked = EngineAsked("microwakeword:alexa", files=(("operating-point", str(point)),))
    assert asked.checked().settings == (("operating-point", "7"),)
    of_files = replace(asked, task="pocketsphinx:hey", files=(("keyphrases", str(phrases)),))
    assert of_files.checked().settings == (("keyphrases", str(phrases)),)
    with pytest.raises(InputError, match="set by -s and by -f"):
        replace(asked, settings=("operating-point=5",)).checked()
    with pytest.raises(InputError, match="cannot be read as the setting operating-point: it is not UTF-8"):
        replace(asked, files=(("operating-point", str(binary)),)).checked()
    with pytest.raises(InputError, match="No such file"):
        replace(asked, files=(("operating-point", str(tmp_path / "none")),)).checked()
