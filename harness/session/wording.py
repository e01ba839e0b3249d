"""Causes as rows keep them: a code word, and after a colon what there is to say (docs/trials.md)."""

from __future__ import annotations

from harness.model.observation import Unread


def in_words(cause: str) -> str:
    """For people: `link_lost: kitchen: the port is gone` → `link lost: kitchen: the port is gone`."""
    code, colon, more = cause.partition(":")
    return code.replace("_", " ") + colon + more


def unread_in_words(seen: Unread) -> str:
    """Words of a device that were lost on our side."""
    return f"{seen.count} lines, the last because {seen.what}" if seen.count > 1 else seen.what
