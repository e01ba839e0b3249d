"""Sessions on a board against the same board as an engine: the same in every trial, but where it was set otherwise."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import SerialOptions
from harness.engines.offline_loading import load_engine, task_of
from harness.model.numbers import p_is
from harness.model.offline import EngineFacts, EngineKind
from harness.model.scenario import TrialKind
from harness.offline.figures.session_comparison import DeviceComparison, compare_device
from harness.offline.reports.session import comparison_csv as table_of
from harness.offline.reports.session import comparison_lines as lines
from harness.offline.session_stimuli import detect_in_session, read_stimuli
from harness.scenario.bench import load_bench
from harness.session.engine.prepare import prepare
from tests.conformance.boards import PosixBoard, posix_board
from tests.conformance.engine_runs import Runs, play_out
from tests.known import known
from tests.seen import Around

SCENARIO = """\
scenario: acoustic
seed: 4
needs: [wake_events, injection]
voices:
  alan: {engine: espeak, name: en-gb, rate_wpm: 150, language: en-GB}
  boris: {engine: espeak, name: en-us+m3, rate_wpm: 170}
  kal: {engine: flite, name: kal}
stimuli: [{id: time, text: what time is it}]
trials:
  - {id: call, kind: wake, repeat: 3}
  - {id: ask, kind: command, query: time}
  - id: soak
    kind: ambient
    hours: 0.03
    segment_s: 54
    sources:
      - {id: talk, voices: [alan, boris], texts: ["Alec sat down, and Eleksa stood", Alexsa, good morning to you]}
