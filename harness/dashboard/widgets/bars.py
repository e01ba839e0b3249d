"""Lines across the screen: title, progress, notice and keys."""

from __future__ import annotations

from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.watch import Notice, View
from harness.dashboard.widgets.painted import Painted
from harness.dashboard.widgets.state_word import state_line, state_words
from harness.dashboard.wording import time_left


class Line(Painted):
    """One line of text."""

    DEFAULT_CSS = "Line { height: 1; padding: 0 1; }"

    def __init__(self, text: Text | None = None, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._text = text or Text()

    def write(self, text: Text) -> None:
        if text != self._text or text.spans != self._text.spans:
            self._text = text
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        return self._text.copy()


class TitleLine(Line):
    DEFAULT_CSS = "TitleLine { background: $panel; }"

    def show(self, view: View) -> None:
        session = view.progress.session
        if session is None:
            self.write(Text("voice-harness", style=palette.QUIET))
            return
        text = Text.assemble((plain_text(session.title or session.scenario_id, 40), f"bold {palette.TEXT}"))
        text.append(f"  on {plain_text(session.bench_id, 20)}", style=palette.QUIET)
        text.append(f"  {plain_text(session.session_id, 40)}", style=palette.QUIET)
        text.append(f"  sound: {plain_text(session.sound_path.partition(';')[0], 40)}", style=palette.QUIET)
        self.write(text)


class StateLine(Line):
    def show(self, view: View) -> None:
        self.write(Text(state_line(view), style=palette.TEXT))


class ProgressLine(Painted):
    """A bar, the count and the time left."""

    DEFAULT_CSS = "ProgressLine { height: 1; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: tuple[int, int, str] = (0, 0, "")

    def show(self, view: View) -> None:
        totals, progress = view.progress.totals, view.progress
        all_played = totals.planned > 0 and totals.finished == totals.planned and progress.running is None
        left = "finished" if progress.finished else "all played" if all_played else time_left(progress.eta_s)
        shown = (totals.finished, totals.planned, left)
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        done, planned, left = self._shown
        share = done / planned if planned else 0.0
        percent = f"{share * 100:.0f} %" if planned else "n/a"
        words = f"  {done} of {planned} trials, {percent} · {left}"
        room = max(4, width - max(46, len(words)))
        filled = round(share * room)
        text = Text("━" * filled, style=palette.GREEN)
        text.append("─" * (room - filled), style=palette.RULE)
        text.append(words, style=palette.TEXT)
        return text


class NoticeLine(Line):
    """What became of the last command."""

    def show(self, notice: Notice | None) -> None:
        if notice is None:
            self.write(Text())
            return
        colour = {True: palette.GREEN, False: palette.RED, None: palette.YELLOW}[notice.ok]
        self.write(Text(plain_text(notice.text, 160), style=colour))


class KeyBar(Line):
    """The keys that work here; always in sight."""

    DEFAULT_CSS = "KeyBar { background: $panel; }"

    def __init__(self, keys: tuple[tuple[str, str], ...], *, id: str | None = None) -> None:
        super().__init__(self._words(keys), id=id)

    def offer(self, keys: tuple[tuple[str, str], ...]) -> None:
        self.write(self._words(keys))

    @staticmethod
    def _words(keys: tuple[tuple[str, str], ...]) -> Text:
        text = Text()
        for key, what in keys:
            text.append(key, style=f"bold {palette.BLUE}")
            text.append(f" {what}  ", style=palette.TEXT)
        text.rstrip()
        return text


class StateStrip(Line):
    """The state in one line, for screens that hide the large word."""

    def show(self, view: View) -> None:
        word, colour = state_words(view)
        text = Text.assemble((word, f"bold {colour}"))
        text.append(f"  {state_line(view)}", style=palette.QUIET)
        self.write(text)


class GoneBanner(Painted):
    """What to do when the engine is not there any more; not shown while it is."""

    DEFAULT_CSS = """
    GoneBanner { height: 3; padding: 0 1; background: $panel; border-left: thick $error; display: none; }
    GoneBanner.-shown { display: block; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[str, str, str] = ("", "", "")

    def show(self, view: View) -> None:
        folder = plain_text(view.welcome.session_folder, 200) if view.welcome else "SESSION"
        if view.gone is not None:
            lines = (
                f"The engine is gone: {view.gone}",
                "Nothing that was logged is lost. Go on where it stopped:",
                f"harness resume {folder}",
            )
        elif view.goodbye is not None:
            why = plain_text(view.goodbye.reason, 120) or "the session is over"
            lines = (
                f"The engine has ended: {why} (exit status {view.goodbye.exit_code})",
                "Leave with ctrl+q. The figures again at any time:",
                f"harness show {folder}",
            )
        else:
            lines = ("", "", "")
        if lines != self._lines:
            self._lines = lines
            self.set_class(bool(lines[0]), "-shown")
            self.refresh()

    def paint(self, width: int, height: int) -> Text:
        text = Text(f"{self._lines[0]}\n", style=f"bold {palette.TEXT}")
        text.append(f"{self._lines[1]}\n", style=palette.TEXT)
        text.append(self._lines[2], style=f"bold {palette.YELLOW}")
        return text
