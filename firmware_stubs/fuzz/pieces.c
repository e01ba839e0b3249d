#include <string.h>

#include "fuzz.h"
#include "vh_frames.h"

size_t fuzz_frame(uint8_t *into, size_t room) {
    static uint8_t const types[] = {0x01, 0x02, 0x03, 0x04, 0x06, 0x07, 0x84, 0x05};
    uint8_t payload[VH_PAYLOAD_MAX];
    size_t size = fuzz_dice(4) == 0 ? fuzz_dice(VH_PAYLOAD_MAX + 1) : fuzz_dice(40);
    for (size_t i = 0; i < size; i++) {
        payload[i] = (uint8_t)(fuzz_dice(3) == 0 ? 0 : fuzz_dice(256));
    }
    if (size > 2 && fuzz_dice(2) == 0) {
        memset(payload, 0, size < 10 ? size : 10);
        payload[0] = (uint8_t)fuzz_dice(4);
    }
    return vh_frame_encode(types[fuzz_dice(fuzz_dice(50) == 0 ? 8 : 7)], fuzz_dice(5), payload, size, into, room);
}
