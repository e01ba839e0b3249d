#include "vh_convolution.h"

#define TILES 32        /* tiles that go through the six products together: they stay in the first cache */
#define MAX_CHANNELS 96 /* most input and output channels: the size of the buffers on the stack */
#define ROWS 4          /* rows that `block` computes together */
#define COLUMNS 24      /* output channels that it computes together: three registers of eight floats */

int32_t vh_version(void) { return VH_VERSION; }

void vh_pool(const float *in, long in_row, long in_column, float *out, long out_row, long out_column, long rows,
             long columns, int32_t high, int32_t wide, int32_t channels) {
    const long down = (high - 1) * in_row, across = (wide - 1) * in_column;
    for (long row = 0; row < rows; row++) {
        for (long column = 0; column < columns; column++) {
            const float *a = in + row * high * in_row + column * wide * in_column;
            float *to = out + row * out_row + column * out_column;
            for (int32_t c = 0; c < channels; c++) {
                float upper = a[c] > a[c + across] ? a[c] : a[c + across];
                float lower = a[c + down] > a[c + down + across] ? a[c + down] : a[c + down + across];
                to[c] = upper > lower ? upper : lower;
            }
        }
    }
}

void vh_clear_sides(float *start, long rows, long row, long last, int32_t channels) {
    for (long r = 0; r < rows; r++, start += row) {
        for (int32_t c = 0; c < channels; c++) {
            start[c] = start[last + c] = 0;
        }
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define FOR_AVX2 __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline)) FOR_AVX2

