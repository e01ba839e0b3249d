"""Which workers of a cluster are fit for an evaluation: the same harness and engine, and they see its files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from harness.base.plain_json import restored
from harness.model.errors import EngineError, InputError
from harness.model.offline import EngineFacts
from harness.offline.cluster_link import ClusterLink, Failed, Killed
from harness.offline.cluster_order import Order, likeness, shortly
from harness.offline.cluster_worker import introduce

WORKERS_WITHIN_S = 30.0
"""So long a cluster may have no worker, at the start and between."""
LOOK_S = 1.0
TICK_S = 0.2


class ClusterWorkers:
    """Workers as they come and go. `facts` once some have said what their engine is."""

    def __init__(self, link: ClusterLink, told: Callable[[str], None]) -> None:
        self._link, self._told = link, told
        self._asked: dict[Any, str] = {}
        self._names = 0
        self._fit: set[str] = set()
        self._here: dict[str, int] = {}
        self._looked_s = self._had_s = time.monotonic()
        self.misfits: dict[str, str] = {}

    @property
    def slots(self) -> int:
        """How many tasks the workers do at once that are not known to be unfit."""
        return sum(threads for one, threads in self._here.items() if one not in self.misfits)

    def fit(self, stranger: bool) -> set[str]:
        """Those that may have a task: all (an empty set) while none was unfit. stranger: a task met one."""
        return self._fit & self._here.keys() if self.misfits or stranger else set()

    def gone(self, where: set[str]) -> bool:
        """Whether none of these is there any more."""
        return bool(where) and not where & self._here.keys()

    def meet(self, order: Order, stop: threading.Event) -> EngineFacts:
        """Waits for workers and asks each what it is. InputError when one is unfit, or there is none."""
        self._look()
        if not self._here:
            self._told(f"waiting up to {WORKERS_WITHIN_S:g} s for workers of {self._link.address}")
        while not self._here:
            if stop.wait(TICK_S):
                raise KeyboardInterrupt
            self._look()
            if not self._here and time.monotonic() - self._had_s > WORKERS_WITHIN_S:
                raise InputError(
                    f"the scheduler at {self._link.address} has had no worker for {WORKERS_WITHIN_S:g} s",
                    remedy=f"Start some: dask worker {self._link.address}",
                )
        facts: dict[str, EngineFacts] = {}
        until_s = time.monotonic() + order.limits.load_within_s + WORKERS_WITHIN_S
        while True:
            self._look()
            for future in [one for one, address in self._asked.items() if address not in self._here]:
                del self._asked[future]
            self.ask_new(order)
            if not self._asked and (facts or self.misfits):
                break
            if stop.is_set():
                raise KeyboardInterrupt
            for future in self._link.arrived(TICK_S):
                if future in self._asked:
                    self._introduced(future, facts)
            if time.monotonic() > until_s:
                raise EngineError(
                    f"workers do not answer: {shortly(sorted(self._asked.values())) or 'none is there'}",
                    remedy="They may be busy with other work, or have been stopped",
                )
        self._demand_alike(facts)
        return next(facts[one] for one in sorted(facts))

    def ask_new(self, order: Order) -> None:
        """Those that are new, what they are."""
        for address in self._here.keys() - self._fit - self.misfits.keys() - set(self._asked.values()):
            self._names += 1
            future = self._link.submit(
                f"harness-{order.run}-who-{self._names}", introduce, order.told(), where={address}
            )
            self._asked[future] = address

    def introduced(self, future: Any) -> bool:
        """Takes a worker's answer to what it is; whether the future was one."""
        if future not in self._asked:
            return False
        address = self._asked[future]
        self._introduced(future, {})
        if address in self.misfits:
            self.leave_out(address, self.misfits.pop(address))
        return True

    def leave_out(self, address: str, why: str) -> None:
        """A worker that turned out to be unfit. EngineError when no other is left."""
        self._fit.discard(address)
        if address not in self.misfits:
            self.misfits[address] = why
            self._told(f"going on without the worker {address}: {why}")
        if not self.slots:
            raise EngineError(f"no worker can play any more: {why}", remedy="Mend it, and go on with --resume")

    def tick(self) -> None:
        """Looks now and then who is there. EngineError when nobody is, for long."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_S:
            return
        before = self._here
        self._look()
        for address in before.keys() - self._here.keys():
            self._told(f"the worker {address} is gone; what it was at is played elsewhere")
        if not self._here and now_s - self._had_s > WORKERS_WITHIN_S:
            raise EngineError(
                f"the scheduler at {self._link.address} has had no worker for {WORKERS_WITHIN_S:g} s",
                remedy="Start some, and go on with --resume",
            )

    def _look(self) -> None:
        self._here = dict(self._link.workers())
        self._looked_s = time.monotonic()
        if self._here:
            self._had_s = self._looked_s

    def _introduced(self, future: Any, facts: dict[str, EngineFacts]) -> None:
        found = self._link.result(future)
        if found is None:
            return
        address = self._asked.pop(future)
        if isinstance(found, Killed):
            return  # It is gone.
        if isinstance(found, Failed):
            missing = "No module named 'harness'" in found.words
            self.misfits[address] = "it has not the harness" if missing else f"it cannot run ours: {found.words}"
        elif "misfit" in found.answer:
            self.misfits[address] = str(found.answer["misfit"])
        else:
            self._fit.add(address)
            facts[address] = restored(EngineFacts, found.answer["facts"])

    def _demand_alike(self, facts: dict[str, EngineFacts]) -> None:
        engines: dict[str, list[str]] = {}
        for address in sorted(facts):
            engines.setdefault(likeness(facts[address]), []).append(address)
        problems = [f"{address}: {why}" for address, why in sorted(self.misfits.items()) if address in self._here]
        if len(engines) > 1:
            for alike in engines.values():
                one = facts[alike[0]]
                problems.append(
                    f"{shortly(alike)}: the engine's version is {one.version}, its fingerprint {one.fingerprint[:12]}"
                )
        if problems:
            raise InputError(
                "workers of the cluster are not fit for this evaluation:\n  " + "\n  ".join(problems),
                remedy="Give all of them the same harness, engines and folders",
            )
        if not facts:
            raise EngineError("all workers went before they had said what they are", remedy="Start them again")
        if len({one.settings for one in facts.values()}) > 1:
            self._told("workers take different paths to the same result; the log names the first one's settings")
