#include "hearing.h"

#include "spotter/vh_spotter.h"
#include "vh_codecs.h"
#include "vh_frames.h"
#include "vh_text.h"

static vh_spotter_t spotter;

static void end_line(vh_text *line) {
    vh_text_put(line, "\n");
    machine_print(line->text);
}

static void found(void *user, vh_spotter_event_t const *event) {
    vh_text line;
    (void)user;
    vh_text_clear(&line);
    vh_text_put(&line, "event ");
    vh_text_put_number(&line, event->sample, 1);
    vh_text_put(&line, " ");
    vh_text_put_number(&line, event->score, 1);
    end_line(&line);
}

static void tell_state(uint32_t decoded) {
    vh_text line;
    vh_text_clear(&line);
    vh_text_put(&line, "state ");
    vh_text_put_number(&line, spotter.samples, 1);
    vh_text_put(&line, " ");
    vh_text_put_hex32(&line, decoded);
    vh_text_put(&line, " ");
    vh_text_put_hex32(&line, vh_crc32(0, (uint8_t const *)&spotter, sizeof spotter));
    end_line(&line);
}

void hear_all(uint8_t const *sound, size_t size) {
    vh_reader reader = vh_reader_over(sound, size);
    uint32_t decoded = 0;
    uint64_t told = 0;
    vh_spotter_init(&spotter);
    while (reader.left > 0) {
        vh_unpacking unpacking;
        int16_t samples[256];
        size_t count;
        uint8_t encoding = vh_get_u8(&reader);
        uint32_t length = vh_get_u32(&reader);
        if (reader.too_short || length > reader.left || !vh_unpack_start(&unpacking, encoding, reader.bytes, length)) {
            machine_print("no frame\n");
            return;
        }
        while ((count = vh_unpack(&unpacking, samples, 256)) > 0) {
            decoded = vh_crc32(decoded, (uint8_t const *)samples, 2 * count);
            (void)vh_spotter_feed(&spotter, samples, count, found, NULL);
        }
        reader.bytes += length;
        reader.left -= length;
        if (spotter.samples - told >= 16000) {
            told = spotter.samples;
            tell_state(decoded);
        }
    }
    tell_state(decoded);
}
