"""A Hermes device over a real broker is asked until it understands; its engine is killed; every figure is recounted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.model.choices import CountedAttempt
from harness.model.observation import Intent
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Entry,
    Observed,
    Record,
    SessionFinished,
    SessionStarted,
    TrialFinished,
)
from harness.model.scenario import Limits
from harness.model.trial import Outcome
from harness.session.engine.launch import start_engine
from harness.session.engine.prepare import prepare
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import SessionFigures
from harness.session.log.reader import check
from harness.session.take import ENGINE_ENDED
from harness.statistics.intervals import Share
from tests.conformance.engine_runs import Runs, kill, play_out, rows, wait_for
from tests.conformance.hermes_device import HermesDevice, Told
from tests.conformance.mqtt_bench import Broker
from tests.known import known

DEVICES = Path(__file__).parents[2] / "devices"
SCENARIO = Path(__file__).parent / "lab" / "frames.yaml"
BENCH = """\
bench: hermes
operator: absent
loudspeakers:
  room: {{driver: mqtt, address: "127.0.0.1:{port}", topic_device: default, injection: hermes_play_bytes}}
devices:
  kitchen:
    profile: hermes.yaml
    connection: {{driver: mqtt, address: "127.0.0.1:{port}", topic_device: default}}
"""
TIMER = (Told("SetTimer", (("minutes", "10"),)), Told("AddItem", (("item", "Milk"),)))
ANSWERS = (
    [[Told("ChangeLight", (("state", "on"),))]],
    [[Told("")], TIMER],
    [[Told("Heat", (("room", "hall"),))], [Told("Heat", (("room", "hall"),))], [Told("Heat", (("room", "bath"),))]],
    [[Told("Start")]],
    [[Told("")]],
)
GOLD = {
    "light.r1": ({"ChangeLight"}, {"state": "on"}),
    "timer.r1": ({"SetTimer", "AddItem"}, {"minutes": "10", "item": "Milk"}),
    "heat.r1": ({"Heat"}, {"room": "bath"}),
    "stop.r1": ({"Stop"}, {}),
    "green.r1": (set(), {}),
}
"""As the device would tell it. Written out here, so that nothing of the harness decides what is right."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as own_broker:
        yield own_broker


def right(play_id: str, frames: tuple[Told, ...]) -> bool:
    intents, slots = GOLD[play_id.partition(".t1.")[0]]
    pairs = {pair for frame in frames for pair in frame.slots}
    return {frame.name for frame in frames if frame.name} == intents and pairs == set(slots.items())


def test_a_device_is_asked_until_it_understands_across_a_kill(runs: Runs, tmp_path: Path, broker: Broker) -> None:
    profile = (DEVICES / "hermes_rhasspy.yaml").read_text(encoding="utf-8")
    mute = profile.replace("device: hermes_rhasspy", "device: hermes").replace(
        "transport:", "responds: false\ntransport:"
    )
    (tmp_path / "hermes.yaml").write_text(mute, encoding="utf-8")
    (tmp_path / "bench.yaml").write_text(BENCH.format(port=broker.port), encoding="utf-8")
    device = HermesDevice(broker, ANSWERS)
    try:
        folder = prepare(SCENARIO, tmp_path / "bench.yaml", tmp_path / "sessions")
        runs.folders.append(folder)
        place = start_engine(folder)
        wait_for(lambda: len(device.played) == 3, 90, "the second playing of the second query")
        kill(place)
        cut = device.played[-1]
        # What it still says of that one would otherwise reach the next engine in the middle of another attempt.
        wait_for(lambda: cut in device.told, 90, "the end of what was cut")
        play_out(folder)
    finally:
        device.close()

    entries = rows(folder)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert check(folder).damage == ()
    assert isinstance(entries[-1].record, SessionFinished)
    records = [entry.record for entry in entries]
    started = {f"{row.trial_id}.t1.a{row.attempt}" for row in records if isinstance(row, AttemptStarted)}
    assert started == set(device.played)
    finished = [row for row in records if isinstance(row, TrialFinished)]
    assert Counter(row.trial_id for row in finished) == Counter(list(GOLD)), "each trial once"
    verdicts = {f"{row.trial_id}.t1.a{row.attempt}": row for row in records if isinstance(row, AttemptFinished)}
    assert set(verdicts) == started
    assert [name for name, row in verdicts.items() if row.cause.startswith(ENGINE_ENDED)] == [cut]
    _recount(device, records, verdicts, cut)
    _check_figures(entries, device, verdicts, finished)


