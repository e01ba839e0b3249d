"""Lost connections, restarts and the attempts that they interrupted, for each device."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.frozen import frozen
from harness.model.observation import DeviceState, LinkBack, LinkLost, Observation, Status
from harness.model.record import AttemptFinished, EngineStarted, PowerSwitched, Record, SessionStarted
from harness.model.trial import Outcome

_CAUSES = ("link_lost", "device_gone", "device_restarted")


@frozen
class DeviceConnection:
    """A device, or another part of the bench whose driver lost it.

    - lost: how often. lost_s: for how long in all, of the losses that ended. is_lost: the last one has not ended.
    - restarts: reported by the device or seen by its driver. Power cycles by the run count in neither.
    - interrupted: attempts that a lost connection or a restart interrupted.
    """

    device: str
    lost: int = 0
    lost_s: float = 0.0
    is_lost: bool = False
    restarts: int = 0
    interrupted: int = 0

    @property
    def failed(self) -> bool:
        return self.lost + self.restarts + self.interrupted > 0


@dataclass(slots=True)
class _Count:
    lost: int = 0
    lost_s: float = 0.0
    restarts: int = 0
    interrupted: int = 0


class Connections:
    """Takes a log's rows in their order; not thread-safe."""

    def __init__(self) -> None:
        self._device_of: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._counts: dict[str, _Count] = {}
        self._away: dict[str, tuple[float, bool]] = {}
        """Source → since when it is lost, and whether its driver lost it; else, the device reported that it is gone."""
        self._unpowered: set[str] = set()

    def take(self, row: Record) -> None:
        match row:
            case SessionStarted(trials=trials):
                for trial in trials:
                    self._asked[trial.id] = trial.device
                    for target in trial.targets:
                        self._device_of.update(dict.fromkeys(target.sources, target.device))
                        self._counts.setdefault(target.device, _Count())
            case EngineStarted():
                self._away.clear()  # an earlier run's connections ended with it
            case PowerSwitched(device=device, on=on):
                (self._unpowered.discard if on else self._unpowered.add)(device)
            case AttemptFinished(outcome=Outcome.INTERRUPTED, cause=cause, trial_id=trial_id):
                code, _, detail = cause.partition(": ")
                if code in _CAUSES:
                    name = detail.partition(":")[0]
                    device = self._device_of.get(name, name)
                    if code != "link_lost" and device not in self._counts:  # the cause does not name the device
                        device = self._asked.get(trial_id, device)
                    self._of(device).interrupted += 1
            case _:
                pass  # Other rows do not concern connections.

    def observe(self, seen: Observation) -> None:
        match seen:
            case LinkLost(source=source, at=at):
                self._lose(source, at.at_s, by_driver=True)
            case Status(source=source, at=at, state=DeviceState.GONE):
                self._lose(source, at.at_s, by_driver=False)
            case LinkBack(source=source, at=at):
                self._return(source, at.at_s)
            case Status(source=source, at=at, state=state):
                device = self._device_of.get(source, source)
                if state is DeviceState.STARTED and device not in self._unpowered:
                    self._of(device).restarts += 1
                if not self._away.get(source, (0.0, True))[1]:
                    self._return(source, at.at_s)
            case _:
                pass  # Other observations do not concern connections.

    def _of(self, device: str) -> _Count:
        return self._counts.setdefault(device, _Count())

    def _lose(self, source: str, at_s: float, *, by_driver: bool) -> None:
        device = self._device_of.get(source, source)
        if source in self._away:
            since_s, was_by_driver = self._away[source]
            self._away[source] = since_s, was_by_driver or by_driver
        elif device not in self._unpowered:
            self._away[source] = at_s, by_driver
            self._of(device).lost += 1

    def _return(self, source: str, at_s: float) -> None:
        if source in self._away:
            since_s, _ = self._away.pop(source)
            self._of(self._device_of.get(source, source)).lost_s += max(0.0, at_s - since_s)

    def snapshot(self) -> tuple[DeviceConnection, ...]:
        """The devices of the plan in its order, then other parts of the bench that were lost."""
        away = {self._device_of.get(source, source) for source in self._away}
        return tuple(
            DeviceConnection(name, count.lost, count.lost_s, name in away, count.restarts, count.interrupted)
            for name, count in self._counts.items()
        )
