"""The input for texts of people: it keeps a text unchanged, and shows every character safely on one line."""

from __future__ import annotations

from functools import lru_cache, partial

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.widgets import Input

from harness.base.foreign import plain_text

_PICTURES = {"\n": "⏎", "\t": "⇥", "\x7f": "␡"}
PASTE_GAP_S = 0.02
"""Keys that arrive within this time, in seconds, are pasted text: nobody types as fast."""
_PLACEHOLDER = "·"
"""Stands for a character that a terminal does not show, such as a joiner."""


@lru_cache(maxsize=4096)
def safe_character(character: str) -> str:
    """The one character that a terminal shows for a character of a text."""
    if character in _PICTURES:
        return _PICTURES[character]
    if character < " ":
        return chr(0x2400 + ord(character))  # the picture of a control
    visible = plain_text(character, 20)
    return visible if len(visible) == 1 else _PLACEHOLDER


@lru_cache(maxsize=4096)
def _cell_width(character: str) -> int:
    return cell_len(safe_character(character))


def _is_text(character: str | None) -> bool:
    """Whether a key enters a character, which may be a joiner or a blank of another width."""
    return character is not None and len(character) == 1 and character >= " " and character != "\x7f"


class VerbatimInput(Input):
    """An input whose `value` is the typed or pasted text with all its lines. Only line ends change, to LF.

    Enter runs the screen's action `send`, escape `leave`, in the order of the keys: bindings would run later, when this
    field has taken further keys. Some terminals do not mark pasted text. There, a character that arrives together with
    an enter shows that lines are pasted, and that enter ends a line.
    """

    def __init__(self, value: str = "", placeholder: str = "") -> None:
        super().__init__(value, placeholder, select_on_focus=False)
        self._enters: list[events.Key] = []
        """Enters that were pressed last. It is not known yet whether they send the text or end pasted lines."""

    @property
    def _value(self) -> Text:
        return Text("".join(map(safe_character, self.value)), no_wrap=True, overflow="ignore", end="")

    def _position_to_cell(self, position: int) -> int:
        return sum(map(_cell_width, self.value[:position]))

    def _cell_offset_to_index(self, offset: int) -> int:
        cell = offset + self.scroll_offset.x
        for index, character in enumerate(self.value):
            cell -= _cell_width(character)
            if cell < 0:
                return index
        return len(self.value)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return _is_text(character)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self._enters.append(event)
            # Keys that a busy app has read by then, and not passed on yet, come first. The app has a queue, and so has
            # this field.
            self.set_timer(PASTE_GAP_S, partial(self.app.call_later, self.call_later, self._send_if_last, event))
            return
        enters, self._enters = self._enters, []
        if enters and _is_text(event.character) and event.time - enters[-1].time < PASTE_GAP_S:
            self.replace("\n" * len(enters), *self.selection)
        elif enters or event.key == "escape":
            # A key after an enter belongs to the next screen; it is dropped.
            event.stop()
            event.prevent_default()
            await self.run_action("screen.send" if enters else "screen.leave")
            return
        if _is_text(event.character) and not event.is_printable:
            event.stop()
            event.prevent_default()
            self.replace(event.character or "", *self.selection)
        else:
            await super()._on_key(event)

    async def _send_if_last(self, enter: events.Key) -> None:
        if self._enters and self._enters[-1] is enter:
            self._enters = []
            await self.run_action("screen.send")

    def _on_paste(self, event: events.Paste) -> None:
        """Keeps all pasted lines."""
        event.stop()
        event.prevent_default()
        self.replace(event.text.replace("\r\n", "\n").replace("\r", "\n"), *self.selection)
