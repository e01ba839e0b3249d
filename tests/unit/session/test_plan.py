"""From scenario and bench to trials."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.bench import Bench, Device, ObservationKind
from harness.model.scenario import (
    AmbientSource,
    AmbientSpec,
    Axis,
    CloseDialogue,
    Defaults,
    Evidence,
    Limits,
    Matrix,
    Order,
    ProbeSpec,
    RepromptRule,
    Route,
    TrialKind,
    TrialTemplate,
)
from harness.model.stimulus import Ambience, NoiseKind, NoiseSpec, Opening, Recording, SpokenText, VoiceSpec
from harness.model.trial import MemoryPart, Trial
from harness.session.plan import plan
from harness.session.plan_notes import percentile_notes
from harness.session.soak import segments
from tests.known import known
from tests.unit.session.material import PROFILE, TELLS, bench, equipment, probe, scenario

ANN, BOB = VoiceSpec(name="ann"), VoiceSpec(name="bob")
PINK = NoiseSpec(NoiseKind.PINK, 10.0)
MATRIX = Matrix(
    axes=(
        Axis("voice", (ANN, BOB), ("ann", "bob")),
        Axis("level_dbfs", (-26.0, -36.0), ("-26", "-36")),
        Axis("noise", (None, PINK), ("quiet", "pink 10 dB")),
    ),
    exclude=((("voice", "bob"), ("noise", "pink 10 dB")),),
)


def test_trials_are_templates_times_cells_times_repeats() -> None:
    trials = plan(
        scenario(2, trials=(TrialTemplate("a", "q0", repeat=3), TrialTemplate("b", "q1")), matrix=MATRIX), bench()
    )
    assert len(trials) == (3 + 1) * (8 - 2)
    assert trials[0].id == "a.v-ann.l-26.n-quiet.r1"
    assert len({trial.id for trial in trials}) == len(trials)
    assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))
    assert not [t for t in trials if dict(t.conditions)["voice"] == "bob" and t.recipe.noise]
    pink = next(trial for trial in trials if trial.recipe.noise)
    assert pink.id == "a.v-ann.l-26.n-pink_10_dB.r1"


def test_a_seed_decides_the_order_and_nothing_else() -> None:
    shuffled = scenario(4, matrix=replace(MATRIX, order=Order.SHUFFLED))
    first, equal, other = plan(shuffled, bench(), 1), plan(shuffled, bench(), 1), plan(shuffled, bench(), 2)
    assert first == equal
    assert [trial.id for trial in first] != [trial.id for trial in other]
    assert {trial.id for trial in first} == {trial.id for trial in plan(scenario(4, matrix=MATRIX), bench())}


def test_groups_change_one_axis_at_a_time_and_are_shuffled_within() -> None:
    axes = (*MATRIX.axes, Axis("gap_ms", (100, 300, 500), ("100", "300", "500")))
    plain = Matrix(axes, MATRIX.exclude, Order.SHUFFLED, 5)
    plain_order = plan(scenario(3, matrix=plain), bench())
    trials = plan(scenario(3, matrix=replace(plain, group_by=("gap_ms", "noise"))), bench())
    assert {trial.id for trial in trials} == {trial.id for trial in plain_order}
    groups = [(dict(trial.conditions)["gap_ms"], dict(trial.conditions)["noise"]) for trial in trials]
    walk = [group for group, _ in itertools.groupby(groups)]
    assert len(walk) == len(set(walk)) == 6
    assert all(sum(a != b for a, b in zip(*pair, strict=True)) == 1 for pair in pairwise(walk))
    first = [trial.id for trial, group in zip(trials, groups, strict=True) if group == walk[0]]
    assert first == [trial.id for trial in plain_order if trial.id in set(first)], "shuffled as the whole was"
    assert first != sorted(first)


def test_labels_that_look_alike_get_ids_of_their_own() -> None:
    alike = Matrix((Axis("voice", (ANN, BOB), ("ann/1", "ann 1")),))
    assert [trial.id for trial in plan(scenario(1, matrix=alike), bench())] == ["t00.v-ann_1.r1", "t00.v-ann_1.r1~2"]


def test_matrix_voice_overrides_trial_query_and_default_voices() -> None:
    query = replace(scenario(1).queries[0], voice=VoiceSpec(name="query"))
    template = TrialTemplate("a", "q0", voice=VoiceSpec(name="trial"))
    defaults = Defaults(voice=VoiceSpec(name="defaults"))
    plain = scenario(1, queries=(query,), trials=(template,), defaults=defaults)
    matrix = Matrix((Axis("voice", (ANN,), ("ann",)),))
    names = []
    for case in (
        replace(plain, matrix=matrix),
        plain,
        replace(plain, trials=(TrialTemplate("a", "q0"),)),
        replace(plain, trials=(TrialTemplate("a", "q0"),), queries=scenario(1).queries),
    ):
        names.append(plan(case, bench())[0].recipe.voice.name)
    assert names == ["ann", "trial", "query", "defaults"]


def test_profile_supplies_language_context_wait_and_closing_words() -> None:
    profile = replace(PROFILE, language="de-DE", context_wait_s=30.0, close_dialogue_say="stop")
    (trial,) = plan(scenario(1), bench(profile))
    assert trial.recipe.voice.language == trial.recognised.language == "de-DE"
    assert trial.recognised.name == "spoken, de-DE"
    assert trial.recipe.wake_phrase == SpokenText("alexa")
    assert trial.reprompt.context_wait_s == 30.0
    assert trial.close_dialogue == CloseDialogue(say="stop")
    assert trial.evidence is Evidence.DEVICE
    assert (trial.microphone, trial.connection) == ("mic", "dut_link")
    longer = scenario(1, defaults=Defaults(reprompt=RepromptRule(context_wait_s=60.0)))
    assert plan(longer, bench(profile))[0].reprompt.context_wait_s == 60.0
    unwoken = scenario(1, trials=(TrialTemplate("a", "q0", wake=False),))
    assert plan(unwoken, bench())[0].recipe.wake_phrase is None


def test_limits_on_a_percentile_count_the_trials_that_give_the_time() -> None:
    limits = Limits(max_latency_p95_ms=900, max_wake_delay_p95_ms=500, max_first_sound_p95_ms=700)
    template = TrialTemplate("ask", "q0", repeat=19)
    heard = replace(CALL, repeat=19)
    mixed = plan(scenario(trials=(template, heard)), bench())
    assert [note.partition(":")[0] for note in percentile_notes(mixed, limits)] == [
        "max_latency_p95_ms cannot pass with 19 trials",
        "max_wake_delay_p95_ms[dut] cannot pass with 19 trials",
        "max_first_sound_p95_ms cannot pass with 19 trials",
    ]
    enough = plan(scenario(trials=(replace(template, repeat=20), replace(heard, repeat=20))), bench())
    assert list(percentile_notes(enough, limits)) == []
    commands = plan(scenario(trials=(replace(CALL, kind=TrialKind.COMMAND, query="q0", repeat=20),)), bench())
    notes = [note.partition(". ")[0] for note in percentile_notes(commands, limits)]
    assert notes == [
        f"{name} cannot pass: no trial in the plan measures this time"
        for name in ("max_latency_p95_ms", "max_wake_delay_p95_ms[dut]")
    ]


@pytest.mark.parametrize(
    ("reports", "connected", "evidence"),
    [
        ({ObservationKind.TRANSCRIPT}, True, Evidence.DEVICE),
        ({ObservationKind.TRANSCRIPT}, False, Evidence.OPERATOR),
        ({ObservationKind.WAKE}, True, Evidence.OPERATOR),
    ],
)
def test_evidence_is_chosen_from_the_scenario_and_the_bench(
    reports: set[ObservationKind], connected: bool, evidence: Evidence
) -> None:
    test_bench = bench(replace(PROFILE, reports=frozenset(reports)), connected)
    assert plan(scenario(1), test_bench)[0].evidence is evidence
    none = scenario(1, trials=(TrialTemplate("a", "q0", evidence=Evidence.NONE),))
    assert plan(none, test_bench)[0].evidence is Evidence.NONE


def test_positions_choose_a_loudspeaker() -> None:
    trials = plan(scenario(1, matrix=Matrix((Axis("position", ("back", "front"), ("back", "front")),))), bench())
    assert [trial.loudspeaker for trial in trials] == ["speaker_back", "speaker"]


CALL = TrialTemplate("call", "", kind=TrialKind.WAKE, lead_in_s=2.0, tail_s=1.5)

AXES = Matrix(
    axes=(
        Axis("voice", (ANN, BOB), ("ann", "bob")),
        Axis("gap_ms", (100, 200, 300), ("100", "200", "300")),
        Axis("position", ("front", "back"), ("front", "back")),
        Axis("noise", (None, NoiseSpec(NoiseKind.PINK, 10.0)), ("quiet", "pink 10 dB")),
    )
)
TV = AmbientSource("tv", recordings=("/a.wav", "/b.wav"), durations_s=(25.0, 50.0), share=2.0)
HISS = AmbientSource("hiss", noise=NoiseKind.PINK)
TALK = AmbientSource("talk", texts=("good morning to you", "we went home early"), voices=(ANN, BOB))


def boards() -> Bench:
    """A shelf that hears by air, and a board that takes sound over its wire."""
    wired = Device("wired", PROFILE, replace(equipment("wired"), injects=True))
    return replace(bench(), devices=(Device("shelf", PROFILE, equipment("shelf_link")), wired))


def test_every_device_that_reports_wake_events_listens() -> None:
    (trial,) = plan(scenario(trials=(CALL,)), boards())
    assert [
        (target.device, target.connection, target.player, target.injected) for target in known(trial.listening).targets
    ] == [("shelf", "shelf_link", "speaker", False), ("wired", "wired", "wired", True)]
    assert (trial.device, trial.loudspeaker, trial.players) == ("shelf", "speaker", ("speaker", "wired"))
    assert trial.recipe.query == SpokenText("alexa")
    assert trial.recipe.wake_phrase is None
    assert (trial.recipe.lead_in_s, trial.recipe.tail_s) == (2.0, 1.5)
    assert trial.recipe.rate_hz == 48_000, "a loudspeaker plays it too"


def test_the_rate_is_the_boards_when_nothing_goes_through_the_air() -> None:
    (trial,) = plan(scenario(trials=(replace(CALL, devices=("wired",)),)), boards())
    assert trial.recipe.rate_hz == 16_000
    (by_air,) = plan(scenario(trials=(replace(CALL, devices=("wired",), route=Route.LOUDSPEAKER),)), boards())
    assert by_air.recipe.rate_hz == 48_000
    assert by_air.players == ("speaker",)


def test_a_phrase_that_is_written_wakes_devices_of_several() -> None:
    other = replace(PROFILE, wake_phrases=("computer",))
    two = replace(boards(), devices=(*boards().devices, Device("c", other, equipment("c"))))
    (trial,) = plan(scenario(trials=(replace(CALL, phrase="hey you"),)), two)
    assert trial.recipe.query == SpokenText("hey you")


def test_only_axes_that_make_a_difference_multiply() -> None:
    def count(template: TrialTemplate) -> int:
        return len(plan(scenario(trials=(template,), matrix=AXES), boards()))

    wired = replace(CALL, devices=("wired",))
    assert count(CALL) == 2 * 2 * 2, "voice, position and noise; a wake phrase has no gap"
    assert count(wired) == 2 * 2, "a wire has no position"
    assert count(replace(wired, recordings=("/one.wav",))) == 2, "a recording cannot have a voice"
    assert count(replace(CALL, kind=TrialKind.COMMAND, query="q0")) == 2 * 3 * 2 * 2
    soak = replace(CALL, kind=TrialKind.AMBIENT, ambient=AmbientSpec(0.1, (HISS,), 60.0))
    assert count(soak) == 6, "six minutes are six minutes"


def test_a_command_is_the_phrase_and_the_query() -> None:
    (trial,) = plan(scenario(trials=(replace(CALL, kind=TrialKind.COMMAND, query="q0", gap_ms=120),)), boards())
    assert (trial.recipe.wake_phrase, trial.recipe.query) == (SpokenText("alexa"), SpokenText("what time is it"))
    assert (trial.query_id, trial.reference, trial.recipe.gap_ms) == ("q0", "what time is it", 120)
    assert known(trial.listening).phrase == "alexa"


def test_recordings_are_taken_in_turn() -> None:
    template = replace(CALL, recordings=("/a.wav", "/b.wav"), repeat=3, devices=("wired",))
    trials = plan(scenario(trials=(template,)), boards())
    assert [trial.recipe.query for trial in trials] == [Recording("/a.wav"), Recording("/b.wav"), Recording("/a.wav")]
    assert [trial.id for trial in trials] == ["call.r1", "call.r2", "call.r3"]


def soak(hours: float, *sources: AmbientSource, segment_s: float = 60.0) -> TrialTemplate:
    ambient = AmbientSpec(hours, sources, segment_s)
    return TrialTemplate("soak", "", kind=TrialKind.AMBIENT, ambient=ambient, level_dbfs=-30.0)


def test_an_ambient_soak_is_cut_into_segments_of_one_source_each() -> None:
    trials = plan(scenario(trials=(soak(1.0, TV, HISS, TALK),)), boards())
    assert [trial.id for trial in trials[:2]] == ["soak.r1.s0001", "soak.r1.s0002"]
    assert len(trials) == 60
    listening = [trial.listening for trial in trials if trial.listening]
    counts = {name: sum(segment.source == name for segment in listening) for name in ("tv", "hiss", "talk")}
    assert counts == {"tv": 30, "hiss": 15, "talk": 15}, "by their shares"
    assert [segment.source for segment in listening] != sorted(segment.source for segment in listening), "shuffled"
    assert all(segment.phrase == "" for segment in listening)
    assert all(trial.recipe.level_dbfs == -30.0 and trial.recipe.noise is None for trial in trials)
    repeated = plan(scenario(trials=(soak(1.0, TV, HISS, TALK),)), boards())
    assert repeated == trials
    assert plan(scenario(trials=(soak(1.0, TV, HISS, TALK),)), boards(), seed=99) != trials


@given(
    st.floats(0.001, 3.0),
    st.floats(1.0, 600.0),
    st.lists(st.floats(0.2, 300.0), min_size=1, max_size=5),
    st.floats(0.1, 10.0),
)
@example(0.9995, 1.1, [1.0], 1.0)  # leaves 0.1 s after the last whole segment
def test_the_time_asked_for_is_the_time_played_and_recordings_go_on_where_they_were(
    hours: float, segment_s: float, durations_s: list[float], share: float
) -> None:
    paths = tuple(f"/{n}.wav" for n in range(len(durations_s)))
    tv = AmbientSource("tv", recordings=paths, durations_s=tuple(durations_s))
    spec = AmbientSpec(hours, (tv, replace(HISS, share=share)), segment_s)
    ambiences = [ambience for _, ambience in segments(spec, "seed")]
    assert len(ambiences) == spec.segments
    assert sum(ambience.duration_s for ambience in ambiences) == pytest.approx(hours * 3600, abs=0.1)
    assert all(ambience.duration_s <= segment_s + 1e-6 for ambience in ambiences)
    pieces = [piece for ambience in ambiences for piece in ambience.pieces]
    by_path = dict(zip(paths, durations_s, strict=True))
    for piece, following in pairwise(pieces):
        end_s, length_s = piece.offset_s + piece.duration_s, by_path[piece.path]
        if following.offset_s == 0.0:
            assert end_s >= length_s - 0.002, "a recording is played to its end before another one begins"
        else:
            assert following.path == piece.path
            assert following.offset_s == pytest.approx(end_s, abs=1e-4)
            assert following.offset_s < length_s - 5e-4, "nothing is left of it to play"
    for ambience in ambiences:
        if ambience.pieces:
            assert sum(p.duration_s for p in ambience.pieces) == pytest.approx(ambience.duration_s, abs=1e-3)


def test_noise_is_new_in_every_segment_and_every_text_gets_its_turn() -> None:
    trials = plan(scenario(trials=(soak(0.5, HISS, TALK, segment_s=20.0),)), boards())
    ambiences = [trial.recipe.query for trial in trials]
    hiss = [ambience.seed for ambience in ambiences if isinstance(ambience, Ambience) and ambience.noise]
    assert len(set(hiss)) == len(hiss) == 45
    sayings = [saying for ambience in ambiences if isinstance(ambience, Ambience) for saying in ambience.sayings]
    assert {(saying.text, saying.voice) for saying in sayings} == {(t, v) for t in TALK.texts for v in (ANN, BOB)}


def test_wake_and_ambient_trials_are_mixed_when_the_order_is_shuffled() -> None:
    matrix = Matrix((Axis("voice", (ANN, BOB), ("ann", "bob")),), order=Order.SHUFFLED)
    trials = plan(scenario(trials=(replace(CALL, repeat=10), soak(0.2, HISS, segment_s=30.0)), matrix=matrix), boards())
    kinds = [trial.listening.kind for trial in trials if trial.listening]
    assert (kinds.count(TrialKind.WAKE), kinds.count(TrialKind.AMBIENT)) == (20, 24)
    assert sum(a is not b for a, b in pairwise(kinds)) > 5
    assert [trial.number for trial in trials] == list(range(1, 45))


WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)


def pairs(trials: tuple[Trial, ...]) -> list[tuple[Trial, Trial]]:
    """Every prime with what comes next; AssertionError when that is not its follow-up."""
    memory_pairs = []
    for trial, after in itertools.pairwise(trials):
        if trial.memory == MemoryPart():
            assert known(after.memory).primed_by == trial.id
            memory_pairs.append((trial, after))
    assert 2 * len(memory_pairs) == sum(trial.memory is not None for trial in trials)
    return memory_pairs


def test_memory_pairs_are_planned_for_each_wait_and_repetition() -> None:
    closing = Defaults(close_dialogue=CloseDialogue(say="never mind"))
    trials = plan(probe(*WAITS, repeat=3, defaults=closing), bench(TELLS))
    memory_pairs = pairs(trials)
    assert sorted((after.memory.wait_s, after.id) for _, after in memory_pairs if after.memory) == sorted(
        (wait_s, f"memory.w{wait_s:g}.r{n}") for wait_s in WAITS for n in (1, 2, 3)
    )
    prime, after = next(pair for pair in memory_pairs if pair[1].id == "memory.w8.r2")
    assert (prime.id, prime.reference, after.reference) == (
        "memory.w8.r2.prime",
        "what time is it",
        "set an alarm for one",
    )
    assert (prime.reprompt.max_attempts, after.reprompt.max_attempts, after.reprompt.max_interruptions) == (2, 1, 0)
    assert prime.close_dialogue is after.close_dialogue is None
    assert after.memory == MemoryPart(prime.id, 8.0, ("I still know that.",), ("I have forgotten that.",))
    assert [trial.number for trial in trials] == list(range(1, 31))


def test_the_order_of_waits_is_random_in_each_repetition_and_the_seed_decides() -> None:
    def waits(seed: int | None) -> list[float]:
        return [
            after.memory.wait_s for _, after in pairs(plan(probe(*WAITS, repeat=4), bench(TELLS), seed)) if after.memory
        ]

    blocks = [tuple(waits(3)[start : start + 5]) for start in range(0, 20, 5)]
    assert all(sorted(block) == list(WAITS) for block in blocks)
    assert len(set(blocks)) > 1
    assert waits(3) == waits(3) != waits(4)
    assert waits(None) == waits(0)


def test_pairs_stay_together_in_a_shuffled_plan_with_other_trials() -> None:
    levels = Matrix((Axis("level_dbfs", (-26.0, -40.0), ("-26", "-40")),), order=Order.SHUFFLED, seed=9)
    memory_scenario = probe(2.0, 4.0, repeat=2, matrix=levels)
    trials = plan(
        replace(memory_scenario, trials=(*memory_scenario.trials, TrialTemplate("plain", "q0", repeat=6))), bench(TELLS)
    )
    memory_pairs = pairs(trials)
    assert len(memory_pairs) == 8
    assert all(prime.conditions == after.conditions for prime, after in memory_pairs)
    kinds = [trial.memory is not None for trial in trials]
    assert kinds != sorted(kinds)
    assert kinds != sorted(kinds, reverse=True)


def test_an_axis_of_openings_does_not_multiply_memory_probes() -> None:
    openings = Axis("opening", (None, Opening(4.0, "what time is it")), ("none", "request"))
    trials = plan(replace(probe(2.0, 8.0), matrix=Matrix((openings,))), bench(TELLS))
    assert [trial.recipe.opening for trial in trials] == [None] * 4


def test_no_probe_comes_between_a_prime_and_its_follow_up() -> None:
    sound = AmbientSpec(0.2, (AmbientSource("pink", noise=NoiseKind.PINK),), 60.0, ProbeSpec(75.0))
    memory = probe(2.0, 4.0, 8.0, repeat=4)
    soak = TrialTemplate("soak", None, kind=TrialKind.AMBIENT, ambient=sound)
    night = replace(memory, trials=(*memory.trials, soak), matrix=Matrix(order=Order.SHUFFLED))
    heard = bench(replace(TELLS, reports=TELLS.reports | {ObservationKind.WAKE}))
    for seed in range(5):
        for before, after in pairwise(plan(night, heard, seed)):
            if after.memory is not None and after.memory.primed_by:
                assert before.id == after.memory.primed_by
