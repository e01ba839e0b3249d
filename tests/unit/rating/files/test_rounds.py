"""Round, training, gold and rater-key files become what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.validate import command as validate
from harness.model.errors import InputError, InputProblems
from harness.model.judgment import (
    Category,
    Exercise,
    GoldItem,
    ItemFilter,
    ProposalRule,
    ProposalShown,
    RaterAction,
    RaterKeys,
    RatingRound,
    StopRule,
    TranscriptPolicy,
)
from harness.rating.exercises import BUILT_IN_EXERCISES
from harness.rating.files.rounds import NAMED_KEYS, load_gold, load_rater_keys, load_training, read_round

TRAINING = """
training: own
exercises:
  - id: timer
    query: set a timer for ten minutes
    response: done
    category: correct
    accept: [inferrable]
    why: it runs
    effect: a timer of ten minutes runs
    core_capability: true
"""
GOLD = """
gold: known
responses:
  - {session: s1, trial: moons-kitchen-1, category: correct, accept: [findable], why: both are named}
  - {session: s2, trial: moons-kitchen-1, category: wrong}
"""
WHOLE = """
round: spring
title: Spring round
sessions: [runs/a*, ../other]
seed: 7
items:
  devices: [kitchen]
  classes: [facts, timers]
  queries: [moons]
  trials: [moons-kitchen-1]
  conditions: {noise: [quiet, pink 10 dB], voice: [ann]}
  limit: 300
