#ifndef VH_FUZZ_H
#define VH_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls as well: clang -fsanitize=fuzzer links without driver.c. */
int LLVMFuzzerTestOneInput(uint8_t const *bytes, size_t size);

#endif
