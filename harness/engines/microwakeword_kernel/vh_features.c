#include "vh_kernel.h"

#include <math.h>
#include <string.h>

/* The features of TensorFlow's microfrontend as microWakeWord sets it up: 30 ms windows every 10 ms, an int16 FFT of
 * 512 samples (256 complex points, then a pass that separates the real ones), 40 mel channels from 125 to 7500 Hz,
 * noise reduction, gain control (PCAN) and a logarithm. All roundings are at the same places. */

#define POINTS 256
#define BINS (POINTS + 1)
#define BANDS (VH_CHANNELS + 1)
#define SEGMENTS 128

/* The tables, the only state (`noise`), and memory for one round of frames. */
typedef struct {
    int16_t window[VH_WINDOW];
    int16_t turn[POINTS][2];      /* factors of the FFT: real and imaginary part */
    int16_t split[POINTS / 2][2]; /* factors of the pass that separates the real points */
    int16_t order[POINTS];        /* where point n of the input lies for the first stage */
    int32_t first[BANDS], count[BANDS]; /* bins of each band */
    double weight[BINS], rest[BINS];    /* share of a bin in its band, and in the next one */
    int32_t gain[4 * 32 - 3];           /* gain control by the noise: a parabola for each number of bits */
    int32_t curve[SEGMENTS + 2];        /* log2(1 + x) - x in segments */
    uint32_t smoothing[VH_CHANNELS];    /* of the noise estimate */
    uint32_t noise[VH_CHANNELS];
    _Alignas(64) int16_t points[POINTS][2][VH_LANES];
    _Alignas(64) int32_t energy[BINS][VH_LANES];
    _Alignas(64) int16_t up[VH_LANES];
    _Alignas(64) int32_t shift[VH_LANES];
    _Alignas(64) uint32_t level[VH_LANES][VH_CHANNELS];
} tables;

size_t vh_features_bytes(void) { return sizeof(tables); }

static void make_fft(tables *t) {
    for (int i = 0; i < VH_WINDOW; ++i) {
        const float step = (float)(3.14159265358979323846 * 2.0 / (float)VH_WINDOW);
        const float value = 0.5f - 0.5f * cosf(step * ((float)i + 0.5f));
        t->window[i] = (int16_t)floor(value * 4096 + 0.5);
    }
    for (int i = 0; i < POINTS; ++i) {
        double phase = -2 * 3.14159265358979323846 * i / POINTS;
        t->turn[i][0] = (int16_t)floor(0.5 + 32767 * cos(phase));
        t->turn[i][1] = (int16_t)floor(0.5 + 32767 * sin(phase));
        t->order[i] = (int16_t)((i & 3) * 64 + (i >> 2 & 3) * 16 + (i >> 4 & 3) * 4 + (i >> 6));
    }
    for (int i = 0; i < POINTS / 2; ++i) {
        double phase = -3.14159265358979323846 * ((double)(i + 1) / POINTS + .5);
        t->split[i][0] = (int16_t)floor(0.5 + 32767 * cos(phase));
        t->split[i][1] = (int16_t)floor(0.5 + 32767 * sin(phase));
    }
}

/* Volatile, so that the C library computes the tables, as in the original, and not the compiler. */
static volatile const float lowest_hz = 125.0f, highest_hz = 7500.0f, offset = 80.0f;

static float mel(float hz) { return 1127.0f * log1pf(hz / 700.0f); }

static void make_bands(tables *t) {
    const float hz_per_bin = 16000 * 0.5f / 256.0f;
    const float low = mel(lowest_hz), spacing = (mel(highest_hz) - low) / (float)BANDS;
    int bin = (int)(1.5 + lowest_hz / hz_per_bin);
    float before = low;
    for (int band = 0; band < BANDS; ++band) {
        const float centre = low + spacing * (float)(band + 1);
        t->first[band] = bin;
        for (; mel((float)bin * hz_per_bin) <= centre; ++bin) {
            const float weight = (centre - mel((float)bin * hz_per_bin)) / (centre - before);
            t->weight[bin] = floor(weight * 4096 + 0.5);
            t->rest[bin] = floor((1.0 - weight) * 4096 + 0.5);
        }
        t->count[band] = bin - t->first[band];
        before = centre;
    }
}

static int32_t gain_of(uint32_t noise) {
    const float value = (float)(1 << 21) * powf((float)noise / (float)(1 << 7) + offset, -0.95f);
    return value > 32767 ? 32767 : (int16_t)(value + 0.5f);
}

