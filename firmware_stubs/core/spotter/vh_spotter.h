/* Keyword spotter for "alexa": 16 kHz PCM16 in, (sample, score, phrase) out.
 *
 * Integer arithmetic only: the same audio gives the same sample indices and scores on every port and compiler, whatever
 * the sizes of the pieces in which it is fed. No malloc, no I/O, no clock. A test instrument, see README.md. */
#ifndef VH_SPOTTER_H
#define VH_SPOTTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VH_SPOTTER_RATE_HZ 16000u
#define VH_SPOTTER_PHRASE "alexa"
/* 0 wakes least, 100 most; this is where the figures of README.md were taken. */
#define VH_SPOTTER_OPERATING_POINT 50u

/* Shape of the front end and of the network; vh_spotter_tables.h is checked against it. */
#define VH_SPOTTER_WINDOW 400u   /* samples: 25 ms */
#define VH_SPOTTER_HOP 320u      /* samples: 20 ms */
#define VH_SPOTTER_BANDS 16u
#define VH_SPOTTER_KERNEL 5u     /* frames that a filter of the first and of the second layer spans */
#define VH_SPOTTER_FIRST 32u     /* filters of the first layer, one step every second frame */
#define VH_SPOTTER_SECOND 48u
#define VH_SPOTTER_SPAN 16u      /* steps that the third layer sees at once */
#define VH_SPOTTER_THIRD 24u

typedef struct {
    uint64_t sample;    /* samples fed since the reset when it was found: a property of the audio alone */
    uint16_t score;     /* 65535 = 1 */
    const char *phrase; /* static, NUL-terminated */
} vh_spotter_event_t;

/* Called from within vh_spotter_feed, in the order of the samples. */
typedef void (*vh_spotter_found_t)(void *user, const vh_spotter_event_t *event);

/* The caller owns it; its members belong to the spotter. */
typedef struct {
    uint64_t samples;          /* fed since the reset */
    uint32_t frames;           /* since the reset, modulo 2^32 */
    uint16_t filled;           /* samples waiting in pcm */
    uint8_t operating_point;
    int32_t peak_level;        /* slow peak of the loudest band, log2 in 1/256 */
    uint8_t first_filled, second_filled, third_filled;
    int8_t features[VH_SPOTTER_KERNEL][VH_SPOTTER_BANDS];
    int8_t first[VH_SPOTTER_KERNEL][VH_SPOTTER_FIRST];
    int8_t second[VH_SPOTTER_SPAN][VH_SPOTTER_SECOND];
    uint16_t score;            /* of the newest step */
    uint16_t smoothed;         /* over the last steps: what is compared with the threshold */
    uint16_t best;             /* highest of the candidate */
    uint8_t candidate_steps;   /* 0: none */
    uint8_t armed;             /* fell below half the threshold since the last event */
    uint64_t quiet_until;      /* refractory period, in samples */
    int16_t pcm[VH_SPOTTER_WINDOW];
    int32_t work[512];         /* the spectrum of one frame */
} vh_spotter_t;

/* An empty memory: sample 0 is the next one. The operating point goes back to VH_SPOTTER_OPERATING_POINT. */
void vh_spotter_init(vh_spotter_t *spotter);

/* An empty memory; the operating point stays. */
void vh_spotter_reset(vh_spotter_t *spotter);

/* Holds from the next sample on. Values over 100 count as 100. */
void vh_spotter_set_operating_point(vh_spotter_t *spotter, uint8_t operating_point);

/* Hears `count` samples, any number. `found` may be NULL. Returns the number of events. */
size_t vh_spotter_feed(vh_spotter_t *spotter, const int16_t *pcm, size_t count, vh_spotter_found_t found, void *user);

#ifdef __cplusplus
}
#endif
#endif
