"""Clauses of published procedures: each with the session's own value, met, not met or not applicable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.bench import Bench, ObservationKind
from harness.model.procedure import EDITIONS, Procedure, ProcedureName
from harness.model.record import EndReason, EngineStarted, SessionFinished
from harness.model.scenario import Evidence, Scenario, TrialKind, WakeSettings
from harness.model.stimulus import NoiseKind, NoiseSpec, Opening
from harness.model.trial import Outcome, Recognition, Trial
from harness.report.session import WholeSession
from harness.report.session_page import SoundStorage, write_report
from harness.scenario.scenario import load_scenario
from harness.session.engine.assemble import ResolvedSession, write_resolved
from harness.session.figures.procedures import CLAUSES, clause_rows
from harness.session.summary import procedure_lines
from tests.unit.report.test_session_page import visible
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.session.figures.test_requests import CUT, MISHEARD, WHOLE, asked, dropping
from tests.unit.session.test_first_sound import asked as sounding
from tests.unit.session.test_first_sound import commanded
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial
from tests.written_sessions import written

SELF_TEST, ESP_SR, TINY = ProcedureName


def following(name: ProcedureName, wake: WakeSettings | None = None) -> Scenario:
    procedure = Procedure(name, EDITIONS[name][0])
    return Scenario("kitchen", "Kitchen", "/s.yaml", "a", (), (), procedure=procedure, wake=wake or WakeSettings())


def clauses(rows: Rows, name: ProcedureName, device: str = "kitchen") -> dict[str, tuple[str, str]]:
    whole = WholeSession.of(rows.entries)
    table = clause_rows(following(name), whole.progress, whole.wake)
    return {row.clause.what: (row.result.value, row.result.verdict.value) for row in table if row.device == device}


def verdicts(rows: Rows, name: ProcedureName) -> dict[str, str]:
    return {clause: verdict for clause, (_, verdict) in clauses(rows, name).items()}


def called(missed: int, total: int = 30, **recipe: object) -> WakeRows:
    trials = [wake_trial(number) for number in range(1, total + 1)]
    trials = [replace(trial, recipe=replace(trial.recipe, **recipe)) for trial in trials]  # type: ignore[arg-type]
    rows = rows_of(*trials)
    for number, trial in enumerate(trials):
        rows.play(trial, [] if number < missed else [("kitchen", 1.75)])
    return rows


@pytest.mark.parametrize(
    ("clause", "recipe", "max_misses"),
    [
        ("FRR in silence", {}, 3),
        ("FRR in stationary noise", {"noise": NoiseSpec(NoiseKind.PINK, 10.0)}, 6),
        ("FRR with external music", {"noise": NoiseSpec(NoiseKind.RECORDING, 10.0, "/m.flac")}, 6),
        ("FRR with own music", {"opening": Opening(3.0, "play", sounds=True)}, 9),
    ],
)
def test_false_rejects_have_a_limit_of_their_own_in_each_condition(
    clause: str, recipe: dict[str, object], max_misses: int
) -> None:
    assert verdicts(called(max_misses, **recipe), SELF_TEST)[clause] == "met"
    worse = verdicts(called(max_misses + 1, **recipe), SELF_TEST)
    assert worse[clause] == "not met"
    assert [name for name in worse if name.startswith("FRR") and worse[name] != "not applicable"] == [clause]


@pytest.mark.parametrize(
    ("missed", "total", "verdict"),
    [(0, 1, "not applicable"), (3, 10, "not applicable"), (4, 10, "not met"), (7, 70, "met"), (8, 70, "not met")],
)
def test_false_rejects_are_met_only_with_thirty_utterances(missed: int, total: int, verdict: str) -> None:
    assert verdicts(called(missed, total), SELF_TEST)["FRR in silence"] == verdict


def test_clauses_on_pause_and_share_of_requests_are_checked() -> None:
    by_clause = clauses(dropping(400), SELF_TEST)
    assert by_clause["WWDD: shortest pause before a request"] == ("first 10 of 10 after 500 ms", "met")
    assert by_clause["RAR: correct responses to requests"][0].startswith("30 of 50 = 60.0 %")
    assert by_clause["RAR: correct responses to requests"][1] == "not applicable", "the guide gives no limit"
    late = clauses(dropping(1500), SELF_TEST)
    assert late["WWDD: shortest pause before a request"] == ("not 10 of 10 after any pause", "not met")


def test_the_pause_clause_is_checked_for_commands() -> None:
    gaps_ms = [0, 500, 1000] * 10
    trials = [wake_trial(number, TrialKind.COMMAND) for number, _ in enumerate(gaps_ms, 1)]
    trials = [
        replace(trial, recipe=replace(trial.recipe, gap_ms=gap_ms))
        for trial, gap_ms in zip(trials, gaps_ms, strict=True)
    ]
    rows = rows_of(*trials)
    for trial in trials:
        heard = "turn on the light" if trial.recipe.gap_ms >= 1000 else "the light"
        rows.play(trial, [("kitchen", 1.75)], words=[("kitchen", 2.6, heard)])
    by_clause = clauses(rows, SELF_TEST)
    assert by_clause["WWDD: shortest pause before a request"] == ("first 10 of 10 after 1000 ms", "met")
    assert by_clause["RAR: correct responses to requests"][0].startswith("10 of 30 = 33.3 %")


def test_fewer_than_ten_requests_decide_no_pause() -> None:
    trials = [asked(number, 500 * number) for number in (1, 2)]
    rows = Rows.of(*trials)
    for trial in trials:
        rows.trial(trial.id, heard=WHOLE)
    pause = clauses(rows, SELF_TEST)["WWDD: shortest pause before a request"]
    assert pause == ("needs 10 requests after each pause", "not applicable")


def waking(number: int) -> Trial:
    return replace(asked(number), reports=(ObservationKind.WAKE, ObservationKind.TRANSCRIPT))


def test_recognition_counts_commands_whose_wake_word_was_heard() -> None:
    trials = [waking(number) for number in range(1, 5)]
    rows = Rows.of(*trials)
    rows.trial("time-1", heard=WHOLE)
    rows.trial("time-2", heard=CUT, **MISHEARD)  # type: ignore[arg-type]
    for number in (3, 4):
        rows.trial(f"time-{number}", Outcome.NO_WAKE, Recognition.UNKNOWN)
    by_clause = clauses(rows, ESP_SR)
    assert by_clause["wake-up rate, quiet"][0].startswith("2 of 4 = 50.0 %")
    assert by_clause["speech recognition rate, quiet"][0].startswith("1 of 2 = 50.0 %")
    assert by_clause["command words under playback"] == ("nothing played", "not applicable")


@pytest.mark.parametrize(("first_s", "verdict"), [(0.4, "met"), (0.6, "not met")])
def test_the_response_time_is_of_the_first_sound(first_s: float, verdict: str) -> None:
    assert verdicts(sounding(*[first_s] * 20), ESP_SR)["response time, quiet"] == verdict
    assert verdicts(sounding(*[0.4] * 10, None, None), ESP_SR)["response time, quiet"] == "not applicable"
    assert verdicts(sounding(0.4), ESP_SR)["response time, quiet"] == "not applicable", "too few for a p95"


def test_response_time_of_commands_is_not_applicable() -> None:
    assert clauses(commanded(), ESP_SR)["response time, quiet"] == ("nothing played", "not applicable")


def soaked(accepts: int, hours: float, before: bool, after: bool) -> WakeRows:
    probes = [wake_trial(number, TrialKind.PROBE) for number in (1, 3)]
    ambient = wake_trial(2, TrialKind.AMBIENT, ambient_s=3600 * hours)
    rows = rows_of(probes[0], ambient, probes[1])
    rows.play(probes[0], [("kitchen", 1.75)] if before else [])
    rows.play(ambient, [("kitchen", 60.0 * (number + 1)) for number in range(accepts)], duration_s=3600 * hours)
    rows.play(probes[1], [("kitchen", 1.75)] if after else [])
    return rows


@pytest.mark.parametrize(
    ("accepts", "hours", "verdict"),
    [
        (3, 24.0, "met"),
        (4, 24.0, "not met"),
        (4, 2.0, "not met"),
        (0, 2.0, "not applicable"),
        (6, 48.0, "met"),
        (7, 48.0, "not met"),
    ],
)
def test_false_accepts_are_met_only_after_a_whole_day(accepts: int, hours: float, verdict: str) -> None:
    assert verdicts(soaked(accepts, hours, True, True), SELF_TEST)["FAR in 24 h"] == verdict


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (True, True, ("before: yes, after: yes", "met")),
        (True, False, ("before: yes, after: no", "not met")),
        (False, True, ("before: no, after: yes", "not met")),
    ],
)
def test_signs_of_life_are_required_before_and_after(before: bool, after: bool, expected: tuple[str, str]) -> None:
    assert clauses(soaked(0, 1.0, before, after), SELF_TEST)["proof of life before and after the 24 h"] == expected


def test_four_places_and_thirty_utterances_are_required() -> None:
    assert verdicts(called(0, 29), SELF_TEST)["utterances in each condition"] == "not met"
    assert verdicts(called(0, 30), SELF_TEST)["utterances in each condition"] == "met"
    trials = [wake_trial(n, conditions=(("position", f"place {n}"),)) for n in range(1, 5)]
    for count, verdict in ((3, "not met"), (4, "met")):
        rows = rows_of(*trials[:count])
        for trial in trials[:count]:
            rows.play(trial, [("kitchen", 1.75)])
        assert verdicts(rows, SELF_TEST)["positions of the speech loudspeaker"] == verdict


def test_mlperf_tiny_clauses_check_count_and_false_negatives() -> None:
    by_clause = verdicts(called(8, 50), TINY)
    assert (by_clause["wake words"], by_clause["false negatives"]) == ("met", "met")
    assert verdicts(called(9, 50), TINY)["false negatives"] == "not met"


@pytest.mark.parametrize(
    ("missed", "total", "verdict"),
    [(8, 8, "not applicable"), (0, 49, "not applicable"), (9, 10, "not met"), (16, 100, "met"), (17, 100, "not met")],
)
def test_mlperf_tiny_counts_false_negatives_of_fifty_words(missed: int, total: int, verdict: str) -> None:
    assert verdicts(called(missed, total), TINY)["false negatives"] == verdict


def test_the_table_is_in_the_summary_and_on_the_page(tmp_path: Path) -> None:
    rows = dropping(400)
    rows.add(SessionFinished(EndReason.COMPLETED))
    whole, scenario = WholeSession.of(rows.entries), following(SELF_TEST)
    lines = "\n".join(procedure_lines(scenario, whole.progress, whole.wake))
    assert "after avs_self_test, edition 2023" in lines
    assert "first 10 of 10 after 500 ms" in lines
    written(tmp_path / "s", rows)
    write_resolved(tmp_path / "s", ResolvedSession(scenario, Bench("lab", "", "", "b", ())))
    write_report([tmp_path / "s"], tmp_path / "report.html", SoundStorage.NONE)
    shown = visible((tmp_path / "report.html").read_text(encoding="utf-8"))
    row = "WWDD: shortest pause before a requestat most 1 smatrix.axes.gap_msrequestsfirst 10 of 10 after 500 msmet"
    assert row in shown
    plain = replace(scenario, procedure=None)
    assert procedure_lines(plain, whole.progress, whole.wake) == []


SCENARIOS = Path(__file__).parents[4] / "scenarios" / "procedures"


@pytest.mark.parametrize(("name", "accepts", "hours"), [("self_test_day", 3, 24.0), ("mlperf_tiny_wake", 8, 1 / 3)])
def test_a_scenario_allows_as_many_false_accepts_as_its_clause(name: str, accepts: int, hours: float) -> None:
    limit = load_scenario(SCENARIOS / f"{name}.yaml").limits.max_false_accepts_per_hour
    assert limit is not None
    assert accepts / (0.99 * hours) <= limit < (accepts + 1) / hours


def test_every_procedure_has_clauses_and_an_example() -> None:
    followed = {
        scenario.procedure.name for path in SCENARIOS.glob("*.yaml") if (scenario := load_scenario(path)).procedure
    }
    assert followed == set(CLAUSES) == set(EDITIONS) == set(ProcedureName)


@pytest.mark.parametrize("injected", [True, False])
def test_a_proof_of_life_in_a_resumed_run_comes_after_the_sound(injected: bool) -> None:
    before, after = (wake_trial(number, TrialKind.PROBE, injected=injected) for number in (1, 3))
    soak = wake_trial(2, TrialKind.AMBIENT, injected=injected)
    rows = rows_of(before, soak, after, at_s=5000.0)
    rows.play(before, [("kitchen", 1.7)])
    rows.play(soak)
    rows.run, rows.at_s, rows.audio_s = 2, 30.0, 0.0
    rows.add(EngineStarted(2, 1, "another boot", 1.0))
    rows.play(after, [("kitchen", 1.7)])
    assert verdicts(rows, SELF_TEST)["proof of life before and after the 24 h"] == "met"


def test_requests_without_evidence_do_not_shrink_the_known_ones() -> None:
    known = [replace(planned(number), reports=(ObservationKind.WAKE,)) for number in (1, 2, 3)]
    unknown = [
        replace(planned(number), reports=(ObservationKind.WAKE,), evidence=Evidence.NONE) for number in (4, 5, 6)
    ]
    rows = Rows.of(*known, *unknown)
    rows.trial("time-1")
    rows.trial("time-2")
    rows.trial("time-3", Outcome.MISHEARD, Recognition.NO, latency_s=None)
    for number in (4, 5, 6):
        rows.trial(f"time-{number}", Outcome.NO_WAKE, Recognition.NOT_ASSESSED, latency_s=None)
    assert clauses(rows, ESP_SR)["speech recognition rate, quiet"][0].startswith("2 of 3")
