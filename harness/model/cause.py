"""Causes as rows keep them: a code word, and after a colon what there is to say (docs/trials.md)."""

from __future__ import annotations


def in_words(cause: str) -> str:
    """For people: `link_lost: kitchen: the port is gone` → `link lost: kitchen: the port is gone`."""
    code, colon, more = cause.partition(":")
    return code.replace("_", " ") + colon + more
