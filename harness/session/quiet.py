"""How long it has been quiet: the last sound of the device or of us, and speech that still goes on."""

from __future__ import annotations

from harness.model.time import Stamp
from harness.session.first_response import Span


class Quiet:
    """Follows the sounds of a trial. longest_s: speech that never ends is taken to be over after so long."""

    def __init__(self, longest_s: float) -> None:
        self.last_sound_s: float | None = None
        self.span: Span | None = None
        self._longest_s = longest_s

    def sounded(self, at_s: float) -> None:
        self.last_sound_s = at_s if self.last_sound_s is None else max(self.last_sound_s, at_s)

    def speech_started(self, at: Stamp) -> Span | None:
        """The new span; None when somebody was speaking already."""
        self.sounded(at.at_s)
        if self.span is not None:
            return None
        self.span = Span(at)
        return self.span

    def speech_ended(self, at: Stamp) -> None:
        self.sounded(at.at_s)
        if self.span is not None:
            self.span.ends = at if at.at_s >= self.span.starts.at_s else self.span.starts
            self.span = None

    def since(self, now_s: float) -> float | None:
        """Since when it has been quiet; None when nothing was heard at all. While somebody speaks: now."""
        if self.span is None:
            return self.last_sound_s
        return min(max(now_s, self.span.starts.at_s), self.span.starts.at_s + self._longest_s)

    def until(self, quiet_s: float, entered_s: float) -> float:
        """When it will have been quiet for so long if nothing more is heard, counted from `entered_s` in total silence.

        A device that never stops talking is not waited for for ever.
        """
        last_s = entered_s if self.last_sound_s is None else self.last_sound_s
        if self.span is not None:
            last_s = self.span.starts.at_s + self._longest_s
        return min(last_s + quiet_s, entered_s + quiet_s + 2 * self._longest_s)
