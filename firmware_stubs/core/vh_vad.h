/* Detects speech: compares the energy of 10 ms with a noise floor that follows the quietest of the last seconds. */
#ifndef VH_VAD_H
#define VH_VAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VH_VAD_FRAME 160u
#define VH_VAD_HANGOVER 30u /* frames that count as speech after the last loud one */

typedef struct vh_vad {
    uint64_t energy;  /* sum of squares of the frame that is being filled */
    uint32_t filled;
    uint32_t floor;   /* mean square */
    uint32_t hangover;
} vh_vad;

void vh_vad_init(vh_vad *vad);
void vh_vad_feed(vh_vad *vad, int16_t const *samples, size_t count);
bool vh_vad_speech(vh_vad const *vad);

#endif
