#include "vh_kernel.h"

#include <string.h>

/* Activations are integers in floats. The caller guarantees that every sum stays below 2^24, so the order of adding
 * does not matter. Layout of a state: the waiting frames, then an input buffer per layer. */

/* Bytes of a state for the waiting frames: 64 for their count, and at most 31 frames of an incomplete step (the caller
 * limits the stride to 32) with the 48 frames of a piece, of 40 bytes each. */
#define WAITING 4096

/* Rows of a layer's input buffer: its history, and the frames of one block of steps. */
static size_t buffer_rows(const vh_layer *layer) {
    return (size_t)layer->history + (size_t)VH_BLOCK * (size_t)layer->stride;
}

/* Bytes of that buffer, a multiple of 64. */
static size_t buffer_bytes(const vh_layer *layer) {
    return (buffer_rows(layer) * (size_t)layer->inputs * sizeof(float) + 63) & ~(size_t)63;
}

size_t vh_network_bytes(const vh_network *network) {
    size_t bytes = WAITING;
    for (int i = 0; i < network->layers; ++i) {
        bytes += buffer_bytes(&network->layer[i]);
    }
    return bytes;
}

void vh_network_restart(const vh_network *network, void *state) {
    char *at = (char *)state + WAITING;
    memset(state, 0, WAITING);
    for (int i = 0; i < network->layers; ++i) {
        const vh_layer *layer = &network->layer[i];
        memset(at, 0, buffer_bytes(layer));
        if (layer->history > 0) {
            memcpy(at, layer->start, (size_t)layer->history * (size_t)layer->inputs * sizeof(float));
        }
        at += buffer_bytes(layer);
    }
}

/* A sum scaled and rounded as the library does; see vh_layer. */
VH_INLINE int32_t rescaled(int32_t sum, int32_t multiplier, int32_t half, int32_t away, int32_t shift) {
    int64_t product = (int64_t)sum * multiplier + (1LL << 30);
    int32_t high = (int32_t)((uint64_t)product >> 31);
    return (high + half + (away & (high >> 31))) >> shift;
}

/* Writes `count` outputs from their sums. at: number of the first output channel. */
VH_INLINE void store(const vh_layer *layer, int at, const float *sums, int count, float *out) {
    const int32_t low = layer->low, high = layer->high;
    for (int i = 0; i < count; ++i) {
        int32_t value = rescaled((int32_t)sums[i], layer->multiplier[at + i], layer->half[at + i],
                                 layer->away[at + i], layer->shift[at + i]);
        value = value < low ? low : value;
        value = value > high ? high : value;
        out[i] = (float)value;
    }
}

/* A block of steps through a dense layer: four steps and sixteen outputs at a time. */
VH_INLINE void dense(const vh_layer *layer, const float *in, float *out) {
    const int depth = layer->taps * layer->inputs, outputs = layer->outputs;
    const long row = (long)layer->stride * layer->inputs;
    for (int t = 0; t < VH_BLOCK; t += 4) {
        const float *a = in + t * row, *b = a + row, *c = b + row, *d = c + row;
        for (int o = 0; o < outputs; o += 16) {
            const float *w = layer->weights + o;
            vh_eight a0 = *(const vh_eight *)(layer->bias + o), a1 = *(const vh_eight *)(layer->bias + o + 8);
            vh_eight b0 = a0, b1 = a1, c0 = a0, c1 = a1, d0 = a0, d1 = a1;
            for (int k = 0; k < depth; ++k, w += outputs) {
                vh_eight w0 = *(const vh_eight *)w, w1 = *(const vh_eight *)(w + 8);
                a0 += a[k] * w0;
                a1 += a[k] * w1;
                b0 += b[k] * w0;
                b1 += b[k] * w1;
                c0 += c[k] * w0;
                c1 += c[k] * w1;
                d0 += d[k] * w0;
                d1 += d[k] * w1;
            }
            float sums[4][16];
            *(vh_eight *)&sums[0][0] = a0;
            *(vh_eight *)&sums[0][8] = a1;
            *(vh_eight *)&sums[1][0] = b0;
            *(vh_eight *)&sums[1][8] = b1;
            *(vh_eight *)&sums[2][0] = c0;
            *(vh_eight *)&sums[2][8] = c1;
            *(vh_eight *)&sums[3][0] = d0;
            *(vh_eight *)&sums[3][8] = d1;
            for (int r = 0; r < 4; ++r) {
                store(layer, o, sums[r], 16, out + (long)(t + r) * outputs + o);
            }
        }
    }
}

/* A block of steps through a depthwise layer: four steps and eight channels at a time. */
VH_INLINE void depthwise(const vh_layer *layer, const float *in, float *out) {
    const int taps = layer->taps, width = layer->outputs;
    for (int o = 0; o < width; o += 8) {
        for (int t = 0; t < VH_BLOCK; t += 4) {
            const float *x = in + (long)t * width + o, *w = layer->weights + o;
            vh_eight s0 = *(const vh_eight *)(layer->bias + o), s1 = s0, s2 = s0, s3 = s0;
            for (int k = 0; k < taps; ++k, w += width, x += width) {
                vh_eight weight = *(const vh_eight *)w;
                s0 += *(const vh_eight *)x * weight;
                s1 += *(const vh_eight *)(x + width) * weight;
                s2 += *(const vh_eight *)(x + 2L * width) * weight;
                s3 += *(const vh_eight *)(x + 3L * width) * weight;
            }
            float sums[4][8];
            *(vh_eight *)sums[0] = s0;
            *(vh_eight *)sums[1] = s1;
            *(vh_eight *)sums[2] = s2;
            *(vh_eight *)sums[3] = s3;
            for (int r = 0; r < 4; ++r) {
                store(layer, o, sums[r], 8, out + (long)(t + r) * width + o);
            }
        }
    }
}

