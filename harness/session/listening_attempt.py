"""One attempt of a listening trial: how far each of its players is, and until when events of it may come."""

from __future__ import annotations

from harness.model.bench import ObservationKind
from harness.model.observation import Wake
from harness.model.scenario import TrialKind
from harness.model.time import Stamp
from harness.model.trial import Listening, Target, Trial
from harness.session.actions import StimulusTiming

ARRIVAL_S = 0.3
"""How much later than its stamp an event may arrive."""
SOUND_GUARD_S = 30.0
"""A stimulus that has not ended so long after it should have is lost (drivers say so much sooner)."""
STALL_S = 0.1
"""A stimulus that took so much longer than its sound, beyond the clocks' errors, had a gap."""
INJECTION_GUARD_S = 60.0
"""An injection has no set pace: it is lost when the device has acknowledged nothing for so long."""


class ListeningAttempt:
    """The progress of one playing of a stimulus. Changed only by the machine of its trial."""

    def __init__(
        self, trial: Trial, listening: Listening, timing: StimulusTiming, play_id: str, begun_s: float
    ) -> None:
        self.play_id = play_id
        self._rule = trial.reprompt
        self._listening = listening
        self._timing = timing
        self._begun_s = begun_s
        injected = {target.player for target in listening.targets if target.injected}
        self.through_air = tuple(player for player in listening.players if player not in injected)
        self._origins: dict[str, Stamp] = {}
        self._ended: dict[str, Stamp] = {}
        self._progress_s = dict.fromkeys(listening.players, begun_s)
        self._heard: Stamp | None = None
        self._understood: set[str] = set()
        self.woken: set[str] = set()
        """Connections whose devices have woken to the phrase."""
        self.unread: dict[str, str] = {}
        """Connections whose devices said something that was lost on our side, and why."""
        self._audio_s: dict[str, float] = {}

    def begun(self, player: str, at: Stamp, now_s: float, audio_s: float | None = None) -> None:
        """The first sample has left that player; audio_s: its place on the player's line of audio."""
        self._origins[player] = at
        if audio_s is not None:
            self._audio_s[player] = audio_s
        self.progressed(player, now_s)

    def heard(self, at: Stamp) -> None:
        """The microphone found the stimulus: its first sample lies there."""
        self._heard = at

    def progressed(self, player: str, now_s: float) -> None:
        """A device has acknowledged audio."""
        if player in self._progress_s:
            self._progress_s[player] = now_s

    def finished_playing(self, player: str, at: Stamp) -> None:
        """The last sample has left, or was acknowledged."""
        self._ended[player] = at

    def stalled_s(self, player: str) -> float:
        """How much longer than its sound a stimulus took for certain, once it has ended; 0 where that can be right."""
        begun, ended = self._origins.get(player), self._ended.get(player)
        if begun is None or ended is None or player not in self.through_air:
            return 0.0
        over_s = ended.at_s - begun.at_s - self._timing.duration_s - begun.error_s - ended.error_s
        return over_s if over_s > STALL_S else 0.0

    def woke(self, target: Target, wake: Wake) -> None:
        """A device has woken: to the phrase, if it was within its window."""
        player = target.player
        if target.injected and wake.audio_s is not None:
            begun_s, place_s = self._audio_s.get(player, 0.0), wake.audio_s
        else:
            origin = (None if target.injected else self._heard) or self._origins.get(player)
            begun_s, place_s = origin.at_s if origin else self._begun_s, wake.at.at_s
        timing, settings = self._timing, self._listening.settings
        offset_s = place_s - begun_s
        if timing.query_start_s - settings.window_before_s <= offset_s <= timing.query_end_s + settings.window_after_s:
            self.woken.add(target.connection)

    def understood(self, connection: str) -> None:
        """A device has said what it heard."""
        self._understood.add(connection)

    @property
    def unfinished(self) -> tuple[str, ...]:
        return tuple(player for player in self._listening.players if player not in self._ended)

    @property
    def ended(self) -> bool:
        """True when every player has played to the end."""
        return not self.unfinished

    def lost_at_s(self) -> float:
        """When the sound of a player that has not ended is given up."""
        air_s = self._begun_s + self._timing.duration_s + SOUND_GUARD_S
        return min(
            (
                air_s if player in self.through_air else self._progress_s[player] + INJECTION_GUARD_S
                for player in self.unfinished
            ),
            default=air_s,
        )

    def listens_until_s(self) -> float:
        """Until when an event of this attempt may come: nothing more than the end for a device that was injected."""
        until_s = max((at.at_s for at in self._ended.values()), default=self._begun_s)
        settings = self._listening.settings
        for player in self._in_real_time:
            origin_s = (self._heard or self._origins.get(player) or Stamp(self._begun_s)).at_s
            last_s = origin_s + self._timing.query_end_s
            wait_s = settings.window_after_s
            if self._listening.kind is TrialKind.COMMAND and self._waits_for_words(player):
                wait_s = max(wait_s, self._rule.evidence_wait_s)
            until_s = max(until_s, last_s + wait_s + ARRIVAL_S)
        return until_s

    @property
    def complete(self) -> bool:
        """True when nothing more is to be waited for, whatever the time is."""
        return self.ended and not self._in_real_time

    @property
    def _in_real_time(self) -> list[str]:
        """Players after whose sound an event may still come: air, and wires that name no place on a line of audio."""
        return [one for one in self._listening.players if one not in self._audio_s]

    def _waits_for_words(self, player: str) -> bool:
        return any(
            target.player == player
            and ObservationKind.TRANSCRIPT in target.reports
            and target.connection not in self._understood
            for target in self._listening.targets
        )
