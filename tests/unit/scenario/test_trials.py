"""Effect checks in scenarios, and whether a bench can say what became of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.base import plugins
from harness.cli import validate
from harness.model.bench import Bench, DeviceProfile, Equipment, ObservationKind, OperatorPresence
from harness.model.effect import EffectCheck, StateWanted
from harness.model.errors import InputProblems, Place, UnmetNeed
from harness.model.scenario import Evidence, MemorySpec, Need, RepeatUntil, Scenario, TrialKind
from harness.model.trial import Trial
from harness.model.understanding import ExpectedFrame, Slot
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario, planned_trials, trial_count
from harness.scenario.trials import noise_notes, wait_notes
from harness.session.plan import plan
from tests.files import file_with
from tests.unit.session.material import PROFILE, bench

BENCH = """
bench: b
loudspeakers: {near: {driver: in_process}}
microphone: {same_as: near}
devices: {one: {profile: PROFILE, connection: {driver: in_process}}}
"""


def written(folder: Path, effect: str, device: str = "one") -> Scenario:
    path = folder / "s.yaml"
    text = "scenario: s\nvariables: {thing: milk}\nstimuli: [{id: q, text: add milk}]\ntrials:\n  - query: q\n"
    path.write_text(f"{text}    device: {device}\n    effect: {effect}\n", encoding="utf-8")
    return load_scenario(path)


@pytest.mark.parametrize(
    ("state", "state_wanted"),
    [
        ("{list: null}", StateWanted("list")),
        ("{list: ~}", StateWanted("list")),
        ('{list: ""}', StateWanted("list", "")),
        ('{list: "${thing}"}', StateWanted("list", "milk")),
        ('{list: "12:30"}', StateWanted("list", "12:30")),
        ("{list: no}", StateWanted("list", "no")),
    ],
)
def test_state_values_are_read(tmp_path: Path, state: str, state_wanted: StateWanted) -> None:
    (trial,) = written(tmp_path, f"{{wanted: milk, state: {state}}}").trials
    assert trial.effect == EffectCheck("milk", (state_wanted,))


@pytest.mark.parametrize(
    ("profile", "effect", "met"),
    [
        ("reference_assistant", "{wanted: x, state: {list: milk}}", True),
        ("vh_board", "{wanted: x, state: {list: milk}}", False),
        ("vh_board", '{wanted: x, state: {list: milk}, question: "is it?"}', True),
        ("vh_board", '{wanted: x, question: "is it?"}', True),
    ],
)
def test_state_check_needs_a_reporting_device_or_an_operator(
    tmp_path: Path, profile: str, effect: str, met: bool
) -> None:
    scenario = written(tmp_path, effect)
    (tmp_path / "b.yaml").write_text(BENCH.replace("PROFILE", profile), encoding="utf-8")
    bench = load_bench(tmp_path / "b.yaml")
    if met:
        check_compatibility(scenario, bench)
        (planned,) = plan(scenario, bench)
        assert planned.effect == scenario.trials[0].effect
        return
    with pytest.raises(UnmetNeed, match="checks the state of 'one', which reports no state") as refused:
        check_compatibility(scenario, bench)
    assert refused.value.place is not None
    assert refused.value.place.line == 7
    assert "question" in refused.value.remedy


SCENARIOS = Path(__file__).parents[3] / "scenarios"
MEMORY = """\
scenario: memory
variables: {sum: sixty one}
stimuli:
  - {id: product, text: what is seven times eight}
  - {id: add_five, text: add five to that}
trials:
  - id: memory
    kind: memory
    repeat: 6
    query: product
    follow_up: add_five
"""
WAITS = """\
    waits_s: [2, 4.5, 8]
    shows: ["${sum}"]
    forgets: [sorry]
