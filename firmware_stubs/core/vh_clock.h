/* Time since boot, from a free-running counter that wraps around. */
#ifndef VH_CLOCK_H
#define VH_CLOCK_H

#include <stdint.h>

typedef struct vh_clock {
    uint64_t ticks;  /* since boot, at `counter` */
    uint32_t counter;
    uint32_t hz;
    uint64_t start_us; /* time that the clock shows at boot */
} vh_clock;

void vh_clock_start(vh_clock *clock, uint32_t counter, uint32_t hz, uint64_t start_us);

/*
 * µs since boot at a reading of the counter. Readings may be up to half a turn older than the newest one; they must
 * come more often than once in half a turn.
 */
uint64_t vh_clock_us(vh_clock *clock, uint32_t counter);

#endif
