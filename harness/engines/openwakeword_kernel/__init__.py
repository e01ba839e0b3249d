"""The convolutions of openWakeWord's embedding in C, with half of the multiplications."""