transcript: never
raters: [ann, ben, cem]
raters_per_item: 2
training: files/training.yaml
pass_share: 0.5
gold: files/gold.yaml
break_after_min: 40
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a round, with two sessions of three below it, one beside it, and a folder that is none."""
    root = tmp_path / "round"
    for name in ("runs/a1", "runs/a2", "runs/b1", "runs/apart", "files", "../other"):
        (root / name).mkdir(parents=True)
    for name in ("runs/a1", "runs/a2", "runs/b1", "../other"):
        (root / name / "log.sqlite").touch()
    (root / "files" / "training.yaml").write_text(TRAINING)
    (root / "files" / "gold.yaml").write_text(GOLD)
    return root


def written(folder: Path, text: str) -> Path:
    path = folder / "round.yaml"
    path.write_text(text)
    return path


def test_a_round_says_all_that_it_can(folder: Path) -> None:
    path = written(folder, WHOLE)
    read = read_round(path)
    assert read.exercises != BUILT_IN_EXERCISES
    assert read == RatingRound(
        id="spring",
        title="Spring round",
        path=str(path),
        sessions=tuple(str(one.resolve()) for one in (folder / "runs/a1", folder / "runs/a2", folder / "../other")),
        seed=7,
        items=ItemFilter(
            ("kitchen",),
            ("facts", "timers"),
            ("moons",),
            ("moons-kitchen-1",),
            (("noise", "quiet"), ("noise", "pink 10 dB"), ("voice", "ann")),
            300,
        ),
        transcript=TranscriptPolicy.NEVER,
        raters=("ann", "ben", "cem"),
        raters_per_item=2,
        exercises=load_training(folder / "files" / "training.yaml"),
        pass_share=0.5,
        gold=load_gold(folder / "files" / "gold.yaml"),
        break_after_min=40,
    )


def test_what_is_not_said_is_as_by_default(folder: Path) -> None:
    read = read_round(written(folder, "round: spring\nsessions: [runs/a1]\n"))
    default = RatingRound()
    assert read.exercises == BUILT_IN_EXERCISES
    assert (read.title, len(read.sessions)) == ("spring", 1)
    assert (read.items, read.transcript, read.pass_share, read.break_after_min) == (
        default.items,
        default.transcript,
        default.pass_share,
        default.break_after_min,
    )
    assert read_round(written(folder, "round: spring\nsessions: [runs/a1]\ntraining: none\n")).exercises == ()


def test_a_session_that_two_patterns_mean_is_taken_once(folder: Path) -> None:
    assert len(read_round(written(folder, "round: r\nsessions: [runs/*, runs/a1]\n")).sessions) == 3


def test_proposals_name_their_sources(folder: Path) -> None:
    head = "round: r\nsessions: [runs/a1]\n"
    sources = tuple(str((folder / one).resolve()) for one in ("runs/a2", "../other"))
    found = read_round(written(folder, head + "proposals: {from: [runs/a2, ../other, runs/a2]}\n"))
    assert found.proposals == ProposalRule(sources, "tfidf", ProposalShown.AFTER)
    found = read_round(written(folder, head + "proposals: {from: [../other], classifier: own, show: before}\n"))
    assert found.proposals == ProposalRule(sources[1:], "own", ProposalShown.BEFORE)


def test_proposals_take_settings_of_their_classifier_as_texts(folder: Path) -> None:
    lines = "proposals: {from: [../other], settings: {strength: 0.5, words: 3, balanced: yes}}\n"
    found = read_round(written(folder, "round: r\nsessions: [runs/a1]\n" + lines))
    assert found.proposals is not None
    assert found.proposals.settings == (("strength", "0.5"), ("words", "3"), ("balanced", "yes"))


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        ("  from:\n    - runs/b1\n    - runs/a*\n", 6, "'runs/a*' means 'a1', which this round judges"),
        ("  from:\n    - runs/b1\n    - runs/apart\n", 6, "'runs/apart' means no session folder"),
        ("  from: [runs/b1]\n  show: later\n", 5, "later"),
        ("  from: []\n", 4, ""),
        ("  show: after\n", 4, "from"),
        ("  from: [runs/b1]\n  clasifier: tfidf\n", 5, "clasifier"),
        ("  from: [runs/b1]\n  settings:\n    words: 2\n    strenght: 3\n", 7, "tfidf has no setting 'strenght'"),
        ("  from: [runs/b1]\n  settings: {strength: 1,\n    words: 9}\n", 6, "words cannot be '9': it is at most 5"),
        ("  from: [runs/b1]\n  settings:\n    words: [2]\n", 6, "a setting is a text or a number"),
        ("  from: [runs/b1]\n  settings: {balanced: true}\n", 5, "a setting is a text or a number"),
        ("  from: [runs/b1]\n  classifier: own\n  settings: {words: 2}\n", 5, "no intent classifier is called 'own'"),
    ],
)
def test_what_is_wrong_with_proposals_is_told_with_its_line(folder: Path, lines: str, line: int, what: str) -> None:
    with pytest.raises(InputProblems) as found:
        read_round(written(folder, f"round: r\nsessions: [runs/a1]\nproposals:\n{lines}"))
    (problem,) = found.value.problems
    assert problem.place is not None
    assert (Path(problem.place.file).name, problem.place.line) == ("round.yaml", line)
    assert what in problem.what


def test_what_is_wrong_with_another_file_is_told_there(folder: Path) -> None:
    (folder / "files" / "gold.yaml").write_text(
        "gold: known\nresponses:\n  - {session: s1, trial: t, category: best}\n"
    )
    (folder / "files" / "training.yaml").write_text("gold: known\n")
    with pytest.raises(InputProblems) as found:
        read_round(written(folder, WHOLE))
    places = [(Path(one.place.file).name, one.place.line) for one in found.value.problems if one.place]
    assert places == [("gold.yaml", 3), ("training.yaml", 1)]


def test_exercises_and_known_answers(folder: Path) -> None:
    assert load_training(folder / "files" / "training.yaml") == (
        Exercise(
            "timer",
            "set a timer for ten minutes",
            "done",
            Category.CORRECT,
            "it runs",
            (Category.INFERRABLE,),
            "a timer of ten minutes runs",
            True,
        ),
    )
    assert load_gold(folder / "files" / "gold.yaml") == (
        GoldItem("s1", "moons-kitchen-1", Category.CORRECT, (Category.FINDABLE,), "both are named"),
        GoldItem("s2", "moons-kitchen-1", Category.WRONG),
    )


def test_keys_that_are_given_replace_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text("rater_keys: mine\ncorrect: 2\npartially_correct: 1\nplay: enter\nskip: '?'\naid: f1\nundo: Ü\n")
    keys, default = load_rater_keys(path), RaterKeys()
    assert (keys.category("2"), keys.category("1")) == (Category.CORRECT, Category.PARTIALLY_CORRECT)
    assert keys.action("enter") is RaterAction.PLAY
    assert (keys.action("?"), keys.action("f1"), keys.action("Ü")) == (
        RaterAction.SKIP,
        RaterAction.AID,
        RaterAction.UNDO,
    )
    assert keys.action("x") is None
    assert keys.categories[Category.WRONG] == default.categories[Category.WRONG]
    assert keys.actions[RaterAction.HOLD] == default.actions[RaterAction.HOLD]


@pytest.mark.parametrize("key", [*NAMED_KEYS, "é", '"', "5"])
def test_every_key_of_the_keyboard_may_be_named(tmp_path: Path, key: str) -> None:
    path = tmp_path / "keys.yaml"
    quoted = "'\"'" if key == '"' else key
    path.write_text(f"rater_keys: mine\nwrong: {quoted}\n")
    if key in ("5", "space"):  # theirs by default
        with pytest.raises(InputError, match="another key in this file as well"):
            load_rater_keys(path)
    else:
        assert load_rater_keys(path).category(key) is Category.WRONG


def test_validate_names_what_they_hold(folder: Path, tmp_path: Path) -> None:
    written(folder, WHOLE)
    (folder / "keys.yaml").write_text("rater_keys: mine\nplay: enter\n")
    result = CliRunner().invoke(validate, [str(folder)])
    assert result.exit_code == 0, result.output
    told = {line.split("/")[-1] for line in result.output.splitlines()}
    assert told == {
        "round.yaml: round spring: 3 sessions, 3 named raters",
        "training.yaml: training of 1 exercise",
        "gold.yaml: gold of 2 known answers",
        "keys.yaml: rater keys as they are to be",
    }


def test_a_file_of_keys_from_before_an_action_was_there_still_opens(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text("rater_keys: mine\nplay_slower: left\nplay_query: right\nwrong: e\n")
    keys = load_rater_keys(path)
    assert (keys.actions[RaterAction.PLAY_SLOWER], keys.category("e")) == ("left", Category.WRONG)
    assert {keys.actions[one] for one in (RaterAction.EARLIER, RaterAction.LATER, RaterAction.FIND)} == {
        "f12",
        "f11",
        "f10",
    }


def test_rules_that_hold_raters_back(folder: Path) -> None:
    plain = "round: r\nsessions: [runs/a1]\ntraining: none\n"
    gold = f"{plain}gold: files/gold.yaml\n"
    assert not read_round(written(folder, plain)).must_hear
    assert read_round(written(folder, f"{plain}must_hear: true\n")).must_hear
    assert read_round(written(folder, f"{gold}stop: {{after: 2, below: 0.5}}\n")).stop == StopRule(2, 0.5)
    for text, told in (
        (f"{plain}stop: {{below: 0.5}}\n", "no known answers"),
        (f"{gold}stop: {{after: 3, below: 0.5}}\n", "there are 2"),
        (f"{gold}stop: {{after: 2}}\n", "below"),
    ):
        with pytest.raises(InputProblems) as caught:
            read_round(written(folder, text))
        assert told in str(caught.value.problems[0])
