/* Drives a fuzz target where there is no libFuzzer: the files that are named, and changes of them for some seconds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "vh_frames.h"

enum { ROOM = 8192, SEEDS = 256 };

static uint64_t state;
static uint8_t seeds[SEEDS][ROOM];
static size_t sizes[SEEDS];
static size_t seed_count;
static uint8_t input[ROOM];
static size_t input_size;

static uint32_t dice(uint32_t sides) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % sides;
}

/* The input that it fell over is kept. */
static void fallen(int signal) {
    FILE *file = fopen("crash.bin", "wb");
    if (file != NULL) {
        (void)fwrite(input, 1, input_size, file);
        (void)fclose(file);
    }
    _exit(128 + signal);
}

/* A true frame of a random kind, so that what lies behind the checksum is reached too. */
static size_t frame(uint8_t *into, size_t room) {
    static uint8_t const types[] = {0x01, 0x02, 0x03, 0x04, 0x06, 0x07, 0x84, 0x05};
    uint8_t payload[VH_PAYLOAD_MAX];
    size_t size = dice(4) == 0 ? dice(VH_PAYLOAD_MAX + 1) : dice(40);
    for (size_t i = 0; i < size; i++) {
        payload[i] = (uint8_t)(dice(3) == 0 ? 0 : dice(256));
    }
    if (size > 2 && dice(2) == 0) {
        memset(payload, 0, size < 10 ? size : 10);
        payload[0] = (uint8_t)dice(4);
    }
    return vh_frame_encode(types[dice(dice(50) == 0 ? 8 : 7)], dice(5), payload, size, into, room);
}

static void change(void) {
    uint32_t from = dice((uint32_t)seed_count + 1);
    input_size = 0;
    if (from < seed_count) {
        memcpy(input, seeds[from], sizes[from]);
        input_size = sizes[from];
    }
    for (uint32_t i = dice(8); i > 0; i--) {
        input_size += frame(input + input_size, ROOM - input_size);
    }
    for (uint32_t i = dice(6); i > 0 && input_size > 0; i--) {
        size_t at = dice((uint32_t)input_size);
        switch (dice(4)) {
        case 0:
            input[at] = (uint8_t)dice(256);
            break;
        case 1:
            input[at] ^= (uint8_t)(1u << dice(8));
            break;
        case 2:
            memmove(input + at, input + at + 1, input_size - at - 1);
            input_size--;
            break;
        default: {
            size_t run = dice(2000);
            run = run < ROOM - at ? run : ROOM - at;
            memset(input + at, (int)dice(256), run);
            input_size = at + run > input_size ? at + run : input_size;
        }
        }
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        (void)fputs("usage: fuzz SECONDS SEED [FILE…]\n", stderr);
        return 2;
    }
    double seconds = atof(arguments[1]);
    state = strtoull(arguments[2], NULL, 10) * 0x9E3779B97F4A7C15u + 1u;
    (void)signal(SIGABRT, fallen);
    for (int i = 3; i < count && seed_count < SEEDS; i++) {
        FILE *file = fopen(arguments[i], "rb");
        if (file == NULL) {
            perror(arguments[i]);
            return 1;
        }
        sizes[seed_count] = fread(seeds[seed_count], 1, ROOM, file);
        (void)fclose(file);
        memcpy(input, seeds[seed_count], sizes[seed_count]);
        input_size = sizes[seed_count];
        (void)LLVMFuzzerTestOneInput(input, input_size);
        seed_count++;
    }
    unsigned long runs = 0;
    struct timespec started;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &started);
    do {
        for (int i = 0; i < 100; i++, runs++) {
            change();
            (void)LLVMFuzzerTestOneInput(input, input_size);
        }
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - started.tv_sec) + (double)(now.tv_nsec - started.tv_nsec) * 1e-9 < seconds);
    (void)printf("%lu inputs, none fell over\n", runs);
    return 0;
}
