"""A session as one page of HTML: its verdict, that its numbers are those of the JSON, and that nothing leaves it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from harness.model import numbers
from harness.model.bench import Bench
from harness.model.errors import InputError, LogError
from harness.model.judgment import Category
from harness.model.observation import DeviceState, Status, Wake
from harness.model.record import (
    AttemptFinished,
    EndReason,
    EventClipped,
    FaultMet,
    JudgmentGiven,
    Observed,
    RerunAsked,
    ResponseFrozen,
    SessionFinished,
    SoundRedacted,
)
from harness.model.scenario import Limits, Scenario, SequentialTest, Stopping, TrialKind
from harness.model.stimulus import NoiseKind, NoiseSpec
from harness.model.time import Stamp
from harness.model.trial import Outcome, Recognition
from harness.rating.judgment_log import JudgmentLog
from harness.report.charts import MAX_MARKS, LaneMark, distribution_steps, draw_sound, make_chart, make_lane
from harness.report.session import WholeSession, read_session
from harness.report.session_cases import SoundStorage
from harness.report.session_page import (
    _constant_conditions,
    _timeline,
    delays_by_device,
    ordered_labels,
    raised_thresholds,
    write_report,
)
from harness.report.wake_json import as_json
from harness.session.engine.assemble import ResolvedSession, write_resolved
from harness.session.summary import outcome_in_words
from harness.statistics import text
from harness.statistics.verdict import LimitVerdict
from harness.wake.wake import WakeFigures
from tests.command import harness
from tests.known import known
from tests.unit.session.figures.rows import Rows, clip_of, judgment_on, planned
from tests.unit.session.figures.test_heard import ASLEEP, GOOD, NOTHING, OTHER, SLOT, asked_rows
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial
from tests.written_sessions import written

HOSTILE = '<script>alert("x")</script>\x1b[31m'


def wake_rows() -> WakeRows:
    """20 wake trials by four talkers at two levels, each fifth missed, and ambient sound with two events."""
    trials = [
        wake_trial(number, conditions=(("talker", f"v{number % 4}"), ("level_dbfs", f"-{20 + number % 2 * 10}")))
        for number in range(20)
    ]
    ambient = wake_trial(20, TrialKind.AMBIENT)
    rows = rows_of(*trials, ambient)
    for number, trial in enumerate(trials):
        rows.play(trial, [("kitchen", 1.75)] if number % 5 else [])
    rows.play(ambient, [("kitchen", 12.5), ("kitchen", 30.0)])
    rows.add(SessionFinished(EndReason.COMPLETED))
    return rows


def session(
    folder: Path, rows: Rows, limits: Limits | None = None, stopping: Stopping | None = None, **clocks: Any
) -> Path:
    written(folder, rows, **clocks)
    scenario = Scenario(
        "kitchen", "Kitchen", "/s.yaml", "a", (), (), limits=limits or Limits(), stopping=stopping or Stopping()
    )
    write_resolved(folder, ResolvedSession(scenario, Bench("lab", "", "", "b", ())))
    return folder


def page(folder: Path, sounds: SoundStorage = SoundStorage.EMBED) -> tuple[LimitVerdict, str]:
    target = folder.with_name("report.html")
    verdict = write_report([folder], target, sounds)
    return verdict, target.read_text(encoding="utf-8")


def visible(markup: str) -> str:
    """What a reader sees, without tags."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", markup)))


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        (Limits(), LimitVerdict.NO_LIMITS),
        (Limits(max_false_reject_share=0.9), LimitVerdict.PASS),
        (Limits(max_false_reject_share=0.25), LimitVerdict.MARGINAL),
        (Limits(max_false_reject_share=0.1), LimitVerdict.FAIL),
        (Limits(max_false_reject_share=0.9, min_recognised_share=0.5), LimitVerdict.UNDECIDED),
    ],
)
def test_the_verdict_looks_at_the_whole_interval(tmp_path: Path, limits: Limits, verdict: LimitVerdict) -> None:
    page_verdict, shown = page(session(tmp_path / "s", wake_rows(), limits))
    assert page_verdict is verdict
    assert f'class="verdict {verdict.name}"' in shown


