#include "vh_text.h"

#include <string.h>

static void put(vh_text *text, char letter) {
    if (text->size + 1 < sizeof text->text) {
        text->text[text->size++] = letter;
        text->text[text->size] = 0;
    }
}

void vh_text_clear(vh_text *text) {
    text->size = 0;
    text->text[0] = 0;
}

void vh_text_put(vh_text *text, char const *piece) {
    while (*piece != 0) {
        put(text, *piece++);
    }
}

void vh_text_put_foreign(vh_text *text, uint8_t const *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        put(text, bytes[i] < 0x20 || bytes[i] == 0x7F ? '?' : (char)bytes[i]);
    }
}

void vh_text_put_number(vh_text *text, uint64_t number, unsigned width) {
    char digits[20];
    unsigned count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    for (; width > count; width--) {
        put(text, '0');
    }
    while (count > 0) {
        put(text, digits[--count]);
    }
}

void vh_text_put_score(vh_text *text, uint16_t score) {
    uint32_t parts = ((uint32_t)score * 10000u + 32767u) / 65535u;
    vh_text_put_number(text, parts / 10000u, 1);
    put(text, '.');
    vh_text_put_number(text, parts % 10000u, 4);
}

void vh_text_put_hex32(vh_text *text, uint32_t number) {
    for (unsigned shift = 32; shift > 0; shift -= 4) {
        put(text, "0123456789abcdef"[number >> (shift - 4) & 15]);
    }
}
