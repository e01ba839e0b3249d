"""What drivers last said of links and devices: it outlives the trial in which they said it."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.observation import DeviceState, LinkBack, LinkLost, ListeningProved, Observation, Status, Wake


@dataclass(slots=True)
class BenchState:
    """lost: sources whose link is down. gone: connections whose device says that it is gone, or whose last will did.

    why: source → what was last said of its loss. states: connection → its device's state. woke_s: … → last wake event.
    """

    lost: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    why: dict[str, str] = field(default_factory=dict)
    states: dict[str, DeviceState] = field(default_factory=dict)
    woke_s: dict[str, float] = field(default_factory=dict)

    def see(self, observation: Observation) -> None:
        """Takes in one more observation."""
        match observation:
            case LinkLost(source=source, what=what):
                self.lost.add(source)
                self.why[source] = what
            case LinkBack(source=source):
                self.lost.discard(source)
            case Status(source=source, state=state, detail=detail):
                self.states[source] = state
                if state is DeviceState.GONE:
                    self.gone.add(source)
                    if source not in self.lost:
                        self.why[source] = f"it says that it is gone{': ' if detail else ''}{detail}"
                else:
                    self.gone.discard(source)
            case ListeningProved(source=source):  # a last will may come after the device's new start
                self.gone.discard(source)
            case Wake(source=source, at=at):
                self.woke_s[source] = max(at.at_s, self.woke_s.get(source, at.at_s))
            case _:
                pass

    def copy(self) -> BenchState:
        """One that changes by itself."""
        return BenchState(set(self.lost), set(self.gone), dict(self.why), dict(self.states), dict(self.woke_s))
