"""SciPy's special functions, without the other imports of `scipy.special` (see docs/decisions/code.md)."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import scipy

_NAME = "scipy.special"


def _load() -> ModuleType:
    # Another thread might import the package while a stand-in takes its place.
    if _NAME not in sys.modules and threading.active_count() == 1:
        placeholder = ModuleType(_NAME)
        placeholder.__path__ = [str(Path(scipy.__file__).with_name("special"))]
        sys.modules[_NAME] = placeholder
        try:
            with suppress(ImportError):  # other versions of SciPy have them elsewhere
                return import_module(f"{_NAME}._ufuncs")
        finally:
            del sys.modules[_NAME]
    return import_module(_NAME)


if TYPE_CHECKING:
    from scipy import special
else:
    special = _load()

__all__ = ["special"]
