"""Where everything stands, at 80×24 and upwards."""

from __future__ import annotations

CSS = """
#body { height: 1fr; }
#left { width: 1fr; }
#right { width: 37; margin-left: 1; }
#trials { height: 3fr; }
#events { height: 2fr; }
#response { height: 6; }
#response Waveform { height: 2; }
#frame { display: none; height: 5; }
#totals { height: 1fr; }
/* Where frames are expected, what was understood stands where the shape of the sound did. */
.-frames #frame { display: block; }
.-frames #response { height: 4; }
.-frames #response Waveform { display: none; }
#devices { height: 8; }
#unmatched { height: 1fr; min-height: 6; }
#trials, #events, #response, #frame, #totals, #devices, #unmatched {
    border-top: solid $panel-lighten-3;
    border-title-color: $foreground-muted;
    border-title-align: left;
    padding: 0 1;
}
#trials:focus, #events:focus, #devices:focus, #unmatched:focus {
    border-top: solid $primary;
    border-title-color: $primary;
}
#wave { height: 2; margin: 0 1; }
#strip { background: $panel; }

/* Smaller than what is promised: the state, the trials and the keys stay. */
.-slim #right { display: none; }
.-flat StateWordBanner { height: 1; }
.-flat LevelMeters, .-flat #events, .-flat #wave { display: none; }
.-flat ItemText { height: 3; }

.-wide #right { width: 46; }
.-tall #response { height: 10; }
.-tall #response Waveform { height: 4; }
.-tall.-frames #response { height: 8; }
.-tall.-frames #response Waveform { display: block; height: 3; }
.-tall.-frames #frame { height: 7; }
.-tall StateWordBanner { height: 5; }
.-tall ItemText { height: 6; padding: 1 1; }
.-tall #wave { height: 5; }
.-tall CategoryKeys { margin-top: 1; }
RatingScreen CategoryKeys { height: 1fr; }
"""
