"""How often a device's own word that it listens is worth telling."""

from __future__ import annotations

from harness.model.observation import DeviceState, ListeningProved, Observation, Proof, Status

PROOF_EVERY_S = 5.0
EARLY_S = 0.5
"""A heartbeat of just that pace is told each time, although its messages come a little early or late."""


class ProofPace:
    """Which heartbeats that a profile maps are told: about one every 5 s, and always the first after it was gone.

    No clock: times are those of the observations.
    """

    def __init__(self) -> None:
        self._told_s: float | None = None

    def passes(self, seen: Observation) -> bool:
        """Whether to tell it; called with everything that is told, in order."""
        match seen:
            case ListeningProved(at=at, proof=Proof.HEARTBEAT):
                if self._told_s is not None and 0 <= at.at_s - self._told_s < PROOF_EVERY_S - EARLY_S:
                    return False
                self._told_s = at.at_s
            case Status(state=DeviceState.STARTED | DeviceState.GONE):
                self.cut()
            case _:
                pass
        return True

    def cut(self) -> None:
        """The link was lost: the next heartbeat is told."""
        self._told_s = None
