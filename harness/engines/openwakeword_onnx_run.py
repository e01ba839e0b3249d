"""Runs ONNX models on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from harness.model.errors import PluginError

Array = npt.NDArray[np.float32]


class OnnxModel:
    """A loaded model with one output; ValueError when onnxruntime cannot run it, PluginError when it is missing."""

    def __init__(self, content: bytes) -> None:
        try:
            import onnxruntime
            from onnxruntime.capi import onnxruntime_pybind11_state as states
        except ImportError as error:
            raise PluginError(
                "openWakeWord's fast path and its ONNX models need onnxruntime, which is not installed",
                remedy="Install the extra that carries it: pip install 'voice-harness[openwakeword]'",
            ) from error
        options = onnxruntime.SessionOptions()
        # Processes are what an evaluation runs side by side; a thread of its own would take another one's core.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        failures = (states.Fail, states.InvalidProtobuf, states.InvalidGraph, states.InvalidArgument,
                    states.NotImplemented, states.RuntimeException, states.NoModel, states.NoSuchFile)  # fmt: skip
        try:
            self._session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except failures as error:
            raise ValueError(f"onnxruntime does not take it: {_first_line(error)}") from error
        self._failures = failures
        self.inputs: dict[str, tuple[int | str | None, ...]] = {
            one.name: tuple(one.shape) for one in self._session.get_inputs()
        }
        self.element_types: tuple[str, ...] = tuple(one.type for one in self._session.get_inputs())
        self.outputs = len(self._session.get_outputs())

    def __call__(self, **inputs: Array) -> Array:
        """The first output; ValueError when the model fails on these shapes."""
        try:
            found: Array = self._session.run(None, inputs)[0]
        except self._failures as error:
            raise ValueError(f"onnxruntime failed in it: {_first_line(error)}") from error
        return found


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__
