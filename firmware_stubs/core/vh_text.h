/* Text without printf: appends pieces, and leaves out what does not fit. */
#ifndef VH_TEXT_H
#define VH_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define VH_TEXT_MAX 256u

typedef struct vh_text {
    char text[VH_TEXT_MAX]; /* always ends in 0 */
    size_t size;
} vh_text;

void vh_text_clear(vh_text *text);
void vh_text_put(vh_text *text, char const *piece);
/* Foreign bytes: control characters become '?', so that the text stays on one line. */
void vh_text_put_foreign(vh_text *text, uint8_t const *bytes, size_t size);
/* Decimal, with leading zeros up to `width` digits. */
void vh_text_put_number(vh_text *text, uint64_t number, unsigned width);
/* 65535 is 1.0000. */
void vh_text_put_score(vh_text *text, uint16_t score);
void vh_text_put_hex32(vh_text *text, uint32_t number);

#endif
