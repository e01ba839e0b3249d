"""What the driver's thread asks of whoever speaks with the far end. No peer does I/O; all is called under one lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.devices.wire.adpcm import Pcm
from harness.model.observation import Observation
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

Tell = Callable[[Observation], None]


class Peer(Protocol):
    """One far end, over all its boots and all the times that its port was open."""

    @property
    def ready(self) -> bool:
        """Everything is known that has to be, and it answers."""
        ...

    def linked(self, now_s: float) -> None:
        """The port is open (again)."""
        ...

    def lost(self, now_s: float) -> None:
        """It is gone, or silent: what plays has ended."""
        ...

    def received(self, data: bytes, at: Stamp) -> None: ...
    def tick(self, now_s: float, error_s: float) -> str:
        """Time has passed; says why the far end is to be taken for lost, or ""."""
        ...

    def output(self, now_s: float) -> bytes:
        """What to write now."""
        ...

    def wait_s(self, now_s: float) -> float | None:
        """Until `output` or `tick` may have something; None: not before something arrives."""
        ...

    @property
    def rate_hz(self) -> int | None:
        """At which it takes sound; None: it takes none, or it is not known yet."""
        ...

    def prepared(self, waveform: Waveform, rate_hz: int) -> tuple[Pcm, object]:
        """The sound as it is to go out. Takes its time: called without the lock."""
        ...

    def play(self, play_id: str, sound: tuple[Pcm, object], rate_hz: int, now_s: float) -> None: ...
    def stop(self, now_s: float) -> None: ...
    def level_dbfs(self) -> float | None: ...
