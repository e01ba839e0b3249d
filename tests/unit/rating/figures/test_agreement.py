"""Figures of raters: who counts where, what is disputed, and which category a response has in the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.judgment import Category, Exercise, GoldItem, Judgment, JudgmentStatus, SubFlag
from harness.model.trial import MemoryPart, Outcome, Recognition
from harness.rating.figures.agreement import CATEGORIES, AgreementFigures, RaterFigures, agreement_figures
from harness.rating.figures.judged_responses import (
    Basis,
    QueryOutcome,
    judged_responses_of,
    rated_trials_of,
    read_sessions,
    select_rows,
)
from harness.statistics.intervals import Share
from tests.judged_sessions import WALL_S, answers, clips_of, give, judged, store_session
from tests.unit.rating.figures.rated_rows import Case, progress_of, rated

C = Category


def figures(*folders: Path, gold: tuple[GoldItem, ...] = (), exercises: tuple[Exercise, ...] = ()) -> AgreementFigures:
    return agreement_figures(read_sessions(folders), gold, exercises)


def rater(report: AgreementFigures, name: str) -> RaterFigures:
    (entry,) = [entry for entry in report.raters if entry.rater == name]
    return entry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return store_session(tmp_path / "s1", answers(6))


def labelled(folder: Path, **labels: str) -> list[Judgment]:
    """Judgments by rater: a digit is a category, a point none; one sign for each response."""
    clips = clips_of(folder)
    return [
        judged(trial, clip, name, CATEGORIES[int(sign)], attempt=attempt, given_wall_s=WALL_S + number)
        for name, signs in labels.items()
        for number, ((trial, (attempt, clip)), sign) in enumerate(zip(clips.items(), signs, strict=False))
        if sign != "."
    ]


def test_choice_made_before_seeing_the_proposal_counts(folder: Path) -> None:
    first, *rest = labelled(folder, ann="000000", bob="000000")
    give(folder, [replace(first, unaided=CATEGORIES[1]), *rest])
    report = figures(folder)
    assert report.agreement.raw.value == pytest.approx(5 / 6)
    item = report.items[0]
    assert (item.majority, item.consensus, item.consensus_raters) == (C.CORRECT, C.CORRECT, 2), "by the final labels"


def test_labels_give_agreement_figures_and_disputed_items(folder: Path) -> None:
    give(folder, labelled(folder, ann="001122", bob="001123", cat="00112."))
    report = figures(folder)
    assert (report.responses, len(report.items), report.names) == (6, 6, ("ann", "bob", "cat"))
    assert report.agreement.raw.value == pytest.approx(5 / 6)
    (disputed,) = report.disputed
    assert (disputed.trial_id, disputed.majority, disputed.consensus) == ("q6-kitchen", None, None)
    assert disputed.labels == (("ann", CATEGORIES[2]), ("bob", CATEGORIES[3]))
    assert report.items[0].consensus is C.CORRECT
    assert rater(report, "ann").leave_one_out == Share(5, 5)


def test_agreement_respects_changed_withdrawn_and_settled_judgments(folder: Path) -> None:
    clips = clips_of(folder)
    rows = labelled(folder, ann="0", bob="1")
    (_, clip) = clips["q1-kitchen"]
    changed = judged("q1-kitchen", clip, "ann", C.WRONG, id="a2", replaces=rows[0].id)
    back = judged("q2-kitchen", clips["q2-kitchen"][1], "ann", C.WRONG, id="a3")
    withdrawn = judged(
        "q2-kitchen", clips["q2-kitchen"][1], "ann", status=JudgmentStatus.WITHDRAWN, id="a4", replaces="a3"
    )
    aside = [
        judged(f"q{number}-kitchen", clips[f"q{number}-kitchen"][1], "ann", status=status, id=status)
        for number, status in ((3, JudgmentStatus.SKIPPED), (4, JudgmentStatus.FLAGGED), (5, JudgmentStatus.HELD))
    ]
    old = judged("q6-kitchen", "another clip", "ann", id="old")
    settled = judged("q1-kitchen", clip, "eve", C.WRONG, id="e1", adjudicates=("a2", rows[1].id))
    give(folder, [*rows, changed, back, withdrawn, *aside, old, settled])
    report = figures(folder)
    ann = rater(report, "ann")
    assert (ann.submitted, ann.skipped, ann.flagged, ann.held, ann.withdrawn, ann.outdated) == (1, 1, 1, 1, 1, 1)
    assert [entry.rater for entry in report.raters] == ["ann", "bob"]
    (item,) = report.items
    assert (item.settled, item.differing, item.disputed, report.settled) == (C.WRONG, True, False, 1)


def test_known_answers_are_reported_apart(folder: Path) -> None:
    clips = clips_of(folder)
    exercises = (
        Exercise("moons", "q", "r", C.CORRECT, "why", accept=(C.FINDABLE,)),
        Exercise("fat", "q", "r", C.WRONG, "why"),
    )
    training = [
        judged("exercise:moons", "x", "ann", C.FINDABLE, id="x1"),
        judged("exercise:fat", "y", "ann", C.CORRECT, id="x2"),
        judged("exercise:fat", "y", "ann", C.WRONG, id="x3", replaces="x2"),
        judged("exercise:unknown", "y", "ann", C.WRONG, id="x4"),
    ]
    give(folder, [*training, *labelled(folder, ann="00112", bob="01112")])
    gold = (
        GoldItem("s1", "q1-kitchen", C.CORRECT),
        GoldItem("s1", "q2-kitchen", C.WRONG, accept=(C.PARTIALLY_CORRECT,)),
        GoldItem("another session", "q3-kitchen", C.WRONG),
    )
    report = figures(folder, gold=gold, exercises=exercises)
    assert clips
    assert rater(report, "ann").gold == Share(1, 2)
    assert rater(report, "bob").gold == Share(2, 2)
    assert rater(report, "ann").exercises == Share(1, 2)
    assert rater(report, "ann").withdrawn == rater(report, "ann").outdated == 0
    assert report.gold_items == 2
    assert (report.agreement.items, report.agreement.raw.value) == (3, 1.0)
    # A gold item on which raters differ is worth a look all the same.
    assert [item.trial_id for item in report.disputed] == ["q2-kitchen"]
    assert report.disputed[0].gold is C.WRONG


def test_report_shows_agreement_and_accuracy_on_known_answers(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(10))
    give(folder, labelled(folder, ann="0011223344", bob="0011229556", cat="0210827756"))
    trials = list(clips_of(folder))
    gold_answers = {0: "0", 1: "0", 2: "2", 3: "1"}
    gold = tuple(GoldItem("s1", trials[index], CATEGORIES[int(sign)]) for index, sign in gold_answers.items())
    report = figures(folder, gold=gold)
    votes = {count: (group.items, group.right) for count, group in report.by_votes.items()}
    assert votes == {(3, 3): (1, Share(1, 2)), (2, 3): (3, Share(2, 2))}
    by_trial = {item.trial_id: item for item in report.items}
    two = by_trial[trials[4]]
    assert (two.consensus, two.votes, report.right(two)) == (CATEGORIES[2], (2, 3), Share(2, 2))
    assert report.right(by_trial[trials[5]]) == Share(1, 2)
    differ = by_trial[trials[6]]
    assert (differ.consensus, differ.votes, differ.probability, report.right(differ)) == (None, (0, 3), None, Share())
    assert all(by_trial[trials[index]].consensus is None for index in gold_answers), "gold items are chosen, not drawn"
    order = [item.review_order for item in report.disputed]
    assert order == sorted(order)
    assert [item.trial_id for item in report.disputed][:2] == [trials[6], trials[7]], "on which all differ"


def test_two_raters_who_agree_are_never_left_open(folder: Path) -> None:
    # However often they differ elsewhere.
    give(folder, labelled(folder, ann="001234", bob="005678", cat=".19999"))
    report = figures(folder)
    assert [item.consensus for item in report.items] == [C.CORRECT, C.CORRECT, None, None, None, None]
    assert rater(report, "cat").leave_one_out == Share(0, 1)
    assert [item.votes for item in report.items[:2]] == [(2, 2), (2, 3)]


def test_rater_pace_and_listening_are_reported(folder: Path) -> None:
    rows = labelled(folder, ann="0000", bob="0")
    times = (0.5, 2.0, 4.0, 6.0)
    heard = (400, 960, 3000, None)
    rows[:4] = [
        replace(row, time_to_answer_s=time, heard_ms=ms, transcript_shown=time > 3)
        for row, time, ms in zip(rows[:4], times, heard, strict=True)
    ]
    give(folder, rows)
    ann, bob = figures(folder).raters
    assert (ann.too_fast, ann.heard_whole, ann.transcript_shown) == (Share(1, 4), Share(2, 3), Share(2, 4))
    assert ann.quartiles_s == (1.625, 3.0, 4.5)
    assert ann.per_hour == pytest.approx(4 * 3600 / 12.5)
    assert (bob.times_s, bob.quartiles_s, bob.per_hour, bob.heard_whole.value, bob.gold.value) == ((), *[None] * 4)


def test_a_share_of_transcripts_read_leaves_out_judgments_of_which_it_is_unknown(folder: Path) -> None:
    rows = labelled(folder, ann="0000", bob="0")
    shown = (True, False, None, None)
    rows = [replace(row, transcript_shown=was_shown) for row, was_shown in zip(rows, (*shown, None), strict=True)]
    give(folder, rows)
    ann, bob = figures(folder).raters
    assert (ann.transcript_shown, bob.transcript_shown.value) == (Share(1, 2), None)


def test_the_same_name_in_several_sessions_is_one_rater(tmp_path: Path) -> None:
    folders = []
    for session in ("s1", "s2"):
        folders.append(store_session(tmp_path / session, answers(3), session))
        give(folders[-1], labelled(folders[-1], ann="000", bob="001"))
    report = figures(*folders)
    assert report.sessions == ("s1", "s2")
    assert [entry.submitted for entry in report.raters] == [6, 6]
    assert [item.session_id for item in report.disputed] == ["s1", "s2"]
    with pytest.raises(InputError, match="the same session"):
        figures(folders[0], folders[0])


def test_a_tiring_rater_is_detected(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(60))
    give(folder, labelled(folder, ann="0" * 60, bob="0" * 60, cat="0" * 60, dan="0" * 30 + "8" * 30))
    dan = rater(figures(folder), "dan")
    assert (dan.first_half, dan.second_half, dan.leave_one_out) == (Share(30, 30), Share(0, 30), Share(30, 60))


def test_sub_flags_are_compared_within_the_same_category(folder: Path) -> None:
    flags = {"ann": ("too_little", "too_much", ""), "bob": ("too_little", "too_little", "")}
    clips = list(clips_of(folder).items())
    rows = [
        judged(trial, clip, name, C.PARTIALLY_CORRECT, sub_flags=(flag,) if flag else ())
        for name, rater_flags in flags.items()
        for (trial, (_, clip)), flag in zip(clips, rater_flags, strict=False)
    ]
    give(folder, [*rows, *labelled(folder, cat="999")])
    counts = dict(figures(folder).sub_flags)
    assert counts[SubFlag.TOO_LITTLE].set_again == Share(2, 3)
    assert (counts[SubFlag.TOO_MUCH].both, counts[SubFlag.TOO_MUCH].one, counts[SubFlag.TOO_MUCH].neither) == (0, 1, 2)
    assert SubFlag.RECOVERABLE not in counts


CORRECT, W, A = Category.CORRECT, Category.WRONG, Category.ADMITTED_DEFEAT
HELD, FLAGGED, SKIPPED = JudgmentStatus.HELD, JudgmentStatus.FLAGGED, JudgmentStatus.SKIPPED


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        (Case("t", outcome=None), QueryOutcome.NOT_PLAYED),
        (Case("t", outcome=Outcome.INTERRUPTED), QueryOutcome.NOT_TESTED),
        (Case("t", outcome=Outcome.SKIPPED), QueryOutcome.NOT_TESTED),
        (Case("t", outcome=Outcome.ABORTED), QueryOutcome.NOT_TESTED),
        (Case("t", outcome=Outcome.NO_WAKE, recognition=Recognition.NO), QueryOutcome.NOT_RECOGNISED),
        (Case("t", outcome=Outcome.MISHEARD, recognition=Recognition.NO), QueryOutcome.NOT_RECOGNISED),
        (Case("t", outcome=Outcome.NO_RESPONSE, recognition=Recognition.UNKNOWN), QueryOutcome.NOT_RECOGNISED),
        (Case("t", outcome=Outcome.NO_RESPONSE, recognition=Recognition.YES), QueryOutcome.SILENT),
        (Case("t", outcome=Outcome.NO_RESPONSE, recognition=Recognition.NOT_ASSESSED), QueryOutcome.SILENT),
        (Case("t", outcome=Outcome.INCONCLUSIVE, recognition=Recognition.UNKNOWN), QueryOutcome.INCONCLUSIVE),
        (Case("t", recorded=False), QueryOutcome.NO_RECORDING),
        (Case("t"), QueryOutcome.UNJUDGED),
        (Case("t", {"ann": SKIPPED}), QueryOutcome.SKIPPED),
        (Case("t", {"ann": HELD, "bo": SKIPPED}), QueryOutcome.HELD),
        (Case("t", {"ann": HELD, "bo": FLAGGED}), QueryOutcome.FLAGGED),
        (Case("t", {"ann": CORRECT, "bo": W}), QueryOutcome.TIED),
        (Case("t", {"ann": CORRECT, "bo": HELD}), QueryOutcome.CATEGORY),
        (Case("t", {"ann": W}, outcome=Outcome.LATE), QueryOutcome.CATEGORY),
    ],
)
def test_every_query_has_exactly_one_outcome(case: Case, outcome: QueryOutcome) -> None:
    (trial,) = rated(case)
    assert trial.outcome is outcome
    assert (trial.category is not None) == (outcome is QueryOutcome.CATEGORY) == (trial.basis is not None)


@pytest.mark.parametrize(
    ("case", "category", "basis"),
    [
        (Case("t", {"ann": W}), W, Basis.ALONE),
        (Case("t", {"ann": W, "bo": W}), W, Basis.UNANIMOUS),
        (Case("t", {"ann": W, "bo": W, "cy": W}, settled=CORRECT), CORRECT, Basis.ADJUDICATED),
        (Case("t", {"ann": CORRECT, "bo": W}, settled=A), A, Basis.ADJUDICATED),
        (Case("t", {"ann": CORRECT, "bo": CORRECT, "cy": W}), CORRECT, Basis.CONSENSUS),
    ],
)
def test_the_category_follows_the_order_of_preference(case: Case, category: Category, basis: Basis) -> None:
    # What else these raters say tells the consensus that they can be trusted.
    others = [
        Case(f"o{n}", {"ann": other_category, "bo": other_category, "cy": other_category})
        for n, other_category in enumerate((CORRECT, W, A) * 3)
    ]
    trial = rated(case, *others)[0]
    assert (trial.category, trial.basis) == (category, basis)


def test_disagreeing_raters_give_no_consensus() -> None:
    trials = rated(Case("t", {"ann": CORRECT, "bo": W}), Case("u", {"ann": CORRECT, "bo": W, "cy": A}))
    assert [trial.outcome for trial in trials] == [QueryOutcome.TIED, QueryOutcome.TIED]
    # However well they agree elsewhere.
    others = [
        Case(f"o{n}", {"ann": category, "bo": category, "cy": category})
        for n, category in enumerate((CORRECT, W, A) * 20)
    ]
    differing = rated(
        Case("t", {"ann": CORRECT, "bo": W, "cy": A}), Case("u", {"ann": CORRECT, "bo": CORRECT, "cy": A}), *others
    )
    assert [trial.outcome for trial in differing[:2]] == [QueryOutcome.TIED, QueryOutcome.CATEGORY]


def test_sub_flag_needs_half_of_the_raters_of_its_category() -> None:
    case = Case("t", {"ann": A, "bo": A, "cy": A})
    rows = case.judgments()
    lacks = ("core_capability_missing",)
    for setters, expected in ((0, False), (1, False), (2, True), (3, True)):
        flagged = [replace(row, sub_flags=lacks) if index < setters else row for index, row in enumerate(rows)]
        progress = progress_of([case])
        (trial,) = rated_trials_of("s", progress.trials, judged_responses_of("s", progress.trials, flagged))
        assert (SubFlag.CORE_CAPABILITY_MISSING in trial.sub_flags) is expected


def test_filtering_by_rater_ignores_others_and_adjudications() -> None:
    case = Case("t", {"ann": CORRECT, "bo": W}, settled=W)
    (trial,) = rated(case, raters=("ann",))
    assert (trial.category, trial.basis) == (CORRECT, Basis.ALONE)


def test_a_round_keeps_its_corrections_and_adjudications() -> None:
    first = replace(Case("t", {"ann": CORRECT, "bo": W}, round="one"), settled=A)
    rows = first.judgments()
    rows[2] = replace(rows[2], round="")
    later = replace(Case("t", {"ann": W}, round="two").judgments()[0], id="later")
    undone = replace(
        rows[0], id="undone", status=JudgmentStatus.WITHDRAWN, category=None, replaces=rows[0].id, round=""
    )
    round_rows = select_rows([*rows, later, undone], round_id="one")
    assert [row.id for row in round_rows] == ["ann:t", "bo:t", "settled:t", "undone"]


def test_memory_probes_and_wake_trials_are_no_queries_to_judge() -> None:
    progress = progress_of([Case("t", {"ann": CORRECT})])
    probe = replace(progress.trials[0], trial=replace(progress.trials[0].trial, memory=MemoryPart()))
    assert rated_trials_of("s", (probe,), ()) == ()
