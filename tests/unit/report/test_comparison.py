"""Sessions compared: the sign of a regression, pairs, false alarms, and names of others in Markdown and HTML."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.base.places import SessionFolder
from harness.model.errors import InputError
from harness.model.judgment import Category
from harness.model.record import EndReason, Entry, JudgmentGiven, SessionFinished, SessionStarted
from harness.model.scenario import TrialKind
from harness.model.trial import MemoryPart
from harness.report import comparison_page
from harness.report.comparison import Measure, SessionComparison, compare_sessions, device_results
from harness.report.session import WholeSession, read_session
from harness.statistics.comparison import DifferenceVerdict
from harness.statistics.intervals import Share
from harness.statistics.significance import holm
from tests.command import harness
from tests.unit.report.test_session_page import HOSTILE, session
from tests.unit.session.figures import test_effects as effect_rows
from tests.unit.session.figures.rows import Rows, clip_of, judgment_on, planned
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial


def wake_session(
    folder: Path, missed: float, seed: int = 1, trials: int = 60, prefix: str = "", delay_s: float = 0.15, **clocks: Any
) -> Path:
    """Wake trials of which a share is missed, at two levels, and ambient sound. prefix: of other stimuli."""
    chance = random.Random(seed)
    planned_ = [
        wake_trial(number, conditions=(("level_dbfs", f"-{20 + number % 2 * 10}"),)) for number in range(trials)
    ]
    planned_ = [replace(trial, id=f"{prefix}{trial.id}") for trial in planned_]
    ambient = wake_trial(trials, TrialKind.AMBIENT)
    rows: WakeRows = rows_of(*planned_, ambient)
    for trial in planned_:
        heard_s = 1.6 + delay_s + chance.gauss(0, 0.02)
        rows.play(trial, [("kitchen", heard_s)] if chance.random() >= missed else [])
    rows.play(ambient, [("kitchen", 12.5)])
    rows.add(SessionFinished(EndReason.COMPLETED))
    return session(folder, rows, **clocks)


def of(comparison: SessionComparison, measure: Measure) -> DifferenceVerdict:
    return next(row.change for row in comparison.rows if row.measure is measure and not row.axis)


def test_a_regression_stands_first_with_its_sign_and_ends_with_status_1(tmp_path: Path) -> None:
    good = wake_session(tmp_path / "good", 0.05)
    bad = wake_session(tmp_path / "bad", 0.4, seed=2)
    comparison = compare_sessions([good, bad])
    first = comparison.rows[0]
    assert (first.measure, first.change, first.axis) == (Measure.FALSE_REJECTS, DifferenceVerdict.WORSE, "")
    assert first.difference is not None
    assert first.difference > 0.15
    assert first.interval is not None
    assert first.interval[0] > 0
    assert first.how == "paired, 60 trials"
    rejects = [read_session(folder).wake.snapshot().devices[0].false_rejects.share for folder in (good, bad)]
    assert [first.first.split(" = ")[0], first.second.split(" = ")[0]] == [f"{share.count} of 60" for share in rejects]
    assert compare_sessions([bad, good]).rows[0].change is DifferenceVerdict.BETTER
    result = harness("compare", good, bad, "--html", tmp_path / "c.html", "--markdown", tmp_path / "c.md")
    assert result.exit_code == 1, result.output
    assert " worse, 0 better" in result.stdout
    assert harness("compare", bad, good).exit_code == 0
    report = json.loads(harness("compare", good, bad, "--json").stdout)
    assert report["measures"][0]["change"] == "worse"
    assert report["verdicts"] == dict.fromkeys("AB", "NO LIMITS: no limits are declared")
    markdown = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert markdown.startswith("### ")
    for surface in (result.stdout, markdown, (tmp_path / "c.html").read_text(encoding="utf-8")):
        assert surface.count("NO LIMITS: no limits are declared") == 2
    assert "✗" in (tmp_path / "c.html").read_text(encoding="utf-8")


def test_sessions_with_other_stimuli_are_compared_unpaired(tmp_path: Path) -> None:
    comparison = compare_sessions([wake_session(tmp_path / "a", 0.05), wake_session(tmp_path / "b", 0.5, prefix="x")])
    assert comparison.rows[0].change is DifferenceVerdict.WORSE
    assert comparison.rows[0].how == "unpaired, 60 trials"


def test_a_later_wake_is_worse_and_a_few_trials_are_undecided(tmp_path: Path) -> None:
    comparison = compare_sessions(
        [wake_session(tmp_path / "a", 0), wake_session(tmp_path / "b", 0, seed=3, delay_s=0.3)]
    )
    assert of(comparison, Measure.WAKE_DELAY) is DifferenceVerdict.WORSE
    assert of(comparison, Measure.FALSE_ACCEPTS) is DifferenceVerdict.NOT_SHOWN
    few = compare_sessions([wake_session(tmp_path / "c", 0, trials=4), wake_session(tmp_path / "d", 1, trials=4)])
    assert of(few, Measure.FALSE_REJECTS) is DifferenceVerdict.UNDECIDED
    text = " ".join(" ".join(comparison_page.lines(few, (), 200)).split())
    assert "; paired, 4 trials: too little was measured" in text


def test_queries_are_compared_by_first_attempt_latency_and_all(tmp_path: Path) -> None:
    sides = []
    for name, attempts, latency_s in (("a", 1, 0.5), ("b", 2, 0.9)):
        rows = Rows.of(*(planned(number) for number in range(12)))
        for number in range(12):
            rows.trial(f"time-{number}", attempts=attempts, latency_s=latency_s)
        rows.add(SessionFinished(EndReason.COMPLETED))
        sides.append(session(tmp_path / name, rows))
    comparison = compare_sessions(sides)
    assert of(comparison, Measure.FIRST_ATTEMPT) is DifferenceVerdict.WORSE
    assert of(comparison, Measure.LATENCY) is DifferenceVerdict.WORSE
    assert of(comparison, Measure.RECOGNISED) is DifferenceVerdict.NOT_SHOWN


@pytest.mark.parametrize(("state", "right"), [("10 minutes", 1), ("5 minutes", 0)])
def test_effects_count_as_in_the_totals_of_the_session(state: str, right: int) -> None:
    rows = effect_rows.Session(effect_rows.trial(effect_rows.TIMER)).asked().told(4.5, state).answered().ends(30.0)
    whole = WholeSession.of(rows.entries)
    assert whole.progress.totals.effects == Share(right, 1)
    assert [(unit.count, unit.total) for unit in device_results(whole, "kitchen", ())[Measure.EFFECTS]] == [(right, 1)]


def test_memory_trials_are_in_no_measure() -> None:
    rows = Rows.of(planned(1), replace(planned(2), memory=MemoryPart()))
    for number in (1, 2):
        rows.trial(f"time-{number}", heard="what time is it")
    units = device_results(WholeSession.of(rows.entries), "kitchen", ())
    assert {Measure.ANSWERED, Measure.IN_TIME, Measure.LATENCY, Measure.FIRST_WER} <= units.keys()
    assert {len(trials) for trials in units.values()} == {1}


def test_equal_sessions_rarely_show_a_regression(tmp_path: Path) -> None:
    """20 pairs here; benchmarks/bench_compare_sessions.py has 200."""
    sessions = [wake_session(tmp_path / str(seed), 0.2, seed, 20) for seed in range(21)]
    shown = sum(
        bool(compare_sessions(pair).rows_with(DifferenceVerdict.WORSE)) for pair in itertools.pairwise(sessions)
    )
    assert shown <= 3  # 1 expected at most; more than 3 has a chance below 2 %


def test_differing_facts_are_listed_first(tmp_path: Path) -> None:
    rows = rows_of(wake_trial(0))
    rows.add(SessionFinished(EndReason.COMPLETED))
    sides = []
    for name, sha, threads in (("a", "one", "1"), ("b", HOSTILE, "2")):
        entry = rows.entries[0]
        assert isinstance(entry.record, SessionStarted)
        trial = replace(wake_trial(0), conditions=((HOSTILE + "|@x", "`[a](b)`"),))
        host = (("processor", "Xeon"), ("threads", threads))
        started = replace(
            entry.record, scenario_sha256=sha, session_id=f"{name}|{HOSTILE}`", trials=(trial,), host=host
        )
        wake_rows: WakeRows = rows_of(trial)
        wake_rows.entries[0] = Entry(1, 1, 0.0, 1000.0, started)
        wake_rows.play(trial, [("kitchen", 1.75)])
        wake_rows.add(SessionFinished(EndReason.COMPLETED))
        sides.append(session(tmp_path / name, wake_rows))
    comparison = compare_sessions(sides)
    facts = comparison_page.differing_facts(comparison, sides)
    assert [fact.what for fact in facts] == ["scenario file", "threads"]
    assert "the scenario of B differs" in comparison.warnings[0]
    assert "no device reported its firmware" in comparison.warnings[-1]
    markdown = comparison_page.markdown(comparison, facts)
    assert len(markdown) <= comparison_page.MAX_MARKDOWN_CHARS
    assert "\x1b" not in markdown
    assert markdown.count("`") % 2 == 0
    comparison_page.write_page(comparison, facts, tmp_path / "c.html")
    assert "<script>alert" not in (tmp_path / "c.html").read_text(encoding="utf-8")


def test_sets_of_a_bench_differ_by_their_members_only(tmp_path: Path) -> None:
    folders = [wake_session(tmp_path / name, 0, trials=4) for name in ("a", "b")]
    for folder, reports in zip(folders, (["wake", "intent"], ["intent", "wake"]), strict=True):
        path = SessionFolder(folder).resolved
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored["bench"]["devices"] = [{"id": "kitchen", "profile": {"reports": reports}}]
        path.write_text(json.dumps(stored), encoding="utf-8")
    facts = comparison_page.differing_facts(compare_sessions(folders), folders)
    assert not any("reports" in fact.what for fact in facts), facts


def test_wrong_usage_is_refused(tmp_path: Path) -> None:
    folder = wake_session(tmp_path / "a", 0, trials=2)
    unplayed = session(tmp_path / "unplayed", rows_of(wake_trial(0)))
    for arguments, message in (
        ([folder, folder], "listed twice"),
        ([folder, tmp_path / "nothing"], "is not a session"),
        ([unplayed, folder], "unplayed: no trial was played"),
        ([folder, folder, "--csv"], "--csv applies only"),
        ([__file__, __file__, "--html", tmp_path / "x"], "--html applies only"),
    ):
        with pytest.raises(InputError, match=message):
            raise harness("compare", *arguments).exception or AssertionError


def test_holm_correction_matches_published_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.01, 0.01], [3, 1]) == pytest.approx((0.04 / 3, 0.04 / 3))
    assert holm([]) == ()


def test_a_long_comment_is_cut_and_says_so(tmp_path: Path) -> None:
    comparison = compare_sessions([wake_session(tmp_path / "a", 0.05), wake_session(tmp_path / "b", 0.4, seed=2)])
    markdown = comparison_page.markdown(replace(comparison, rows=comparison.rows[:1] * 2000), ())
    assert len(markdown) <= comparison_page.MAX_MARKDOWN_CHARS
    rows = markdown.count("**worse**")
    assert f"{2000 - rows} more rows do not fit here." in markdown


def test_totals_are_those_of_the_report(tmp_path: Path) -> None:
    folders = [wake_session(tmp_path / "a", 0.1), wake_session(tmp_path / "b", 0.1, seed=2)]
    comparison = compare_sessions(folders)
    accepts = next(row for row in comparison.rows if row.measure is Measure.FALSE_ACCEPTS)
    rate = read_session(folders[0]).wake.snapshot().devices[0].after_review
    assert accepts.first.startswith(f"{rate.count} in {rate.hours:.3f} h")


def test_judged_categories_are_compared(tmp_path: Path) -> None:
    sides = []
    for name, category in (("a", Category.CORRECT), ("b", Category.WRONG)):
        trials = [planned(number) for number in range(12)]
        rows = Rows.of(*trials)
        for trial in trials:
            clip = clip_of(f"{trial.id}.flac", sha256=trial.id)
            rows.trial(trial.id, clip=clip)
            rows.add(JudgmentGiven(judgment_on(trial.id, clip, f"j-{trial.id}", category=category)))
        sides.append(session(tmp_path / name, rows))
    comparison = compare_sessions(sides)
    assert of(comparison, Measure.SATISFIED) is DifferenceVerdict.WORSE
    assert of(comparison, Measure.WRONG) is DifferenceVerdict.WORSE
    assert any("not complete" in warning for warning in comparison.warnings)