static void make_curves(tables *t) {
    t->gain[0] = gain_of(0);
    t->gain[1] = gain_of(1);
    for (int bits = 2; bits <= 32; ++bits) {
        const uint32_t from = (uint32_t)1 << (bits - 1), to = bits == 32 ? from + (from - 1) : 2 * from;
        const int32_t start = gain_of(from), half = gain_of(from + from / 2) - start, whole = gain_of(to) - start;
        int32_t *segment = t->gain + 4 * bits - 6;
        segment[0] = start;
        segment[1] = (int16_t)(4 * half - whole);
        segment[2] = (int16_t)(whole - (4 * half - whole));
    }
    for (int i = 0; i < SEGMENTS; ++i) {
        t->curve[i] = (int32_t)floor((log2(1 + i / 128.0) - i / 128.0) * 65536 + 0.5);
    }
    for (int i = 0; i < VH_CHANNELS; ++i) {
        t->smoothing[i] = (uint32_t)((i & 1 ? 0.06f : 0.025f) * (1 << 14));
    }
}

void vh_features_begin(void *state) {
    tables *t = state;
    memset(t, 0, sizeof *t);
    make_fft(t);
    make_bands(t);
    make_curves(t);
}

void vh_features_restart(void *state) { memset(((tables *)state)->noise, 0, sizeof((tables *)0)->noise); }

/* Windows of up to VH_LANES frames, side by side, and the left shift of each before the FFT. */
VH_INLINE void window(tables *t, const int16_t *samples, int lanes) {
    for (int lane = 0; lane < VH_LANES; ++lane) {
        const int16_t *from = samples + (long)(lane < lanes ? lane : 0) * VH_HOP;
        int16_t windowed[VH_WINDOW], most = 0;
        for (int i = 0; i < VH_WINDOW; ++i) {
            const int16_t value = (int16_t)((int32_t)from[i] * t->window[i] >> 12);
            const int16_t size = value < 0 ? (int16_t)-value : value;
            windowed[i] = value;
            most = size > most ? size : most;
        }
        t->shift[lane] = most ? __builtin_clz((unsigned)most) - 17 : 15;
        t->up[lane] = (int16_t)(uint16_t)(1u << t->shift[lane]);
        for (int n = 0; n < VH_WINDOW / 2; ++n) {
            int16_t *to = &t->points[t->order[n]][0][lane];
            to[0] = windowed[2 * n];
            to[VH_LANES] = windowed[2 * n + 1];
        }
    }
    for (int n = VH_WINDOW / 2; n < POINTS; ++n) {
        memset(t->points[t->order[n]], 0, sizeof t->points[0]);
    }
    for (int n = 0; n < POINTS; ++n) {
        for (int lane = 0; lane < VH_LANES; ++lane) {
            t->points[n][0][lane] = (int16_t)((uint16_t)t->points[n][0][lane] * (unsigned)(uint16_t)t->up[lane]);
            t->points[n][1][lane] = (int16_t)((uint16_t)t->points[n][1][lane] * (unsigned)(uint16_t)t->up[lane]);
        }
    }
}

#define DIVIDED(x, by) ((int16_t)((((int32_t)(x) * (by) >> 14) + 1) >> 1))
#define ROUNDED(x) ((int16_t)(((x) + (1 << 14)) >> 15))