"""
MATRIX = """\
matrix: {{axes: {{voice: [alan, boris, kal], noise: [null, {{kind: pink, snr_db: {snr_db}}}]}}, order: shuffled}}
"""
BENCH = """\
bench: board
operator: absent
devices: {{wired: {{profile: vh_board, connection: {{driver: serial, port: {port}}}}}}}
"""
FACTS = EngineFacts(EngineKind.WAKE, "stub", 16_000, ("alexa",), "")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PosixBoard]:
    with posix_board(tmp_path_factory.mktemp("board")) as posix:
        yield posix


def ran(runs: Runs, board: PosixBoard, folder: Path, sensitivity: int, text: str) -> tuple[Path, Path]:
    """A session on the board, and its bench."""
    scenario, bench = folder / "scenario.yaml", folder / "bench.yaml"
    scenario.write_text(text, encoding="utf-8")
    board.reset()  # what it remembers of the test before would decide what it misses
    bench.write_text(BENCH.format(port=board.port), encoding="utf-8")
    driver = SerialDevice("wired", SerialOptions(port=board.port), Around(folder, load_bench(bench).devices[0].profile))
    driver.open(lambda _: None)
    driver.set_operating_point(sensitivity)
    driver.close()
    session = prepare(scenario, bench, folder / "sessions")
    runs.folders.append(session)
    play_out(session)
    return session, bench


def compared(session: Path, bench: Path, *settings: tuple[str, str], continuous: bool = False) -> DeviceComparison:
    stimuli = read_stimuli(session)
    engine = load_engine(task_of(f"device:{bench}#wired", settings))
    try:
        heard, failed = detect_in_session(engine, stimuli, stimuli.devices, continuous=continuous)
    finally:
        engine.close()
    assert failed == {}
    clips = {sha256: clip.name for sha256, clip in stimuli.clips.items()}
    return compare_device(stimuli.figures, "wired", heard, clips=clips, notes=stimuli.notes, reasons_left_out=failed)


@pytest.mark.speech
def test_the_same_spotter_agrees_with_itself_in_every_trial_and_every_event(
    runs: Runs, board: PosixBoard, tmp_path: Path
) -> None:
    session, bench = ran(runs, board, tmp_path, 50, SCENARIO + MATRIX.format(snr_db=10))
    board.reset()  # what a device remembers begins with its boot
    comparison = compared(session, bench, continuous=True)
    wake, commands = comparison.counts(TrialKind.WAKE), comparison.counts(TrialKind.COMMAND)
    assert (wake.total, commands.total) == (18, 6)
    assert wake.both > 0
    assert wake.only_first == wake.only_second == commands.only_first == commands.only_second == 0
    assert wake.p is None
    assert [trial for trial in comparison.trials if trial.differs] == []
    assert comparison.ambient.segments == 2
    assert comparison.ambient.counts.both > 0
    assert (comparison.ambient.counts.only_first, comparison.ambient.counts.only_second) == (0, 0)
    assert comparison.ambient.live_s == pytest.approx(108.0, abs=0.01)
    assert comparison.delay_differences.total == wake.both
    for quantile in (comparison.delay_differences.p50, comparison.delay_differences.p99):
        assert quantile is not None
        assert quantile.value_s == pytest.approx(0.0, abs=1e-6), "the very samples"
    assert all((session / "clips" / trial.clip).is_file() for trial in comparison.trials)
    an_engine_with_scores_says_how_far_it_was_off(session)


def an_engine_with_scores_says_how_far_it_was_off(session: Path) -> None:
    stimuli = read_stimuli(session)
    engine = load_engine(task_of("microwakeword:alexa"))
    rule = known(engine.facts.rule)
    fresh, failed = detect_in_session(engine, stimuli, stimuli.devices)
    steps: list[tuple[int, int]] = []
    in_one_go, failed_too = detect_in_session(
        engine, stimuli, stimuli.devices, continuous=True, progress=lambda done, total: steps.append((done, total))
    )
    engine.close()
    assert failed == failed_too == {}
    assert set(fresh) == set(in_one_go) == {play.row.play_id for play in stimuli.plays(stimuli.devices)}
    assert steps[-1] == (len(fresh), len(fresh))
    comparison = compare_device(
        stimuli.figures, "wired", fresh, clips={}, notes={}, reasons_left_out={}, threshold=rule.threshold
    )
    wake = [trial for trial in comparison.trials if trial.kind is TrialKind.WAKE]
    assert any(trial.offline.woke for trial in wake)
    for trial in wake:
        assert trial.offline.score is not None
        assert trial.offline.woke is (trial.offline.score > rule.threshold)
    for trial in wake:
        if trial.differs:
            assert "the threshold" in trial.notes[-1]


def test_a_device_that_hears_less_differs_where_it_misses(runs: Runs, board: PosixBoard, tmp_path: Path) -> None:
    """Live it is at its least sensitive, so that it misses phrases in noise; offline the same board is as it comes."""
    scenario = SCENARIO[: SCENARIO.index("  - id: soak")] + MATRIX.format(snr_db=-3)
    session, bench = ran(runs, board, tmp_path, 0, scenario)
    comparison = compared(session, bench)
    counts = comparison.counts(TrialKind.WAKE)
    assert counts.total == 18
    assert counts.only_first == 0
    assert counts.only_second > 0
    assert comparison.left_out == ()
    differing = [trial for trial in comparison.trials if trial.differs]
    assert all(dict(trial.conditions)["noise"] != "none" for trial in differing)
    cells = dict(comparison.conditions)
    assert sum(cell.total for name, cell in cells.items() if name.startswith("voice=")) == counts.total
    assert sum(cell.only_second for name, cell in cells.items() if name.startswith("noise=")) == counts.only_second

    text = "\n".join(lines(comparison, FACTS, "device:bench.yaml#wired", continuous=False))
    assert f"{p_is(counts.p)} (McNemar)" in text
    assert all(trial.trial_id in text and trial.clip in text for trial in differing)

    runner = CliRunner()
    arguments = ["offline", str(session), "-t", f"device:{bench}#wired"]
    result = runner.invoke(group, [*arguments, "--json", "--continuous"])
    assert result.exit_code == 0, result.output
    (device,) = json.loads(result.stdout)["devices"]
    table = device["tables"]["wake"]
    live = (table["both"] + table["only_live"], table["only_offline"] + table["neither"])
    assert live == (counts.both + counts.only_first, counts.only_second + counts.neither), "live is live"
    assert table["only_offline"] > 0
    rows = list(csv.DictReader(io.StringIO(table_of([comparison]))))
    assert len(rows) == len(comparison.trials)
    assert sum(row["differs"] == "1" for row in rows) == len(differing)


def test_invalid_comparisons_are_refused_before_the_device_is_reached(tmp_path: Path) -> None:
    runner = CliRunner()
    for arguments, word in (
        ([str(tmp_path), "-t", "device:vh_board"], "not a session"),
        ([str(tmp_path), "-t", "device:vh_board", "-s", "sensitivty=3"], "sensitivity"),
        ([str(tmp_path), "-t", "device:vh_board", "-s", "sensitivity=101"], "at most 100"),
        ([str(tmp_path), "-t", "device:vh_board", "--json", "--csv"], "cannot be combined"),
    ):
        result = runner.invoke(group, ["offline", *arguments])
        assert result.exit_code != 0
        assert word in str(result.exception), result.output
