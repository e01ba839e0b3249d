"""Lines about a rater's sitting: item, progress, draft, and trouble."""

from __future__ import annotations

from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.bars import TextLine, ValueWidget, progress_bar
from harness.model.numbers import seconds, time_left
from harness.rating.guide import SUB_FLAG_TEXTS
from harness.rating.view import CONFIDENCE_TEXTS, SittingPhase, SittingView, repetition_text


class SittingTitle(TextLine):
    """Round, item and rater."""

    DEFAULT_CSS = "SittingTitle { background: $panel; }"

    def show(self, view: SittingView, title: str) -> None:
        text = Text()
        if view.phase is SittingPhase.TRAINING:
            done_count, exercise_count = view.exercises
            current = done_count + 1 if view.explanation is None else done_count
            number = max(1, min(current, exercise_count))
            text.append("TRAINING", style=f"bold {palette.YELLOW}")
            repetition = repetition_text(view)
            note = f" {repetition}" if repetition else ", nothing counts yet"
            text.append(f" {number} of {exercise_count}{note}", style=palette.TEXT)
        elif view.item is not None:
            text = Text.assemble(
                ("Settling" if view.adjudicating else "Judging", f"bold {palette.TEXT}"),
                (f" item {view.position} of {view.count.total}{' so far' if view.growing else ''}", palette.TEXT),
                (" again" if view.is_reopened else "", f"bold {palette.VIOLET}"),
                (f"  {view.item.id}", palette.QUIET),
            )
        else:
            text.append("Finished", style=f"bold {palette.GREEN}")
        text.append(f"   {plain_text(title, 30)}   rater {plain_text(view.rater, 24)}", style=palette.QUIET)
        self.write(text)


class SittingProgress(ValueWidget[SittingView]):
    """A bar, the counts, the pace and the time left."""

    DEFAULT_CSS = "SittingProgress { height: 1; padding: 0 1; }"

    def draw(self, view: SittingView, width: int, height: int) -> Text:
        count = view.count
        counts = [f"{count.done} done", f"{count.left} left"]
        rarer = ((count.held, "held"), (count.skipped, "skipped"), (count.flagged, "flagged"))
        counts += [f"{number} {word}" for number, word in rarer if number]
        words = ", ".join(counts)
        if count.left and view.pace_s is not None:
            words += f" · {seconds(view.pace_s)} each · {time_left(view.left_s)}"
        share = count.done / count.total if count.total else 0.0
        return progress_bar(share, max(4, width - max(50, len(words) + 2))).append(f"  {words}", style=palette.TEXT)


class DraftLine(TextLine):
    """The draft values, which are saved with the next category."""

    def show(self, view: SittingView) -> None:
        draft = view.draft
        parts = [] if draft.confidence is None else [f"{draft.confidence} {CONFIDENCE_TEXTS[draft.confidence]}"]
        parts += [SUB_FLAG_TEXTS[flag] for flag in draft.sub_flags]
        parts += [f"“{plain_text(draft.comment, 300)}”"] if draft.comment else []
        self.write(Text.assemble(("draft " if parts else "", palette.QUIET), (" · ".join(parts), palette.YELLOW)))


class MessageLine(TextLine):
    """The answer to the last key, and a break when it is due."""

    def show(self, message: str, colour: str, *, break_due: bool) -> None:
        text = Text(plain_text(message, 300), style=colour)
        if break_due:
            text.append("  " if message else "", style=palette.QUIET)
            text.append("You have judged for a long time: take a short break.", style=palette.VIOLET)
        self.write(text)


class Trouble(ValueWidget[tuple[str, str]]):
    """Why saving failed; hidden while it works."""

    DEFAULT_CSS = """
    Trouble { height: 3; padding: 0 1; background: $panel; border-left: thick $error; display: none; }
    Trouble.-shown { display: block; }
    """

    def show(self, value: tuple[str, str] | None) -> None:
        """Shows a fault. value: the fault and the remedy; None hides them."""
        self.set_class(value is not None, "-shown")
        super().show(value)

    def draw(self, value: tuple[str, str], width: int, height: int) -> Text:
        problem, remedy = (plain_text(text, 300) if text else "" for text in value)
        return Text.assemble(
            ("NOT SAVED, so the response stays on screen\n", f"bold {palette.RED}"),
            (f"{problem}\n", palette.TEXT),
            (remedy or "Press the key again when this is fixed.", palette.YELLOW),
        )
