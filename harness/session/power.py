"""Power cycles of devices: between trials as the scenario asks, and after a fault as the bench allows."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping

from harness.model.bench import OnFault
from harness.model.errors import DeviceError, HarnessError
from harness.model.feed import StateWord
from harness.model.observation import DeviceState, LinkBack, Observation, Status
from harness.model.record import FaultMet, PowerSwitched, TrialFinished
from harness.model.trial import Outcome, Trial
from harness.session.liveness import Liveness, hearing
from harness.session.run import Run

POWER_BY = "power"
"""Who pauses the run until the operator has switched the power, in the rows."""
_PROVES_NOTHING = (Outcome.INTERRUPTED, Outcome.SKIPPED, Outcome.ABORTED)


class PowerCycling:
    """The power of the devices that have a switch on the bench.

    - played: device → its trials since its last power cycle in this run; a device that is missing has had none.
    - spent: device → power cycles after faults since its last trial that succeeded.
    """

    def __init__(self, run: Run, serve: Callable[[], None], liveness: Liveness) -> None:
        self._run = run
        self._serve = serve
        self._liveness = liveness
        self._played: dict[str, int] = {}
        self._spent: dict[str, int] = {}
        self._on_s = 0.0
        self._answered: dict[str, float] = {}

    def see(self, seen: Observation) -> None:
        """Takes an observation that may show that a device has booted."""
        match seen:
            case LinkBack(source=source, at=at) | Status(source=source, at=at) if at.at_s >= self._on_s:
                if not isinstance(seen, Status) or seen.state is not DeviceState.GONE:
                    self._answered[source] = at.at_s
            case _:
                pass

    def before(self, trial: Trial) -> bool:
        """Power cycles the devices of a trial that are due. False if the run ends first.

        DeviceError if one cannot be switched, or does not come back.
        """
        if trial.memory is not None and trial.memory.primed_by:
            return True  # nothing may happen to the device between a prime and its follow-up
        every, heard = trial.power_cycle, dict(hearing(trial))
        due = {
            device: sources
            for device, sources in heard.items()
            if every and self._played.get(device, every) >= every and device in self._run.stage.power
        }
        if due and not self._cycle(due, f"before {trial.id}"):
            return False
        for device in heard:
            self._played[device] = self._played.get(device, 0) + 1
        return True

    def finished(self, trial: Trial, row: TrialFinished) -> None:
        """A device with a trial that succeeded may be power cycled again as often as the bench allows."""
        if row.outcome not in _PROVES_NOTHING:
            for device, _ in hearing(trial):
                if not self._liveness.silent(device):
                    self._spent.pop(device, None)

    def revive(self, trial: Trial, reason: str, devices: Iterable[str] | None = None) -> tuple[str, ...]:
        """Power cycles devices of a trial after a fault: those that answer again. () without a power cycle left.

        devices: None: those whose connection is lost, or that the reason names.
        """
        run, heard = self._run, dict(hearing(trial))
        lost = run.seen.lost | run.seen.gone
        if devices is None:
            named = set(re.findall(r"[\w.-]*\w", reason))
            devices = [device for device, sources in heard.items() if (lost | named) & set(sources)]
        most = (run.stage.on_fault or OnFault()).power_cycles
        due = {one: heard[one] for one in devices if one in run.stage.power and self._spent.get(one, 0) < most}
        for device in due:
            self._spent[device] = self._spent.get(device, 0) + 1
        try:
            return tuple(due) if due and self._cycle(due, reason, after_fault=True) else ()
        except DeviceError as error:
            run.append(FaultMet(POWER_BY, str(error)))
            return ()

    def restore(self, reason: str) -> None:
        """Switches on what is off, also what an earlier run left off. What fails is a fault in the log."""
        for device in sorted(self._run.standing.unpowered):
            try:
                if self._turn([device], on=True):
                    self._run.append(PowerSwitched(device, True, reason))
                    continue
                why = "nobody has switched it on"
            except HarnessError as error:
                why = str(error)
            self._run.append(FaultMet(POWER_BY, f"the power of {device} may still be off: {why}"))

    def abandon(self) -> None:
        """As `restore`, when the run has failed and its log may be unusable."""
        for device in sorted(self._run.standing.unpowered):
            try:
                self._turn([device], on=True)
            except HarnessError as error:
                sys.stderr.write(f"the power of {device} may still be off: {error}\n")

    def _cycle(self, devices: Mapping[str, tuple[str, ...]], reason: str, *, after_fault: bool = False) -> bool:
        """False if the run ends first; then `restore` switches on."""
        try:
            return self._off_and_on(devices, reason, after_fault)
        except DeviceError:
            self.restore(reason)  # a switch that did not answer may have switched
            raise

    def _off_and_on(self, devices: Mapping[str, tuple[str, ...]], reason: str, after_fault: bool) -> bool:
        run, power = self._run, self._run.stage.power
        for device in devices:
            run.append(PowerSwitched(device, False, reason, after_fault=after_fault))
        if not self._turn(devices, on=False):
            return False
        off_s, boot_s, ready_s = (
            max(getattr(power[one].switch, key) for one in devices) for key in ("off_s", "boot_s", "ready_s")
        )
        named = ", ".join(devices)
        run.show(StateWord.PREPARING, f"{named}: the power is off")
        if not run.rest(off_s, self._serve):
            return False
        self._answered, self._on_s = {}, run.now_s()
        if not self._turn(devices, on=True):
            return False
        run.show(StateWord.PREPARING, f"{named}: boots")
        if not run.rest(boot_s, self._serve, until=lambda: all(map(self._is_back, devices.values()))):
            return False
        if not run.rest(ready_s, self._serve):
            return False
        for device, sources in devices.items():
            answers = [self._answered[one] for one in sources if one in self._answered]
            answered_s = max(answers) - self._on_s if answers and self._is_back(sources) else None
            run.append(PowerSwitched(device, True, reason, answered_s, after_fault))
            self._played[device] = 0
        if gone := [one for one, sources in devices.items() if self._are_lost(sources)]:
            what = f"{', '.join(gone)}: no answer within {boot_s:g} s after power on"
            raise DeviceError(what, remedy="Check the device, its switch, and `boot_s` in the bench")
        return True

    def _is_back(self, sources: tuple[str, ...]) -> bool:
        return any(one in self._answered for one in sources) and not self._are_lost(sources)

    def _are_lost(self, sources: tuple[str, ...]) -> bool:
        return bool((self._run.seen.lost | self._run.seen.gone) & set(sources))

    def _turn(self, devices: Iterable[str], *, on: bool) -> bool:
        """False if the run ends first."""
        for device in devices:
            power = self._run.stage.power[device]
            if power.by_hand and not self._run.by_hand(power.request(on=on), POWER_BY, self._serve):
                return False
            if not self._run.meanwhile(lambda given_up, power=power: power.turn(on=on, given_up=given_up), self._serve):  # type: ignore[misc]
                return False
        return True
