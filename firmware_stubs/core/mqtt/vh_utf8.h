/* UTF-8, one character at a time. */
#ifndef VH_UTF8_H
#define VH_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define VH_UTF8_WRONG 0xFFFDu

/* Takes the character at `text` (len >= 1) and returns its size; a byte that belongs to none is taken as VH_UTF8_WRONG. */
size_t vh_utf8_take(const uint8_t *text, size_t len, uint32_t *character);
/* Puts 1 to 4 bytes and returns how many. */
size_t vh_utf8_put(uint32_t character, uint8_t out[4]);

#endif
