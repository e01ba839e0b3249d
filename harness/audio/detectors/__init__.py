"""Speech detectors behind the `SpeechDetector` port; entry points of `harness.speech_detectors`."""
