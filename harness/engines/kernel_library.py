"""Our C kernels as shared libraries: built with the package beside the module that calls them, or not there."""

from __future__ import annotations

import ctypes
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path


class NoKernel(RuntimeError):
    """The kernel is not here, is of another version, or this processor has not what it needs."""


def load_kernel(folder: Path, version: int) -> ctypes.CDLL:
    """The kernel that was built in a folder; NoKernel when it was not, or is of another version."""
    found = [path for suffix in EXTENSION_SUFFIXES if (path := folder / f"_kernel{suffix}").is_file()]
    if not found:
        raise NoKernel("the kernel was not built when voice-harness was installed")
    try:
        kernel = ctypes.CDLL(str(found[0]))
    except OSError as error:
        raise NoKernel(f"the kernel does not load: {error}") from error
    if kernel.vh_version() != version:
        raise NoKernel(f"the kernel is of version {kernel.vh_version()}, not {version}")
    return kernel
