"""Pure arithmetic over the model."""