/* One butterfly of four points, `apart` from one another. */
VH_INLINE void butterfly(int16_t (*restrict p)[2][VH_LANES], int apart, const int16_t *w1, const int16_t *w2,
                         const int16_t *w3) {
    const int32_t r1 = w1[0], i1 = w1[1], r2 = w2[0], i2 = w2[1], r3 = w3[0], i3 = w3[1];
    int16_t *restrict a = p[0][0], *restrict b = p[apart][0], *restrict c = p[2 * apart][0],
            *restrict d = p[3 * apart][0];
#pragma GCC ivdep
    for (int l = 0; l < VH_LANES; ++l) {
        const int16_t ar = DIVIDED(a[l], 8191), ai = DIVIDED(a[l + VH_LANES], 8191);
        const int16_t br = DIVIDED(b[l], 8191), bi = DIVIDED(b[l + VH_LANES], 8191);
        const int16_t cr = DIVIDED(c[l], 8191), ci = DIVIDED(c[l + VH_LANES], 8191);
        const int16_t dr = DIVIDED(d[l], 8191), di = DIVIDED(d[l + VH_LANES], 8191);
        const int16_t s0r = ROUNDED(br * r1 - bi * i1), s0i = ROUNDED(br * i1 + bi * r1);
        const int16_t s1r = ROUNDED(cr * r2 - ci * i2), s1i = ROUNDED(cr * i2 + ci * r2);
        const int16_t s2r = ROUNDED(dr * r3 - di * i3), s2i = ROUNDED(dr * i3 + di * r3);
        const int16_t s5r = (int16_t)(ar - s1r), s5i = (int16_t)(ai - s1i);
        const int16_t sr = (int16_t)(ar + s1r), si = (int16_t)(ai + s1i);
        const int16_t s3r = (int16_t)(s0r + s2r), s3i = (int16_t)(s0i + s2i);
        const int16_t s4r = (int16_t)(s0r - s2r), s4i = (int16_t)(s0i - s2i);
        a[l] = (int16_t)(sr + s3r);
        a[l + VH_LANES] = (int16_t)(si + s3i);
        b[l] = (int16_t)(s5r + s4i);
        b[l + VH_LANES] = (int16_t)(s5i - s4r);
        c[l] = (int16_t)(sr - s3r);
        c[l + VH_LANES] = (int16_t)(si - s3i);
        d[l] = (int16_t)(s5r - s4i);
        d[l + VH_LANES] = (int16_t)(s5i + s4r);
    }
}

/* The FFT in four stages of radix 4. */
VH_INLINE void transform(tables *t) {
    for (int apart = 1; apart < POINTS; apart *= 4) {
        const int stride = POINTS / 4 / apart;
        for (int from = 0; from < POINTS; from += 4 * apart) {
            for (int k = 0; k < apart; ++k) {
                butterfly(t->points + from + k, apart, t->turn[k * stride], t->turn[2 * k * stride],
                          t->turn[3 * k * stride]);
            }
        }
    }
}

/* The real signal's bins k and POINTS - k from the complex ones, as energies. */
VH_INLINE void energies(tables *t) {
    for (int k = 1; k <= POINTS / 2; ++k) {
        const int16_t *restrict p = t->points[k][0], *restrict n = t->points[POINTS - k][0];
        const int32_t wr = t->split[k - 1][0], wi = t->split[k - 1][1];
        int32_t *restrict here = t->energy[k], *restrict there = t->energy[POINTS - k];
#pragma GCC ivdep
        for (int l = 0; l < VH_LANES; ++l) {
            const int16_t pr = DIVIDED(p[l], 16383), pi = DIVIDED(p[l + VH_LANES], 16383);
            const int16_t nr = DIVIDED(n[l], 16383), ni = DIVIDED((int16_t)-n[l + VH_LANES], 16383);
            const int16_t f1r = (int16_t)(pr + nr), f1i = (int16_t)(pi + ni);
            const int16_t f2r = (int16_t)(pr - nr), f2i = (int16_t)(pi - ni);
            const int16_t tr = ROUNDED(f2r * wr - f2i * wi), ti = ROUNDED(f2r * wi + f2i * wr);
            const int32_t ar = (f1r + tr) >> 1, ai = (f1i + ti) >> 1, br = (f1r - tr) >> 1, bi = (ti - f1i) >> 1;
            there[l] = br * br + bi * bi;
            here[l] = ar * ar + ai * ai;
        }
    }
}

/* Sums of energies are integers below 2^48, exact in a double. The root is rounded to nearest, as in the original. */
VH_INLINE void channels(tables *t) {
    double sum[VH_LANES], carried[VH_LANES];
    memset(carried, 0, sizeof carried);
    for (int band = 0; band < BANDS; ++band) {
        memcpy(sum, carried, sizeof sum);
        memset(carried, 0, sizeof carried);
        for (int bin = t->first[band]; bin < t->first[band] + t->count[band]; ++bin) {
            const double weight = t->weight[bin], rest = t->rest[bin];
            for (int l = 0; l < VH_LANES; ++l) {
                sum[l] += weight * t->energy[bin][l];
                carried[l] += rest * t->energy[bin][l];
            }
        }
        if (band == 0) {
            continue;
        }
        uint32_t root[VH_LANES];
        for (int l = 0; l < VH_LANES; ++l) {
            const int32_t whole = (int32_t)sqrt(sum[l]);
            const double left = sum[l] - (double)whole * (double)whole;
            const int32_t stays = sum[l] < 4294967296.0 && whole == 0xFFFF;
            root[l] = (uint32_t)(whole + (left > (double)whole && !stays)) >> t->shift[l];
        }
        for (int l = 0; l < VH_LANES; ++l) {
            t->level[l][band - 1] = root[l];
        }
    }
}

