"""Stimuli to sound: voices, recordings, noise and level. `harness.stimuli.renderer.Renderer` is the way in."""
