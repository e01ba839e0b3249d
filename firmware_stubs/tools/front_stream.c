/* The front end over a whole recording: what the training tool loads, so that it sees exactly what a board sees. */
#include "vh_spotter_front.h"

long vh_front_stream(const int16_t *pcm, long count, int8_t *levels) {
    static vh_spotter_front_t front;
    vh_spotter_front_init(&front);
    long frames = 0;
    for (long i = 0; i < count; i++)
        if (vh_spotter_front_feed(&front, pcm[i], levels + frames * (long)VH_SPOTTER_BANDS)) frames++;
    return frames;
}
