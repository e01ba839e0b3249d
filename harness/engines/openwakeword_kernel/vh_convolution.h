/* Convolutions of three taps over many places at once, and dense layers, in float32.
 *
 * Layout of values: [row][column][channel]. The caller owns all memory; functions use 144 KiB of the stack. Input
 * channels are a multiple of 8 (in a dense layer: any), output channels of 24. The activation is the maximum of x,
 * slope * x and least; slope 1 and least -inf leave x unchanged. */
#ifndef VH_CONVOLUTION_H
#define VH_CONVOLUTION_H

#include <stdint.h>

#define VH_VERSION 1

int32_t vh_version(void);
/* Whether this processor supports AVX2 and FMA, which the functions below need. */
int32_t vh_ready(void);

typedef struct {
    long outer, outer_in, outer_out; /* tiles in the outer direction, and how far apart they begin, in floats */
    long inner, inner_in, inner_out; /* … in the inner direction */
    long along_in, along_out;        /* from one place to the next along the taps */
    int32_t inputs, outputs;
    const float *weights; /* [6][outputs / 24][inputs][24]: transformed by Winograd's F(4, 3) */
    const float *bias;    /* [outputs] */
    float slope, least;
} vh_taps;

/* Each tile reads six places and writes four. The places read must hold finite values. */
void vh_three_taps(const vh_taps *layer, const float *in, float *out);

/* out[rows][outputs] = in[rows][inputs] times weights [outputs / 24][inputs][24], plus the bias, activated. */
void vh_dense(const float *in, float *out, long rows, int32_t inputs, int32_t outputs, const float *weights,
              const float *bias, float slope, float least);

/* A convolution of one channel, high * wide taps, over `in`, which already has its padding. columns: a multiple of
 * 4; weights: [outputs / 24][high * wide][24]. */
void vh_first(const float *in, long in_row, float *out, long out_row, long rows, long columns, int32_t high,
              int32_t wide, int32_t outputs, const float *weights, const float *bias, float slope, float least);

/* The maximum over 1 or 2 rows and 1 or 2 columns. Rows and columns are of the output; distances are in floats. */
void vh_pool(const float *in, long in_row, long in_column, float *out, long out_row, long out_column, long rows,
             long columns, int32_t high, int32_t wide, int32_t channels);

/* Writes zeros for this many channels at the start of each row and, `last` floats later, at its end. */
void vh_clear_sides(float *start, long rows, long row, long last, int32_t channels);

#endif