def test_a_run_that_has_not_ended_is_open_and_an_open_test_undecided(tmp_path: Path) -> None:
    rows = wake_rows()
    rows.entries.pop()
    verdict, shown = page(session(tmp_path / "s", rows, Limits(max_false_reject_share=0.9)))
    assert verdict is LimitVerdict.OPEN
    assert "the run has not ended; 21 of 21 trials are finished" in shown
    stopping = Stopping(false_accepts=SequentialTest(1.0, 2.0))
    assert page(session(tmp_path / "t", wake_rows(), None, stopping))[0] is LimitVerdict.UNDECIDED


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        (Limits(max_false_reject_share=0.9), LimitVerdict.UNDECIDED),
        (Limits(max_false_reject_share=0.1), LimitVerdict.FAIL),
        (Limits(max_false_reject_share=0.9, max_disturbed_share=1.0), LimitVerdict.PASS),
        (Limits(), LimitVerdict.NO_LIMITS),
    ],
)
def test_a_session_that_the_host_disturbed_too_much_does_not_pass(
    tmp_path: Path, limits: Limits, verdict: LimitVerdict
) -> None:
    rows = wake_rows()
    for index, entry in enumerate(rows.entries):
        if isinstance(entry.record, AttemptFinished):
            record = replace(entry.record, disturbed="the host stalled for 800 ms")
            rows.entries[index] = replace(entry, record=record)
    page_verdict, shown = page(session(tmp_path / "s", rows, limits))
    assert page_verdict is verdict
    assert "the host disturbed 21 of 21 attempts, in wake-0, wake-1, wake-2, and 18 more" in shown
    assert "disturbed attempts: 21 of 21 = 100 %" in visible(shown)
    assert "wake-1, attempt 1: the host stalled for 800 ms" in visible(shown)
    assert ("attempts that the host disturbed" in visible(shown)) is (verdict is not LimitVerdict.NO_LIMITS)


def test_every_number_is_that_of_the_json(tmp_path: Path) -> None:
    folder = session(tmp_path / "s", wake_rows(), Limits(max_false_reject_share=0.5))
    whole = read_session(folder)
    (device,) = as_json(whole, whole.devices)["devices"]
    text_shown = visible(page(folder)[1])
    rejects, accepts = device["false_rejects"], device["false_accepts_after_review"]
    assert (rejects["count"], rejects["of"]) == (4, 20)
    exact = text.percent_interval(tuple(rejects["interval_95"]))
    assert f"4 of 20 = {numbers.percent(rejects['share'])} (95 % over 4 voices {exact}" in text_shown
    assert f"{accepts['count']} in {accepts['hours']:.3f} h = {numbers.number(accepts['per_hour'])}/h" in text_shown
    for event in device["unmatched_events"]:
        assert f"event {event['row']}, kitchen" in text_shown
    assert len(device["conditions"]) == 6
    assert any(condition["speakers"] for condition in device["conditions"].values())
    for label, condition in device["conditions"].items():
        ends = text.percent_interval(tuple(condition["interval_95"]))
        cells = label.partition("=")[2], condition["of"], condition["count"], numbers.percent(condition["share"]), ends
        assert "".join(map(str, cells)).replace(" ", "") in text_shown.replace(" ", ""), label
    assert "false rejects by talker and level_dbfs" in text_shown


def test_names_and_words_of_others_stay_text(tmp_path: Path) -> None:
    trial = replace(planned(1, HOSTILE), conditions=((HOSTILE, HOSTILE), ("b", "c")))
    rows = Rows()
    rows.start(trial)
    rows.add(SessionFinished(EndReason.STOPPED))
    _, shown = page(session(tmp_path / "s", rows))
    assert "alert" in shown
    assert "<script>alert" not in shown
    assert "\x1b" not in shown


