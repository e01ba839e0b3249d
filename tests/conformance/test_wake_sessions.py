"""Wake sessions as engines run them: what the log holds against what the devices did, resumes, reviews, stopping."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from harness.base.places import SessionFolder
from harness.devices.in_process.device import ScriptedPhrase, WakeAt, draw_wakes
from harness.model.feed import Review
from harness.model.observation import StimulusEnded, StimulusStarted, Wake
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    DecisionReached,
    Entry,
    EventClipped,
    EventReviewed,
    Observed,
    ReviewVerdict,
    SessionStarted,
    StimulusStored,
    TrialFinished,
)
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome
from harness.session.engine.launch import start_engine
from harness.session.log.reader import check, read_clip
from harness.wake.wake_progress import WakeProgress
from tests.conformance.engine_runs import HERE, Runs, Watcher, rows, wait_for
from tests.known import known
from tests.written_sessions import plan_of, records, wake_of

MISSES = {"shelf": 0.3, "wired": 0.2}
FALSE_PER_HOUR = 60.0


def run(folder: Path) -> tuple[list[Entry], int, str]:
    """Runs the session to its end; its rows, and the exit status and reason that clients were told."""
    goodbye = Watcher(start_engine(folder)).goodbye(300)
    return rows(folder), goodbye.exit_code, goodbye.reason


def truth(entries: list[Entry], device: str) -> dict[str, tuple[WakeAt, ...]]:
    """What the device did in each attempt, from its seed: play_id → its events."""
    started = entries[0].record
    assert isinstance(started, SessionStarted)
    plan = plan_of(entries)
    wakes = {}
    for entry in entries:
        row = entry.record
        if not isinstance(row, AttemptStarted):
            continue
        listening = known(plan[row.trial_id].listening)
        if device not in (target.device for target in listening.targets):
            continue
        phrase = ScriptedPhrase(listening.phrase, row.query_end_s) if listening.kind is TrialKind.WAKE else None
        if listening.kind is TrialKind.COMMAND:
            continue  # where the phrase ends in it the log does not say
        wakes[row.play_id] = draw_wakes(
            row.duration_s,
            phrase,
            miss_share=MISSES[device],
            false_per_hour=FALSE_PER_HOUR,
            seed=f"{started.seed}:{device}:{row.play_id}",
        )
    return wakes


def figures(entries: list[Entry]) -> WakeProgress:
    return wake_of(entries).snapshot()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Entry]]:
    """A session of wake.yaml that was played to its end, for those who only read it."""
    with tempfile.TemporaryDirectory(prefix="vh") as runtime, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_RUNTIME", runtime)  # a socket's path must be short
        runs = Runs(tmp_path_factory.mktemp("whole"))
        folder = runs.prepare("wake.yaml", "wake_bench.yaml")
        try:
            entries, status, why = run(folder)
        finally:
            runs.close()
    assert (status, why) == (0, "")
    return folder, entries


def test_the_log_holds_what_two_devices_did_by_air_and_by_wire(session: tuple[Path, list[Entry]]) -> None:
    folder, entries = session
    assert check(folder).damage == ()
    plan = plan_of(entries)
    assert Counter(trial.listening.kind for trial in plan.values() if trial.listening) == {
        TrialKind.WAKE: 20,
        TrialKind.COMMAND: 3,
        TrialKind.AMBIENT: 12,
    }
    outcomes = Counter(row.outcome for row in records(entries, TrialFinished))
    assert outcomes == {Outcome.COUNTED: 35}

    for device in ("shelf", "wired"):
        starts: dict[str, float] = {}
        heard: dict[str, list[float]] = {}
        for entry in entries:
            match entry.record:
                case Observed(observation=StimulusStarted(source=source, play_id=play_id, at=at, audio_s=audio_s)):
                    if source == ("near" if device == "shelf" else "wired"):
                        starts[play_id] = at.at_s if audio_s is None else audio_s
                case Observed(observation=Wake(source=source) as wake) as row if source == device:
                    play_id = f"{row.trial_id}.t{row.take}.a{row.attempt}"
                    place_s = wake.at.at_s if wake.audio_s is None else wake.audio_s
                    heard.setdefault(play_id, []).append(place_s - starts[play_id])
                case _:
                    pass
        for play_id, events in truth(entries, device).items():
            assert heard.pop(play_id, []) == pytest.approx([event.at_s for event in events], abs=1e-6), play_id
        assert {name.partition(".")[0] for name in heard} <= {"ask"}, "an event that nobody sent"

    snapshot = figures(entries)
    for device in snapshot.devices:
        missed = sum(
            not any(event.score >= 0.7 for event in events)
            for play_id, events in truth(entries, device.device).items()
            if play_id.startswith("call")
        )
        assert device.false_rejects.share.count <= missed, "a false wake in the window can hide a miss"
        # A host that stands still for seconds hears no sign of life: what it cannot prove does not count.
        assert device.exposure_s + device.unproven_s == pytest.approx(360.0)
        assert device.unproven_s <= 36
        assert missed > 0
        assert device.false_accepts.count > 0, "nothing was tested"
    assert snapshot.counted == 35


def test_openings_report_the_share_that_the_device_missed(runs: Runs, host_keeps_time: None) -> None:
    folder = runs.prepare("openings.yaml", "openings_bench.yaml")
    entries, status, _ = run(folder)
    assert status == 0
    plan = plan_of(entries)
    missed: Counter[str] = Counter()
    for row in records(entries, AttemptStarted):
        trial = plan[row.trial_id]
        if known(trial.listening).kind is TrialKind.WAKE:
            phrase = ScriptedPhrase("alexa", row.query_end_s)
            seed = f"{known(records(entries, SessionStarted)[0]).seed}:shelf:{row.play_id}"
            wakes = draw_wakes(row.duration_s, phrase, miss_share=0.3, false_per_hour=0.0, seed=seed)
            missed[dict(trial.conditions)["opening"]] += not wakes
        opening = trial.recipe.opening
        assert len(row.other_phrases) == (0 if opening is None else 2 if opening.then else 1)
    (device,) = figures(entries).devices
    by_opening = {name.removeprefix("opening="): ratio.share for name, ratio in device.conditions}
    assert {name: (share.count, share.total) for name, share in by_opening.items()} == {
        name: (missed[name], 5) for name in ("none", "tell me a story, 3 s", "phrase, 0.5 s")
    }
    assert 0 < sum(missed.values()) < 15
    assert device.events == ()
    assert (device.commands.total, device.commands.count) == (6, 6 - device.missed)
    assert not any(row.cause for row in records(entries, AttemptFinished))


def test_noise_comes_from_its_own_loudspeakers_with_every_phrase(
    runs: Runs, tmp_path: Path, host_keeps_time: None
) -> None:
    bench = (HERE / "openings_bench.yaml").read_text().replace("profile: ", f"profile: {HERE}/")
    others = "".join(f"  {name}: {{driver: in_process, speed: 25, position: {name}}}\n" for name in ("left", "right"))
    (tmp_path / "bench.yaml").write_text(bench.replace("microphone:", f"{others}microphone:"))
    noise = "[null, {kind: pink, level_dbfs: -40, positions: [left, right]}]"
    (tmp_path / "noise.yaml").write_text(
        "scenario: noise\ndefaults: {between_trials_s: 0.5}\nwake: {window_after_s: 8}\n"
        f"trials: [{{id: call, kind: wake, repeat: 2}}]\nmatrix: {{axes: {{noise: {noise}}}}}\n"
    )
    folder = runs.prepare(tmp_path / "noise.yaml", tmp_path / "bench.yaml")
    entries, status, _ = run(folder)
    assert status == 0
    played: dict[str, set[str]] = {}
    for row in records(entries, Observed):
        if isinstance(row.observation, StimulusEnded) and row.observation.complete:
            played.setdefault(row.observation.play_id, set()).add(row.observation.source)
    attempts = records(entries, AttemptStarted)
    assert len(attempts) == len(records(entries, TrialFinished)) == 4
    for attempt in attempts:
        noisy = plan_of(entries)[attempt.trial_id].noise_players
        assert played[attempt.play_id] == {"near"}
        assert played.get(f"{attempt.play_id}.noise") == ({"left", "right"} if noisy else None)


def test_unmatched_events_have_clips_and_stimuli_are_stored_once(session: tuple[Path, list[Entry]]) -> None:
    folder, entries = session
    clips = {row.event_seq: row.clip for row in records(entries, EventClipped)}
    snapshot = figures(entries)
    assert snapshot.unmatched
    by_seq = {entry.seq: entry.record for entry in entries}
    for event in snapshot.unmatched:
        assert event.seq in clips, event
        clip = clips[event.seq]
        assert 0 < clip.duration_s <= 10.0 + 1e-3
        row = by_seq[event.seq]
        assert isinstance(row, Observed)
        assert clip.start_s <= row.observation.at.at_s <= clip.start_s + clip.duration_s + 1e-6
        sound = read_clip(SessionFolder(folder).clips, clip)
        assert abs(sound.samples).max() > 1e-4
    stored = [row.sha256 for row in records(entries, StimulusStored)]
    kinds = {trial.id: trial.listening.kind for trial in plan_of(entries).values() if trial.listening}
    played = {
        row.stimulus_sha256 for row in records(entries, AttemptStarted) if kinds[row.trial_id] is not TrialKind.AMBIENT
    }
    assert len(stored) == len(set(stored))
    assert set(stored) == played, "every phrase and command, and no ambient sound"
    first = {row.sha256: n for n, entry in enumerate(entries) if isinstance(row := entry.record, StimulusStored)}
    for n, entry in enumerate(entries):
        if isinstance(entry.record, AttemptStarted) and entry.record.stimulus_sha256 in first:
            assert first[entry.record.stimulus_sha256] < n, "before its first sound"


def test_a_review_is_a_row_and_only_of_a_wake_event(runs: Runs) -> None:
    folder = runs.prepare("wake.yaml", "wake_bench.yaml")
    client = Watcher(start_engine(folder))
    event: list[int] = []

    def woken() -> bool:
        event.extend(entry.seq for entry in rows(folder) if _is_wake(entry))
        return bool(event)

    wait_for(woken, 120, "a wake event")
    assert client.ask(Review("1", "ann", event[0], ReviewVerdict.REAL_PERSON)).ok
    refused = client.ask(Review("2", "ann", 1, ReviewVerdict.FALSE_ACCEPT))
    assert (refused.ok, refused.why) == (False, "row 1 of this session is not a wake event")
    reviews = records(folder, EventReviewed)
    assert reviews == [EventReviewed(event[0], ReviewVerdict.REAL_PERSON, "ann")]


def _is_wake(entry: Entry) -> bool:
    return isinstance(entry.record, Observed) and isinstance(entry.record.observation, Wake)


def test_a_decided_question_makes_trials_needless_and_limits_set_the_exit_status(runs: Runs) -> None:
    folder = runs.prepare("wake_stopping.yaml", "wake_bench.yaml")
    entries, status, why = run(folder)
    decided = records(entries, DecisionReached)
    assert [(row.device, row.figure) for row in decided] == [("wired", "false_rejects")]
    decision = next(n for n, entry in enumerate(entries) if isinstance(entry.record, DecisionReached))
    after = [entry.record for entry in entries[decision:] if isinstance(entry.record, TrialFinished)]
    calls = [row for row in after if row.trial_id.startswith("call")]
    assert calls, "it was decided before the last trial"
    assert {(row.outcome, row.cause) for row in calls} == {
        (Outcome.SKIPPED, "needless: false rejects are decided for every device")
    }
    soaks = [row.outcome for row in after if row.trial_id.startswith("soak")]
    assert soaks == [Outcome.COUNTED] * 3, "no test makes them needless"
    assert status == 1
    assert why == ("failed: false accepts per hour of wired ≤ 1; failed: sequential test of false rejects of wired")
