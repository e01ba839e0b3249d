#include "vh_utf8.h"

size_t vh_utf8_take(const uint8_t *text, size_t len, uint32_t *character) {
    static const uint32_t least[5] = {0, 0, 0x80u, 0x800u, 0x10000u};
    uint8_t head = text[0];
    size_t size = head < 0x80u ? 1u : head < 0xC0u ? 0u : head < 0xE0u ? 2u : head < 0xF0u ? 3u : head < 0xF8u ? 4u : 0u;
    *character = VH_UTF8_WRONG;
    if (size == 0 || size > len) return 1;
    uint32_t value = size == 1u ? head : head & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0u) != 0x80u) return 1;
        value = value << 6 | (text[i] & 0x3Fu);
    }
    if (value < least[size] || value > 0x10FFFFu || (value >= 0xD800u && value < 0xE000u)) return 1;
    *character = value;
    return size;
}

size_t vh_utf8_put(uint32_t character, uint8_t out[4]) {
    if (character < 0x80u) {
        out[0] = (uint8_t)character;
        return 1;
    }
    size_t size = character < 0x800u ? 2u : character < 0x10000u ? 3u : 4u;
    for (size_t i = size - 1u; i > 0; i--, character >>= 6) out[i] = (uint8_t)(0x80u | (character & 0x3Fu));
    out[0] = (uint8_t)((0xF00u >> size & 0xF0u) | character);
    return size;
}
