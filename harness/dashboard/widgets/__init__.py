"""What the screens are made of. Each draws from a `View`; none asks the engine for anything."""
