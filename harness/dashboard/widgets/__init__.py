"""The widgets of the screens. They draw from a `View` and send the engine nothing."""