"""
FIRST = MEMORY.count("\n") + 1
"""The line of `waits_s`."""


def read_memory(folder: Path, text: str) -> Scenario:
    path = file_with(folder / "memory.yaml", text)
    return load_scenario(path)


def memory_problems(folder: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(InputProblems) as refused:
        read_memory(folder, text)
    return [(problem.place.line if problem.place else 0, problem.what) for problem in refused.value.problems]


def test_a_memory_trial_is_read(tmp_path: Path) -> None:
    read_back = read_memory(tmp_path, MEMORY + WAITS)
    (trial,) = read_back.trials
    assert (trial.kind, trial.query, trial.repeat) == (TrialKind.MEMORY, "product", 6)
    assert trial.memory == MemorySpec("add_five", (2.0, 4.5, 8.0), ("sixty one",), ("sorry",))
    assert trial_count(trial, read_back.matrix) == 2 * 3 * 6
    twice = read_memory(tmp_path, MEMORY + WAITS + "matrix: {axes: {gap_ms: [100, 300]}}\n")
    assert planned_trials(twice) == (2 * 3 * 6, 2)
    assert len(plan(twice, load_bench(SCENARIOS / "benches" / "virtual_lab.yaml"))) == 2 * 3 * 6 * 2


def test_without_an_id_a_memory_trial_has_the_name_of_its_query(tmp_path: Path) -> None:
    nameless = MEMORY.replace("  - id: memory\n    kind: memory", "  - kind: memory") + WAITS
    assert [trial.id for trial in read_memory(tmp_path, nameless).trials] == ["product"]
    twin = (
        nameless.replace("{id: add_five", "{id: memory, text: what is one}\n  - {id: add_five")
        + "  - {query: memory}\n"
    )
    assert [trial.id for trial in read_memory(tmp_path, twin).trials] == ["product", "memory"]


def test_waits_may_be_given_in_equal_ratios(tmp_path: Path) -> None:
    text = (MEMORY + WAITS).replace("[2, 4.5, 8]", "{from: 1, to: 60, count: 5}")
    (trial,) = read_memory(tmp_path, text).trials
    assert trial.memory is not None
    assert trial.memory.waits_s == (1.0, 2.8, 7.7, 21.6, 60.0)


@pytest.mark.parametrize(
    ("old", "replaced", "line", "part"),
    [
        ("waits_s: [2, 4.5, 8]", "waits_s: [2, 4, 2]", FIRST, "the wait of 2 s is listed twice"),
        ("waits_s: [2, 4.5, 8]", "waits_s: [2]", FIRST, "a single wait cannot show"),
        ("waits_s: [2, 4.5, 8]", "waits_s: [2, 3601]", FIRST, "3601 is too large"),
        ("waits_s: [2, 4.5, 8]", "waits_s: [2, -1]", FIRST, "-1 is too small"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {from: 8, to: 2, count: 3}", FIRST, "the waits go from 8 s to 2 s"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {from: 1, to: 1.2, count: 9}", FIRST, "9 waits in this range are less than"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {from: 1, count: 9}", FIRST, "the key 'to' is missing"),
        ("waits_s: [2, 4.5, 8]", "waits_s: {form: 1, to: 8, count: 9}", FIRST, "there is no key 'form' here"),
        ('    shows: ["${sum}"]\n', "", FIRST - 5, "the key 'shows' is missing"),
        ('shows: ["${sum}"]', "shows: []", FIRST + 1, "a list is empty"),
        ("forgets: [sorry]", "forgets: [Sixty One]", FIRST + 2, "'Sixty One' is listed under both"),
        ("follow_up: add_five", "follow_up: add_fife", FIRST - 1, "there is no stimulus 'add_fife'"),
        ("follow_up: add_five", "follow_up: product", FIRST - 1, "the follow-up is the query itself"),
        ("repeat: 6", "close_dialogue: {say: cancel}", FIRST - 3, "'close_dialogue' does not apply"),
        ("repeat: 6", "effect: {wanted: a sum, question: is it said}", FIRST - 3, "'effect' does not apply"),
        ("repeat: 6", "phrase: alexa", FIRST - 3, "'phrase' does not apply"),
        ("repeat: 6", "devices: [box]", FIRST - 3, "'devices' does not apply"),
        ("kind: memory", "kind: query", FIRST - 1, "'follow_up' does not apply to trials of kind query"),
    ],
)
def test_memory_trial_mistakes_are_reported_with_their_line(
    old: str, replaced: str, line: int, part: str, tmp_path: Path
) -> None:
    assert old in MEMORY + WAITS
    problems = memory_problems(tmp_path, (MEMORY + WAITS).replace(old, replaced))
    assert any(number == line and part in message for number, message in problems), problems


@pytest.mark.parametrize(
    ("levels", "default", "axis", "noted"),
    [
        ("[-26, -36]", "{kind: pink, snr_db: 10}", "", True),
        ("[-26, -36]", "null", ", noise: [{kind: pink, snr_db: 10}]", True),
        ("[-26]", "{kind: pink, snr_db: 10}", "", False),
        ("[-26, -36]", "{kind: pink, level_dbfs: -50}", "", False),
        ("[-26, -36]", "{kind: pink, snr_db: 10}", ", noise: [null, {kind: pink, snr_db: 10}]", False),
        ("[-26, -36]", "null", "", False),
    ],
)
def test_check_notes_a_level_that_the_noise_follows(
    levels: str, default: str, axis: str, noted: bool, tmp_path: Path
) -> None:
    path = file_with(
        tmp_path / "s.yaml",
        f"scenario: s\ndefaults: {{noise: {default}}}\nstimuli: [{{id: q, text: hello}}]\ntrials: [{{query: q}}]\n"
        f"matrix: {{axes: {{level_dbfs: {levels}{axis}}}}}\n",
    )
    notes = list(noise_notes(load_scenario(path)))
    assert [note.startswith("varying the axis level_dbfs changes little") for note in notes] == [True] * noted
    assert all(note in CliRunner().invoke(validate.command, [str(path)]).output for note in notes)


def test_waits_that_cannot_be_kept_are_reported_before_the_run(tmp_path: Path) -> None:
    assert list(wait_notes(read_memory(tmp_path, MEMORY + WAITS))) == []
    (note,) = wait_notes(read_memory(tmp_path, (MEMORY + WAITS).replace("4.5", "1, 0")))
    assert "cannot keep waits below 1.1 s (0, 1)" in note
    path = tmp_path / "memory.yaml"
    outcome = CliRunner().invoke(validate.command, [str(path)])
    assert (outcome.exit_code, note in outcome.output) == (0, True)
    assert json.loads(CliRunner().invoke(validate.command, [str(path), "--json"]).output)["notes"][0]["what"] == note
    quick = (MEMORY + WAITS).replace("4.5", "1").replace("repeat: 6", "reprompt: {end_silence_ms: 500}")
    assert list(wait_notes(read_memory(tmp_path, quick))) == []


@pytest.fixture
def lab() -> Bench:
    return load_bench(SCENARIOS / "benches" / "virtual_lab.yaml")


def test_the_probe_that_comes_with_the_harness_runs_in_the_virtual_lab(lab: Bench) -> None:
    check_compatibility(load_scenario(SCENARIOS / "memory.yaml"), lab)


def test_memory_probe_needs_evidence_that_the_prime_was_understood(tmp_path: Path, lab: Bench) -> None:
    probe = read_memory(tmp_path, MEMORY + WAITS.replace("forgets", "device: black_box\n    forgets"))
    check_compatibility(probe, lab)  # an operator may be there
    alone = replace(lab, operator=OperatorPresence.ABSENT)
    with pytest.raises(UnmetNeed, match="so nothing shows whether it understood"):
        check_compatibility(probe, alone)
    (trial,) = probe.trials
    check_compatibility(replace(probe, trials=(replace(trial, evidence=Evidence.NONE),)), alone)


def test_memory_probe_needs_a_microphone_and_reported_answers(
    tmp_path: Path, lab: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = read_memory(tmp_path, MEMORY + WAITS)
    with pytest.raises(UnmetNeed, match="microphone to find the end of an answer"):
        check_compatibility(probe, replace(lab, microphone=None))
    device = lab.devices[0]
    silent = replace(device, profile=replace(device.profile, reports=frozenset({ObservationKind.TRANSCRIPT})))
    monkeypatch.setattr(plugins, "names", lambda group: ("ours",))
    check_compatibility(probe, replace(lab, devices=(silent,)))
    monkeypatch.setattr(plugins, "names", lambda group: ())
    check_compatibility(probe, lab)  # the device tells what it answers
    with pytest.raises(UnmetNeed, match="nothing shows what"):
        check_compatibility(probe, replace(lab, devices=(silent,)))


HEAD = """\
scenario: frames
variables: {town: Lyon}
stimuli: [{id: hotel, text: book a hotel}, {id: bye, text: goodbye}]
"""
ASKED = "{kind: understand, query: hotel,"
NO_MEANING = "does not apply to trials of kind understand"
TRIALS = "trials:\n  - {kind: understand, query: hotel, expects: {intents: [book]}}\n"


def read(folder: Path, text: str) -> Scenario:
    path = file_with(folder / "frames.yaml", HEAD + text)
    return load_scenario(path)


def one(folder: Path, expects: str, more: str = "") -> Scenario:
    return read(folder, f"trials:\n  - {{kind: understand, query: hotel, expects: {expects}{more}}}\n")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputProblems) as caught:
        read(folder, text)
    return [f"{problem.place.line if problem.place else 0}: {problem.what}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("{intents: [book, greet]}", ExpectedFrame(("book", "greet"))),
        ("{intents: greet#book}", ExpectedFrame(("book", "greet"))),
        ("{intents: ['greet#book', ask], slots: {}}", ExpectedFrame(("ask", "book", "greet"), ())),
        ("{intents: []}", ExpectedFrame(())),
        (
            "{intents: [book], slots: {city: '${town}', stars: null}}",
            ExpectedFrame(("book",), (Slot("city", "Lyon"), Slot("stars"))),
        ),
        (
            "{intents: [book], slots: [{concept: city, value: Lyon}, {concept: city, value: Nice}, {concept: city}]}",
            ExpectedFrame(("book",), (Slot("city", "Lyon"), Slot("city", "Nice"), Slot("city"))),
        ),
    ],
)
def test_expected_frame_is_read(tmp_path: Path, frame: str, expected: ExpectedFrame) -> None:
    (trial,) = one(tmp_path, frame).trials
    assert (trial.id, trial.kind, trial.expects) == ("hotel", TrialKind.UNDERSTAND, expected)


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        ("{kind: understand, query: hotel}", "the key 'expects' is missing"),
        ("{kind: understand, expects: {intents: [a]}}", "the key 'query' is missing"),
        ("{query: hotel, expects: {intents: [a]}}", "the key 'expects' does not apply to trials of kind query"),
        ("{kind: wake, expects: {intents: [a]}}", "the key 'expects' does not apply to trials of kind wake"),
        (f"{ASKED} expects: {{intents: [a]}}, phrase: hello}}", f"the key 'phrase' {NO_MEANING}"),
        (
            f"{ASKED} expects: {{intents: [a]}}, effect: {{wanted: it, question: so}}}}",
            f"the key 'effect' {NO_MEANING}",
        ),
        ("{query: hotel, reprompt: {until: understood}}", "the trial 'hotel' (kind query)"),
        ("{kind: wake, reprompt: {until: understood}}", "the key 'until' does not apply to trials of kind wake"),
        ("{kind: wake, reprompt: {evidence_wait_s: 1}}", "the key 'evidence_wait_s' does not apply"),
        ("{kind: command, query: hotel, reprompt: {max_attempts: 2}}", "the key 'max_attempts' does not apply"),
        ("{kind: command, query: hotel, core_capability: true}", "the key 'core_capability' does not apply"),
        ("{kind: wake, query_class: clock}", "the key 'query_class' does not apply to trials of kind wake"),
        ("{query: hotel, reprompt: {until: heard}}", "'heard' is not supported here"),
        (f"{ASKED} expects: {{intents: [a, b#a]}}}}", "the intent 'a' is listed twice"),
        (f"{ASKED} expects: {{intents: '#'}}}}", "'#' does not name an intent"),
        (f"{ASKED} expects: {{intents: [a], slots: {{city: ['x']}}}}}}", "expected text, found a list"),
        (f"{ASKED} expects: {{intents: [a], slot: {{city: x}}}}}}", "there is no key 'slot' here"),
        (f"{ASKED} expects: {{slots: {{}}}}}}", "the key 'intents' is missing"),
        (f"{ASKED} expects: {{intents: [a], slots: {{city: '${{land}}'}}}}}}", "there is no variable 'land'"),
    ],
)
def test_contradictory_trial_keys_are_refused_with_their_line(tmp_path: Path, trial: str, message: str) -> None:
    (problem,) = problems(tmp_path, f"trials:\n  - {trial}\n")
    assert problem.startswith(f"5: {message}")


def test_inapplicable_default_rule_is_refused_at_its_trial(tmp_path: Path) -> None:
    others = "  - {query: bye}\n  - {id: b, query: bye, reprompt: {until: recognised}}\n"
    assert problems(tmp_path, f"defaults: {{reprompt: {{until: understood}}}}\n{TRIALS}{others}") == [
        "4: the trial 'bye' (kind query) has no `expects`, so `until: understood` cannot apply"
    ]
    assert problems(tmp_path, f"defaults: {{evidence: none}}\n{TRIALS}") == [
        "6: `evidence: none` (from the defaults) cannot show what the device understood"
    ]


def test_the_matrix_multiplies_understand_trials_like_queries(tmp_path: Path) -> None:
    matrix = "matrix: {axes: {gap_ms: [100, 200], level_dbfs: [-26, -36]}}\n"
    scenario = read(tmp_path, TRIALS.replace("hotel,", "hotel, repeat: 3,") + matrix)
    assert trial_count(scenario.trials[0], scenario.matrix) == 12
    assert len(plan(scenario, mute())) == 12


def mute(*, injects: bool = False, microphone: bool = False, responds: bool = True, reports: bool = True) -> Bench:
    """A bench whose device reports intents, and no transcripts."""
    kinds = frozenset({ObservationKind.INTENT} if reports else ())
    profile: DeviceProfile = replace(PROFILE, reports=kinds, responds=responds)
    plain = bench(profile)
    link = Equipment("dut_link", "mqtt", None, Place("bench.yaml", 1), injects=injects)
    return replace(
        plain,
        devices=(replace(plain.devices[0], connection=link),),
        loudspeakers=() if injects else plain.loudspeakers,
        microphone=plain.microphone if microphone else None,
        operator=OperatorPresence.ABSENT,
    )


def planned(scenario: Scenario, test_bench: Bench) -> Trial:
    check_compatibility(scenario, test_bench)
    (trial,) = plan(scenario, test_bench)
    return trial


def test_an_understand_trial_is_planned_with_its_evidence(tmp_path: Path) -> None:
    trial = planned(one(tmp_path, "{intents: [book]}"), mute(microphone=True))
    assert (trial.kind, trial.expects, trial.evidence) == (
        TrialKind.UNDERSTAND,
        ExpectedFrame(("book",)),
        Evidence.DEVICE,
    )
    assert (trial.loudspeaker, trial.responds, trial.until_understood) == ("speaker", True, True)
    assert trial.recipe.wake_phrase is not None
    words = planned(one(tmp_path, "{intents: [book]}", ", reprompt: {until: recognised}, evidence: operator"), mute())
    assert (words.until_understood, words.reprompt.until) == (False, RepeatUntil.RECOGNISED)


def test_a_response_is_awaited_if_it_can_be_heard(tmp_path: Path) -> None:
    scenario = one(tmp_path, "{intents: [book]}")
    assert not planned(scenario, mute(microphone=True, responds=False)).responds, "it has no voice"
    assert not planned(scenario, mute()).responds, "microphone to find the end of an answer"


def test_sound_is_injected_where_possible(tmp_path: Path) -> None:
    scenario = one(tmp_path, "{intents: [book]}")
    wired = planned(scenario, mute(injects=True))
    assert (wired.loudspeaker, wired.players, wired.recipe.rate_hz) == ("dut_link", ("dut_link",), 16000)
    through_air = planned(scenario, replace(mute(injects=True), loudspeakers=bench().loudspeakers))
    assert through_air.loudspeaker == "dut_link", "auto prefers the wire"
    by_speaker = one(tmp_path, "{intents: [book]}", ", route: loudspeaker")
    assert planned(by_speaker, replace(mute(injects=True), loudspeakers=bench().loudspeakers)).loudspeaker == "speaker"
    with pytest.raises(UnmetNeed, match="does not offer 'loudspeaker'"):
        check_compatibility(by_speaker, mute(injects=True))
    with pytest.raises(UnmetNeed, match=r"injects sound into 'dut', whose connection \(mqtt\) cannot inject") as caught:
        check_compatibility(one(tmp_path, "{intents: [book]}", ", route: injection"), mute())
    assert caught.value.place is not None
    assert caught.value.place.line == 5


def test_positions_do_not_multiply_injected_trials(tmp_path: Path) -> None:
    scenario = read(tmp_path, TRIALS + "matrix: {axes: {position: [front, back]}}\n")
    speakers = bench().loudspeakers
    assert len(plan(scenario, replace(mute(injects=True), loudspeakers=speakers))) == 1
    assert [trial.loudspeaker for trial in plan(scenario, mute())] == ["speaker", "speaker_back"]


@pytest.mark.parametrize(
    ("more", "reports", "problem"),
    [
        (
            "",
            False,
            "nothing shows what 'dut' understands in 'hotel': it reports no intents, and the operator is absent",
        ),
        (", evidence: device", False, "the trial 'hotel' checks what 'dut' understood, but it reports no intents"),
        (", evidence: operator", True, "asks the operator what 'dut' understood, but the operator is absent"),
        (", reprompt: {until: recognised}", False, "checks what 'dut' understood, but it reports no intents"),
        (", evidence: device, reprompt: {until: recognised}", True, "but 'dut' reports no transcript"),
    ],
)
def test_missing_understanding_evidence_is_refused_before_playback(
    tmp_path: Path, more: str, reports: bool, problem: str
) -> None:
    with pytest.raises(UnmetNeed) as caught:
        check_compatibility(one(tmp_path, "{intents: [book]}", more), mute(reports=reports))
    assert problem in caught.value.what
    assert caught.value.place is not None
    assert (Path(caught.value.place.file).name, caught.value.place.line) == ("frames.yaml", 5)


def test_operator_evidence_is_used_on_an_attended_bench(tmp_path: Path) -> None:
    attended_bench = replace(mute(reports=False), operator=OperatorPresence.AUTO)
    assert planned(one(tmp_path, "{intents: [book]}"), attended_bench).evidence is Evidence.OPERATOR


def test_intents_need_requires_a_reporting_device(tmp_path: Path) -> None:
    scenario = read(tmp_path, "needs: [intents]\ntrials: [{query: hotel}]\n")
    check_compatibility(scenario, mute())
    assert scenario.needs == (Need.INTENTS,)
    with pytest.raises(UnmetNeed, match="does not offer 'intents'"):
        check_compatibility(scenario, mute(reports=False))
