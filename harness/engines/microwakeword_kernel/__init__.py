"""microWakeWord over whole stretches of sound: its features and its int8 network in C, bit-exact."""