/* Gain control (PCAN): the level of a channel relative to its noise. */
VH_INLINE uint32_t gained(const tables *t, uint32_t level, uint32_t noise) {
    int32_t gain;
    if (noise <= 2) {
        gain = t->gain[noise];
    } else {
        const int bits = 32 - __builtin_clz(noise);
        const int32_t *segment = t->gain + 4 * bits - 6;
        const int32_t part = (int32_t)((bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 0x3FF);
        gain = ((((segment[2] * part >> 5) + (segment[1] * 32)) * part + (1 << 14)) >> 15) + segment[0];
        gain = (int16_t)gain;
    }
    const uint32_t ratio = (uint32_t)((uint64_t)level * (uint32_t)gain >> 6);
    return ratio < 2u << 12 ? ratio * ratio >> 20 : (ratio >> 6) - 64;
}

/* The natural logarithm of a level, times 64. */
VH_INLINE uint16_t logged(const tables *t, uint32_t level) {
    level <<= 3;
    if (level <= 1) {
        return 0;
    }
    const uint32_t bits = 31 - (uint32_t)__builtin_clz(level);
    uint32_t part = level - (1u << bits);
    part = bits < 16 ? part << (16 - bits) : part >> (bits - 16);
    const uint32_t segment = part >> 9;
    const int32_t from = t->curve[segment], to = t->curve[segment + 1];
    const int32_t between = ((to - from) * (int32_t)(part - (segment << 9))) >> 16;
    const uint32_t log2_of = (bits << 16) + part + (uint32_t)(from + between);
    const uint32_t natural = (uint32_t)((45426ull * log2_of + 32768) >> 16);
    return (uint16_t)(((natural << 6) + 32768) >> 16);
}

/* From here on the order of frames matters: the noise of a frame depends on that of the previous one. */
VH_INLINE void logarithms(tables *t, int lanes, uint16_t *features) {
    for (int l = 0; l < lanes; ++l) {
        uint32_t *level = t->level[l];
        for (int c = 0; c < VH_CHANNELS; ++c) {
            const uint32_t scaled = level[c] << 10, smoothing = t->smoothing[c];
            const uint32_t noise =
                (uint32_t)(((uint64_t)scaled * smoothing + (uint64_t)t->noise[c] * (16384 - smoothing)) >> 14);
            const uint32_t least = (uint32_t)((uint64_t)level[c] * 819 >> 14);
            const uint32_t left = (scaled - (noise > scaled ? scaled : noise)) >> 10;
            t->noise[c] = noise;
            level[c] = left > least ? left : least;
        }
        for (int c = 0; c < VH_CHANNELS; ++c) {
            features[(long)l * VH_CHANNELS + c] = logged(t, gained(t, level[c], t->noise[c]));
        }
    }
}

VH_INLINE void run(tables *t, const int16_t *samples, long frames, uint16_t *features) {
    for (long at = 0; at < frames; at += VH_LANES) {
        const int lanes = (int)(frames - at < VH_LANES ? frames - at : VH_LANES);
        window(t, samples + at * VH_HOP, lanes);
        transform(t);
        energies(t);
        channels(t);
        logarithms(t, lanes, features + at * VH_CHANNELS);
    }
}

#ifdef VH_LEVELLED
VH_FOR_AVX2 static void run_avx2(tables *t, const int16_t *samples, long frames, uint16_t *features) {
    run(t, samples, frames, features);
}

VH_FOR_AVX512 static void run_avx512(tables *t, const int16_t *samples, long frames, uint16_t *features) {
    run(t, samples, frames, features);
}
#endif

void vh_features_run(void *state, const int16_t *samples, long frames, uint16_t *features) {
    switch (vh_level()) {
#ifdef VH_LEVELLED
    case VH_AVX512:
        run_avx512(state, samples, frames, features);
        break;
    case VH_AVX2:
        run_avx2(state, samples, frames, features);
        break;
#endif
    default:
        run(state, samples, frames, features);
        break;
    }
}
