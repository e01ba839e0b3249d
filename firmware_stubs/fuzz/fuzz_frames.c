/* Any bytes in any pieces: the decoder stays within its memory, and finds the same frames however they are cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "vh_frames.h"

enum { MOST = 64 };

typedef struct seen {
    size_t count;
    uint32_t digest;
} seen;

static seen decode(uint8_t const *bytes, size_t size, size_t piece) {
    static vh_decoder decoder;
    seen all = {0, 0};
    size_t at = 0;
    vh_decoder_init(&decoder);
    while (at < size) {
        vh_frame frame;
        bool found;
        size_t given = piece < size - at ? piece : size - at;
        size_t taken = vh_decoder_feed(&decoder, bytes + at, given, &frame, &found);
        if (taken == 0 || taken > given || (!found && taken != given)) {
            abort();
        }
        at += taken;
        if (found) {
            uint8_t again[VH_FRAME_MAX];
            if (frame.size > VH_PAYLOAD_MAX || !vh_message_known(frame.type) ||
                vh_frame_encode(frame.type, frame.seq, frame.payload, frame.size, again, sizeof again) == 0) {
                abort();
            }
            all.count++;
            all.digest = vh_crc32(all.digest, &frame.type, 1);
            all.digest = vh_crc32(all.digest, frame.payload, frame.size);
        }
    }
    if (all.count != decoder.frames) {
        abort();
    }
    return all;
}

size_t fuzz_piece(uint8_t *into, size_t room) { return fuzz_frame(into, room); }

int LLVMFuzzerTestOneInput(uint8_t const *bytes, size_t size) {
    seen whole = decode(bytes, size, size == 0 ? 1 : size);
    seen cut = decode(bytes, size, size == 0 ? 1 : 1 + bytes[0] % MOST);
    if (whole.count != cut.count || whole.digest != cut.digest) {
        abort();
    }
    return 0;
}
