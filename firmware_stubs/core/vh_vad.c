#include "vh_vad.h"

enum { MIN_FLOOR = 64, SPEECH_FACTOR = 8 }; /* mean squares: -72 dBFS; 9 dB over the floor */

void vh_vad_init(vh_vad *vad) {
    vad->energy = 0;
    vad->filled = 0;
    vad->floor = MIN_FLOOR;
    vad->hangover = 0;
}

void vh_vad_feed(vh_vad *vad, int16_t const *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        vad->energy += (uint64_t)((int64_t)samples[i] * samples[i]);
        if (++vad->filled < VH_VAD_FRAME) {
            continue;
        }
        uint32_t mean = (uint32_t)(vad->energy / VH_VAD_FRAME);
        if (mean / SPEECH_FACTOR > vad->floor) {
            vad->hangover = VH_VAD_HANGOVER;
        } else if (vad->hangover > 0) {
            vad->hangover--;
        }
        /* Falls at once, and rises by 1/128 per frame (a factor of e in 1.3 s), so that speech hardly raises it. */
        vad->floor = mean < vad->floor ? mean : vad->floor + vad->floor / 128u;
        vad->floor = vad->floor < MIN_FLOOR ? MIN_FLOOR : vad->floor;
        vad->energy = 0;
        vad->filled = 0;
    }
}

bool vh_vad_speech(vh_vad const *vad) { return vad->hangover > 0; }
