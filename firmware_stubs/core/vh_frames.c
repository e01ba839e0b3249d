#include "vh_frames.h"

#include <string.h>

typedef struct cobs {
    uint8_t *into;
    size_t size;
    size_t code; /* where the length of the open run is written */
} cobs;

static void cobs_push(cobs *out, uint8_t const *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0) {
            out->into[out->size++] = bytes[i];
        }
        if (bytes[i] == 0 || out->size - out->code == 255) {
            out->into[out->code] = (uint8_t)(out->size - out->code);
            out->code = out->size++;
        }
    }
}

size_t vh_frame_encode(uint8_t type, uint32_t seq, uint8_t const *payload, size_t size, uint8_t *into, size_t room) {
    uint8_t head[5];
    uint8_t tail[4];
    vh_writer writer = vh_writer_over(head, sizeof head);
    size_t body = sizeof head + size + sizeof tail;

    if (size > VH_PAYLOAD_MAX || body + body / 254u + 3u > room) {
        return 0;
    }
    vh_put_u8(&writer, type);
    vh_put_u32(&writer, seq);
    writer = vh_writer_over(tail, sizeof tail);
    vh_put_u32(&writer, vh_crc32(vh_crc32(0, head, sizeof head), payload, size));

    cobs out = {into, 2, 1};
    into[0] = 0;
    cobs_push(&out, head, sizeof head);
    cobs_push(&out, payload, size);
    cobs_push(&out, tail, sizeof tail);
    into[out.code] = (uint8_t)(out.size - out.code);
    into[out.size++] = 0;
    return out.size;
}

void vh_decoder_init(vh_decoder *decoder) {
    decoder->size = 0;
    decoder->too_long = false;
    decoder->frames = 0;
    decoder->garbage = 0;
}

/* In place: the decoded bytes are never longer than the coded ones. Returns 0 if the lengths of the runs are wrong. */
static size_t cobs_decode(uint8_t *bytes, size_t size) {
    size_t from = 0;
    size_t to = 0;
    while (from < size) {
        size_t run = bytes[from++]; /* never 0: a zero ends the segment */
        if (run - 1u > size - from) {
            return 0;
        }
        memmove(bytes + to, bytes + from, run - 1u);
        to += run - 1u;
        from += run - 1u;
        if (run != 255u && from < size) {
            bytes[to++] = 0;
        }
    }
    return to;
}

static bool decode(vh_decoder *decoder, vh_frame *frame) {
    size_t size = cobs_decode(decoder->segment, decoder->size);
    if (size < 9u || size > VH_BODY_MAX) {
        return false;
    }
    vh_reader reader = vh_reader_over(decoder->segment + size - 4u, 4u);
    if (vh_get_u32(&reader) != vh_crc32(0, decoder->segment, size - 4u)) {
        return false;
    }
    reader = vh_reader_over(decoder->segment, 5u);
    frame->type = vh_get_u8(&reader);
    frame->seq = vh_get_u32(&reader);
    frame->payload = decoder->segment + 5u;
    frame->size = size - 9u;
    return vh_message_known(frame->type);
}

size_t vh_decoder_feed(vh_decoder *decoder, uint8_t const *bytes, size_t size, vh_frame *frame, bool *found) {
    size_t taken = 0;
    *found = false;
    while (taken < size) {
        uint8_t const *end = memchr(bytes + taken, 0, size - taken);
        size_t run = (end != NULL ? (size_t)(end - bytes) : size) - taken;
        if (run > sizeof decoder->segment - decoder->size) {
            decoder->too_long = true;
        } else {
            memcpy(decoder->segment + decoder->size, bytes + taken, run);
            decoder->size += run;
        }
        taken += run;
        if (end == NULL) {
            break;
        }
        taken++;
        bool any = decoder->size > 0 || decoder->too_long;
        bool whole = any && !decoder->too_long && decode(decoder, frame);
        decoder->size = 0;
        decoder->too_long = false;
        if (whole) {
            decoder->frames++;
            *found = true;
            return taken;
        }
        decoder->garbage += any ? 1u : 0u;
    }
    return taken;
}
