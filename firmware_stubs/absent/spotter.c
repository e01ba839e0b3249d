/* Links the board while there is no spotter in the tree: it hears nothing. */
#include "spotter/vh_spotter.h"

void vh_spotter_init(vh_spotter_t *spotter) { spotter->samples = 0; }
void vh_spotter_reset(vh_spotter_t *spotter) { spotter->samples = 0; }
void vh_spotter_set_operating_point(vh_spotter_t *spotter, uint8_t point) { spotter->operating_point = point; }
size_t vh_spotter_feed(vh_spotter_t *spotter, const int16_t *pcm, size_t count, vh_spotter_found_t found, void *user) {
    (void)pcm;
    (void)found;
    (void)user;
    spotter->samples += count;
    return 0;
}
