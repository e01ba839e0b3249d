"""False rejects over voices and talkers, and over recordings that name none."""

from __future__ import annotations

from dataclasses import replace

from harness.model.stimulus import Recording, VoiceSpec
from harness.statistics.intervals import Share, clopper_pearson
from harness.wake.reports.figures_text import wake_summary
from tests.known import known
from tests.unit.wake.wake_rows import rows_of, wake_trial


def test_false_rejects_of_one_voice_are_not_as_many_independent_trials() -> None:
    """One voice is never heard, four always: 36 of 180, and the next voice may do either."""
    names = ("kal", "slt", "rms", "awb", "ana")
    trials = [
        replace(trial, recipe=replace(trial.recipe, voice=VoiceSpec("flite", names[number % 5])))
        for number in range(180)
        for trial in [wake_trial(number)]
    ]
    rows = rows_of(*trials, at_s=50.0)
    for trial in trials:
        rows.play(trial, [] if trial.recipe.voice.name == "kal" else [("kitchen", 1.8)])
    false_rejects = rows.device().false_rejects
    assert (false_rejects.share, false_rejects.voices) == (Share(36, 180), 5)
    assert false_rejects.interval is not None
    assert false_rejects.interval[0] < 0.02
    assert false_rejects.interval[1] > 0.6
    assert known(false_rejects.any_time)[0] <= false_rejects.interval[0]
    assert known(false_rejects.any_time)[1] >= false_rejects.interval[1]
    assert "20.0 % (95 % over 5 voices " in "\n".join(wake_summary(rows.figures))


def test_recordings_without_a_talker_are_one_group() -> None:
    """61 recordings, 3 of them missed: who speaks them is not known, and the text says so."""
    trials = [
        replace(trial, recipe=replace(trial.recipe, query=Recording(f"/said/{number}.wav")))
        for number in range(61)
        for trial in [wake_trial(number)]
    ]
    rows = rows_of(*trials, at_s=50.0)
    for number, trial in enumerate(trials):
        rows.play(trial, [] if number < 3 else [("kitchen", 1.8)])
    false_rejects = rows.device().false_rejects
    assert (false_rejects.share, false_rejects.voices, false_rejects.speakers.shares) == (
        Share(3, 61),
        None,
        (Share(3, 61),),
    )
    assert false_rejects.interval == clopper_pearson(3, 61)
    text = "\n".join(wake_summary(rows.figures))
    assert "3 of 61 = 4.92 % (95 % exact, talkers unknown: 1.03–13.7 %; at any time " in text
    labelled = replace(trials[0], id="named", conditions=(("talker", "ann"),))
    rows = rows_of(*trials, labelled, at_s=50.0)
    for trial in (*trials, labelled):
        rows.play(trial, [("kitchen", 1.8)])
    assert rows.device().false_rejects.speakers.shares == (Share(0, 61), Share(0, 1))
    assert "(95 % over 2 voices, unknown talkers counted as one: 0.00–" in "\n".join(wake_summary(rows.figures))


def test_each_look_has_the_talkers_of_its_time() -> None:
    trials = [wake_trial(number, conditions=(("talker", f"t{number}"),)) for number in range(4)]
    rows = rows_of(*trials, at_s=50.0)
    for trial in trials:
        rows.play(trial, [("kitchen", 1.8)])
        rows.device()
    looks = [look.false_rejects for look in rows.device().looks]
    assert [rejects.speakers.shares for rejects in looks] == [(Share(0, 1),) * count for count in (1, 2, 3, 4)]
    assert looks[-1] == rows.device().false_rejects


def test_the_first_of_several_voices_has_no_interval() -> None:
    trials = [
        replace(trial, recipe=replace(trial.recipe, voice=VoiceSpec("flite", name)))
        for name in ("kal", "slt")
        for trial in [wake_trial(len(name), conditions=(("voice", name),))]
    ]
    trials[1] = replace(trials[1], id="second")
    rows = rows_of(*trials, at_s=50.0)
    rows.play(trials[0], [("kitchen", 1.8)])
    false_rejects = rows.device().false_rejects
    assert (false_rejects.voices, false_rejects.interval, false_rejects.any_time) == (1, None, None)
    text = "\n".join(wake_summary(rows.figures))
    assert "0 of 1 = 0.00 % (too few voices for an interval: over 1 voice)" in text
    rows.play(trials[1], [("kitchen", 1.8)])
    assert rows.device().false_rejects.interval is not None
