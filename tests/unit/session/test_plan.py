"""From scenario and bench to trials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.bench import ObservationKind
from harness.model.errors import InputError, UnmetNeed
from harness.model.scenario import Axis, CloseDialogue, Defaults, Evidence, Matrix, Order, RepromptRule, TrialTemplate
from harness.model.stimulus import NoiseKind, NoiseSpec, SpokenText, VoiceSpec
from harness.session.plan import plan
from tests.unit.session.material import PROFILE, bench, scenario

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


def test_templates_times_cells_less_exclusions_times_repeats() -> None:
    made = plan(
        scenario(2, trials=(TrialTemplate("a", "q0", repeat=3), TrialTemplate("b", "q1")), matrix=MATRIX), bench()
    )
    assert len(made) == (3 + 1) * (8 - 2)
    assert made[0].id == "a.v-ann.l-26.n-quiet.r1"
    assert len({trial.id for trial in made}) == len(made)
    assert [trial.number for trial in made] == list(range(1, len(made) + 1))
    assert not [t for t in made if dict(t.conditions)["voice"] == "bob" and t.recipe.noise]
    pink = next(trial for trial in made if trial.recipe.noise)
    assert pink.id == "a.v-ann.l-26.n-pink_10_dB.r1"


def test_a_seed_decides_the_order_and_nothing_else() -> None:
    shuffled = scenario(4, matrix=replace(MATRIX, order=Order.SHUFFLED))
    one, same, other = plan(shuffled, bench(), 1), plan(shuffled, bench(), 1), plan(shuffled, bench(), 2)
    assert one == same
    assert [trial.id for trial in one] != [trial.id for trial in other]
    assert {trial.id for trial in one} == {trial.id for trial in plan(scenario(4, matrix=MATRIX), bench())}


def test_labels_that_look_alike_get_ids_of_their_own() -> None:
    alike = Matrix((Axis("voice", (ANN, BOB), ("ann/1", "ann 1")),))
    assert [trial.id for trial in plan(scenario(1, matrix=alike), bench())] == ["t00.v-ann_1.r1", "t00.v-ann_1.r1~2"]


def test_the_voice_of_the_matrix_goes_before_the_trials_the_querys_and_the_defaults() -> None:
    query = replace(scenario(1).queries[0], voice=VoiceSpec(name="query"))
    template = TrialTemplate("a", "q0", voice=VoiceSpec(name="trial"))
    defaults = Defaults(voice=VoiceSpec(name="defaults"))
    plain = scenario(1, queries=(query,), trials=(template,), defaults=defaults)
    matrix = Matrix((Axis("voice", (ANN,), ("ann",)),))
    names = []
    for each in (
        replace(plain, matrix=matrix),
        plain,
        replace(plain, trials=(TrialTemplate("a", "q0"),)),
        replace(plain, trials=(TrialTemplate("a", "q0"),), queries=scenario(1).queries),
    ):
        names.append(plan(each, bench())[0].recipe.voice.name)
    assert names == ["ann", "trial", "query", "defaults"]


def test_what_the_profile_adds() -> None:
    profile = replace(PROFILE, language="de-DE", context_wait_s=30.0, close_dialogue_say="stop")
    (made,) = plan(scenario(1), bench(profile))
    assert made.recipe.voice.language == made.recognised.language == "de-DE"
    assert made.recognised.name == "spoken, de-DE"
    assert made.recipe.wake_phrase == SpokenText("alexa")
    assert made.reprompt.context_wait_s == 30.0
    assert made.close_dialogue == CloseDialogue(say="stop")
    assert made.evidence is Evidence.DEVICE
    assert (made.microphone, made.connection) == ("mic", "dut_link")
    longer = scenario(1, defaults=Defaults(reprompt=RepromptRule(context_wait_s=60.0)))
    assert plan(longer, bench(profile))[0].reprompt.context_wait_s == 60.0
    unwoken = scenario(1, trials=(TrialTemplate("a", "q0", wake=False),))
    assert plan(unwoken, bench())[0].recipe.wake_phrase is None


@pytest.mark.parametrize(
    ("reports", "connected", "evidence"),
    [
        ({ObservationKind.TRANSCRIPT}, True, Evidence.DEVICE),
        ({ObservationKind.TRANSCRIPT}, False, Evidence.OPERATOR),
        ({ObservationKind.WAKE}, True, Evidence.OPERATOR),
    ],
)
def test_evidence(reports: set[ObservationKind], connected: bool, evidence: Evidence) -> None:
    where = bench(replace(PROFILE, reports=frozenset(reports)), connected)
    assert plan(scenario(1), where)[0].evidence is evidence
    none = scenario(1, trials=(TrialTemplate("a", "q0", evidence=Evidence.NONE),))
    assert plan(none, where)[0].evidence is Evidence.NONE


def test_positions_choose_a_loudspeaker() -> None:
    made = plan(scenario(1, matrix=Matrix((Axis("position", ("back", "front"), ("back", "front")),))), bench())
    assert [trial.loudspeaker for trial in made] == ["speaker_back", "speaker"]
    with pytest.raises(UnmetNeed, match="roof"):
        plan(scenario(1, matrix=Matrix((Axis("position", ("roof",), ("roof",)),))), bench())


def test_wrong_names_are_refused_with_the_right_ones() -> None:
    with pytest.raises(InputError, match="There are: q0"):
        plan(scenario(1, trials=(TrialTemplate("a", "q9"),)), bench())
    with pytest.raises(InputError, match="There are: dut"):
        plan(scenario(1, trials=(TrialTemplate("a", "q0", device="nobody"),)), bench())
