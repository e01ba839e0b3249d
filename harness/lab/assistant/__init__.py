"""The reference assistant: a voice device that hears only its microphone. Its settings can add faults."""
