"""What the command line of `harness evaluate` comes to; scores that are kept in files."""

from __future__ import annotations

import hashlib
import os
import pty
import subprocess
import sys
import wave
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli import group, streams
from harness.cli.evaluate import EvaluationTerminal, progress_text
from harness.cli.options import EngineOptions
from harness.model.choices import LimitBasis
from harness.model.errors import InputError
from harness.model.offline import CountingRules, EngineFacts, EngineKind, FileOutcome, ListKind, ScoreTrack, Task
from harness.offline.evaluation_files import EvaluationFiles
from harness.offline.figures.counts import Tally
from harness.offline.figures.figures import Figures, figures_of
from harness.offline.reports.log import limit_failures
from harness.offline.request import DeclaredLimits, EvaluationRequest, log_name, log_names
from harness.offline.run import RunProgress
from harness.offline.score_cache import VERSION, ScoreCache
from tests.known import known
from tests.unit.offline.figures.outcomes import outcome, said, spot


@pytest.mark.parametrize(
    ("text", "task", "expected"),
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
def test_a_log_has_the_tasks_name_without_its_extension(text: str, task: Task, expected: str) -> None:
    assert log_name(text, task) == expected


@pytest.mark.parametrize(
    ("models", "logs"),
    [
        (["a", "b"], ["n.a.log", "n.b.log"]),
        (["a", "a", "a"], ["n.a.log", "n.a-2.log", "n.a-3.log"]),
        (["hey-jarvis", "hey"], ["n.hey-jarvis.log", "n.hey.log"]),
        (["a-2", "a", "a"], ["n.a-2.log", "n.a.log", "n.a-3.log"]),
    ],
)
def test_logs_of_several_tasks_are_numbered_where_names_are_the_same(models: list[str], logs: list[str]) -> None:
    tasks = [Task("microwakeword", f"{name}.tflite") for name in models]
    assert log_names("n.log", [task.model for task in tasks], tasks) == logs


FACTS = EngineFacts(EngineKind.WAKE, "1", 16_000, ("a",), "0" * 64)
WAKE = EvaluationRequest(inv=("i",), oov=("o",))
TEXT = EvaluationRequest(referenced=("c",))


@pytest.mark.parametrize(
    ("kind", "evaluation", "message"),
    [
        (EngineKind.WAKE, WAKE, None),
        (EngineKind.WAKE, replace(WAKE, count_in_vocabulary=True), None),
        (EngineKind.WAKE, TEXT, None),  # several phrases, each file with the one that is said
        (EngineKind.WAKE, replace(TEXT, words=True), "-w needs transcripts"),
        (EngineKind.WAKE, replace(WAKE, vad=True), "-a is for recognisers only"),
        (EngineKind.COMMAND, WAKE, "-i, --in and --long are for wake engines only"),
        (EngineKind.COMMAND, replace(TEXT, oov=("o",)), "does not listen continuously"),
        (EngineKind.COMMAND, replace(TEXT, count_in_vocabulary=True), None),
        (EngineKind.COMMAND, replace(TEXT, words=True), None),
        (EngineKind.TRANSCRIPT, replace(TEXT, words=True, vad=True), None),
        (EngineKind.TRANSCRIPT, TEXT, None),
        (EngineKind.TRANSCRIPT, WAKE, "-i, --in and --long are for wake engines only"),
        (EngineKind.TRANSCRIPT, replace(TEXT, oov=("o",)), "does not listen continuously"),
        (EngineKind.TRANSCRIPT, replace(TEXT, count_in_vocabulary=True), "-u is for wake words and commands only"),
    ],
)
def test_engines_and_lists_must_fit(kind: EngineKind, evaluation: EvaluationRequest, message: str | None) -> None:
    facts = replace(FACTS, kind=kind)
    if message is None:
        evaluation.demand_fit("engine:a", facts)
        return
    with pytest.raises(InputError, match=message):
        evaluation.demand_fit("engine:a", facts)


def test_progress_line_shows_files_hours_speed_and_time_left() -> None:
    start = RunProgress(3298, 0, 0, 0, 0.0, None, None, None)
    assert progress_text(start) == "0 of 3,298 files, 0.000 hr"
    going = RunProgress(3298, 1234, 3, 1, 220_330.8, 734.4, 658.94, 71.7)
    assert progress_text(going) == (
        "1,234 of 3,298 files, 61.203 hr, 658.9x RT, 3 rejected, 1 with errors, 0:01:12 left"
    )


def test_progress_line_is_redrawn_only_on_capable_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal, open(ours, "rb"):
        monkeypatch.setenv("TERM", "xterm")
        assert streams.can_redraw(terminal)
        monkeypatch.setenv("TERM", "dumb")
        assert not streams.can_redraw(terminal)
        monkeypatch.delenv("TERM")
        assert not streams.can_redraw(terminal)


def test_the_last_of_a_setting_wins_and_the_earlier_ones_are_not_judged() -> None:
    request = EngineOptions(("microwakeword:alexa",), ("operating-point=21", "operating-point=5"))
    assert request.parse_tasks()[0].settings == (("operating-point", "5"),)
    with pytest.raises(InputError, match="at most 20"):
        replace(request, settings=("operating-point=5", "operating-point=21")).parse_tasks()
    with pytest.raises(InputError, match="no setting 'operatin-point'"):
        replace(request, settings=("operatin-point=1", "operating-point=5")).parse_tasks()


def test_a_file_is_loaded_into_any_setting(tmp_path: Path) -> None:
    point, phrases, binary = tmp_path / "point.txt", tmp_path / "phrases.txt", tmp_path / "binary"
    point.write_text("7\n", encoding="utf-8")
    phrases.write_text("hey jarvis\n", encoding="utf-8")
    binary.write_bytes(b"\xff\x00")
    request = EngineOptions(("microwakeword:alexa",), files=(("operating-point", str(point)),))
    assert request.parse_tasks()[0].settings == (("operating-point", "7"),)
    of_files = replace(request, tasks=("pocketsphinx:hey",), files=(("keyphrases", str(phrases)),))
    assert of_files.parse_tasks()[0].settings == (("keyphrases", str(phrases)),)
    with pytest.raises(InputError, match="set by both -s and -f"):
        replace(request, settings=("operating-point=5",)).parse_tasks()
    with pytest.raises(InputError, match="cannot be read as the setting operating-point: it is not UTF-8"):
        replace(request, files=(("operating-point", str(binary)),)).parse_tasks()
    with pytest.raises(InputError, match="No such file"):
        replace(request, files=(("operating-point", str(tmp_path / "none")),)).parse_tasks()


LOG = 'INFO inv-files 2\nINVTA "a.wav" 1200 1900 "alexa" sv-score 0\nINVFR "b.wav"\n'


@pytest.mark.parametrize("name", ["", ".", "x" * 252 + ".log", "folder.log", "missing/a.log"])
def test_an_impossible_log_path_is_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.log").mkdir()
    log = tmp_path / name if name.strip(".") else Path(name)
    with pytest.raises(InputError):
        EvaluationFiles(log).check_output(resume=False, force=True)


@pytest.mark.parametrize("target", ["a.log", "b.log", "link.csv", "b.log.jsonl"])
def test_the_table_of_a_comparison_replaces_none_of_its_inputs(tmp_path: Path, target: str) -> None:
    for name in ("a.log", "b.log", "b.log.jsonl"):
        (tmp_path / name).write_text(LOG)
    (tmp_path / "link.csv").symlink_to("a.log")
    arguments = ["compare", str(tmp_path / "a.log"), str(tmp_path / "b.log"), "--csv", str(tmp_path / target)]
    result = CliRunner().invoke(group, arguments)
    assert isinstance(result.exception, InputError)
    assert "both an input and an output" in str(result.exception)
    assert {(tmp_path / name).read_text() for name in ("a.log", "b.log", "b.log.jsonl")} == {LOG}


def test_closed_stderr_does_not_end_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", streams._text_stream(streams._Output(write, is_open=True), sys.stderr))
        line = EvaluationTerminal(quiet=True)
        line.print_event("one")
        line.print_event("two")
    os.close(write)


INV, OOV, REF = ListKind.INV, ListKind.OOV, ListKind.REFERENCED
WORDS = CountingRules(words=True, lead_in_ms=0)


def of(outcomes: list[FileOutcome], counting: CountingRules | None = None) -> Figures:
    tally = Tally(counting or CountingRules())
    for file_outcome in outcomes:
        tally.add(file_outcome)
    return figures_of(tally, counting or CountingRules())


HOURS = of([outcome(OOV, *([spot(5, 6)] if index < 2 else ()), seconds=3600) for index in range(10)])  # 2 FA in 10 h
TENTH = of([outcome(INV, *([spot(1.2, 2)] if index else ())) for index in range(10)])  # 1 of 10 missed
SHORT = of([outcome(REF, said=said(text), reference="on") for text in ["on"] * 9 + ["off"]])
SPOKEN = of(
    [outcome(REF, said=said("a b c d" if index else "a x c d"), reference="a b c d") for index in range(10)], WORDS
)


@pytest.mark.parametrize(
    ("limits", "figures", "estimate", "bound"),
    [
        (DeclaredLimits(false_accepts_per_hour=0.2), HOURS, True, False),
        (DeclaredLimits(false_accepts_per_hour=0.73), HOURS, True, True),
        (DeclaredLimits(false_accepts_per_hour=0.19), HOURS, False, False),
        (DeclaredLimits(false_accepts_per_hour=5), TENTH, False, False),  # n/a fails
        (DeclaredLimits(false_rejects_percent=10), TENTH, True, False),
        (DeclaredLimits(false_rejects_percent=44.6), TENTH, True, True),
        (DeclaredLimits(false_rejects_percent=9.9), TENTH, False, False),
        (DeclaredLimits(false_rejects_percent=100), HOURS, False, False),
        (DeclaredLimits(false_rejects_percent=9.9), SHORT, False, False),  # substitutions count, too
        (DeclaredLimits(false_rejects_percent=10), SHORT, True, False),
        (DeclaredLimits(wer=0.025), SPOKEN, True, False),
        (DeclaredLimits(wer=0.2), SPOKEN, True, True),
        (DeclaredLimits(wer=0.024), SPOKEN, False, False),
        (DeclaredLimits(wer=1.0), HOURS, False, False),
        (DeclaredLimits(), of([]), True, True),
    ],
)
def test_limits_apply_to_the_figure_or_its_bound(
    limits: DeclaredLimits, figures: Figures, estimate: bool, bound: bool
) -> None:
    on_estimate = DeclaredLimits(
        limits.false_accepts_per_hour, limits.false_rejects_percent, limits.wer, LimitBasis.ESTIMATE
    )
    assert (not list(limit_failures(on_estimate, figures))) == estimate
    assert (not list(limit_failures(limits, figures))) == bound


def test_limit_failure_states_the_result_and_a_looser_option() -> None:
    (failure,) = limit_failures(DeclaredLimits(false_accepts_per_hour=0.5), HOURS)
    assert failure == (
        "--max-fa-per-hour: false accepts per hour ≤ 0.5: found 0.20 (interval up to 0.72), fails "
        "(with 2 false accepts, it needs 14.449 h of audio; --limits-on estimate would let it pass)"
    )
    (failure,) = limit_failures(DeclaredLimits(false_accepts_per_hour=0.5), TENTH)
    assert failure == "--max-fa-per-hour: false accepts per hour ≤ 0.5: no data, undecided"


def test_where_false_accepts_come_in_clusters_the_wider_interval_decides() -> None:
    burst = [spot(start_s, start_s + 0.5) for start_s in range(0, 400, 10)]
    figures = of([outcome(OOV, *(burst if index == 3 else ()), seconds=3600) for index in range(100)])
    assert figures.clustered
    assert not HOURS.clustered
    by_count, by_file = known(figures.false_accepts)[1], known(figures.clustering).interval[1]
    assert by_file > by_count
    between = (by_count + by_file) / 2
    assert list(limit_failures(DeclaredLimits(false_accepts_per_hour=between), figures))


def test_a_limit_on_an_unmeasured_figure_is_refused_at_once() -> None:
    spoken = EvaluationRequest(oov=("o",), referenced=("c",), words=True)
    for limits, without in (
        (DeclaredLimits(1.0), EvaluationRequest(inv=("i",))),
        (DeclaredLimits(None, 1.0), EvaluationRequest(oov=("o",))),
        (DeclaredLimits(None, None, 0.1), EvaluationRequest(inv=("i",), oov=("o",))),
    ):
        with pytest.raises(InputError):
            limits.demand_figures(without)
        limits.demand_figures(spoken)
    DeclaredLimits(1.0).demand_figures(EvaluationRequest(inv=("i",), count_in_vocabulary=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sweep-refractory-ms", "500"), "--sweep-refractory-ms needs --sweep"),
        (("--no-picture",), "--no-picture needs --sweep"),
        (("--sweep", "--twv-beta", "10"), "--twv-beta needs --twv"),
        (("--sweep", "--twv-speech-s", "60"), "--twv-speech-s needs --twv"),
        (("--sweep", "--choose-by", "bound"), "--choose-by needs --target-fa-per-hour or --target-fr"),
        (("--sweep", "--choose-by", "bound", "--target-cost", "1", "1", "1"), "--choose-by needs --target-fa-per-hour"),
        (("--task-hours", "2"), "--task-hours needs --cluster"),
        (("-l", ""), "a log needs a name"),
        (("-l", "."), "a log needs a name"),
        (("-l", "b.log", "--html", "b.log"), "b.log: the HTML page or JUnit report would replace"),
        (("-l", "b.log", "--junit", "./b.log.json"), "b.log.json: the HTML page or JUnit report would replace"),
        (("--sweep", "p", "--html", "p.csv"), "p.csv: the HTML page or JUnit report would replace"),
        (("--sweep", "p.csv", "--html", "p.svg"), "p.svg: the HTML page or JUnit report would replace"),
        (("--in", "m.csv"), "the phrase_end_s of 'b.wav' is not a time in seconds: 'nan'"),
    ],
)
def test_options_that_would_be_ignored_or_destroy_results_are_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("oov.txt").write_text("a.wav\n")
    Path("m.csv").write_text("audio,phrase_end_s\na.wav,\nb.wav,nan\n")
    result = CliRunner().invoke(group, ["evaluate", "-t", "microwakeword:okay_nabu", "--oov", "oov.txt", *options])
    assert isinstance(result.exception, InputError), result.output
    assert words in str(result.exception)
    assert {path.name for path in tmp_path.iterdir()} == {"oov.txt", "m.csv"}


NOWHERE = "tcp://127.0.0.1:1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-t", "microwakeword:okay_nabu", "-j", "2"), "-j cannot be used with --cluster"),
        (("-t", "microwakeword:okay_nabu", "--continuous"), "a single worker would have to play all files"),
        (("-t", "device:bench.yaml#kitchen"), "device is attached to this machine"),
        (("-t", "microwakeword:okay_nabu"), f"no Dask scheduler answers at {NOWHERE}"),
    ],
)
def test_unsupported_cluster_options_are_refused_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with wave.open("a.wav", "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(32000))
    Path("oov.txt").write_text("a.wav\n")
    result = CliRunner().invoke(group, ["evaluate", *options, "--oov", "oov.txt", "-l", "a.log", "--cluster", NOWHERE])
    assert isinstance(result.exception, InputError), result.output
    assert words in str(result.exception)
    assert not list(tmp_path.glob("a.log*"))


FINGERPRINT = hashlib.sha256(b"an engine").hexdigest()
FILE = hashlib.sha256(b"a file").hexdigest()
WRITER = """
import sys, numpy as np
from harness.model.offline import ScoreTrack
from harness.offline.score_cache import ScoreCache
folder, fingerprint, sha256, seed = sys.argv[1:]
cache = ScoreCache(folder, print)
scores = np.full(50_000, float(seed), np.float32)
for _ in range(40):
    assert cache.put(fingerprint, sha256, (ScoreTrack("hey", scores, 0, 480),), 24_000_000, 16_000)
"""


def tracks() -> tuple[ScoreTrack, ...]:
    random = np.random.default_rng(1)
    return (
        ScoreTrack("hey jarvis", random.random(3600 * 33, np.float32), 1600, 480),
        ScoreTrack("ça va \"x\"", random.random(7, np.float32), 0, 1280),
        ScoreTrack("nothing", np.zeros(0, np.float32), 0, 480),
    )  # fmt: skip


def kept(folder: Path, messages: list[str]) -> tuple[ScoreCache, Path]:
    cache = ScoreCache(folder, messages.append)
    assert cache.put(FINGERPRINT, FILE, tracks(), 57_600_000, 16_000)
    (path,) = folder.rglob("*.scores")
    return cache, path


def test_cached_scores_are_returned_bit_for_bit(tmp_path: Path) -> None:
    messages: list[str] = []
    cache, path = kept(tmp_path, messages)
    assert b'"samples": 57600000, "rate_hz": 16000' in path.read_bytes()
    for track, put in zip(known(cache.get(FINGERPRINT, FILE)), tracks(), strict=True):
        assert (track.phrase, track.first_end, track.step) == (put.phrase, put.first_end, put.step)
        assert track.scores.dtype == np.float32
        assert track.scores.tobytes() == put.scores.tobytes()
    assert path.stat().st_size < 4 * 3600 * 33 + 1000  # an hour of scores is half a megabyte, and nothing else
    assert cache.size(FINGERPRINT) == "1 file, 0.5 MB"
    assert cache.get(FINGERPRINT, "00" * 32) is None
    assert cache.get("00" * 32, FILE) is None
    assert not messages


@pytest.mark.parametrize(
    ("damage", "told_as"),
    [
        (lambda content: content[:10], "cut off"),
        (lambda content: b"", "cut off"),
        (lambda content: content[:-5], "checksum"),
        (lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:], "checksum"),
        (lambda content: content + b"\0", "checksum"),
        (lambda content: content[:8] + (VERSION + 1).to_bytes(4, "little") + content[12:], "format 2"),
        (lambda content: content[:12] + b"\xff\xff\xff\xff" + content[16:], "checksum"),
        (lambda content: b"RIFF" + content[4:], "not a score file"),
    ],
)
def test_damaged_cache_entry_is_reported_as_a_miss(tmp_path: Path, damage, told_as: str) -> None:  # type: ignore[no-untyped-def]
    messages: list[str] = []
    cache, path = kept(tmp_path, messages)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(FINGERPRINT, FILE) is None
    assert len(messages) == 1
    assert told_as in messages[0]
    assert str(path) in messages[0]
    assert cache.put(FINGERPRINT, FILE, tracks(), 57_600_000, 16_000)
    assert cache.get(FINGERPRINT, FILE) is not None


