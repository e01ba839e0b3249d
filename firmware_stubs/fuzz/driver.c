/* Drives a fuzz target where there is no libFuzzer: the files that are named, and changes of them for some seconds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

enum { ROOM = 8192, SEEDS = 256 };

static uint64_t state;
static uint8_t seeds[SEEDS][ROOM];
static size_t sizes[SEEDS];
static size_t seed_count;
static uint8_t input[ROOM];
static size_t input_size;

uint32_t fuzz_dice(uint32_t sides) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % sides;
}

/* A sanitizer's finding ends in SIGABRT as well. */
char const *__asan_default_options(void);
char const *__asan_default_options(void) { return "abort_on_error=1:detect_leaks=0"; }
char const *__ubsan_default_options(void);
char const *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }

/* Keeps the input that made the target fail. */
static void fallen(int signal) {
    FILE *file = fopen("crash.bin", "wb");
    if (file != NULL) {
        (void)fwrite(input, 1, input_size, file);
        (void)fclose(file);
    }
    _exit(128 + signal);
}

static void change(void) {
    uint32_t from = fuzz_dice((uint32_t)seed_count + 1);
    input_size = 0;
    if (from < seed_count) {
        memcpy(input, seeds[from], sizes[from]);
        input_size = sizes[from];
    }
    for (uint32_t i = fuzz_dice(8); i > 0; i--) {
        input_size += fuzz_piece(input + input_size, ROOM - input_size);
    }
    for (uint32_t i = fuzz_dice(6); i > 0 && input_size > 0; i--) {
        size_t at = fuzz_dice((uint32_t)input_size);
        switch (fuzz_dice(4)) {
        case 0:
            input[at] = (uint8_t)fuzz_dice(256);
            break;
        case 1:
            input[at] ^= (uint8_t)(1u << fuzz_dice(8));
            break;
        case 2:
            memmove(input + at, input + at + 1, input_size - at - 1);
            input_size--;
            break;
        default: {
            size_t run = fuzz_dice(2000);
            run = run < ROOM - at ? run : ROOM - at;
            memset(input + at, (int)fuzz_dice(256), run);
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
