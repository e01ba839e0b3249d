#include "vh_vad.h"

enum { FLOOR_LEAST = 64, LOUDER = 8 }; /* mean squares: -72 dBFS; 9 dB over the floor */

void vh_vad_init(vh_vad *vad) {
    vad->energy = 0;
    vad->filled = 0;
    vad->floor = FLOOR_LEAST;
    vad->hangover = 0;
}

void vh_vad_feed(vh_vad *vad, int16_t const *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        vad->energy += (uint64_t)((int64_t)samples[i] * samples[i]);
        if (++vad->filled < VH_VAD_FRAME) {
            continue;
        }
        uint32_t mean = (uint32_t)(vad->energy / VH_VAD_FRAME);
        if (mean / LOUDER > vad->floor) {
            vad->hangover = VH_VAD_HANGOVER;
        } else if (vad->hangover > 0) {
            vad->hangover--;
        }
        /* Down at once, up by 1/128 a frame (a factor of e in 1.3 s), so that speech hardly lifts it. */
        vad->floor = mean < vad->floor ? mean : vad->floor + vad->floor / 128u;
        vad->floor = vad->floor < FLOOR_LEAST ? FLOOR_LEAST : vad->floor;
        vad->energy = 0;
        vad->filled = 0;
    }
}

bool vh_vad_speech(vh_vad const *vad) { return vad->hangover > 0; }