def test_the_page_runs_its_one_script_and_no_other(tmp_path: Path) -> None:
    _, shown = page(session(tmp_path / "s", wake_rows()))
    (script,) = re.findall(r"<script>(.*?)</script>", shown, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in shown


@pytest.mark.parametrize("sounds", list(SoundStorage))
def test_sounds_are_embedded_beside_the_page_or_omitted(tmp_path: Path, sounds: SoundStorage) -> None:
    rows, folder = wake_rows(), tmp_path / "s"
    seq = known(read_session(session(folder, rows)).wake.unmatched("kitchen")[0]).seq
    (folder / "clips").mkdir(exist_ok=True)
    tone = np.sin(np.arange(16000) / 5).astype(np.float32) * 0.1
    soundfile.write(folder / "clips" / "c.flac", tone, 16000)
    with_clip = tmp_path / "with_clip"
    rows.add(EventClipped(seq, clip_of("c.flac")))
    session(with_clip, rows)
    (with_clip / "clips").mkdir(exist_ok=True)
    (with_clip / "clips" / "c.flac").write_bytes((folder / "clips" / "c.flac").read_bytes())
    _, shown = page(with_clip, sounds)
    clip = tmp_path / "report_clips" / "with_clip-c.flac"
    assert ("data:audio/flac;base64," in shown) == (sounds is SoundStorage.EMBED)
    assert clip.exists() == (sounds is SoundStorage.BESIDE)
    assert ("data:image/png" in shown) == (sounds is not SoundStorage.NONE)
    assert ("media-src" in shown) == (sounds is not SoundStorage.NONE)
    assert "c.flac" in shown


def test_a_redacted_clip_without_its_file_keeps_the_note(tmp_path: Path) -> None:
    rows = wake_rows()
    seq = known(read_session(session(tmp_path / "without_clip", rows)).wake.unmatched("kitchen")[0]).seq
    rows.add(EventClipped(seq, clip_of("c.flac")))
    folder = session(tmp_path / "s", rows)
    with closing(JudgmentLog(folder)) as log:
        log.append(SoundRedacted("c.flac", "0" * 64, ((0.0, 1.0),), "a name", "ann"))
    assert "the sound <bdi>was redacted (0 to 1 s)" in page(folder)[1]


def test_several_sessions_make_one_page_with_the_worst_verdict(tmp_path: Path) -> None:
    good = session(tmp_path / "good", wake_rows(), Limits(max_false_reject_share=0.9))
    bad = session(tmp_path / "bad", wake_rows(), Limits(max_false_reject_share=0.1))
    result = harness("report", good, bad, "--html", tmp_path / "r.html", "--audio", "none")
    assert (result.stdout, result.stderr.splitlines()[-1]) == ("FAIL.\n", f"harness: wrote {tmp_path / 'r.html'}")
    shown = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert shown.count('class="verdict ') == 2
    assert not re.findall(r"(?:src|href)=\"?(?:https?:)?//", shown)


def test_invalid_session_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="is not a session folder"):
        write_report([tmp_path], tmp_path / "r.html", SoundStorage.NONE)
    assert not (tmp_path / "r.html").exists()
    result = harness("report", tmp_path)
    assert isinstance(result.exception, InputError)
    assert "--html report.html" in result.exception.remedy


def test_distribution_plot_ends_at_100_percent() -> None:
    line = distribution_steps([3.0, 1.0, 2.0, 4.0])
    assert line[:3] == [(1.0, 0.0), (1.0, 25.0), (2.0, 25.0)]
    assert line[-1] == (4.0, 100.0)
    assert len(distribution_steps(list(range(10_000)))) <= 800
    assert make_chart("a", "A", "s", "", [("none", [], [])]) is None
    plot = known(make_chart("a", "A", "s", "", [("k", [(0.0, 0.0), (10.0, 5.0)], [(0.0, 0.0, 1.0), (10.0, 4.0, 6.0)])]))
    assert [label for _, label in plot.x_ticks] == ["0", "2", "4", "6", "8", "10"]
    assert plot.curves[0].line.split() == ["52.0,190.0", "632.0,47.1"]


def test_a_distribution_has_the_durations_of_the_table(tmp_path: Path) -> None:
    rows = Rows.of(*(planned(number) for number in range(6)))
    for number in range(6):
        rows.trial(f"time-{number}", latency_s=0.5 + 0.1 * number, error_s=0.01 if number < 4 else 0.3)
    text_on_page = visible(page(session(tmp_path / "s", rows))[1])
    assert "n = 4; 2 left out with an error above 250 ms" in text_on_page
    assert re.findall(r"kitchen, n = \d+", text_on_page) == ["kitchen, n = 4"]


def test_marks_that_cannot_all_be_drawn_are_counted() -> None:
    marks = [LaneMark(number / 10, 0.0, "unmatched", "") for number in range(MAX_MARKS * 4)]
    drawn_lane = make_lane("a", marks, 1200.0)
    assert len(drawn_lane.marks) <= MAX_MARKS
    assert sum(mark.more for mark in drawn_lane.marks) == len(marks)
    assert drawn_lane.pooled_s == 0.4
    assert make_lane("a", marks[:10], 1200.0).marks == tuple(marks[:10])


