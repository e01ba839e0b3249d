/* Front end of the spotter: PCM16 to mel-band levels relative to a slow peak, one frame every 20 ms, integers only. */
#ifndef VH_SPOTTER_FRONT_H
#define VH_SPOTTER_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VH_SPOTTER_WINDOW 400u /* samples: 25 ms */
#define VH_SPOTTER_HOP 320u    /* samples: 20 ms */
#define VH_SPOTTER_BANDS 16u

typedef struct {
    int16_t pcm[VH_SPOTTER_WINDOW];
    uint16_t filled;    /* samples waiting in pcm */
    int32_t peak_level; /* of the loudest band, falling slowly: log2 of power in 1/256 */
    int32_t work[512];  /* the spectrum of one frame, re and im in turn */
} vh_spotter_front_t;

void vh_spotter_front_init(vh_spotter_front_t *front);

/* Processes one sample. True when a frame is complete: `levels` then holds its bands, 0 (48 dB below the peak, or silence)
 * to 127 (the peak), 0.376 dB a step. */
bool vh_spotter_front_feed(vh_spotter_front_t *front, int16_t sample, int8_t levels[VH_SPOTTER_BANDS]);

#ifdef __cplusplus
}
#endif
#endif
