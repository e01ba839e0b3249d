"""Normalisation files: a base, and the phrases that count as others."""

from __future__ import annotations

from pathlib import Path

from harness.model.rewriting import Rewriting


def load_normalisation(path: Path) -> Rewriting:
    """The normalisation of a file; InputProblems with all that is wrong with it, or InputError when it is no YAML."""
    raise NotImplementedError
