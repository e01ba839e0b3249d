"""The pytest plug-in, as a firmware team uses it: pytest in a folder of its own, on simulated boards."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.pytest_plugin import ScenarioRun
from harness.session.log.reader import check
from tests.seen import until
from tests.unit.cli.test_startup import imported

pytest_plugins = ["pytester"]
# Other plug-ins take seconds to load; `-p harness` loads ours by its entry point.
INI = "[pytest]\naddopts = -p harness -p xdist\n"
INPUTS = Path(__file__).parents[1] / "conformance" / "in_process"


@pytest.fixture
def lab(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration of its own, a scenario of three trials and a bench."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini(INI)
    for name in ("three.yaml", "deaf.yaml", "skip.yaml", "wrong.yaml", "wake_long.yaml"):
        (pytester.path / name).write_bytes((INPUTS / name).read_bytes())
    for name in ("bench.yaml", "deaf_bench.yaml", "wake_bench.yaml", "device.yaml"):
        (pytester.path / name).write_bytes((INPUTS / name).read_bytes())
    return pytester.path


def sessions(lab: Path) -> list[Path]:
    return sorted((lab / "sessions").glob("*")) if (lab / "sessions").exists() else []


def test_trials_and_limits_are_items_of_one_session(pytester: pytest.Pytester, lab: Path) -> None:
    pytester.makepyfile(
        test_more="""
        def test_same_session(harness_session, harness_bench):
            assert (harness_session / "session.json").is_file()
            assert harness_bench.id == "in_process"
        """
    )
    result = pytester.runpytest_subprocess("three.yaml", "test_more.py", "--bench", "bench.yaml", "-v")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        [
            "three.yaml::session::run PASSED*",
            "three.yaml::limits::min_recognised_share PASSED*",
            "three.yaml::unit.query::time.r3 PASSED*",
        ]
    )
    (folder,) = sessions(lab)
    result.stdout.fnmatch_lines([f"harness session: *{folder.name}"])


def test_a_deaf_device_fails_its_trial_and_its_limit(pytester: pytest.Pytester, lab: Path) -> None:
    result = pytester.runpytest_subprocess("deaf.yaml", "--bench", "deaf_bench.yaml")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["min_recognised_share: recognised ≥ 90 %: found 0.00 %, fails (of 1 trial)", "did not wake*"]
    )


def test_a_chosen_limit_alone_still_gets_a_whole_session(pytester: pytest.Pytester, lab: Path) -> None:
    done = pytester.runpytest_subprocess("deaf.yaml", "--bench", "deaf_bench.yaml", "-k", "min_recognised", "-x")
    done.assert_outcomes(failed=1, deselected=2)
    assert len(sessions(lab)) == 1


def test_collecting_reaches_no_device_and_makes_no_session(pytester: pytest.Pytester, lab: Path) -> None:
    scenarios = Path(__file__).parents[2] / "scenarios"
    bench = (scenarios / "benches" / "one_board.yaml").read_text().replace("/tmp/vh-board", "/dev/no-such-port")
    (lab / "board.yaml").write_text(bench)
    (lab / "wake.yaml").write_text("scenario: wake\ntrials: [{id: call, kind: wake, repeat: 2, phrase: hey}]\n")
    result = pytester.runpytest_subprocess("wake.yaml", "--bench", "board.yaml", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["wake.yaml::board.wake::call.r2", "3 tests collected*"])
    assert sessions(lab) == []


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        ([".", "--bench", "bench.yaml"], {}),  # not named
        (["three.yaml"], {}),  # no bench
        (["bench.yaml", "--bench", "bench.yaml"], {}),  # not a scenario
        (["skip.yaml", "--bench", "bench.yaml"], {"skipped": 1}),
        (["wrong.yaml", "--bench", "bench.yaml"], {"errors": 1}),
    ],
)
def test_unselected_or_invalid_scenarios_play_nothing(
    pytester: pytest.Pytester, lab: Path, arguments: list[str], outcomes: dict[str, int]
) -> None:
    pytester.runpytest_subprocess(*arguments).assert_outcomes(**outcomes)
    assert sessions(lab) == []


@pytest.mark.parametrize("pattern", ["thr*.yaml", "nightly/**/thr*.yaml", "nightly/../thr*.yaml"])
def test_the_configuration_may_name_scenarios(pytester: pytest.Pytester, lab: Path, pattern: str) -> None:
    pytester.makeini(f"{INI}harness_scenarios = {pattern}\n")
    (lab / "nightly" / "of" / "radios").mkdir(parents=True)
    if "**" in pattern:
        (lab / "three.yaml").rename(lab / "nightly" / "of" / "radios" / "three.yaml")
    result = pytester.runpytest_subprocess("--bench", "bench.yaml", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["5 tests collected*"])


def test_several_processes_are_refused(pytester: pytest.Pytester, lab: Path) -> None:
    refused = pytester.runpytest_subprocess("three.yaml", "--bench", "bench.yaml", "-n", "2")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*several processes cannot share one bench*"])


def test_without_the_plug_in_there_is_no_bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    without = pytester.runpytest_subprocess("-p", "no:harness", "three.yaml", "--bench", "bench.yaml")
    without.stderr.fnmatch_lines(["*unrecognized arguments: --bench*"])


def test_an_interrupted_run_leaves_a_valid_session_and_prints_its_folder(lab: Path) -> None:
    soak = lab / "wake_long.yaml"
    soak.write_text(soak.read_text().replace("hours: 0.5", "hours: 50"))  # it shall not end before it is interrupted
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "wake_long.yaml", "--bench", "wake_bench.yaml", "-s"],
        cwd=lab, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert run.stdout is not None
    output = ""
    try:
        for line in run.stdout:
            output += line
            if "soak" in line:  # the first trial has begun
                run.send_signal(signal.SIGINT)
                break
        rest, _ = run.communicate(timeout=120)
    finally:
        run.kill()
    (folder,) = sessions(lab)
    assert f"harness session: sessions/{folder.name}" in rest, output + rest
    assert f"harness run resume sessions/{folder.name}" in rest
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    until(lambda: not (folder / "engine.json").exists())
    assert check(folder).damage == ()


def test_loading_the_plug_in_imports_nothing_of_the_harness(tmp_path: Path) -> None:
    lines = (
        "import pytest",
        "before = set(sys.modules)",
        "import harness.pytest_plugin",
        "added = {one for one in set(sys.modules) - before if one.startswith(('harness', 'click'))}",
        "assert added == {'harness', 'harness.pytest_plugin'}, added",
    )
    assert imported("\n".join(lines), tmp_path) == set()


def test_limits_whose_devices_only_results_show_are_reported(pytester: pytest.Pytester, lab: Path) -> None:
    hearing = (lab / "wake_bench.yaml").read_text().replace("wake_miss_share: 0.3", "wake_miss_share: 0")
    (lab / "hearing.yaml").write_text(hearing)
    (lab / "ask.yaml").write_text(
        "scenario: ask\n"
        "stimuli: [{id: time, text: what time is it}]\n"
        "trials: [{id: ask, kind: command, query: time, devices: [shelf]}]\n"
        "limits: {max_first_sound_p95_ms: 900, max_request_gap_ms: 300}\n"
    )
    result = pytester.runpytest_subprocess("ask.yaml", "--bench", "hearing.yaml", "-v", "-k", "limits")
    result.assert_outcomes(passed=1, failed=1, deselected=2)
    result.stdout.fnmatch_lines(["max_first_sound_p95_ms[[]shelf]: first sound, p95 of shelf*undecided*"])


def test_a_case_that_nobody_could_plan_belongs_to_the_run() -> None:
    run = ScenarioRun(Path("s.yaml"), Path("b.yaml"), Path("sessions"))
    run.items.add(("limits", "max_request_gap_ms"))
    assert run.item_of("limits", "max_request_gap_ms[den]") == ("limits", "max_request_gap_ms")
    assert run.item_of("limits", "max_disturbed_share") == ("session", "run")
