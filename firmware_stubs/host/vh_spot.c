/* Prints the spotter's detections in a file of raw 16 kHz PCM16, the reference for live counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spotter/vh_spotter.h"

static void found(void *user, vh_spotter_event_t const *event) {
    (void)user;
    (void)printf("%llu %.6f %s\n", (unsigned long long)event->sample, event->score / 65535.0, event->phrase);
}

static int usage(void) {
    (void)fputs("usage: vh_spot [--operating-point 0…100] FILE.s16\n"
                "prints `sample score phrase` for each wake event of raw 16 kHz PCM16, little endian (- is stdin)\n",
                stderr);
    return 2;
}

int main(int count, char **arguments) {
    static vh_spotter_t spotter;
    uint8_t bytes[8192];
    int16_t samples[sizeof bytes / 2];
    size_t size = 0;
    int at = 1;

    vh_spotter_init(&spotter);
    if (count == 4 && strcmp(arguments[1], "--operating-point") == 0) {
        char *rest;
        unsigned long point = strtoul(arguments[2], &rest, 10);
        if (rest == arguments[2] || *rest != 0 || point > 100) {
            return usage();
        }
        vh_spotter_set_operating_point(&spotter, (uint8_t)point);
        at = 3;
    }
    if (count != at + 1) {
        return usage();
    }
    FILE *file = strcmp(arguments[at], "-") == 0 ? stdin : fopen(arguments[at], "rb");
    if (file == NULL) {
        perror(arguments[at]);
        return 1;
    }
    while ((size = fread(bytes, 2, sizeof bytes / 2, file)) > 0) {
        for (size_t i = 0; i < size; i++) {
            samples[i] = (int16_t)(uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
        }
        (void)vh_spotter_feed(&spotter, samples, size, found, NULL);
    }
    if (ferror(file)) {
        perror(arguments[at]);
        return 1;
    }
    return 0;
}
