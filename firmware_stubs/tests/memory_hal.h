/* A port in memory: a test writes and reads the bytes of the line, and advances its time. */
#ifndef VH_MEMORY_HAL_H
#define VH_MEMORY_HAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct memory_hal {
    uint32_t counter;
    uint32_t boots;
    uint32_t resets;
    uint8_t in[65536];
    size_t in_size;
    uint8_t out[262144];
    size_t out_size;
    bool deaf; /* the line takes nothing */
} memory_hal;

extern memory_hal hal;

#endif
