/* The features and the int8 network of microWakeWord over whole stretches of sound, bit-exact.
 *
 * No allocation: the caller owns all memory. A state is `vh_*_bytes` bytes, aligned to 64, for use by one thread. */
#ifndef VH_KERNEL_H
#define VH_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define VH_VERSION 1
#define VH_CHANNELS 40
#define VH_WINDOW 480
#define VH_HOP 160
#define VH_LANES 16  /* frames that are transformed side by side */
#define VH_BLOCK 16  /* steps that go through the network at a time */
#define VH_LEVELS 2048 /* more than any logged feature: 64 ln 2^32 = 1420 */

/* A function is compiled once for each processor level, from the same source. */
enum { VH_PLAIN = 0, VH_AVX2 = 1, VH_AVX512 = 2 };
#if defined(__x86_64__) && defined(__GNUC__)
#define VH_LEVELLED 1
#define VH_FOR_AVX2 __attribute__((target("avx2,fma")))
#define VH_FOR_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")))
#endif
#define VH_INLINE static inline __attribute__((always_inline))

/* Eight floats; loads and stores need no alignment. */
typedef float vh_eight __attribute__((vector_size(32), aligned(4), may_alias));

enum { VH_DENSE = 0, VH_DEPTHWISE = 1, VH_ANSWER = 2 };

/* One convolution over time. inputs and outputs are padded to multiples of 8 and 16. The row of output t begins at
 * input frame t * stride; weights: [taps * inputs][outputs] when dense, [taps][outputs] by depth, [taps * inputs] for
 * the answer. The accumulator times multiplier / 2^31 is rounded, `half` is added, and `away` (all ones or zero)
 * rounds the half of negatives down, before the shift. low and high bound the output, relative to `zero`. */
typedef struct {
    int32_t kind, taps, stride, history, inputs, outputs;
    int32_t zero, low, high, reserved;
    const float *weights;
    const float *bias;
    const int32_t *multiplier;
    const int32_t *half;
    const int32_t *away;
    const int32_t *shift;
    const float *start; /* [history][inputs]: assumed frames before the first */
} vh_layer;

/* A chain of layers. stride: frames of features per step, at most 32. width: features in a frame, VH_CHANNELS for
 * vh_listen. input_zero: zero point of the quantised features. The last layer is the answer. */
typedef struct {
    int32_t layers, stride, width, input_zero;
    const vh_layer *layer;
    const uint8_t *answer;  /* [256]: the last layer's output + 128 to the network's */
    const int8_t *quantised; /* [VH_LEVELS]: a logged feature to the network's input */
} vh_network;

int32_t vh_version(void);
/* The level in use: the highest that the processor supports and `vh_limit` allows. */
int32_t vh_level(void);
/* Allows levels up to `most` from here on, in every thread. Returns the level that is then in use. */
int32_t vh_limit(int32_t most);
/* Size of a state of features. */
size_t vh_features_bytes(void);
/* Fills a new state with its tables. Takes milliseconds; call it once. */
void vh_features_begin(void *state);
/* Clears the noise estimate, as before the first sound. */
void vh_features_restart(void *state);
/* Writes the logged features, [frames][VH_CHANNELS], of frames that begin every VH_HOP samples. samples: at 16 kHz,
 * (frames - 1) * VH_HOP + VH_WINDOW of them. The noise estimate in the state continues. */
void vh_features_run(void *state, const int16_t *samples, long frames, uint16_t *features);

/* Size of a state of this network. */
size_t vh_network_bytes(const vh_network *network);
/* Fills a new or used state with the frames that are assumed before the first. */
void vh_network_restart(const vh_network *network, void *state);
/* Runs steps that follow the previous ones of this state. features: [steps * stride][width], quantised. answers:
 * [steps], written: the network's output bytes. */
void vh_network_run(const vh_network *network, void *state, const int8_t *features, long steps, uint8_t *answers);

/* Features and network over `frames` frames. features, state: states of vh_features_begin and vh_network_restart.
 * samples: as of vh_features_run. answers: room for frames / stride + 1 of them. Features of an incomplete step stay in
 * the network's state. Returns the number of answers. */
long vh_listen(const vh_network *network, void *features, void *state, const int16_t *samples, long frames,
               uint8_t *answers);

#endif
