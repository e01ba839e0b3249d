"""Live counts on real boards are the known truth of their firmware, exactly: over a line, over a broker, with a noisy
line, and through engines that are killed."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from harness.model.feed import Hello, Logged, Message
from harness.model.record import AttemptFinished, AttemptStarted, Entry, TrialFinished
from harness.model.trial import Outcome
from harness.session.engine.feed import EngineClient
from harness.session.engine.launch import EnginePlace, start_engine
from harness.session.engine.prepare import prepare
from harness.session.log.reader import check
from tests.conformance.boards import qemu_installed
from tests.conformance.engine_runs import Runs, kill, play_out, rows
from tests.conformance.wake_boards import RADIO, WIRED, TwoBoards, two_posix_boards, two_qemu_boards
from tests.conformance.wake_counts import figures_agree, json_agrees, log_agrees
from tests.conformance.wake_truth import Truth, given, plan_of, spotted, truth
from tests.files import file_with
from tests.known import known
from tests.written_sessions import records

SMALL = """\
scenario: small
seed: {seed}
needs: [wake_events, injection]
voices:
  alan: {{engine: espeak, name: en-gb, rate_wpm: 150, language: en-GB}}
  boris: {{engine: espeak, name: en-us+m3, rate_wpm: 170}}
  kal: {{engine: flite, name: kal}}
wake: {{refractory_s: {refractory_s}, count_in_vocabulary: {in_vocabulary}}}
stimuli: [{{id: time, text: what time is it}}]
trials:
  - {{id: call, kind: wake, lead_in_s: 1, repeat: {calls}}}
  - {{id: ask, kind: command, query: time, lead_in_s: 1}}
  - id: soak
    kind: ambient
    hours: {hours}
    segment_s: {segment_s}
    sources:
      - {{noise: white}}
      - id: talk
        share: 5
        voices: [alan, boris, kal]
        texts: ["Alec sat down, and Eleksa stood", Alexsa, good morning, "Alexsa, it is late. Alexsa, good night"]
matrix: {{axes: {{voice: [alan, boris, kal], noise: [null, {{kind: pink, snr_db: 10}}]}}, order: shuffled}}
"""
"""With short lead-ins and a long refractory time events are merged within a stimulus and across two."""
FULL = Path(__file__).parents[2] / "scenarios" / "wake_boards.yaml"


def run_to_its_end(runs: Runs, scenario: Path, bench: Path, within_s: float) -> Path:
    folder = prepare(scenario, bench, runs.root / "sessions")
    runs.folders.append(folder)
    play_out(folder, within_s)
    return folder


def agree(
    folder: Path, boards: TwoBoards, output: Path, encoding: str = "pcm16", heard: list[dict[str, int]] | None = None
) -> dict[str, Truth]:
    """The truth by device, after everything that was counted has been held against it.

    heard: what the boards had heard at the end of each run of the engine; None: there was one run, it has just ended.
    """
    entries = rows(folder)
    assert check(folder).damage == ()
    assert outcomes(entries) == {Outcome.COUNTED}
    heard = heard or [boards.heard()]
    truths = {}
    for device in (WIRED, RADIO):
        plays = given(entries, [counts[device] for counts in heard], encoding)
        truths[device] = true = truth(plays, spotted(plays, encoding))
        figures_agree(entries, device, true)
        log_agrees(folder, device, true, output)
        json_agrees(folder, device, true)
    return truths


def outcomes(entries: list[Entry]) -> set[Outcome]:
    finished = records(entries, TrialFinished)
    assert set(Counter(row.trial_id for row in finished).values()) == {1}
    return {row.outcome for row in finished}


NEEDS_QEMU = pytest.mark.skipif(not qemu_installed(), reason="needs qemu-system-arm and gcc-arm-none-eabi")
Start = Callable[[Path], AbstractContextManager[TwoBoards]]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("start", "within_s"),
    [
        pytest.param(two_posix_boards, 240, id="posix"),
        # About ten minutes of two processors.
        pytest.param(two_qemu_boards, 3000, marks=[NEEDS_QEMU, pytest.mark.timeout(3600)], id="cortex-m4"),
    ],
)
def test_counts_of_200_phrases_and_half_an_hour_match_two_boards(
    runs: Runs, tmp_path: Path, start: Start, within_s: float
) -> None:
    with start(tmp_path) as boards:
        folder = run_to_its_end(runs, FULL, boards.bench(tmp_path), within_s)
        truths = agree(folder, boards, tmp_path)
    for true in truths.values():
        assert len(true.hits) >= 200
        assert sum(true.exposure.values()) >= 30 * 60 * 16_000
        assert true.missed
        assert true.false_accepts()
    assert truths[WIRED].delays() == truths[RADIO].delays(), "the same sound is the same for both"


def small(folder: Path, **changes: object) -> Path:
    settings = {"seed": 7, "refractory_s": 5, "in_vocabulary": "false", "calls": 1, "hours": 0.03, "segment_s": 18}
    return file_with(folder / "small.yaml", SMALL.format(**settings | changes))


@pytest.mark.parametrize(
    ("encoding", "in_vocabulary"), [("pcm16", "true"), pytest.param("ulaw", "false", marks=pytest.mark.soak)]
)
def test_a_noisy_line_changes_no_count(runs: Runs, tmp_path: Path, encoding: str, in_vocabulary: str) -> None:
    """in_vocabulary: further events in phrases' trials are false accepts too, and the rest of their sound exposure."""
    with two_posix_boards(tmp_path, cable=True) as boards:
        cable = known(boards.wired.cable)
        cable.corrupt(1e-3, seed=5)
        scenario = small(tmp_path, refractory_s=8, hours=0.01, in_vocabulary=in_vocabulary)
        folder = run_to_its_end(runs, scenario, boards.bench(tmp_path, encoding), 240)
        cable.corrupt(0)
        truths = agree(folder, boards, tmp_path, encoding)
    for true in truths.values():
        assert true.merged
        assert true.in_ambience()
        assert len(true.extra) > len(true.in_ambience())


