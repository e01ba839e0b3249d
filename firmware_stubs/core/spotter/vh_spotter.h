/* Keyword spotter for "alexa": 16 kHz PCM16 in, (sample, score, phrase) out.
 *
 * Integer arithmetic only: the same audio gives the same sample indices and scores on every port and compiler, whatever
 * the sizes of the pieces in which it is fed. No malloc, no I/O, no clock. A test instrument, see README.md. */
#ifndef VH_SPOTTER_H
#define VH_SPOTTER_H

#include <stddef.h>
#include <stdint.h>

#include "vh_spotter_front.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VH_SPOTTER_RATE_HZ 16000u
#define VH_SPOTTER_PHRASE "alexa"
/* 0 wakes least, 100 most. The results in README.md were measured at this point. */
#define VH_SPOTTER_OPERATING_POINT 50u

/* Shape of the network; vh_spotter_tables.h is checked against it. */
#define VH_SPOTTER_KERNEL 5u /* frames, and steps, that a filter of the first and of the second layer spans */
#define VH_SPOTTER_FIRST 32u /* filters of the first layer; a step is every second frame */
#define VH_SPOTTER_SECOND 48u
#define VH_SPOTTER_SPAN 16u /* steps that the third layer sees at once */
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
    vh_spotter_front_t front;
    uint64_t samples;        /* fed since the reset */
    uint64_t quiet_until;    /* refractory period, in samples */
    uint8_t operating_point;
    uint8_t odd_frame;
    uint8_t candidate_steps; /* since the threshold was reached; 0: no candidate */
    uint8_t armed;           /* fell below half the threshold since the last event */
    uint16_t score;          /* of the newest step */
    uint16_t best;           /* highest mean of two steps of the candidate */
    int8_t levels[VH_SPOTTER_KERNEL][VH_SPOTTER_BANDS]; /* the newest is last, here and below */
    int8_t first[VH_SPOTTER_KERNEL][VH_SPOTTER_FIRST];
    int8_t second[VH_SPOTTER_SPAN][VH_SPOTTER_SECOND];
} vh_spotter_t;

/* Clears the memory: the next sample is number 0. The operating point returns to VH_SPOTTER_OPERATING_POINT. */
void vh_spotter_init(vh_spotter_t *spotter);

/* Clears the memory; keeps the operating point. */
void vh_spotter_reset(vh_spotter_t *spotter);

/* Applies from the next sample on. Values over 100 count as 100. */
void vh_spotter_set_operating_point(vh_spotter_t *spotter, uint8_t operating_point);

/* Processes `count` samples, any number. `found` may be NULL. Returns the number of events. */
size_t vh_spotter_feed(vh_spotter_t *spotter, const int16_t *pcm, size_t count, vh_spotter_found_t found, void *user);

#ifdef __cplusplus
}
#endif
#endif
