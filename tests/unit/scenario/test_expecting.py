"""Understand trials in scenario files, and whether a bench can run them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.bench import Bench, DeviceProfile, Equipment, ObservationKind, OperatorPresence
from harness.model.errors import InputProblems, Place, UnmetNeed
from harness.model.scenario import Evidence, Need, Scenario, TrialKind, Until
from harness.model.trial import Trial
from harness.model.understanding import Expected, Slot
from harness.scenario.scenario import load_scenario, planned_of
from harness.scenario.together import check_together
from harness.session.plan import plan
from tests.unit.session.material import PROFILE, bench

HEAD = """\
scenario: frames
variables: {town: Lyon}
stimuli: [{id: hotel, text: book a hotel}, {id: bye, text: goodbye}]
"""
TRIALS = "trials:\n  - {kind: understand, query: hotel, expects: {intents: [book]}}\n"


def read(folder: Path, text: str) -> Scenario:
    path = folder / "frames.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return load_scenario(path)


def one(folder: Path, expects: str, more: str = "") -> Scenario:
    return read(folder, f"trials:\n  - {{kind: understand, query: hotel, expects: {expects}{more}}}\n")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputProblems) as caught:
        read(folder, text)
    return [f"{found.place.line if found.place else 0}: {found.what}" for found in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{intents: [book, greet]}", Expected(("book", "greet"))),
        ("{intents: greet#book}", Expected(("book", "greet"))),
        ("{intents: ['greet#book', ask], slots: {}}", Expected(("ask", "book", "greet"), ())),
        ("{intents: []}", Expected(())),
        (
            "{intents: [book], slots: {city: '${town}', stars: null}}",
            Expected(("book",), (Slot("city", "Lyon"), Slot("stars"))),
        ),
        (
            "{intents: [book], slots: [{concept: city, value: Lyon}, {concept: city, value: Nice}, {concept: city}]}",
            Expected(("book",), (Slot("city", "Lyon"), Slot("city", "Nice"), Slot("city"))),
        ),
    ],
)
def test_what_is_expected(tmp_path: Path, written: str, expected: Expected) -> None:
    (trial,) = one(tmp_path, written).trials
    assert (trial.id, trial.kind, trial.expects) == ("hotel", TrialKind.UNDERSTAND, expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trials:\n  - {kind: understand, query: hotel}\n", ["5: the key 'expects' is missing"]),
        ("trials:\n  - {kind: understand, expects: {intents: [a]}}\n", ["5: the key 'query' is missing"]),
        (
            "trials:\n  - {query: hotel, expects: {intents: [a]}}\n",
            ["5: the key 'expects' has no meaning in a trial of kind query"],
        ),
        (
            "trials:\n  - {kind: wake, expects: {intents: [a]}}\n",
            ["5: the key 'expects' has no meaning in a trial of kind wake"],
        ),
        (
            "trials:\n  - {kind: understand, query: hotel, expects: {intents: [a]}, phrase: hello}\n",
            ["5: the key 'phrase' has no meaning in a trial of kind understand"],
        ),
        (
            TRIALS.replace("}}", "}, effect: {wanted: it, question: so}}"),
            ["5: the key 'effect' has no meaning in a trial of kind understand"],
        ),
        (
            "trials:\n  - {query: hotel, reprompt: {until: understood}}\n",
            ["5: nothing is expected of the trial 'hotel' (kind query), so it cannot be understood"],
        ),
        (
            "defaults: {reprompt: {until: understood}}\n"
            + TRIALS
            + "  - {query: bye}\n  - {id: b, query: bye, reprompt: {until: recognised}}\n",
            ["4: nothing is expected of the trial 'bye' (kind query), so it cannot be understood"],
        ),
        ("trials:\n  - {query: hotel, reprompt: {until: heard}}\n", ["5: 'heard' is not a word for this"]),
        (
            "defaults: {evidence: none}\n" + TRIALS,
            ["6: with evidence none (from the defaults) nobody says what the device understood"],
        ),
        (
            "trials:\n  - kind: understand\n    query: hotel\n    expects: {intents: [a, b#a]}\n",
            ["7: the intent 'a' is there twice"],
        ),
        (
            "trials:\n  - kind: understand\n    query: hotel\n    expects:\n      intents: '#'\n",
            ["8: '#' names no intent"],
        ),
        (
            "trials:\n  - kind: understand\n    query: hotel\n    expects: {intents: [a], slots: {city: ['x']}}\n",
            ["7: expected text, found a list"],
        ),
        (
            "trials:\n  - kind: understand\n    query: hotel\n    expects: {intents: [a], slot: {city: x}}\n",
            ["7: there is no key 'slot' here"],
        ),
        (
            "trials:\n  - kind: understand\n    query: hotel\n    expects: {slots: {}}\n",
            ["7: the key 'intents' is missing"],
        ),
        (
            "trials:\n  - kind: understand\n    query: hotel\n    expects: {intents: [a], slots: {city: '${land}'}}\n",
            ["7: no variable is called 'land'"],
        ),
    ],
)
def test_what_does_not_belong_together_is_refused_with_its_line(tmp_path: Path, text: str, said: list[str]) -> None:
    assert problems(tmp_path, text) == said


def test_the_matrix_multiplies_it_as_a_query(tmp_path: Path) -> None:
    matrix = "matrix: {axes: {gap_ms: [100, 200], level_dbfs: [-26, -36]}}\n"
    scenario = read(tmp_path, TRIALS.replace("hotel,", "hotel, repeat: 3,") + matrix)
    assert planned_of(scenario.trials[0], scenario.matrix) == 12
    assert len(plan(scenario, mute())) == 12


def mute(*, injects: bool = False, microphone: bool = False, responds: bool = True, told: bool = True) -> Bench:
    """A bench whose device reports intents, and no transcripts."""
    kinds = frozenset({ObservationKind.INTENT} if told else ())
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


def planned(scenario: Scenario, on: Bench) -> Trial:
    check_together(scenario, on)
    (trial,) = plan(scenario, on)
    return trial


def test_the_trial_that_is_planned(tmp_path: Path) -> None:
    trial = planned(one(tmp_path, "{intents: [book]}"), mute(microphone=True))
    assert (trial.kind, trial.expects, trial.evidence) == (TrialKind.UNDERSTAND, Expected(("book",)), Evidence.DEVICE)
    assert (trial.loudspeaker, trial.responds, trial.until_understood) == ("speaker", True, True)
    assert trial.recipe.wake_phrase is not None
    words = planned(one(tmp_path, "{intents: [book]}", ", reprompt: {until: recognised}, evidence: operator"), mute())
    assert (words.until_understood, words.reprompt.until) == (False, Until.RECOGNISED)


def test_a_response_is_waited_for_where_one_can_be_heard(tmp_path: Path) -> None:
    scenario = one(tmp_path, "{intents: [book]}")
    assert not planned(scenario, mute(microphone=True, responds=False)).responds, "it has no voice"
    assert not planned(scenario, mute()).responds, "no microphone hears it"


def test_sound_goes_over_the_wire_where_it_can(tmp_path: Path) -> None:
    scenario = one(tmp_path, "{intents: [book]}")
    wired = planned(scenario, mute(injects=True))
    assert (wired.loudspeaker, wired.players, wired.recipe.rate_hz) == ("dut_link", ("dut_link",), 16000)
    through_air = planned(scenario, replace(mute(injects=True), loudspeakers=bench().loudspeakers))
    assert through_air.loudspeaker == "dut_link", "auto prefers the wire"
    asked = one(tmp_path, "{intents: [book]}", ", route: loudspeaker")
    assert planned(asked, replace(mute(injects=True), loudspeakers=bench().loudspeakers)).loudspeaker == "speaker"
    with pytest.raises(UnmetNeed, match="does not offer 'loudspeaker'"):
        check_together(asked, mute(injects=True))
    with pytest.raises(UnmetNeed, match=r"injects sound into 'dut', whose connection \(mqtt\) carries none") as caught:
        check_together(one(tmp_path, "{intents: [book]}", ", route: injection"), mute())
    assert caught.value.place is not None
    assert caught.value.place.line == 5


def test_a_position_does_not_multiply_what_is_injected(tmp_path: Path) -> None:
    scenario = read(tmp_path, TRIALS + "matrix: {axes: {position: [front, back]}}\n")
    speakers = bench().loudspeakers
    assert len(plan(scenario, replace(mute(injects=True), loudspeakers=speakers))) == 1
    assert [trial.loudspeaker for trial in plan(scenario, mute())] == ["speaker", "speaker_back"]


@pytest.mark.parametrize(
    ("more", "told", "said"),
    [
        ("", False, "nobody can say what 'dut' understands in 'hotel': it reports no intents"),
        (", evidence: device", False, "the trial 'hotel' asks what 'dut' understood, which reports no intents"),
        (", evidence: operator", True, "asks the operator what 'dut' understood, and there is none"),
        (", reprompt: {until: recognised}", False, "asks what 'dut' understood, which reports no intents"),
        (", evidence: device, reprompt: {until: recognised}", True, "and 'dut' reports no transcript"),
    ],
)
def test_that_somebody_can_tell_is_known_before_anything_is_played(
    tmp_path: Path, more: str, told: bool, said: str
) -> None:
    with pytest.raises(UnmetNeed) as caught:
        check_together(one(tmp_path, "{intents: [book]}", more), mute(told=told))
    assert said in caught.value.what
    assert caught.value.place is not None
    assert (Path(caught.value.place.file).name, caught.value.place.line) == ("frames.yaml", 5)


def test_an_operator_may_say_it(tmp_path: Path) -> None:
    asked = replace(mute(told=False), operator=OperatorPresence.AUTO)
    assert planned(one(tmp_path, "{intents: [book]}"), asked).evidence is Evidence.OPERATOR


def test_intents_as_a_need(tmp_path: Path) -> None:
    scenario = read(tmp_path, "needs: [intents]\ntrials: [{query: hotel}]\n")
    check_together(scenario, mute())
    assert scenario.needs == (Need.INTENTS,)
    with pytest.raises(UnmetNeed, match="does not offer 'intents'"):
        check_together(scenario, mute(told=False))
