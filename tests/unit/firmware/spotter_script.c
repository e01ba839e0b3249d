/* `spot SEED POINT FILE`: events of raw PCM16, fed in pieces that hang on the seed (0: one piece), each from a block of its own
 * size. `levels FILE`: the bands of each frame. `size`: bytes of the state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotter/vh_spotter.h"

static int16_t *pcm;
static size_t count;

static void found(void *user, const vh_spotter_event_t *event) {
    (void)user;
    printf("%llu %u %s\n", (unsigned long long)event->sample, event->score, event->phrase);
}

static int read_all(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) return 1;
    count = (size_t)ftell(file) / 2u;
    rewind(file);
    pcm = malloc(count * 2u + 1u);
    size_t got = fread(pcm, 2, count, file);
    fclose(file);
    return got == count ? 0 : 1;
}

static void spot(uint32_t seed, uint8_t point) {
    static vh_spotter_t spotter;
    memset(&spotter, 0xA5, sizeof spotter);
    vh_spotter_init(&spotter);
    vh_spotter_set_operating_point(&spotter, point);
    for (size_t at = 0; at < count;) {
        uint32_t state = seed = seed * 1664525u + 1013904223u * (seed != 0);
        size_t piece = seed == 0 ? count : 1u + (state >> 8) % ((state & 3u) ? 50u : 5000u);
        if (piece > count - at) piece = count - at;
        int16_t *copy = malloc(piece * 2u);
        memcpy(copy, pcm + at, piece * 2u);
        (void)vh_spotter_feed(&spotter, copy, piece, found, NULL);
        free(copy);
        at += piece;
    }
}

static void levels(void) {
    static vh_spotter_front_t front;
    int8_t bands[VH_SPOTTER_BANDS];
    vh_spotter_front_init(&front);
    for (size_t i = 0; i < count; i++) {
        if (!vh_spotter_front_feed(&front, pcm[i], bands)) continue;
        for (unsigned band = 0; band < VH_SPOTTER_BANDS; band++) printf("%d ", bands[band]);
        printf("\n");
    }
}

int main(int many, char **arguments) {
    if (many == 2 && strcmp(arguments[1], "size") == 0) {
        printf("%zu\n", sizeof(vh_spotter_t));
        return 0;
    }
    if (many < 3 || read_all(arguments[many - 1]) != 0) return 1;
    if (strcmp(arguments[1], "spot") == 0 && many == 5) spot((uint32_t)atoi(arguments[2]), (uint8_t)atoi(arguments[3]));
    if (strcmp(arguments[1], "levels") == 0) levels();
    free(pcm);
    return 0;
}
