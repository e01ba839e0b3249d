"""scipy.special, imported when the first of its functions is called: it takes longer than scoring a short file."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    return getattr(special, name)
