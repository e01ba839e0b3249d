#include "vh_spotter.h"

#include <string.h>

#include "vh_spotter_tables.h"

#if VH_SPOTTER_TABLES_SHAPE != VH_SPOTTER_KERNEL * 1000000u + VH_SPOTTER_FIRST * 100000u + VH_SPOTTER_SECOND * 1000u + \
                                   VH_SPOTTER_SPAN * 100u + VH_SPOTTER_THIRD
#error "vh_spotter_tables.h was made for a network of another shape: run tools/train_spotter.py"
#endif

#define REFRACTORY (2u * VH_SPOTTER_RATE_HZ)
/* In 1/256 of a logit: the threshold at operating point 50, and how much a point lowers it. */
#define VH_SPOTTER_THRESHOLD_LOGIT 512
#define VH_SPOTTER_THRESHOLD_STEP 20
#define CANDIDATE_STEPS 4u /* after so many steps, a candidate wakes even if it still rises */

static int64_t shifted(int64_t value, unsigned bits) {
    return value >= 0 ? value >> bits : ~(~value >> bits);
}

static int32_t weighed(const int8_t *in, const int8_t *weights, unsigned count) {
    int32_t sum = 0;
    for (unsigned i = 0; i < count; i++) sum += (int32_t)in[i] * weights[i];
    return sum;
}

static int64_t scaled(int32_t sum, int32_t bias, int32_t multiplier) {
    return shifted(((int64_t)sum + bias) * multiplier + (1 << 23), 24);
}

/* One step of one layer with ReLU. `in` holds all inputs of a filter, the oldest first. */
static void layer(const int8_t *in, unsigned inputs, int8_t *out, unsigned filters, const int8_t *weights,
                  const int32_t *biases, const int32_t *multipliers) {
    for (unsigned f = 0; f < filters; f++) {
        int64_t value = scaled(weighed(in, weights + f * inputs, inputs), biases[f], multipliers[f]);
        out[f] = (int8_t)(value < 0 ? 0 : value > 127 ? 127 : value);
    }
}

/* `logit` in 1/256, between the points of a table that are 64 apart. */
static uint16_t probability(int64_t logit) {
    int64_t place = logit + 16 * 256;
    if (place <= 0) return vh_spotter_sigmoid[0];
    if (place >= 128 * 64) return vh_spotter_sigmoid[128];
    unsigned i = (unsigned)place / 64u, rest = (unsigned)place % 64u;
    uint32_t low = vh_spotter_sigmoid[i], high = vh_spotter_sigmoid[i + 1u];
    return (uint16_t)(low + (high - low) * rest / 64u);
}

static uint16_t threshold(const vh_spotter_t *spotter) {
    int32_t away = (int32_t)VH_SPOTTER_OPERATING_POINT - spotter->operating_point;
    return probability(VH_SPOTTER_THRESHOLD_LOGIT + away * VH_SPOTTER_THRESHOLD_STEP);
}

/* One step of the network on spotter->levels: the score. */
static uint16_t step(vh_spotter_t *spotter) {
    memmove(spotter->first[0], spotter->first[1], sizeof spotter->first - sizeof spotter->first[0]);
    layer(spotter->levels[0], VH_SPOTTER_KERNEL * VH_SPOTTER_BANDS, spotter->first[VH_SPOTTER_KERNEL - 1u],
          VH_SPOTTER_FIRST, vh_spotter_first_weights, vh_spotter_first_biases, vh_spotter_first_multipliers);
    memmove(spotter->second[0], spotter->second[1], sizeof spotter->second - sizeof spotter->second[0]);
    layer(spotter->first[0], VH_SPOTTER_KERNEL * VH_SPOTTER_FIRST, spotter->second[VH_SPOTTER_SPAN - 1u],
          VH_SPOTTER_SECOND, vh_spotter_second_weights, vh_spotter_second_biases, vh_spotter_second_multipliers);
    int8_t third[VH_SPOTTER_THIRD];
    layer(spotter->second[0], VH_SPOTTER_SPAN * VH_SPOTTER_SECOND, third, VH_SPOTTER_THIRD, vh_spotter_third_weights,
          vh_spotter_third_biases, vh_spotter_third_multipliers);
    int32_t sum = weighed(third, vh_spotter_output_weights, VH_SPOTTER_THIRD);
    return probability(scaled(sum, vh_spotter_output_biases[0], vh_spotter_output_multipliers[0]));
}

/* A candidate begins at the threshold and wakes when the mean of two steps falls again, so an utterance is one event. */
static bool wakes(vh_spotter_t *spotter, uint16_t newest) {
    uint16_t mean = (uint16_t)(((uint32_t)newest + spotter->score) / 2u), limit = threshold(spotter);
    spotter->score = newest;
    if (mean < limit / 2u) spotter->armed = 1;
    if (spotter->candidate_steps == 0) {
        if (!spotter->armed || mean < limit || spotter->samples < spotter->quiet_until) return false;
        spotter->candidate_steps = 1;
        spotter->best = mean;
        return false;
    }
    spotter->candidate_steps++;
    bool rises = mean > spotter->best;
    if (rises) spotter->best = mean;
    if (rises && spotter->candidate_steps <= CANDIDATE_STEPS) return false;
    spotter->candidate_steps = 0;
    spotter->armed = 0;
    spotter->quiet_until = spotter->samples + REFRACTORY;
    return true;
}

void vh_spotter_reset(vh_spotter_t *spotter) {
    uint8_t operating_point = spotter->operating_point;
    memset(spotter, 0, sizeof *spotter);
    spotter->operating_point = operating_point;
    spotter->armed = 1;
    vh_spotter_front_init(&spotter->front);
    /* As after a long silence: the output of each layer for silence. */
    for (unsigned i = 0; i < VH_SPOTTER_KERNEL + VH_SPOTTER_SPAN; i++) spotter->score = step(spotter);
}

void vh_spotter_init(vh_spotter_t *spotter) {
    spotter->operating_point = VH_SPOTTER_OPERATING_POINT;
    vh_spotter_reset(spotter);
}

void vh_spotter_set_operating_point(vh_spotter_t *spotter, uint8_t operating_point) {
    spotter->operating_point = operating_point > 100u ? 100u : operating_point;
}

size_t vh_spotter_feed(vh_spotter_t *spotter, const int16_t *pcm, size_t count, vh_spotter_found_t found, void *user) {
    size_t events = 0;
    for (size_t i = 0; i < count; i++) {
        int8_t levels[VH_SPOTTER_BANDS];
        spotter->samples++;
        if (!vh_spotter_front_feed(&spotter->front, pcm[i], levels)) continue;
        memmove(spotter->levels[0], spotter->levels[1], sizeof spotter->levels - sizeof spotter->levels[0]);
        memcpy(spotter->levels[VH_SPOTTER_KERNEL - 1u], levels, sizeof levels);
        spotter->odd_frame = !spotter->odd_frame;
        if (!spotter->odd_frame || !wakes(spotter, step(spotter))) continue;
        events++;
        if (found) {
            vh_spotter_event_t event = {spotter->samples, spotter->best, VH_SPOTTER_PHRASE};
            found(user, &event);
        }
    }
    return events;
}
