"""Listening trials and a stage play for their machine, in simulated time."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model.bench import ObservationKind
from harness.model.observation import Observation, StimulusEnded, StimulusStarted
from harness.model.record import AttemptFinished, AttemptStarted, Observed, TrialFinished
from harness.model.scenario import Evidence, RepromptRule, TrialKind, WakeSettings
from harness.model.stimulus import Opening, SpokenText, StimulusRecipe, VoiceSpec
from harness.model.time import Stamp
from harness.model.trial import ListeningSpec, Target, Trial
from harness.session.listening_trial import ListeningMachine
from harness.session.take import Action, StimulusTiming, StopStimulus
from tests.known import known
from tests.unit.session.material import trial

REPORTS = (ObservationKind.STATUS, ObservationKind.TRANSCRIPT, ObservationKind.WAKE)
BY_AIR = Target("shelf", "shelf_link", "speaker", REPORTS)
WIRED = Target("wired", "wired", "wired", REPORTS)
SETTINGS = WakeSettings()
RULE = RepromptRule()
TIMING = StimulusTiming("5" * 64, query_start_s=1.0, query_end_s=1.6, duration_s=3.0)


def listening_trial(
    *targets: Target,
    kind: TrialKind = TrialKind.WAKE,
    settings: WakeSettings = SETTINGS,
    reprompt: RepromptRule = RULE,
    opening: Opening | None = None,
) -> Trial:
    heard = ListeningSpec(kind, targets, settings, 1.0, 1.4, "" if kind is TrialKind.AMBIENT else "alexa")
    recipe = StimulusRecipe(SpokenText("alexa"), None, VoiceSpec(), lead_in_s=1.0, tail_s=1.4, opening=opening)
    first = targets[0]
    return trial(
        id="call.r1",
        recipe=recipe,
        device=first.device,
        loudspeaker=first.player,
        connection=first.connection,
        evidence=Evidence.NONE,
        reprompt=reprompt,
        listening=heard,
    )


class Play:
    """Drives one machine, and keeps what it asked for. `now_s` only goes forward."""

    def __init__(self, *targets: Target, before: tuple[AttemptFinished, ...] = (), **changes: object) -> None:
        timing = changes.pop("timing", TIMING)
        assert isinstance(timing, StimulusTiming)
        begin = {key: changes.pop(key) for key in ("bench_state", "not_before_s") if key in changes}
        self.trial = listening_trial(*targets, **changes)  # type: ignore[arg-type]
        self.machine = ListeningMachine(self.trial, 1, timing, earlier_attempts=before, link_wait_s=60.0)
        self.now_s = 100.0
        self.actions: list[Action] = []
        self.take(self.machine.begin(self.now_s, **begin))  # type: ignore[arg-type]
        self.settle()

    def take(self, actions: Iterable[Action]) -> None:
        self.actions += actions

    def settle(self) -> None:
        """Ticks as long as something is due now."""
        while (due_s := self.machine.deadline_s) is not None and due_s <= self.now_s:
            before = len(self.actions), self.machine.phase
            self.take(self.machine.tick(self.now_s))
            assert (len(self.actions), self.machine.phase) != before, "a deadline that is past must lead on"

    def wait(self, seconds: float) -> None:
        """Lets time pass, with the ticks that the machine asks for."""
        until_s = self.now_s + seconds
        while (due_s := self.machine.deadline_s) is not None and due_s <= until_s:
            self.now_s = max(self.now_s, due_s)
            self.settle()
        self.now_s = until_s

    def feed(self, observation: Observation) -> None:
        self.take(self.machine.feed(observation, self.now_s))
        self.settle()

    def at(self) -> Stamp:
        return Stamp(self.now_s)

    def starts(self, player: str, audio_s: float | None = None) -> None:
        self.feed(StimulusStarted(player, self.at(), self.play_id, audio_s))

    def ends(self, player: str, *, complete: bool = True, audio_s: float | None = None) -> None:
        self.feed(StimulusEnded(player, self.at(), self.play_id, complete, audio_s))

    @property
    def play_id(self) -> str:
        return self.started[-1].play_id

    @property
    def started(self) -> list[AttemptStarted]:
        return [action for action in self.actions if isinstance(action, AttemptStarted)]

    @property
    def attempts(self) -> list[AttemptFinished]:
        return [action for action in self.actions if isinstance(action, AttemptFinished)]

    @property
    def verdict(self) -> TrialFinished | None:
        verdicts = [action for action in self.actions if isinstance(action, TrialFinished)]
        assert len(verdicts) <= 1
        return verdicts[0] if verdicts else None

    @property
    def ended(self) -> TrialFinished:
        """The verdict that is there."""
        return known(self.verdict)

    @property
    def stops(self) -> int:
        return sum(isinstance(action, StopStimulus) for action in self.actions)

    def credited(self, observation: Observation) -> int | None:
        return next(a.attempt for a in self.actions if isinstance(a, Observed) and a.observation is observation)