def test_an_entry_under_another_name_is_not_trusted(tmp_path: Path) -> None:
    messages: list[str] = []
    cache, path = kept(tmp_path, messages)
    other = hashlib.sha256(b"another file").hexdigest()
    target = tmp_path / FINGERPRINT / other[:2] / f"{other}.scores"
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    assert cache.get(FINGERPRINT, other) is None
    assert "another engine or file" in messages[0]


def test_concurrent_writers_leave_a_complete_cache_entry(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), FINGERPRINT, FILE, str(seed)])
        for seed in (1, 2, 3)
    ]
    messages: list[str] = []
    cache, reads = ScoreCache(tmp_path, messages.append), 0
    while any(writer.poll() is None for writer in writers):
        entry = cache.get(FINGERPRINT, FILE)
        if entry is not None:
            reads += 1
            assert len(set(entry[0].scores.tolist())) == 1
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert reads
    assert not messages
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{FILE}.scores"]


def test_stored_scores_of_one_phrase_have_the_name_that_it_has_now(tmp_path: Path) -> None:
    cache, _ = kept(tmp_path, [])
    facts = EngineFacts(EngineKind.WAKE, "1", 16_000, ("jarvis",), FINGERPRINT)
    assert [track.phrase for track in known(cache.tracks(facts, FILE))] == [track.phrase for track in tracks()]
    assert cache.put(FINGERPRINT, FILE[::-1], tracks()[:1], 57_600_000, 16_000)
    assert [track.phrase for track in known(cache.tracks(facts, FILE[::-1]))] == ["jarvis"]
    assert cache.tracks(facts, "0" * 64) is None


def test_an_unwritable_cache_folder_is_reported_once(tmp_path: Path) -> None:
    messages: list[str] = []
    occupied = tmp_path / "a file"
    occupied.write_text("no folder")
    cache = ScoreCache(occupied, messages.append)
    assert not cache.put(FINGERPRINT, FILE, tracks(), 1, 16_000)
    assert not cache.put(FINGERPRINT, FILE, tracks(), 1, 16_000)
    assert len(messages) == 1


def test_a_cache_key_cannot_escape_its_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        ScoreCache(tmp_path, print).get("..", FILE)
    with pytest.raises(InputError):
        ScoreCache(tmp_path, print).put(FINGERPRINT, "", tracks(), 1, 16_000)