def _recount(device: HermesDevice, records: Sequence[Record], verdicts: dict[str, AttemptFinished], cut: str) -> None:
    """What the device told is in the log, at the attempt that it was told of; and so is whether it was right."""
    logged: dict[str, list[Told]] = {}
    for record in records:
        if isinstance(record, Observed) and isinstance(record.observation, Intent):
            name = f"{record.trial_id}.t1.a{record.attempt}"
            logged.setdefault(name, []).append(Told(record.observation.name, record.observation.slots))
    for play_id, row in verdicts.items():
        if play_id == cut:
            assert row.outcome is Outcome.INTERRUPTED
            continue
        frames = device.told[play_id]
        assert tuple(logged[play_id]) == frames, play_id
        assert known(row.understood).right is right(play_id, frames), play_id
        assert row.outcome is (Outcome.UNDERSTOOD if right(play_id, frames) else Outcome.MISHEARD)


def _check_figures(
    entries: list[Entry], device: HermesDevice, verdicts: dict[str, AttemptFinished], finished: list[TrialFinished]
) -> None:
    figures = SessionFigures()
    for entry in entries:
        figures.add(entry)
    progress = figures.snapshot()
    frames = progress.totals.understood

    play_ids = [play_id for play_id in device.played if verdicts[play_id].outcome is not Outcome.INTERRUPTED]
    by_trial = {trial_id: [play_id for play_id in play_ids if play_id.startswith(f"{trial_id}.")] for trial_id in GOLD}
    goods = {
        trial_id: [right(play_id, device.told[play_id]) for play_id in plays] for trial_id, plays in by_trial.items()
    }
    assert frames.right == Share(sum(good[-1] for good in goods.values()), 5) == Share(4, 5)
    assert frames.intents == Share(4, 5)
    assert frames.first_right == Share(sum(good[0] for good in goods.values()), 5)
    attempts = Counter(good.index(True) + 1 for good in goods.values() if True in good)
    assert frames.attempts == tuple(sorted(attempts.items()))
    assert goods["stop.r1"] == [False, False], "said again until the attempts were used up"
    assert {row.trial_id: row.attempts for row in finished}["stop.r1"] == 2
    limits = check_limits(Limits(min_understood_share=0.8, min_intent_share=0.95), progress.totals)
    assert [(limit.name, limit.holds) for limit in limits] == [
        ("min_understood_share", True),
        ("min_intent_share", False),
    ]
    assert progress.totals.recognised == progress.totals.answered == Share()

    corpora = session_corpora([progress])
    assert corpora.unknown == ()
    for gold, predicted in zip(corpora.gold.utterances, corpora.predicted.utterances, strict=True):
        last = device.told[by_trial[gold.id][-1]]
        assert set(gold.intents or ()) == GOLD[gold.id][0]
        assert set(predicted.intents or ()) == {frame.name for frame in last if frame.name}
        assert dict(gold.groups)["device"] == "kitchen"
    first = session_corpora([progress], CountedAttempt.FIRST)
    assert [utterance.intents for utterance in first.predicted.utterances][1] == tuple(
        sorted({frame.name for frame in device.told[by_trial["timer.r1"][0]] if frame.name})
    )
    start = entries[0].record
    assert isinstance(start, SessionStarted)
    assert all(trial.loudspeaker == "room" and not trial.responds for trial in start.trials)
    assert "kitchen hears the loudspeaker" in start.sound_path
