"""Tests of timing: what they need of the host, whether it was there while they ran, and what becomes of them if not.

A test that asks for the fixture `host_keeps_time`, or is marked `sound`, holds only on a host that keeps time. If it
fails, what host_sampler.py saw meanwhile decides:

- The host kept time, or the test's own processes held the processors: the test has failed.
- Others stalled the host: the test is set aside, and repeated once after all others, alone. If the host does not keep
  time then either, the test is undecided: a group of its own, never passed.

No other test is ever repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.host_sampler import OUTSIDE, STEAL
from tests.leftovers import MARK, end_all_after

STALL_S = 0.05
"""The longest stall that a test bears, if its marker `keeps_time` names no other."""
STARVED_S = 0.75
"""For so long, or for all of a shorter test, others may leave less than a processor to it."""
CAUSE_CHARACTERS = 600
"""Of a failure, in the last lines."""
FIXTURE = "host_keeps_time"
SAMPLES = "HARNESS_TEST_SAMPLES"


@dataclass(frozen=True, slots=True)
class HostSample:
    """What was seen between two moments of the monotonic clock. took_s: processor seconds of each group."""

    begun_s: float
    ended_s: float
    late_s: float
    lost_blocks: int
    took_s: dict[str, float]

    def others_s(self, own_group: str) -> float:
        """Processor seconds of all groups but `own_group`, with what the hypervisor took."""
        return sum(seconds for group, seconds in self.took_s.items() if group != own_group)


def disturbance(
    samples: list[HostSample], own_group: str, stall_s: float = STALL_S, processors: int | None = None
) -> str:
    """Why the host did not keep time for `own_group`; "" if it did, or if `own_group` itself held it up.

    A stall is the group's own if it took more processor time meanwhile than all others.
    """
    stalls = [
        sample
        for sample in samples
        if sample.late_s >= stall_s and sample.took_s.get(own_group, 0.0) <= sample.others_s(own_group)
    ]
    if stalls:
        worst = max(stalls, key=lambda stall: stall.late_s)
        lost = sum(stall.lost_blocks for stall in stalls)
        return f"the host stood still for {worst.late_s:.2f} s ({lost} blocks of 20 ms lost{_steal(stalls)})"
    spare = (processors or os.cpu_count() or 1) - 1
    longest: list[HostSample] = []
    crowded: list[HostSample] = []
    for sample in samples:
        busy = sample.others_s(own_group) / (sample.ended_s - sample.begun_s)
        crowded = [*crowded, sample] if busy > max(spare, 0.5) else []
        longest = max(longest, crowded, key=len)
    for_s = longest[-1].ended_s - longest[0].begun_s if longest else 0.0
    if longest and (for_s >= STARVED_S or len(longest) == len(samples)):
        share = sum(sample.others_s(own_group) for sample in longest) / for_s
        return f"others held {share:.1f} of {spare + 1} processors for {for_s:.1f} s{_steal(longest)}"
    return ""


def _steal(samples: list[HostSample]) -> str:
    steal_s = sum(sample.took_s.get(STEAL, 0.0) for sample in samples)
    return f"; {steal_s:.2f} s of it taken by the hypervisor" if steal_s else ""


def read_samples(path: Path, begun_s: float, ended_s: float) -> list[HostSample]:
    """The samples that touch a span of time. Waits for the last of them; RuntimeError if the sampler has ended."""
    deadline_s = time.monotonic() + 60.0
    while True:
        lines = path.read_text(encoding="ascii").splitlines(keepends=True)
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
        if rows and rows[-1]["to"] >= ended_s:
            break
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"host_sampler.py has written nothing to {path} for 60 s")
        time.sleep(0.05)
    return [
        HostSample(row["from"], row["to"], row["late"], row["lost"], row["took"])
        for row in rows
        if row["to"] >= begun_s and row["from"] <= ended_s
    ]


@dataclass
class Outcome:
    """How a test ended. word: passed, failed, skipped or undecided. why: of the last three, on one line."""

    word: str = "passed"
    seconds: float = 0.0
    why: str = ""
    timed: bool = False


@dataclass(eq=False)  # pytest keeps plugins in sets
class HostTime:
    """The plugin of one pytest process."""

    config: pytest.Config
    samples: Path
    own: str = ""
    begun_s: float = 0.0
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    repeated: str = ""
    _sampler: subprocess.Popen[bytes] | None = None

    def start_sampler(self, run: str) -> None:
        environment = os.environ | {MARK: f"{run}/{OUTSIDE}"}
        command = [sys.executable, "-S", "-m", "tests.host_sampler", run, str(self.samples)]
        self._sampler = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, env=environment, cwd=Path(__file__).parents[1]
        )

    def pytest_unconfigure(self) -> None:
        if self._sampler is not None:
            self._sampler.kill()
            self._sampler.wait()
        if not hasattr(self.config, "workerinput"):
            self.samples.unlink()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.begun_s = time.monotonic()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        report.timed = is_timed(item)
        if report.failed and report.timed:
            marker = item.get_closest_marker("keeps_time")
            stall_s = marker.kwargs["stall_s"] if marker else STALL_S
            why = disturbance(read_samples(self.samples, self.begun_s, time.monotonic()), self.own, stall_s)
            if why:
                report.sections.append(("set aside, with this failure", str(report.longrepr)))
                report.outcome, report.undecided = "skipped", why
                report.longrepr = (str(item.path), (item.location[1] or 0) + 1, why)
        return report

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return ("undecided", "U", "UNDECIDED") if getattr(report, "undecided", "") else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the process that the user started: gathers outcomes."""
        outcome = self.outcomes.setdefault(report.nodeid, Outcome())
        outcome.seconds += report.duration
        outcome.timed = outcome.timed or getattr(report, "timed", False)  # a worker that crashed reports less
        if why := getattr(report, "undecided", ""):
            if outcome.word != "failed":
                outcome.word, outcome.why = "undecided", why
        elif report.failed:
            outcome.word, outcome.why = "failed", outcome.why or _cause(report)
        elif report.skipped and outcome.word == "passed":
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            outcome.word, outcome.why = "skipped", str(why).removeprefix("Skipped: ")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = Outcome("failed", why=_cause(report))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Repeats what was set aside, and writes the outcomes."""
        if hasattr(self.config, "workerinput") or exitstatus == pytest.ExitCode.INTERRUPTED:
            return
        aside = [name for name, outcome in self.outcomes.items() if outcome.word == "undecided"]
        if aside and not self.config.getoption("--alone"):
            self._repeat(aside, session)
        if path := self.config.getoption("--outcomes"):
            outcomes = {name: asdict(outcome) for name, outcome in self.outcomes.items()}
            Path(path).write_text(json.dumps(outcomes), encoding="utf-8")

    def _repeat(self, names: list[str], session: pytest.Session) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "outcomes.json")
            command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--alone", "-m", ""]
            result = subprocess.run(
                [*command, f"--outcomes={path}", *names], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                check=False, cwd=self.config.rootpath,
            )  # fmt: skip
            self.repeated = result.stdout
            results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        stats = self.config.pluginmanager.get_plugin("terminalreporter").stats
        for report in stats.pop("undecided"):
            name = report.nodeid
            self.outcomes[name] = Outcome(**results[name]) if name in results else Outcome("failed", timed=True)
            word = self.outcomes[name].word
            if word != "undecided":
                report.outcome, report.undecided = word, ""
            if word == "failed":
                report.longrepr = "The repetition, alone, has failed, too: see below."
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            stats.setdefault(word, []).append(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.repeated:
            terminalreporter.section("set aside, since the host did not keep time, and repeated alone")
            terminalreporter.write_line(self.repeated)
        for name, outcome in self.outcomes.items():
            if outcome.word == "undecided":
                terminalreporter.write_line(f"UNDECIDED {name}: {outcome.why}")


def _cause(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The phase and the error of a failure, with its place: the log that has it whole may be cut."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = f"{Path(crash.path).name}:{crash.lineno}: {crash.message}" if crash else str(report.longrepr)
    return f"in its {report.when or 'collection'}: {' '.join(text.split())[:CAUSE_CHARACTERS]}"


def is_timed(item: pytest.Item) -> bool:
    """Whether a test asks for the fixture, or plays real sound."""
    return FIXTURE in getattr(item, "fixturenames", ()) or item.get_closest_marker("sound") is not None


@pytest.fixture(scope="session")
def host_keeps_time() -> None:
    """Asked for by a test whose claims hold only on a host that keeps time; see this module.

    `@pytest.mark.keeps_time(stall_s=…)` says which stalls it bears.
    """


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("voice-harness's own tests")
    group.addoption("--timed", choices=("only", "without"), help="only the tests of timing, or all others")
    group.addoption("--alone", action="store_true", help="for tests that were set aside: do not repeat them once more")
    group.addoption("--outcomes", metavar="FILE", help="write how each test ended as JSON")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if choice := config.getoption("--timed"):
        left_out = [item for item in items if is_timed(item) != (choice == "only")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_timed(item) == (choice == "only")]


def pytest_configure(config: pytest.Config) -> None:
    """Marks all that this process will start, has it ended with us, and watches the host."""
    config.addinivalue_line(
        "markers", "keeps_time(stall_s): with host_keeps_time: the longest stall that the test bears"
    )
    if worker := getattr(config, "workerinput", None):
        os.environ[MARK] = f"{os.environ[MARK]}/{worker['workerid']}"
        plugin = HostTime(config, Path(os.environ[SAMPLES]), worker["workerid"])
    else:
        run = "/".join(filter(None, (os.environ.get(MARK), uuid.uuid4().hex)))
        os.environ[MARK] = run
        end_all_after(os.getpid(), run)
        handle, path = tempfile.mkstemp(prefix="vh-host-")
        os.close(handle)
        os.environ[SAMPLES] = path
        plugin = HostTime(config, Path(path))
        if config.getoption("--timed") != "without":
            plugin.start_sampler(run)
    config.pluginmanager.register(plugin)
