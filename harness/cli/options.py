"""Parameter types and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.places import shipped_folder


class ShippedFile(click.Path):
    """A path; one below `devices/` or `scenarios/` that is not here means the project's own file of that name.

    So the commands of the manual work from an installed package too, in any folder.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if not path.is_absolute() and path.parts and path.parts[0] in ("devices", "scenarios"):
            shipped = shipped_folder(path.parts[0]).joinpath(*path.parts[1:])
            if not path.exists() and shipped.exists():
                return shipped
        return path


SHIPPED_FILE = ShippedFile()
