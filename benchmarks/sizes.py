"""How much data a benchmark works on: the usual amount or, with SMALLEST=1 in the environment, the least.

CI runs the smallest form of every benchmark (`make bench SMALLEST=1`) to see that it runs; its numbers mean nothing.
"""

from __future__ import annotations

import os
from typing import TypeVar

Amount = TypeVar("Amount")
SMALLEST = os.environ.get("SMALLEST", "0") not in ("", "0")


def sized(usual: Amount, smallest: Amount) -> Amount:
    """Returns `smallest` with SMALLEST=1, else `usual`."""
    return smallest if SMALLEST else usual