int32_t vh_ready(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

INLINE __m256 at(const float *place) { return _mm256_loadu_ps(place); }
INLINE void put(float *place, __m256 value) { _mm256_storeu_ps(place, value); }
INLINE __m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
INLINE __m256 sub(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
INLINE __m256 times(float factor, __m256 a, __m256 b) { return _mm256_fmadd_ps(_mm256_set1_ps(factor), a, b); }

INLINE __m256 activated(__m256 x, float slope, float least) {
    return _mm256_max_ps(_mm256_max_ps(x, _mm256_mul_ps(x, _mm256_set1_ps(slope))), _mm256_set1_ps(least));
}

/* sums[4][3]: four rows of `in`, `stride` floats apart, times one block of 24 columns. */
INLINE void block(const float *in, long stride, const float *weights, int32_t inputs, __m256 sums[ROWS][3]) {
    for (int row = 0; row < ROWS; row++) {
        for (int part = 0; part < 3; part++) {
            sums[row][part] = _mm256_setzero_ps();
        }
    }
    for (int32_t k = 0; k < inputs; k++, weights += COLUMNS) {
        __m256 a = at(weights), b = at(weights + 8), c = at(weights + 16);
#pragma GCC unroll 4
        for (int row = 0; row < ROWS; row++) {
            __m256 value = _mm256_broadcast_ss(in + row * stride + k);
            sums[row][0] = _mm256_fmadd_ps(value, a, sums[row][0]);
            sums[row][1] = _mm256_fmadd_ps(value, b, sums[row][1]);
            sums[row][2] = _mm256_fmadd_ps(value, c, sums[row][2]);
        }
    }
}

/* One of the six products of Winograd's scheme: `in` [TILES][inputs] times weights, to `out` [TILES][outputs]. */
FOR_AVX2 static void product(const float *in, const float *weights, float *out, int32_t inputs, int32_t outputs) {
    for (int32_t column = 0; column < outputs; column += COLUMNS) {
        for (int tile = 0; tile < TILES; tile += ROWS) {
            __m256 sums[ROWS][3];
            block(in + (long)tile * inputs, inputs, weights + (long)column * inputs, inputs, sums);
            for (int row = 0; row < ROWS; row++) {
                for (int part = 0; part < 3; part++) {
                    put(out + (long)(tile + row) * outputs + column + 8 * part, sums[row][part]);
                }
            }
        }
    }
}

/* Winograd's F(4, 3) at the points 0, 1, -1, 2, -2 and infinity: six products for four outputs of three taps. This
 * makes the six inputs of one tile's products, TILES * inputs floats apart. */
INLINE void spread(const float *in, long along, int32_t inputs, float *spread_out) {
    const long next = (long)TILES * inputs;
    for (int32_t c = 0; c < inputs; c += 8) {
        __m256 d0 = at(in + c), d1 = at(in + along + c), d2 = at(in + 2 * along + c);
        __m256 d3 = at(in + 3 * along + c), d4 = at(in + 4 * along + c), d5 = at(in + 5 * along + c);
        __m256 even = times(-4, d2, d4), odd = times(-4, d1, d3), far = sub(d4, d2), twice = sub(d3, d1);
        put(spread_out + c, times(4, d0, times(-5, d2, d4)));
        put(spread_out + c + next, add(even, odd));
        put(spread_out + c + 2 * next, sub(even, odd));
        put(spread_out + c + 3 * next, times(2, twice, far));
        put(spread_out + c + 4 * next, times(-2, twice, far));
        put(spread_out + c + 5 * next, times(4, d1, times(-5, d3, d5)));
    }
}

/* Makes the four outputs of one tile from its six products. */
INLINE void gather(const vh_taps *layer, const float *products, float *out) {
    const long next = (long)TILES * layer->outputs;
    for (int32_t c = 0; c < layer->outputs; c += 8) {
        const float *m = products + c;
        __m256 m1 = at(m + next), m2 = at(m + 2 * next), m3 = at(m + 3 * next), m4 = at(m + 4 * next);
        __m256 a = add(m1, m2), b = sub(m1, m2), x = add(m3, m4), y = sub(m3, m4), bias = at(layer->bias + c);
        __m256 values[4] = {add(at(m), add(a, x)), times(2, y, b), times(4, x, a), times(8, y, add(b, at(m + 5 * next)))};
        for (int place = 0; place < 4; place++) {
            put(out + place * layer->along_out + c, activated(add(values[place], bias), layer->slope, layer->least));
        }
    }
}

FOR_AVX2 void vh_three_taps(const vh_taps *layer, const float *in, float *out) {
    float spread_out[6 * TILES * MAX_CHANNELS], products[6 * TILES * MAX_CHANNELS];
    const long tiles = layer->outer * layer->inner, inputs = layer->inputs, outputs = layer->outputs;
    for (long i = 0; i < 6 * TILES * inputs; i++) {
        spread_out[i] = 0; /* the last tiles may be fewer, but the places beside them are multiplied too */
    }
    for (long first = 0; first < tiles; first += TILES) {
        long count = tiles - first < TILES ? tiles - first : TILES;
        for (long tile = 0; tile < count; tile++) {
            long outer = (first + tile) / layer->inner, inner = (first + tile) % layer->inner;
            const float *from = in + outer * layer->outer_in + inner * layer->inner_in;
            spread(from, layer->along_in, layer->inputs, spread_out + tile * inputs);
        }
        for (int k = 0; k < 6; k++) {
            product(spread_out + k * TILES * inputs, layer->weights + k * inputs * outputs,
                    products + k * TILES * outputs, layer->inputs, layer->outputs);
        }
        for (long tile = 0; tile < count; tile++) {
            long outer = (first + tile) / layer->inner, inner = (first + tile) % layer->inner;
            gather(layer, products + tile * outputs, out + outer * layer->outer_out + inner * layer->inner_out);
        }
    }
}

FOR_AVX2 void vh_dense(const float *in, float *out, long rows, int32_t inputs, int32_t outputs, const float *weights,
                       const float *bias, float slope, float least) {
    for (long first = 0; first < rows; first += ROWS) {
        long start = first + ROWS <= rows || rows < ROWS ? first : rows - ROWS; /* repeat the last rows */
        for (int32_t column = 0; column < outputs; column += COLUMNS) {
            __m256 sums[ROWS][3];
            block(in + start * inputs, inputs, weights + (long)column * inputs, inputs, sums);
            for (int row = 0; row < ROWS && start + row < rows; row++) {
                for (int part = 0; part < 3; part++) {
                    long place = column + 8 * part;
                    put(out + (start + row) * outputs + place,
                        activated(add(sums[row][part], at(bias + place)), slope, least));
                }
            }
        }
    }
}

FOR_AVX2 void vh_first(const float *in, long in_row, float *out, long out_row, long rows, long columns, int32_t high,
                       int32_t wide, int32_t outputs, const float *weights, const float *bias, float slope,
                       float least) {
    for (long row = 0; row < rows; row++) {
        for (long first = 0; first < columns; first += ROWS) {
            float *to = out + row * out_row + first * outputs;
            for (int32_t column = 0; column < outputs; column += COLUMNS) {
                const float *tap = weights + (long)column * high * wide;
                __m256 sums[ROWS][3];
                for (int place = 0; place < ROWS; place++) {
                    for (int part = 0; part < 3; part++) {
                        sums[place][part] = at(bias + column + 8 * part);
                    }
                }
                for (int32_t h = 0; h < high; h++) {
                    for (int32_t w = 0; w < wide; w++, tap += COLUMNS) {
                        const float *from = in + (row + h) * in_row + first + w;
                        __m256 a = at(tap), b = at(tap + 8), c = at(tap + 16);
#pragma GCC unroll 4
                        for (int place = 0; place < ROWS; place++) {
                            __m256 value = _mm256_broadcast_ss(from + place);
                            sums[place][0] = _mm256_fmadd_ps(value, a, sums[place][0]);
                            sums[place][1] = _mm256_fmadd_ps(value, b, sums[place][1]);
                            sums[place][2] = _mm256_fmadd_ps(value, c, sums[place][2]);
                        }
                    }
                }
                for (int place = 0; place < ROWS; place++) {
                    for (int part = 0; part < 3; part++) {
                        put(to + (long)place * outputs + column + 8 * part,
                            activated(sums[place][part], slope, least));
                    }
                }
            }
        }
    }
}

#else

int32_t vh_ready(void) { return 0; }
void vh_three_taps(const vh_taps *layer, const float *in, float *out) { (void)layer, (void)in, (void)out; }
void vh_dense(const float *in, float *out, long rows, int32_t inputs, int32_t outputs, const float *weights,
              const float *bias, float slope, float least) {
    (void)in, (void)out, (void)rows, (void)inputs, (void)outputs, (void)weights, (void)bias, (void)slope, (void)least;
}
void vh_first(const float *in, long in_row, float *out, long out_row, long rows, long columns, int32_t high,
              int32_t wide, int32_t outputs, const float *weights, const float *bias, float slope, float least) {
    (void)in, (void)in_row, (void)out, (void)out_row, (void)rows, (void)columns, (void)high;
    (void)wide, (void)outputs, (void)weights, (void)bias, (void)slope, (void)least;
}

#endif
