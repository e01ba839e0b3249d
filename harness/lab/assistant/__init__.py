"""The reference assistant: a voice device that hears only its microphone and can be made worse on purpose."""
