"""A plan against simulated devices: its counts, its time, and what it says of limits."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.rehearse import command
from harness.model.scenario import Limits, Stopping
from harness.model.understanding import ExpectedFrame
from harness.report.rehearsal import Rehearsal, SimulatedDevice
from harness.session.simulated.night import FAULTS
from harness.statistics.intervals import Share
from tests.command import succeeded
from tests.unit.session.figures.rows import planned
from tests.unit.wake.wake_rows import wake_trial

BENCH = Path(__file__).parents[2] / "conformance" / "in_process" / "wake_bench.yaml"
SCENARIO = """\
scenario: night
voices:
  cass: {{engine: flite, name: slt}}
defaults: {{voice: cass, between_trials_s: 1}}
trials:
  - {{id: call, kind: wake, repeat: {calls}, devices: [wired]}}
  - {{id: soak, kind: ambient, hours: {hours}, devices: [wired], sources: [{{noise: pink}}]}}
{more}
"""


def rehearse(folder: Path, *options: str, calls: int = 200, hours: float = 2, more: str = "") -> Result:
    path = folder / "night.yaml"
    path.write_text(SCENARIO.format(calls=calls, hours=hours, more=more))
    return CliRunner().invoke(command, [str(path), "--bench", str(BENCH), "--runs", "60", "--nights", "1", *options])


def told(result: Result) -> dict[str, dict[str, object]]:
    """Limit → what was found."""
    return {limit["name"]: limit for limit in json.loads(result.output)["limits"]}


def test_a_sufficient_plan_decides_its_limit(tmp_path: Path) -> None:
    rehearsal = succeeded(rehearse(tmp_path, "--json", "--missed", "3%", more="limits: {max_false_reject_share: 0.1}"))
    limit = told(rehearsal)["max_false_reject_share[wired]"]
    assert limit["times_needed"] == 1
    assert limit["bad_holds"] == pytest.approx(0.0, abs=0.05)


def test_a_plan_that_is_too_small_says_how_much_is_needed(tmp_path: Path) -> None:
    options = ("--json", "--missed", "3%")
    rehearsal = rehearse(tmp_path, *options, calls=10, more="limits: {max_false_reject_upper: 0.1}")
    assert rehearsal.exit_code == 1
    times = told(rehearsal)["max_false_reject_upper[wired]"]["times_needed"]
    assert isinstance(times, int)
    succeeded(rehearse(tmp_path, *options, calls=10 * times, more="limits: {max_false_reject_upper: 0.1}"))


def test_commands_are_no_wake_trials(tmp_path: Path) -> None:
    commands = "  - {kind: command, query: time, repeat: 200, devices: [wired]}\nstimuli: [{id: time, text: the time}]"
    rehearsal = rehearse(tmp_path, "--missed", "0%", calls=10, more=f"{commands}\nlimits: {{min_command_share: 0.5}}")
    assert "wired: false rejects 0 of 10 = 0.00 %" in rehearsal.output


def test_a_device_that_is_worse_than_its_limit_is_never_decided(tmp_path: Path) -> None:
    # The plan is searched up to 32 times its size.
    rehearsal = rehearse(tmp_path, "--missed", "30%", calls=40, hours=0.1, more="limits: {max_false_reject_share: 0.1}")
    assert rehearsal.exit_code == 1
    assert "the assumed device does not meet it often enough" in rehearsal.output


VOICES = """\
matrix: {axes: {voice: [cass, {engine: espeak, name: en-us}, {engine: espeak, name: en-gb}]}}
limits: {max_false_reject_upper: 0.1}
"""


def test_false_rejects_that_cannot_be_decided_ask_for_voices_not_for_repetitions(tmp_path: Path) -> None:
    several = rehearse(tmp_path, "--missed", "1%", calls=20, hours=0.1, more=VOICES)
    assert "even with 32 times as much data from the same voices. Add voices." in several.output
    alone = rehearse(tmp_path, "--missed", "1%", calls=20, hours=0.1, more="limits: {max_false_reject_upper: 0.1}")
    assert "cannot be decided: plan for 4 times as much data." in alone.output


def test_a_device_has_only_the_voices_that_it_hears() -> None:
    trials = [
        wake_trial(number, devices=(device,), conditions=(("talker", talker),))
        for number, (device, talker) in enumerate((("kitchen", "ann"), ("hall", "ben")))
    ]
    (run,) = Rehearsal(trials, Limits(), Stopping()).play_runs(SimulatedDevice(0.0, 0.0, 0.0), 1, seed=1)
    assert [device.false_rejects.voices for device in run.wake.devices] == [None, None]


def test_queries_that_are_repeated_until_understood_are_not_among_the_recognised() -> None:
    trials = [planned(0), replace(planned(1), expects=ExpectedFrame(("get_time",), ()))]
    (run,) = Rehearsal(trials, Limits(), Stopping()).play_runs(SimulatedDevice(0.0, 0.0, 0.0), 1, seed=1)
    assert (run.totals.recognised, run.totals.answered) == (Share(1, 1), Share(2, 2))


def test_counts_and_intervals_have_their_n(tmp_path: Path) -> None:
    rehearsal = rehearse(tmp_path, "--missed", "5%", "--false-accepts", "3")
    assert "200 wake trials, 2:00:00 of ambient sound" in rehearsal.output
    assert "wired: false rejects 10 of 200 = 5.00 % (95 % exact 2.42–9.00 %; at any time" in rehearsal.output
    assert "wired: false accepts 6 in 2.000 h = 3.00 per hour (95 % interval 1.10–6.53)" in rehearsal.output


def test_a_sequential_test_ends_runs_early_and_may_keep_a_limit_from_holding(tmp_path: Path) -> None:
    more = "stopping: {false_accepts: {good: 0.1, bad: 2}}\nlimits: {max_false_accepts_upper_per_hour: 2}"
    rehearsal = rehearse(tmp_path, hours=8, calls=1, more=more)
    assert rehearsal.exit_code == 1
    assert "the sequential tests end most runs before this limit can hold" in rehearsal.output
    assert "in 1.5" in rehearsal.output  # hours_to_pass of that test is 1.58 h; segments are 30 s long


def test_unsimulated_limits_are_named(tmp_path: Path) -> None:
    rehearsal = succeeded(rehearse(tmp_path, more="limits: {max_latency_p95_ms: 500, max_interrupted: 0}"))
    assert "Not rehearsed: max_latency_p95_ms, max_interrupted" in rehearsal.output


def test_the_same_seed_gives_the_same_answer(tmp_path: Path) -> None:
    answers = {rehearse(tmp_path, "--json", "--seed", "7", calls=20).output for _ in range(2)}
    assert len(answers) == 1


@pytest.mark.parametrize("options", [("--missed", "130%"), ("--runs", "3"), ("--false-accepts", "-1")])
def test_impossible_rates_are_refused(tmp_path: Path, options: tuple[str, str]) -> None:
    assert rehearse(tmp_path, *options).exit_code == 2


def test_nights_say_how_long_they_take_what_they_decide_and_what_went_wrong(tmp_path: Path) -> None:
    options = ("--nights", "24", "--faults", "--missed", "20%")
    more = "limits: {max_false_reject_share: 0.2}"
    nights = json.loads(rehearse(tmp_path, "--json", *options, calls=20, hours=0.2, more=more).output)["nights"]
    assert len(nights) == 24
    assert {night["finished"] for night in nights} == {"completed"}
    verdicts = Counter(night["verdict"] for night in nights)
    assert verdicts["FAIL"] > 0
    assert verdicts["MARGINAL"] > 0
    faults = sum((Counter(night["faults"]) for night in nights), Counter[str]())
    shown = rehearse(tmp_path, *options, calls=20, hours=0.2, more=more).output.splitlines()
    assert "  completed  24 of 24 = 100 % (95 % interval 86.2–100 %)" in shown
    bars = [line for line in shown if any(block in line for block in "█▓▒░")][:-1]
    assert sum(int(line.split()[-1]) for line in bars) == 24
    assert sum(line.count("░") for line in bars) == verdicts["FAIL"]
    assert sum(line.count("▓") for line in bars) == verdicts["MARGINAL"]
    rows = {line.rsplit(maxsplit=2)[0].strip(): line.split()[-1] for line in shown if line[:2] in ("a ", "th", "re")}
    assert {FAULTS[kind]: str(count) for kind, count in faults.items()}.items() <= rows.items()


def test_the_duration_states_the_answers_that_it_assumes(tmp_path: Path) -> None:
    folder = BENCH.parent
    arguments = [str(folder / "three.yaml"), "--bench", str(folder / "bench.yaml"), "--runs", "60", "--nights", "1"]
    played = CliRunner().invoke(command, [*arguments, "--response-time", "2.5"]).output
    assert "false accepts per hour, answers within 2.50 s\n" in played
    assert "answers within" not in rehearse(tmp_path, calls=2, hours=0.1).output
