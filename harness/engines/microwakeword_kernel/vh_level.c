#include "vh_kernel.h"

static int32_t limit = VH_AVX512;

int32_t vh_version(void) { return VH_VERSION; }

int32_t vh_level(void) {
    int32_t supported = VH_PLAIN;
#ifdef VH_LEVELLED
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        supported = VH_AVX2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512cd")) {
            supported = VH_AVX512;
        }
    }
#endif
    return supported < limit ? supported : limit;
}

int32_t vh_limit(int32_t most) {
    limit = most;
    return vh_level();
}
