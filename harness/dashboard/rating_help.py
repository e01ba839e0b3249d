"""The whole guide as a rater reads it on `g`, and an item in full."""

from __future__ import annotations

from rich.text import Text

from harness.dashboard import palette
from harness.model.judgment import SUB_FLAGS_OF, Category, RaterKeys
from harness.rating.guide import GUIDE, LABELS, RULES, SUB_FLAG_TEXTS


def guide_text(keys: RaterKeys) -> Text:
    """Rules, then each category with its key, test, examples and sub-flags."""
    text = Text.assemble(("How to judge\n\n", f"bold {palette.TEXT}"))
    for rule in RULES:
        text.append(f"· {rule}\n", style=palette.TEXT)
    for category in Category:
        guide = GUIDE[category]
        text.append(f"\n{keys.categories[category]} ", style=f"bold {palette.BLUE}")
        text.append(f"{LABELS[category]}", style=f"bold {palette.TEXT}")
        text.append(f"  {guide.short}\n", style=palette.QUIET)
        text.append(f"{guide.test}\n", style=palette.TEXT)
        for example in guide.examples:
            seen = f" ({example.seen})" if example.seen else ""
            text.append(f"  “{example.query}” “{example.response}”{seen}\n", style=palette.QUIET)
        flags = SUB_FLAGS_OF.get(category, ())
        if flags:
            words = ", ".join(SUB_FLAG_TEXTS[flag] for flag in flags)
            text.append(f"  beside it: {words}\n", style=palette.VIOLET)
    return text
