"""Text to speech, one file an engine, found by the entry points of `harness.voices`."""