@NEEDS_QEMU
def test_two_cortex_m4_are_counted_as_well(runs: Runs, tmp_path: Path) -> None:
    """ADPCM, because it is the fastest there; PCM16 and the whole scenario: above."""
    with two_qemu_boards(tmp_path) as boards:
        scenario = small(tmp_path, refractory_s=2, hours=0.0075, segment_s=27)
        folder = run_to_its_end(runs, scenario, boards.bench(tmp_path, "adpcm"), 240)
        truths = agree(folder, boards, tmp_path, "adpcm")
    for true in truths.values():
        assert len(true.hits) == 6
        assert true.false_accepts()


def test_killed_engines_leave_every_trial_counted_once(runs: Runs, tmp_path: Path) -> None:
    """A board that outlives the engine has heard the first part of a sound that counts nowhere, and remembers it.

    The truth is what its spotter makes of everything since its boot, that part included, as long as the board says it
    was; what it finds in that part is outside of exposure.
    """
    chance = random.Random(5)
    with two_posix_boards(tmp_path) as boards:
        scenario = small(tmp_path, refractory_s=2, calls=2, hours=0.0334, segment_s=30)
        folder = prepare(scenario, boards.bench(tmp_path), runs.root / "sessions")
        runs.folders.append(folder)
        heard: list[dict[str, int]] = []
        for kind in ("soak", "call", "soak", "ask"):
            before = len(rows(folder))
            place = start_engine(folder)
            _wait_for_attempt(place, kind, before)
            time.sleep(chance.uniform(0.0, 0.1))  # any moment will do
            assert place.alive, "the run was over before it was killed"
            kill(place)
            heard.append(boards.heard())
        play_out(folder)
        heard.append(boards.heard())
        agree(folder, boards, tmp_path, heard=heard)
    entries = rows(folder)
    cut = [row for row in records(entries, AttemptFinished) if row.cause]
    assert len(cut) >= 2, "too few kills hit an attempt"
    counted = Counter(row.trial_id for row in records(entries, AttemptFinished) if row.outcome is Outcome.COUNTED)
    assert set(counted) == set(plan_of(entries))
    assert set(counted.values()) == {1}


def _wait_for_attempt(place: EnginePlace, kind: str, since: int) -> None:
    """Of a board that hears faster than in real time, an attempt takes a tenth of a second: nobody asks in between."""
    started = threading.Event()

    def take(message: Message) -> None:
        row = message.entry.record if isinstance(message, Logged) else None
        if isinstance(row, AttemptStarted) and row.trial_id.startswith(kind):
            started.set()

    hello = Hello("test", since, attended=False, meters=False)
    client = EngineClient(Path(place.socket), hello, take, lambda _: started.set())
    assert started.wait(360), f"no attempt of {kind}"
    client.close()
