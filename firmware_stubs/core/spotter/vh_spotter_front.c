#include "vh_spotter_front.h"

#include <string.h>

#include "vh_spotter_signal.h"

/* Levels are log2 of power in 1/256: 256 are 3.01 dB. */
#define LEVEL_STEP_BITS 5       /* 32 of them are one step of a feature */
#define LEVEL_FALL_A_FRAME 17   /* 10 dB a second */
#define POINTS 256u             /* complex points: 512 real samples, two at a time */

/* The right shift of a negative number depends on the compiler; this one does not. */
static int64_t shifted(int64_t value, unsigned bits) {
    return value >= 0 ? value >> bits : ~(~value >> bits);
}

static int32_t times(int32_t value, int32_t q15) {
    return (int32_t)shifted((int64_t)value * q15 + (1 << 14), 15);
}

/* W^k = exp(-2 pi i k / 512), 0 <= k <= 256, from a quarter of a sine. */
static int32_t cosine(unsigned k) { return k <= 128u ? vh_spotter_sine[128u - k] : -(int32_t)vh_spotter_sine[k - 128u]; }
static int32_t sine(unsigned k) { return k <= 128u ? vh_spotter_sine[k] : vh_spotter_sine[256u - k]; }

static unsigned reversed(unsigned value) {
    unsigned result = 0;
    for (unsigned bit = 0; bit < 8u; bit++) result |= ((value >> bit) & 1u) << (7u - bit);
    return result;
}

/* Windowed samples to bit-reversed complex pairs; the rest of the 512 is zero. 20 bits with the sign. */
static void load(vh_spotter_front_t *front) {
    memset(front->work, 0, sizeof front->work);
    for (unsigned n = 0; n < VH_SPOTTER_WINDOW; n++) {
        unsigned mirrored = n < VH_SPOTTER_WINDOW / 2u ? n : VH_SPOTTER_WINDOW - 1u - n;
        int32_t product = (int32_t)front->pcm[n] * vh_spotter_hann[mirrored];
        front->work[2u * reversed(n / 2u) + (n & 1u)] = (int32_t)shifted(product + (1 << 10), 11);
    }
}

/* In place, decimation in time, no scaling: |x| < 2^20 and 256 points stay below 2^28. */
static void transform(int32_t *z) {
    for (unsigned half = 1; half < POINTS; half *= 2u) {
        unsigned stride = POINTS / half; /* in 512ths of a turn: 512 / (2 * half) */
        for (unsigned k = 0; k < half; k++) {
            int32_t c = cosine(k * stride), s = sine(k * stride);
            for (unsigned i = k; i < POINTS; i += 2u * half) {
                int32_t *a = z + 2u * i, *b = a + 2u * half;
                int32_t re = (int32_t)shifted((int64_t)b[0] * c + (int64_t)b[1] * s + (1 << 14), 15);
                int32_t im = (int32_t)shifted((int64_t)b[1] * c - (int64_t)b[0] * s + (1 << 14), 15);
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
        }
    }
}

/* Power of real bin k, times 4, out of the transform of the pairs. */
static uint64_t power(const int32_t *z, unsigned k) {
    const int32_t *a = z + 2u * k, *b = z + 2u * (POINTS - k);
    int32_t even_re = a[0] + b[0], even_im = a[1] - b[1];
    int32_t odd_re = a[1] + b[1], odd_im = b[0] - a[0];
    int32_t c = cosine(k), s = sine(k);
    int64_t re = (int64_t)even_re + times(odd_re, c) + times(odd_im, s);
    int64_t im = (int64_t)even_im + times(odd_im, c) - times(odd_re, s);
    return (uint64_t)(re * re) + (uint64_t)(im * im);
}

static int32_t level(uint64_t energy) {
    if (energy == 0) return 0;
    unsigned top = 0;
    for (uint64_t rest = energy; rest > 1u; rest >>= 1) top++;
    uint64_t mantissa = top >= 6u ? energy >> (top - 6u) : energy << (6u - top);
    return (int32_t)(top * 256u) + vh_spotter_log2[mantissa & 63u];
}

static void analyse(vh_spotter_front_t *front, int8_t levels[VH_SPOTTER_BANDS]) {
    int32_t bands[VH_SPOTTER_BANDS], loudest = 0;
    load(front);
    transform(front->work);
    /* Neighbouring triangles share the bins between their middles: each bin's weight rises in one and falls in the other. */
    uint64_t falling = 0, rising = 0;
    for (unsigned edge = 0; edge <= VH_SPOTTER_BANDS; edge++) {
        unsigned from = vh_spotter_edges[edge], to = vh_spotter_edges[edge + 1u];
        rising = 0;
        uint64_t fallen = 0;
        for (unsigned k = from; k < to; k++) {
            uint64_t bin = power(front->work, k), up = (bin * ((k - from) * 64u / (to - from)));
            rising += up;
            fallen += bin * 64u - up;
        }
        if (edge > 0) {
            int32_t value = level(falling + fallen);
            bands[edge - 1u] = value;
            if (value > loudest) loudest = value;
        }
        falling = rising;
    }
    int32_t peak = front->peak_level - LEVEL_FALL_A_FRAME;
    if (peak < VH_SPOTTER_PEAK_FLOOR) peak = VH_SPOTTER_PEAK_FLOOR;
    if (peak < loudest) peak = loudest;
    front->peak_level = peak;
    for (unsigned band = 0; band < VH_SPOTTER_BANDS; band++) {
        int32_t below = (peak - bands[band]) >> LEVEL_STEP_BITS;
        levels[band] = (int8_t)(below > 127 ? 0 : 127 - below);
    }
}

void vh_spotter_front_init(vh_spotter_front_t *front) {
    memset(front, 0, sizeof *front);
    front->peak_level = VH_SPOTTER_PEAK_FLOOR;
}

bool vh_spotter_front_feed(vh_spotter_front_t *front, int16_t sample, int8_t levels[VH_SPOTTER_BANDS]) {
    front->pcm[front->filled++] = sample;
    if (front->filled < VH_SPOTTER_WINDOW) return false;
    analyse(front, levels);
    front->filled = VH_SPOTTER_WINDOW - VH_SPOTTER_HOP;
    memmove(front->pcm, front->pcm + VH_SPOTTER_HOP, front->filled * sizeof front->pcm[0]);
    return true;
}
