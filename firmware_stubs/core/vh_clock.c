#include "vh_clock.h"

void vh_clock_start(vh_clock *clock, uint32_t counter, uint32_t hz, uint64_t start_us) {
    clock->ticks = 0;
    clock->counter = counter;
    clock->hz = hz;
    clock->start_us = start_us;
}

uint64_t vh_clock_us(vh_clock *clock, uint32_t counter) {
    uint32_t ahead = counter - clock->counter;
    uint64_t ticks;
    if (ahead < 0x80000000u) {
        clock->ticks += ahead;
        clock->counter = counter;
        ticks = clock->ticks;
    } else {
        uint32_t behind = 0u - ahead;
        ticks = clock->ticks > behind ? clock->ticks - behind : 0u;
    }
    return clock->start_us + ticks / clock->hz * 1000000u + ticks % clock->hz * 1000000u / clock->hz;
}