def test_a_tone_is_a_dark_line_at_its_frequency(tmp_path: Path) -> None:
    import base64

    tone = 0.5 * np.sin(2 * np.pi * 4000 * np.arange(16000) / 16000).astype(np.float32)
    image = draw_sound(tone, 16000)
    (tmp_path / "p.png").write_bytes(base64.b64decode(image.spectrogram.partition(",")[2]))
    from PIL import Image

    pixels = np.asarray(Image.open(tmp_path / "p.png"))
    assert pixels.shape == (129, 300)
    assert abs(int(pixels.mean(axis=1).argmin()) - 64) <= 1  # 4 of 8 kHz: in the middle
    assert image.wave.count("M") == 300
    assert draw_sound(np.zeros(0, np.float32), 16000).wave.count("M") == 300


def test_page_categories_match_the_command(tmp_path: Path) -> None:
    trials = [planned(1), replace(planned(2, "tell me a joke"), query_id="joke")]
    rows = Rows.of(*trials)
    for trial, category in zip(trials, (Category.CORRECT, Category.WRONG), strict=True):
        clip = clip_of(f"{trial.id}.flac", sha256=trial.id)
        rows.trial(trial.id, clip=clip)
        rows.add(JudgmentGiven(judgment_on(trial.id, clip, f"j-{trial.id}", category=category)))
    folder = session(tmp_path / "s", rows)
    words = visible(page(folder, SoundStorage.NONE)[1])
    printed = json.loads(harness("categories", folder, "--json").stdout)["categories"]["correct"]["a"]
    assert "2 responses with a final category" in words
    assert f"Correct1 of 250.0 %{text.percent_interval(tuple(printed['interval']))}" in words


def test_rater_disagreements_are_shown_with_clip_and_agreement(tmp_path: Path) -> None:
    trials = [planned(number) for number in (1, 2, 3)]
    rows = Rows.of(*trials)
    folder = tmp_path / "s"
    (folder / "clips").mkdir(parents=True)
    for number, trial in enumerate(trials):
        clip = clip_of(f"{trial.id}.flac", sha256=trial.id)
        soundfile.write(folder / "clips" / clip.name, np.sin(np.arange(16000) / 9), 16000)
        rows.trial(trial.id, clip=clip)
        for rater, verdict in (("ada", Category.CORRECT), ("bob", Category.WRONG if number == 1 else Category.CORRECT)):
            rows.add(JudgmentGiven(judgment_on(trial.id, clip, f"{rater}-{number}", rater=rater, category=verdict)))
    shown = page(session(folder, rows))[1]
    words = visible(shown)
    printed = json.loads(harness("agreement", folder, "--json").stdout)["agreement"]
    assert "agreement over 3 responses with labels from two or more raters (6 labels)" in words
    raw, alpha = printed["raw"], printed["alpha"]
    assert f"raw{numbers.percent(raw['value'])}{text.percent_interval(tuple(raw['interval']))}" in words
    assert f"Krippendorff's alpha{alpha['value']:.3f}" in words
    assert "Responses on which raters disagree: 1" in words
    case = shown.partition("Responses on which raters disagree")[2].partition("</ul>")[0]
    assert "time-2" in case
    assert "time-1" not in case
    assert "Correct: ada" in case
    assert "Wrong: bob" in case
    assert case.count("<audio") == case.count("class=spectrogram") == case.count("class=sound") == 1


def test_page_frames_match_the_understanding_command(tmp_path: Path) -> None:
    rows = asked_rows({"at_once": [GOOD], "second": [SLOT, GOOD], "never": [NOTHING, OTHER], "asleep": [ASLEEP]})
    folder = session(tmp_path / "s", rows)
    shown = page(folder, SoundStorage.NONE)[1]
    words = visible(shown)
    assert harness("understanding", "score", folder, "--html", tmp_path / "f.html").exit_code == 0
    scored = (
        (tmp_path / "f.html").read_text(encoding="utf-8").partition("<section id=metrics")[2].partition("</section>")[0]
    )
    metrics = [row for row in re.findall(r"<tr>.*?</tr>", scored) if "<b>" in row and "<b>n/a" not in row]
    assert len(metrics) > 15
    assert [row for row in metrics if row not in shown] == []
    assert "4 queries, at the attempt that decided" in words
    assert "understood2 of 4 = 50.0 %" in words
    assert "attempts needed1: 1 of 4 = 25.0 %, 2: 1 of 4 = 25.0 %, not understood: 2 of 4 = 50.0 %" in words
    assert "Misunderstood: 2" in words
    wrong = shown.partition("Misunderstood")[2].partition("</ul>")[0]
    assert [name for name in ("at_once", "second", "never", "asleep") if name in wrong] == ["never", "asleep"]
    assert '<span class="it M"><bdi>book</bdi><sup>−</sup></span>' in wrong


