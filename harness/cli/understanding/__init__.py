"""`harness understand`: intents and slots, scored and predicted."""
