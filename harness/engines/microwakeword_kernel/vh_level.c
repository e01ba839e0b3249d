#include "vh_kernel.h"

static int32_t limit = VH_AVX512;

int32_t vh_version(void) { return VH_VERSION; }

int32_t vh_level(void) {
    int32_t found = VH_PLAIN;
#ifdef VH_LEVELLED
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found = VH_AVX2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512cd")) {
            found = VH_AVX512;
        }
    }
#endif
    return found < limit ? found : limit;
}

int32_t vh_limit(int32_t most) {
    limit = most;
    return vh_level();
}