def test_the_timeline_has_responses_and_faults_where_they_came(tmp_path: Path) -> None:
    rows = Rows.of(planned(1), planned(2))
    rows.trial("time-1", clip=clip_of("a.flac", 2.0))
    rows.add(FaultMet("kitchen", HOSTILE), 3.0)
    rows.trial("time-2", Outcome.NO_RESPONSE)
    whole = WholeSession.of(rows.entries)
    ((name, at_s, length_s),) = whole.responses
    frozen = next(entry for entry in rows.entries if isinstance(entry.record, ResponseFrozen))
    assert (name, at_s, length_s) == ("time-1", frozen.wall_s - 1.0, 2.0)  # the row comes a second later
    ((fault_s, _),) = whole.faults_met
    assert fault_s > at_s
    shown = page(session(tmp_path / "s", rows), SoundStorage.NONE)[1]
    marks = re.findall(r'<rect class="m (\w+)" [^>]*><title>([^<]*)', shown)
    assert [kind for kind, words in marks if words == "response to time-1"] == ["hit"]
    assert [words for kind, words in marks if kind == "fault" and "alert" in words]


def test_misheard_words_are_shown_below_the_spoken_ones(tmp_path: Path) -> None:
    rows = Rows.of(planned(1), planned(2), planned(3, "turn the light on"))
    rows.trial("time-1", heard="what time is it")
    rows.trial("time-2", Outcome.MISHEARD, Recognition.NO, heard="what <b>lime</b> is it")
    rows.trial("time-3", Outcome.MISHEARD, Recognition.NO, heard="turn light on")
    page_html = page(session(tmp_path / "s", rows), SoundStorage.NONE)[1]
    assert "Misheard words: 2" in page_html
    assert "<del class=x>the</del>" in page_html
    assert "<b>lime" not in page_html
    assert "lime" in visible(page_html)


def test_a_raised_threshold_ignores_events_below_it(tmp_path: Path) -> None:
    rows = wake_rows()
    scores = iter([None, *(0.4 + 0.13 * number % 0.5 for number in range(60))])
    for index, entry in enumerate(rows.entries):
        if isinstance(entry.record, Observed) and isinstance(entry.record.observation, Wake):
            scored = replace(entry.record.observation, score=next(scores))
            rows.entries[index] = replace(entry, record=replace(entry.record, observation=scored))
    levels = raised_thresholds(rows.figures, "kitchen")
    assert len(levels) > 10
    for level, rejects, accepts in levels:
        left = WakeFigures()
        for entry in rows.entries:
            observation = entry.record.observation if isinstance(entry.record, Observed) else None
            if not (isinstance(observation, Wake) and observation.score is not None and observation.score <= level):
                left.add(entry)
        (device,) = left.snapshot().devices
        assert (rejects, accepts) == (device.false_rejects.share.count, device.after_review.count)
    assert "if the threshold were raised" in page(session(tmp_path / "s", rows), SoundStorage.NONE)[1]


def test_conditions_of_all_trials_are_listed_also_a_noise_that_is_no_axis() -> None:
    noise = NoiseSpec(NoiseKind.PINK, None, level_dbfs=-50.0)
    trials = [
        replace(trial, conditions=(("voice", "anna"), ("level_dbfs", level)), recipe=replace(trial.recipe, noise=noise))
        for level, trial in (("-26", planned(1)), ("-36", planned(2)))
    ]
    assert _constant_conditions(trials) == [("voice", "anna"), ("noise", "pink -50 dBFS")]
    assert _constant_conditions([trials[0], replace(trials[1], recipe=planned(2).recipe)]) == [("voice", "anna")]


def test_false_rejects_are_shown_by_axes_of_the_matrix_and_by_trials_of_the_scenario(tmp_path: Path) -> None:
    trials = [
        replace(wake_trial(number, conditions=(("noise", noise),)), template=template)
        for number, (noise, template) in enumerate(product(("pink 10 dB", "pink 2 dB"), ("near", "far", "far")))
    ]
    rows = rows_of(*trials)
    for trial in trials:
        rows.play(trial, [("kitchen", 1.75)] if trial.template == "near" or "10" in trial.conditions[0][1] else [])
    rows.add(SessionFinished(EndReason.COMPLETED))
    _, markup = page(session(tmp_path / "s", rows))
    for axis, counts in (
        ("noise", {"pink 2 dB": (3, 2), "pink 10 dB": (3, 0)}),
        ("trial", {"near": (2, 0), "far": (4, 2)}),
    ):
        table = markup.partition(f'aria-label="kitchen: false rejects by {axis}"')[2].partition("</table>")[0]
        cells = re.findall(r"<bdi>([^<]+)</bdi><td class=n>(\d+)<td class=n>(\d+)", table)
        assert {label: (int(total), int(missed)) for label, total, missed in cells} == counts
    assert "false rejects by noise and trial" in visible(markup)


