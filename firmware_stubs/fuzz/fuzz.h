#ifndef VH_FUZZ_H
#define VH_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls as well: clang -fsanitize=fuzzer links without driver.c. */
int LLVMFuzzerTestOneInput(uint8_t const *bytes, size_t size);

/* Of the target: a good piece of input of a random kind, so that what lies behind a checksum or a length is reached. */
size_t fuzz_piece(uint8_t *into, size_t room);

/* Of driver.c: 0 … sides - 1. */
uint32_t fuzz_dice(uint32_t sides);

/* Of pieces.c: a valid frame to the board, of a random kind. */
size_t fuzz_frame(uint8_t *into, size_t room);

#endif
