"""Effects in the lab: fine words and nothing done are wrong, odd words and the right thing done are right."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.cli.effects import effects_of
from harness.lab.assistant.device import ODD_ANSWER
from harness.model.bench import OperatorPresence
from harness.model.effect import EffectOutcome, EffectSource
from harness.model.feed import AnswerEffect, Logged
from harness.model.observation import ResponseText, StateTold
from harness.model.record import EffectAnswered, Observed, OperatorAsked, Question
from harness.session.engine.launch import start_engine
from harness.session.engine.prepare import prepare
from tests.conformance.engine_runs import Watcher, rows, wait_for
from tests.conformance.lab_runs import LabRuns, lab_of_its_own

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

FILES = Path(__file__).parent / "lab"
BENCH = Path(__file__).parents[2] / "scenarios" / "benches" / "virtual_lab.yaml"
PATIENCE_S = 90.0


def asked(watcher: Watcher) -> list[OperatorAsked]:
    log_rows = [message.entry.record for _, message in list(watcher.arrivals) if isinstance(message, Logged)]
    return [row for row in log_rows if isinstance(row, OperatorAsked) and row.about is Question.EFFECT]


def test_effect_outcome_overrules_the_spoken_answer(tmp_path: Path) -> None:
    with lab_of_its_own(FILES / "effects.settings.yaml") as lab:
        runs = LabRuns(tmp_path, lab)
        try:
            folder = prepare(FILES / "effects.yaml", BENCH, tmp_path / "sessions", operator=OperatorPresence.PRESENT)
            runs.folders.append(folder)
            watcher = Watcher(start_engine(folder))
            wait_for(lambda: bool(asked(watcher)), PATIENCE_S, "the question of the effect")
            (question,) = asked(watcher)
            answer = AnswerEffect("a1", "ann", question.trial_id, question.attempt, EffectOutcome.WRONG, "no timer")
            watcher.client.send(answer)
            watcher.goodbye(PATIENCE_S)
        finally:
            runs.close()
    log_rows = [entry.record for entry in rows(folder)]
    observations = [row.observation for row in log_rows if isinstance(row, Observed)]
    texts = [observation.text for observation in observations if isinstance(observation, ResponseText)]
    assert "Timer set for 10 minutes." in texts
    assert ODD_ANSWER in texts
    assert [
        (observation.name, observation.value) for observation in observations if isinstance(observation, StateTold)
    ] == [("shopping_list", "milk")]
    assert [row for row in log_rows if isinstance(row, EffectAnswered)] == [
        EffectAnswered("timer.r1", 1, question.attempt, EffectOutcome.WRONG, "ann", "no timer")
    ]
    assert (question.trial_id, question.question) == ("timer.r1", "does it run?")
    assert len(asked(watcher)) == 1  # nobody is asked what the device has told

    timer, milk = (effect.evidence for effect in effects_of(folder).items)
    assert (timer.word, timer.source) == (EffectOutcome.WRONG, EffectSource.OPERATOR)
    assert "the device says so too" in timer.said
    assert (milk.word, milk.source) == (EffectOutcome.RIGHT, EffectSource.DEVICE)

    overruled = CliRunner().invoke(
        group, ["effects", str(folder), "--answer", "timer.r1", "right", "--observer", "bob"]
    )
    assert overruled.exit_code == 0, overruled.output
    assert "It overrules ann, who answered wrong at " in overruled.output
    assert effects_of(folder).items[0].evidence.word is EffectOutcome.RIGHT
