"""The keys of a context-memory probe."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from harness.base.findings import Keys

LONGEST_WAIT_S = 3600
WaitS = Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)]


class SpreadKeys(Keys):
    """Waits that grow by the same factor from one to the next."""

    from_s: float = Field(gt=0, le=LONGEST_WAIT_S, alias="from", description="The shortest wait, s.")
    to: float = Field(gt=0, le=LONGEST_WAIT_S, description="The longest wait, s.")
    count: int = Field(ge=2, le=100, description="How many waits there are.")


def _mapping_or_list(written: Any) -> str:
    return "<mapping>" if isinstance(written, dict | SpreadKeys) else "<list>"


Waits = Annotated[
    Annotated[list[WaitS], Tag("<list>"), Field(min_length=1)] | Annotated[SpreadKeys, Tag("<mapping>")],
    Discriminator(_mapping_or_list),
]
