"""The pytest plug-in: a scenario's trials and limits as test items. docs/how-to/ci.md shows its use.

A scenario is played once, as `harness run` plays it, when its first item is set up. Items are the cases of the JUnit
report. pytest loads this module in every run, so it imports the harness only once `--bench` is given.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.model.bench import Bench
    from harness.report.junit_xml import Case, JUnitReport

_RUN_ITEM = "session", "run"
_RUNS = pytest.StashKey[dict[Path, "ScenarioRun"]]()
_CONFIGURED_FILES = pytest.StashKey[set[str]]()
"""The files that `harness_scenarios` names."""
_IS_SCENARIO = re.compile(rb"^scenario[ \t]*:", re.MULTILINE)


class CaseNotPassed(Exception):
    """Why an item did not pass, as text for the terminal."""


class ScenarioRun:
    """A scenario on the bench. folder: of the session, once it is prepared. report: once it has ended."""

    def __init__(self, scenario: Path, bench: Path, sessions: Path) -> None:
        self.scenario, self.bench, self.sessions = scenario, bench, sessions
        self.folder: Path | None = None
        self.report: JUnitReport | None = None
        self.items: set[tuple[str, str]] = {_RUN_ITEM}
        """Suite and name of each case that is planned."""
        self._error: Exception | None = None

    def planned_report(self) -> JUnitReport:
        """The report of the session before its first trial; reaches no device. HarnessError for wrong files."""
        from harness.model.record import Entry
        from harness.report.junit import report_of
        from harness.scenario.bench import load_bench
        from harness.scenario.compatibility import check_compatibility
        from harness.scenario.scenario import load_scenario
        from harness.session.engine.prepare import plan_session

        scenario, bench = load_scenario(self.scenario), load_bench(self.bench)
        check_compatibility(scenario, bench)
        return report_of([Entry(1, 0, 0.0, 0.0, plan_session(scenario, bench))], scenario)

    def item_of(self, suite: str, case: str) -> tuple[str, str]:
        """The item that shows a case: its own, else that of the limit on all devices, else that of the run.

        Only results show which devices some limits are on, and whether the host disturbed too many attempts.
        """
        limit_on_all_devices = case.partition("[")[0]
        for item in ((suite, case), (suite, limit_on_all_devices)):
            if item in self.items:
                return item
        return _RUN_ITEM

    def played_report(self) -> JUnitReport:
        """The report of the session, which is played at the first call; the same error at every later call.

        HarnessError when it cannot be played, UnmetNeed when the bench lacks something; ends pytest on Ctrl-C.
        """
        if self._error is not None:
            raise self._error
        if self.report is None:
            try:
                self.report = self._play()
            except Exception as error:
                self._error = error
                raise
        return self.report

    def _play(self) -> JUnitReport:
        from harness.base.foreign import shell_word
        from harness.cli.run import RunView, demand_sound, watch
        from harness.model.record import EndReason
        from harness.report.junit import report_of
        from harness.session.engine.launch import start_engine
        from harness.session.engine.prepare import prepare
        from harness.session.log.reader import LogReader, later_rows, read_scenario

        self.folder = folder = prepare(
            self.scenario, self.bench, self.sessions, demand=lambda bench: demand_sound(bench, start=False)
        )
        watch(start_engine(folder), RunView.PLAIN, history=True)
        with LogReader(folder) as reader:
            report = report_of(reader.entries(), read_scenario(folder), later_rows(folder))
        ends = [case.reason.type for case in report.suites[0].cases if case.reason is not None]
        if EndReason.STOPPED.value in ends or "not_finished" in ends:
            resume = f"harness run resume {shell_word(folder)}"
            pytest.exit(f"the run was stopped. Resume: {resume}", pytest.ExitCode.INTERRUPTED)
        return report


class ScenarioFile(pytest.File):
    """A scenario that is named on the command line or by `harness_scenarios`."""

    run: ScenarioRun

    def collect(self) -> Iterator[pytest.Collector]:
        from harness.model.errors import HarnessError, UnmetNeed

        try:
            suites = [(suite.name, [case.name for case in suite.cases]) for suite in self.run.planned_report().suites]
        except UnmetNeed:
            suites = [(_RUN_ITEM[0], [_RUN_ITEM[1]])]  # playing it says what the bench lacks
        except HarnessError as error:
            raise self.CollectError(str(error)) from error
        for name, cases in suites:
            self.run.items.update((name, case) for case in cases)
            suite = CaseSuite.from_parent(self, name=name)
            suite.cases, suite.run = cases, self.run
            yield suite


class CaseSuite(pytest.Collector):
    """A suite of the JUnit report."""

    cases: list[str]
    run: ScenarioRun

    def collect(self) -> Iterator[pytest.Item]:
        for name in self.cases:
            item = CaseItem.from_parent(self, name=name)
            item.run, item.suite = self.run, self.name
            yield item


class CaseItem(pytest.Item):
    """A trial, a limit, a sequential test or the run itself. An error of the bench is an error of the set-up."""

    run: ScenarioRun
    suite: str
    case: Case

    def setup(self) -> None:
        from harness.model.errors import HarnessError, UnmetNeed
        from harness.report.junit_xml import CaseVerdict

        try:
            report = self.run.played_report()
        except UnmetNeed as need:
            pytest.skip(str(need))
        except HarnessError as error:
            raise CaseNotPassed(str(error)) from error
        cases = [
            test_case
            for suite in report.suites
            for test_case in suite.cases
            if self.run.item_of(suite.name, test_case.name) == (self.suite, self.name)
        ]
        if not cases:
            raise CaseNotPassed(f"the session has no result for {self.name}; were its files changed after collection?")
        self.case = next((test_case for test_case in cases if test_case.reason is not None), cases[0])
        if self.case.output:
            self.add_report_section("setup", "harness", "\n".join(self.case.output))
        match self.case.reason:
            case reason if reason is not None and reason.verdict is CaseVerdict.ERROR:
                raise CaseNotPassed(f"{reason.message}\n{reason.text}".rstrip())
            case reason if reason is not None and reason.verdict is CaseVerdict.SKIPPED:
                pytest.skip(reason.message)

    def runtest(self) -> None:
        if (reason := self.case.reason) is not None:
            raise CaseNotPassed(f"{reason.message}\n{reason.text}".rstrip())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, CaseNotPassed):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.suite} {self.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("harness", "voice-harness")
    group.addoption("--bench", type=Path, metavar="FILE", help="Play scenarios on this bench; without it, play none.")
    group.addoption(
        "--harness-sessions", type=Path, default=Path("sessions"), metavar="FOLDER",
        help="Folder in which session folders are created. Default: sessions.",
    )  # fmt: skip
    parser.addini("harness_scenarios", "Scenario files (globs) to play with --bench, besides those named.", type="args")


def pytest_configure(config: pytest.Config) -> None:
    bench: Path | None = config.getoption("--bench")
    if bench is None:
        return
    if getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput"):
        raise pytest.UsageError("--bench: several processes cannot share one bench. Leave out -n, or use -n 0.")
    if not bench.is_file():
        raise pytest.UsageError(f"--bench: {bench} is not a file. Name the bench file.")
    config.stash[_RUNS] = {}
    root = str(config.rootpath)
    config.stash[_CONFIGURED_FILES] = {
        os.path.normpath(os.path.join(root, name))
        for pattern in config.getini("harness_scenarios")
        for name in glob.iglob(pattern, root_dir=root, recursive=True)
    }


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """A scenario that is named, if `--bench` is given; None for every other file."""
    config = parent.config
    if file_path.suffix not in (".yaml", ".yml") or (runs := config.stash.get(_RUNS, None)) is None:
        return None
    is_named = parent.session.isinitpath(file_path) or str(file_path) in config.stash[_CONFIGURED_FILES]
    if not is_named or not _IS_SCENARIO.search(file_path.read_bytes()):
        return None
    if file_path not in runs:  # pytest may collect a file for each argument
        runs[file_path] = ScenarioRun(file_path, config.getoption("--bench"), config.getoption("--harness-sessions"))
    collector = ScenarioFile.from_parent(parent, path=file_path)
    collector.run = runs[file_path]
    return collector


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The session folders, also after an interrupted run."""
    for run in config.stash.get(_RUNS, {}).values():
        if run.folder is not None:
            terminalreporter.write_line(f"harness session: {run.folder}")


@pytest.fixture(scope="session")
def harness_bench(pytestconfig: pytest.Config) -> Bench:
    """The bench that `--bench` names, as read; skipped without `--bench`. HarnessError for a wrong file."""
    from harness.scenario.bench import load_bench

    path = pytestconfig.getoption("--bench")
    if path is None:
        pytest.skip("needs --bench")
    return load_bench(path)


@pytest.fixture(scope="session")
def harness_session(pytestconfig: pytest.Config) -> Path:
    """The folder of the one scenario's session, which is played if needed; skipped without `--bench`."""
    runs = pytestconfig.stash.get(_RUNS, None)
    if runs is None:
        pytest.skip("needs --bench")
    if len(runs) != 1:
        raise pytest.UsageError(f"harness_session needs one scenario, but pytest collected {len(runs)}. Choose one.")
    (run,) = runs.values()
    run.played_report()
    assert run.folder is not None
    return run.folder
