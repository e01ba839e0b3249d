"""The process engine against real programs that keep the protocol, and against those that break it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.base.ports import ScoresSound, SpotsPhrases, Understands
from harness.engines.process_engine import ProcessEngine
from harness.engines.process_protocol import EngineEvent, parse_line
from harness.model.errors import EngineError, InputError
from harness.model.offline import EngineKind, OfflineSpot
from harness.model.understanding import Slot
from harness.offline.one_file import spots_of_track
from tests.files import file_with
from tests.known import known
from tests.seen import gone, until

ENGINES = Path(__file__).parents[2] / "data" / "engines"
LOUD = f"{sys.executable} {ENGINES / 'loud_engine.py'}"


def faulty(fault: str) -> str:
    return f"{sys.executable} {ENGINES / 'faulty_engine.py'} '{fault}'"


def sound(seconds: float = 2.0, *loud: tuple[float, float]) -> np.ndarray:
    samples = np.zeros(round(seconds * 16000), np.int16)
    for start, end in loud:
        samples[round(start * 16000) : round(end * 16000)] = 9000
    return samples


def heard(engine: ProcessEngine, samples: np.ndarray, piece: int = 1600) -> tuple[OfflineSpot, ...]:
    assert isinstance(engine, SpotsPhrases)
    stream = engine.listen()
    spots: list[OfflineSpot] = []
    for start in range(0, len(samples), piece):
        stream.feed(samples[start : start + piece])
        spots += stream.take(flush=False)
    return (*spots, *stream.take(flush=True))


Starts = Callable[..., ProcessEngine]


@pytest.fixture
def start() -> Iterator[Starts]:
    """Starts engines of a command, with settings; they are closed, twice, when the test ends."""
    started: list[ProcessEngine] = []

    def one(command: str, **settings: str) -> ProcessEngine:
        started.append(ProcessEngine(command, {name.replace("_", "-"): value for name, value in settings.items()}))
        return started[-1]

    yield one
    for engine in 2 * started:
        engine.close()


@pytest.fixture(scope="module")
def loud() -> Iterator[ProcessEngine]:
    engine = ProcessEngine(LOUD, {})
    yield engine
    engine.close()


SOUND = sound(3.0, (1.0, 1.2), (2.0, 2.5))
FOUND = (OfflineSpot("loud", 16000, 19520, 1.0), OfflineSpot("loud", 32000, 40320, 1.0))


def test_a_served_engine_describes_itself_and_finds_phrases(loud: ProcessEngine) -> None:
    facts = loud.facts
    assert (facts.kind, facts.version, facts.rate_hz) == (EngineKind.WAKE, "loud_engine 1.0", 16000)
    assert (facts.phrases, facts.licence) == (("loud",), "Apache-2.0")
    assert not isinstance(loud, ScoresSound | Understands)
    assert heard(loud, SOUND) == FOUND


@pytest.mark.parametrize("piece", [333, 4001, 48000])
def test_pieces_of_any_size_give_the_same_and_one_process_serves_them_all(loud: ProcessEngine, piece: int) -> None:
    before = loud.pid
    assert heard(loud, SOUND, piece) == FOUND
    assert loud.pid == before


def test_a_file_that_is_given_up_leaves_nothing_to_the_next(loud: ProcessEngine) -> None:
    assert isinstance(loud, SpotsPhrases)
    loud.listen().feed(sound(1.0, (0.2, 0.9)))
    assert heard(loud, SOUND) == FOUND


def test_spot_lasting_to_the_end_is_reported_at_the_end(loud: ProcessEngine) -> None:
    assert heard(loud, sound(1.0, (0.5, 1.0))) == (OfflineSpot("loud", 8000, 16000, 1.0),)


def test_a_program_that_knows_nothing_of_framing_runs_once_a_file(start: Starts) -> None:
    engine = start(f"{LOUD} --once", mode="once")
    assert heard(engine, SOUND) == heard(engine, SOUND, 777) == FOUND
    assert heard(engine, sound(0.0)) == ()


def test_a_program_without_a_start_of_a_spot_gets_the_spot_duration(start: Starts, tmp_path: Path) -> None:
    program = file_with(
        tmp_path / "count sound",
        f"#!{sys.executable}\nimport sys, json\nn = len(sys.stdin.buffer.read()) // 2\n"
        'print(json.dumps({"phrase": "any", "end": n}))\n',
    )
    program.chmod(0o755)
    engine = start(str(program), mode="once", rate_hz="8000", spot_duration="500")
    assert engine.facts.rate_hz == 8000
    assert heard(engine, sound()) == (OfflineSpot("any", 28000, 32000, None),)


def test_a_frame_engine_reports_intents_and_slots(start: Starts) -> None:
    engine = start(f"{LOUD} --kind frame")
    assert engine.facts.kind is EngineKind.FRAME
    assert isinstance(engine, Understands)
    answer = known(engine.understand(sound(2.0, (0.5, 0.8), (1.0, 1.2))))
    assert (answer.text, answer.intents) == ("loud loud", ("shout",))
    assert answer.slots == (Slot("tenths", "3"), Slot("tenths", "2"))
    assert engine.understand(sound()) is None


def test_a_command_engine_reports_intents(start: Starts) -> None:
    engine = start(f"{LOUD} --kind command")
    assert isinstance(engine, Understands)
    assert not isinstance(engine, SpotsPhrases)
    utterance = known(engine.understand(SOUND))
    assert (utterance.text, utterance.start, utterance.end) == ("loud loud", 16000, 40320)
    assert engine.understand(sound()) is None


def test_declared_scores_serve_every_operating_point(start: Starts) -> None:
    engine = start(f"{LOUD} --scores", operating_point="10")
    assert isinstance(engine, ScoresSound)
    stream = engine.begin()
    stream.feed(SOUND)
    (track,) = stream.take(flush=True)
    assert (len(track.scores), track.first_end, track.step) == (150, 320, 320)
    rule = known(engine.facts.rule)
    assert rule.threshold == 0.1
    # The second loud sound is within a second of the first: one spot, as the refractory time says.
    assert [spot.end for spot in spots_of_track(track, rule)] == [16320]
    assert len(engine.facts.operating_points) == 20


def test_a_detection_beside_declared_scores_is_refused(start: Starts) -> None:
    engine = start(faulty("detection"))
    assert isinstance(engine, ScoresSound)
    stream = engine.begin()
    stream.feed(sound(1.0))
    with pytest.raises(EngineError, match="sent a detection of 'loud', but its hello declares scores"):
        stream.take(flush=True)


FAULTS = {
    "hang": "has not reported that the file is done within 1 s",
    "crash": r"by SIGSEGV before it reported that the file is done; its last output: no licence for \\e\[31mthis host",
    "exit": "ended with status 7 before it reported",
    "garbage": "not a JSON object: 'Loading model... done'",
    "partial": "in the middle of a line",
    "binary": "not UTF-8",
    "frame": "wrote a line without phrase, text, scores, done or error",
    "nan": "not a finite number: 'NaN'",
    "infinite": "not a finite number: 'Infinity'",
    "huge": "not a finite number",
    "beyond": "sent end at 99.000 s, after only 1.000 s of the file",
    "negative": "end_s -1, which is not between 0",
    "back": "event at sample 3200 after one at sample 12800",
    "reversed": "start, sample 14400, after its end, sample 3200",
    "endless": "did not report where 'loud' ends",
    "endless text": "did not report where 'loud' ends",
    "stranger": "detected 'quiet', which is not in its hello: loud",
    "flood": "lines in 1.00 s of sound",
    "long line": "a line of more than",
    "error": "reported an error: the model is out of date",
    "wrong file": r"reported that another file is done \(\+5\)",
    "deep": "not a JSON object",
    "scores": "scores of 'loud', which its hello does not declare",
    "number": "not a JSON object: '17'",
    "words": "has not reported that the file is done within 1 s; its last output: still loading",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_an_error_with_the_command_and_ends_the_process(start: Starts, fault: str) -> None:
    engine = start(faulty(fault), hang_limit_s="1" if "within 1 s" in FAULTS[fault] else "60")
    pid = known(engine.pid)
    with pytest.raises(EngineError, match=FAULTS[fault]) as error:
        heard(engine, sound(1.0))
    assert "faulty_engine.py" in str(error.value)
    assert engine.pid is None
    until(lambda: gone(pid))


def test_an_error_of_null_is_no_refusal() -> None:
    event = parse_line('{"phrase": "loud", "end": 0.5, "error": null}', 16000, 16000)
    assert isinstance(event, EngineEvent)
    assert event.text == "loud"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("frame of words", "sent intents that are not a list of names: '\"shout\"'"),
        ("frame of a joint", "sent intents that are not a list of names"),
        ("frame of half a letter", "sent intents that are not a list of names"),
        ("frame with slots of numbers", "sent slots that are not a list of"),
        ("frame with half a letter", "sent a text that is not valid Unicode"),
    ],
)
def test_a_frame_that_no_file_could_hold_is_a_fault(start: Starts, fault: str, message: str) -> None:
    engine = start(faulty(fault))
    assert isinstance(engine, Understands)
    with pytest.raises(EngineError, match=message):
        engine.understand(sound(0.5))


def test_after_a_fault_the_next_file_gets_a_fresh_process(start: Starts) -> None:
    engine = start(faulty("exit"))
    for _ in range(2):
        with pytest.raises(EngineError, match="status 7 before it reported that the file is done"):
            heard(engine, sound(0.5))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("silent start", "has not sent its hello within 1 s"),
        ("early exit", "ended with status 1 before its hello; its last output: no such model: x"),
        ("no hello", "not a JSON object: 'ready'. The first line must be a hello"),
        ("old protocol", "speaks protocol '0', not 1"),
        ("no rate", "without a valid rate_hz"),
    ],
)
def test_a_faulty_start_is_reported_before_any_sound(fault: str, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        ProcessEngine(faulty(fault), {"start-limit-s": "1" if "within 1 s" in message else "60"})


def test_an_engine_that_finishes_before_the_end_is_refused(start: Starts) -> None:
    engine = start(faulty("done early"))
    assert isinstance(engine, SpotsPhrases)
    stream = engine.listen()

    def look() -> bool:
        stream.feed(sound(1.0))
        return bool(stream.take(flush=False))

    with pytest.raises(EngineError, match="reported that the file is done before its end"):
        until(look)


def test_an_engine_that_takes_no_sound_is_ended(start: Starts) -> None:
    engine = start(faulty("deaf"), hang_limit_s="1")
    with pytest.raises(EngineError, match="has not accepted the sound that it was sent within 1 s"):
        heard(engine, sound(60.0))


def test_a_program_that_stops_reading_is_reported(start: Starts) -> None:
    engine = start("true", mode="once")
    with pytest.raises(EngineError, match="ended with status 0 before it had read all the sound"):
        heard(engine, sound(60.0))


def _group(leader: int) -> list[int]:
    """Everybody in the process group of that leader."""
    members = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[2]) == leader:
                members.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return members


def test_close_ends_whatever_the_engine_started() -> None:
    engine = ProcessEngine(faulty("family"), {})
    leader = known(engine.pid)
    # What keeps watch, the engine, and the child of the engine, which does not read and so never sees an end.
    until(lambda: len(_group(leader)) == 3)
    group = _group(leader)
    engine.close()
    until(lambda: all(map(gone, group)))


def test_a_harness_that_is_killed_leaves_no_engine_behind() -> None:
    code = (
        "import sys, time\nfrom harness.engines.process_engine import ProcessEngine\n"
        "engine = ProcessEngine(sys.argv[1], {})\nprint(engine.pid, flush=True)\ntime.sleep(3600)\n"
    )
    ours = subprocess.Popen([sys.executable, "-c", code, faulty("family")], stdout=subprocess.PIPE, text=True)
    assert ours.stdout is not None
    leader = int(ours.stdout.readline())
    until(lambda: len(_group(leader)) == 3)
    group = _group(leader)
    os.kill(ours.pid, signal.SIGKILL)
    ours.wait()
    ours.stdout.close()
    # The engine and its child do not mind the end of their input: only the one that keeps watch can end them.
    until(lambda: all(map(gone, group)))


def test_engine_outlives_the_thread_that_started_it() -> None:
    started: list[ProcessEngine] = []
    thread = threading.Thread(target=lambda: started.append(ProcessEngine(LOUD, {})))
    thread.start()
    thread.join()
    (engine,) = started
    pid = engine.pid
    assert [heard(engine, SOUND), heard(engine, SOUND)] == [FOUND, FOUND]
    assert engine.pid == pid
    engine.close()


@pytest.mark.parametrize(
    ("command", "settings", "message"),
    [
        ("", {}, "needs a command"),
        ("no-such-program --x", {}, "program 'no-such-program' does not exist"),
        ("'open quote", {}, "cannot be parsed: No closing quotation"),
        (f"no-such-program {'x' * 300}", {}, "program 'no-such-program' does not exist"),
        (LOUD, {"operating-point": "3"}, "operating-point cannot be set"),
        (LOUD, {"kind": "command"}, "kind is command, but the engine reports wake"),
        (LOUD, {"rate-hz": "8000"}, "the engine reports 16000"),
    ],
)
def test_invalid_command_or_settings_are_refused_before_any_sound(
    command: str, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ProcessEngine(command, settings)


def test_a_file_without_execute_permission_is_reported(tmp_path: Path) -> None:
    program = file_with(tmp_path / "engine.py", "print(1)")
    with pytest.raises(InputError, match=r"is not executable.*chmod"):
        ProcessEngine(str(program), {})


@pytest.mark.parametrize("option", ["", "--model=", f"{'x' * 300} "])
def test_another_model_file_changes_the_fingerprint(start: Starts, tmp_path: Path, option: str) -> None:
    model = tmp_path / "model.bin"
    fingerprints = set()
    for content in (b"a", b"b", b"b"):
        model.write_bytes(content)
        fingerprints.add(start(f"{LOUD} --once {option}{model}", mode="once").facts.fingerprint)
    assert len(fingerprints) == 2