/* One output per step. Each of eight sums is below 2^24; their total need not be. */
VH_INLINE void answer(const vh_layer *layer, const float *in, long steps, const uint8_t *table, uint8_t *out) {
    const int depth = layer->taps * layer->inputs;
    for (long t = 0; t < steps; ++t) {
        const float *x = in + t * layer->inputs;
        vh_eight sums = {0};
        for (int k = 0; k < depth; k += 8) {
            sums += *(const vh_eight *)(x + k) * *(const vh_eight *)(layer->weights + k);
        }
        int32_t sum = (int32_t)layer->bias[0];
        for (int i = 0; i < 8; ++i) {
            sum += (int32_t)sums[i];
        }
        int32_t value = rescaled(sum, layer->multiplier[0], layer->half[0], layer->away[0], layer->shift[0]);
        value = value < layer->low ? layer->low : value;
        value = value > layer->high ? layer->high : value;
        out[t] = table[value + layer->zero + 128];
    }
}

/* All layers, a block of steps at a time. Each layer writes behind the history of the next one's input buffer. */
VH_INLINE void run(const vh_network *network, void *state, const int8_t *features, long steps, uint8_t *answers) {
    const long frame = network->width, entry = (long)network->stride * frame;
    const int padded = network->layer[0].inputs;
    while (steps > 0) {
        const long now = steps < VH_BLOCK ? steps : VH_BLOCK;
        float *buffer = (float *)((char *)state + WAITING);
        float *fresh = buffer + (long)network->layer[0].history * padded;
        for (long f = 0; f < now * network->stride; ++f) {
            for (long c = 0; c < frame; ++c) {
                fresh[f * padded + c] = (float)(features[f * frame + c] - network->input_zero);
            }
        }
        for (int i = 0; i < network->layers; ++i) {
            const vh_layer *layer = &network->layer[i];
            float *next = (float *)((char *)buffer + buffer_bytes(layer));
            float *out = i + 1 < network->layers ? next + (long)layer[1].history * layer[1].inputs : next;
            switch (layer->kind) {
            case VH_DENSE:
                dense(layer, buffer, out);
                break;
            case VH_DEPTHWISE:
                depthwise(layer, buffer, out);
                break;
            default:
                answer(layer, buffer, now, network->answer, answers);
                break;
            }
            memmove(buffer, buffer + now * layer->stride * layer->inputs,
                    (size_t)layer->history * (size_t)layer->inputs * sizeof(float));
            buffer = next;
        }
        features += now * entry;
        answers += now;
        steps -= now;
    }
}

#ifdef VH_LEVELLED
VH_FOR_AVX2 static void run_avx2(const vh_network *network, void *state, const int8_t *features, long steps,
                                 uint8_t *answers) {
    run(network, state, features, steps, answers);
}

VH_FOR_AVX512 static void run_avx512(const vh_network *network, void *state, const int8_t *features, long steps,
                                     uint8_t *answers) {
    run(network, state, features, steps, answers);
}
#endif

void vh_network_run(const vh_network *network, void *state, const int8_t *features, long steps, uint8_t *answers) {
    switch (vh_level()) {
#ifdef VH_LEVELLED
    case VH_AVX512:
        run_avx512(network, state, features, steps, answers);
        break;
    case VH_AVX2:
        run_avx2(network, state, features, steps, answers);
        break;
#endif
    default:
        run(network, state, features, steps, answers);
        break;
    }
}

/* Waiting frames in the state: a count, then frames of quantised features. */
long vh_listen(const vh_network *network, void *features, void *state, const int16_t *samples, long frames,
               uint8_t *answers) {
    enum { PIECE = VH_LANES * 3 };
    int32_t *count = (int32_t *)state;
    int8_t *waiting = (int8_t *)state + 64;
    uint16_t logged[PIECE * VH_CHANNELS];
    long answered = 0;
    while (frames > 0) {
        const long now = frames < PIECE ? frames : PIECE;
        vh_features_run(features, samples, now, logged);
        int8_t *to = waiting + (long)*count * VH_CHANNELS;
        for (long i = 0; i < now * VH_CHANNELS; ++i) {
            const unsigned level = logged[i];
            to[i] = network->quantised[level < VH_LEVELS ? level : VH_LEVELS - 1];
        }
        *count += (int32_t)now;
        const long steps = *count / network->stride;
        vh_network_run(network, state, waiting, steps, answers + answered);
        answered += steps;
        const long used = steps * network->stride;
        memmove(waiting, waiting + used * VH_CHANNELS, (size_t)(*count - used) * VH_CHANNELS);
        *count -= (int32_t)used;
        samples += now * VH_HOP;
        frames -= now;
    }
    return answered;
}