def test_numeric_conditions_are_sorted_by_value() -> None:
    assert ordered_labels(["8", "1", "3", "1"]) == ("1", "3", "8")
    assert ordered_labels(["quiet", "pink 2 dB", "pink 10 dB", "pink -4 dB"]) == (
        "quiet",
        "pink -4 dB",
        "pink 2 dB",
        "pink 10 dB",
    )
    assert ordered_labels(["cass", "ann"]) == ("cass", "ann")


def test_wake_trials_read_hit_false_reject_or_double_and_lost_connections_are_shown(tmp_path: Path) -> None:
    trials = [*(wake_trial(number) for number in range(3)), wake_trial(3, TrialKind.PROBE)]
    rows = rows_of(*trials)
    rows.play(trials[0], [("kitchen", 1.75)])
    rows.play(trials[1], [])
    rows.play(trials[2], [("kitchen", 1.75), ("kitchen", 2.25)])
    rows.play(trials[3], [])
    rows.add(Observed(Status("kitchen", Stamp(20.0), DeviceState.STARTED)))
    rows.add(SessionFinished(EndReason.COMPLETED))
    folder = session(tmp_path / "s", rows)
    whole = read_session(folder)
    outcomes = [outcome_in_words(trial, whole.wake.plays_by_trial()[trial.trial.id]) for trial in whole.progress.trials]
    assert outcomes == ["hit", "false reject", "double", "unheard"]
    printed = harness("report", "show", folder, "--trials").stdout.splitlines()
    assert [next(words for words in outcomes if f" {words} " in line) for line in printed[2:]] == outcomes
    assert "restarted 1 time" in visible(page(folder)[1])
    shown = harness("report", "show", folder).stdout
    assert "kitchen: restarted 1 time" in shown
    metrics = harness("export", folder, "--prometheus", "-").stdout
    assert 'voice_harness_restarts{session="s1",device="kitchen"} 1.0' in metrics
    assert 'quantile="0.5"' in metrics
    assert 'quantile="0.99"' not in metrics, "too few for a p99"
    assert 'name="connection kitchen" value="restarted 1 time"' in harness("export", folder, "--junit", "-").stdout


@pytest.mark.parametrize(("microphone", "words"), [("", ": the bench has no microphone"), ("mic", "")])
def test_a_missing_clip_says_that_the_bench_has_no_microphone(tmp_path: Path, microphone: str, words: str) -> None:
    trial = replace(wake_trial(1), microphone=microphone)
    rows = rows_of(trial)
    rows.play(trial, [("kitchen", 0.4)])
    _, text = page(session(tmp_path, rows))
    assert f"no clip was kept{words}<" in text


def test_delays_on_the_page_exclude_probes(tmp_path: Path) -> None:
    trials = [wake_trial(0), wake_trial(1, TrialKind.PROBE)]
    rows = rows_of(*trials)
    for trial in trials:
        rows.play(trial, [("kitchen", 1.75)])
    rows.add(SessionFinished(EndReason.COMPLETED))
    wake = read_session(session(tmp_path / "s", rows)).wake
    (device,) = wake.snapshot().devices
    assert [len(delays) for delays in delays_by_device(wake).values()] == [device.delays.total] == [1]


def test_a_single_hit_before_the_end_of_its_phrase_has_a_page(tmp_path: Path) -> None:
    call = wake_trial(1, injected=False)
    rows = rows_of(call)
    rows.play(call, [("kitchen", 1.5)])
    rows.add(SessionFinished(EndReason.COMPLETED))
    write_report([session(tmp_path / "s", rows)], tmp_path / "s.html", SoundStorage.NONE)


def test_each_take_has_its_own_outcome_on_the_timeline() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1", Outcome.NO_RESPONSE, Recognition.UNKNOWN, latency_s=None)
    rows.add(RerunAsked("time-1", 2, "ann"))
    rows.trial("time-1", take=2)
    (trials, *_), _ = _timeline(WholeSession.of(rows.entries))
    marks = [(mark.kind, mark.words) for mark in trials.marks]
    assert marks == [("failed", "time-1, take 1: no response"), ("hit", "time-1, take 2: responded")]
