"""Lost connections, restarts and the attempts that they interrupted, for each device."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from harness.model.frozen import frozen
from harness.model.observation import PRESENCE, DeviceState, LinkBack, LinkLost, Observation, Status
from harness.model.record import AttemptFinished, EngineStarted, PowerSwitched, Record, SessionStarted
from harness.model.trial import Outcome

_CAUSES = ("link_lost", "device_gone", "device_restarted")
SAME_RESTART_S = 5.0
"""If two connections of a device report a restart within this time, it is one restart."""


@frozen
class DeviceConnection:
    """The connection of a device, or of another part of the bench that its driver lost.

    - device: id of the device, or of that part.
    - lost: number of times the connection was lost. lost_s: how long it was lost in all. A loss that has not ended
      counts up to the last row of its run.
    - is_lost: whether the last loss of the last run has not ended.
    - restarts: number of restarts that the device reported or its driver saw. Power cycles by the run count neither as
      losses nor as restarts.
    - interrupted: number of attempts that a lost connection or a restart interrupted.
    """

    device: str
    lost: int = 0
    lost_s: float = 0.0
    is_lost: bool = False
    restarts: int = 0
    interrupted: int = 0

    @property
    def failed(self) -> bool:
        """Whether there is anything to report."""
        return self.is_lost or self.lost + self.restarts + self.interrupted > 0


@dataclass(slots=True)
class _Device:
    """What is known of one device's connections at the current row.

    - lost, lost_s, restarts, interrupted: as in `DeviceConnection`.
    - lost_sources: sources that are lost now → whether the driver lost it; else the device reported that it is gone.
    - away_s: when the first of them was lost; None if its power was off then.
    - last_restart: source and time of the last report of a restart.
    - has_power: False while the run has switched it off.
    - booting: whether the run has switched its power on, and the device has not started yet.
    """

    lost: int = 0
    lost_s: float = 0.0
    restarts: int = 0
    interrupted: int = 0
    lost_sources: dict[str, bool] = field(default_factory=dict)
    away_s: float | None = None
    last_restart: tuple[str, float] = "", -math.inf
    has_power: bool = True
    booting: bool = False

    def lost_until_s(self, at_s: float) -> float:
        """How long it was lost in all, up to a moment of the present run."""
        if not self.lost_sources or self.away_s is None:
            return self.lost_s
        return self.lost_s + max(0.0, at_s - self.away_s)


class Connections:
    """Finds lost connections and restarts in a log's rows, which it takes in their order; not thread-safe."""

    def __init__(self) -> None:
        self._device_of: dict[str, str] = {}
        self._trial_device: dict[str, str] = {}
        self._devices: dict[str, _Device] = {}

    def add(self, row: Record, last_s: float) -> None:
        """Adds a row. last_s: time of the previous row, on the clock of that row's run."""
        match row:
            case SessionStarted(trials=trials):
                for trial in trials:
                    self._trial_device[trial.id] = trial.device
                    for target in trial.targets:
                        self._device_of.update(dict.fromkeys(target.sources, target.device))
                        self._devices.setdefault(target.device, _Device())
            case EngineStarted():
                for device in self._devices.values():
                    device.lost_s = device.lost_until_s(last_s)
                    device.lost_sources.clear()  # an earlier run's connections ended with it
            case PowerSwitched(device=name, on=on, answered_s=answered_s):
                device = self._devices.setdefault(name, _Device())
                device.has_power, device.booting = on, on and answered_s is None
            case AttemptFinished(outcome=Outcome.INTERRUPTED, cause=cause, trial_id=trial_id):
                code, _, detail = cause.partition(": ")
                if code in _CAUSES:
                    source = detail.partition(":")[0]
                    device_name = self._device_of.get(source, source)
                    if code != "link_lost" and device_name not in self._devices:  # the cause does not name the device
                        device_name = self._trial_device.get(trial_id, device_name)
                    self._devices.setdefault(device_name, _Device()).interrupted += 1
            case _:
                pass  # Other rows do not concern connections.

    def observe(self, observation: Observation) -> None:
        """Adds an observation."""
        match observation:
            case LinkLost(source=source, at=at):
                self._add_loss(source, at.at_s, by_driver=True)
            case Status(source=source, at=at, state=DeviceState.GONE):
                self._add_loss(source, at.at_s, by_driver=False)
            case LinkBack(source=source, at=at):
                self._end_loss(source, at.at_s)
            case Status(source=source, at=at, state=state):
                if state is DeviceState.STARTED:
                    self._on_restart(self._source_device(source), source, at.at_s)
                self._end_absence(source, at.at_s)
            case _ if isinstance(observation, PRESENCE):
                self._end_absence(observation.source, observation.at.at_s)
            case _:
                pass  # Other observations do not concern connections.

    def _source_device(self, source: str) -> _Device:
        return self._devices.setdefault(self._device_of.get(source, source), _Device())

    def _add_loss(self, source: str, at_s: float, *, by_driver: bool) -> None:
        """Records that a source is lost. Losses that overlap count as one, and those without power as none."""
        device = self._source_device(source)
        if not device.lost_sources:
            device.away_s = at_s if device.has_power else None
            if device.has_power:
                device.lost += 1
        device.lost_sources[source] = device.lost_sources.get(source, False) or by_driver

    def _end_loss(self, source: str, at_s: float) -> None:
        """Records that a source is back. The device is, once none of its sources is lost."""
        device = self._source_device(source)
        if device.lost_sources.keys() == {source}:
            device.lost_s = device.lost_until_s(at_s)
        device.lost_sources.pop(source, None)

    def _end_absence(self, source: str, at_s: float) -> None:
        """Records a report of a source, which is back if it had reported that it is gone."""
        if not self._source_device(source).lost_sources.get(source, True):
            self._end_loss(source, at_s)

    def _on_restart(self, device: _Device, source: str, at_s: float) -> None:
        last_source, last_s = device.last_restart
        device.last_restart = source, at_s
        # One restart may be reported over two connections.
        is_new = source == last_source or abs(at_s - last_s) > SAME_RESTART_S
        if is_new:
            if device.has_power and not device.booting:
                device.restarts += 1
            device.booting = False

    def snapshot(self, now_s: float) -> tuple[DeviceConnection, ...]:
        """The devices of the plan in its order, then other parts of the bench that were lost.

        now_s: time of the last row.
        """
        return tuple(
            DeviceConnection(
                name,
                lost=device.lost,
                lost_s=device.lost_until_s(now_s),
                is_lost=bool(device.lost_sources),
                restarts=device.restarts,
                interrupted=device.interrupted,
            )
            for name, device in self._devices.items()
        )
