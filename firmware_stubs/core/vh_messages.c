#include "vh_messages.h"

#include <string.h>

bool vh_message_known(uint8_t type) {
    switch (type) {
#define VH_TO_BOARD(name, number) case number:
#define VH_FROM_BOARD(name, number) case number:
#define VH_EVENT(name, number) case number:
#include "vh_messages.def"
#undef VH_TO_BOARD
#undef VH_FROM_BOARD
#undef VH_EVENT
        return true;
    default:
        return false;
    }
}

vh_writer vh_writer_over(uint8_t *bytes, size_t room) {
    vh_writer writer = {bytes, room, 0, false};
    return writer;
}

void vh_put_bytes(vh_writer *writer, void const *bytes, size_t size) {
    if (size > writer->room - writer->size) {
        size = writer->room - writer->size;
        writer->full = true;
    }
    if (size > 0) {
        memcpy(writer->bytes + writer->size, bytes, size);
        writer->size += size;
    }
}

void vh_put_number(vh_writer *writer, uint64_t number, size_t width) {
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    vh_put_bytes(writer, bytes, width);
}

void vh_put_u8(vh_writer *writer, uint8_t number) { vh_put_number(writer, number, 1); }
void vh_put_u16(vh_writer *writer, uint16_t number) { vh_put_number(writer, number, 2); }
void vh_put_u32(vh_writer *writer, uint32_t number) { vh_put_number(writer, number, 4); }
void vh_put_u64(vh_writer *writer, uint64_t number) { vh_put_number(writer, number, 8); }
void vh_put_text(vh_writer *writer, char const *text) { vh_put_bytes(writer, text, strlen(text)); }

void vh_put_short_text(vh_writer *writer, char const *text) {
    size_t size = strlen(text);
    if (size > 255) {
        size = 255;
        while (size > 0 && ((uint8_t)text[size] & 0xC0u) == 0x80u) {
            size--; /* do not cut a UTF-8 character */
        }
    }
    vh_put_u8(writer, (uint8_t)size);
    vh_put_bytes(writer, text, size);
}

vh_reader vh_reader_over(uint8_t const *bytes, size_t size) {
    vh_reader reader = {bytes, size, false};
    return reader;
}

uint64_t vh_get_number(vh_reader *reader, size_t width) {
    uint64_t number = 0;
    if (width > reader->left) {
        reader->too_short = true;
        return 0;
    }
    for (size_t i = 0; i < width; i++) {
        number |= (uint64_t)reader->bytes[i] << (8 * i);
    }
    reader->bytes += width;
    reader->left -= width;
    return number;
}

uint8_t vh_get_u8(vh_reader *reader) { return (uint8_t)vh_get_number(reader, 1); }
uint16_t vh_get_u16(vh_reader *reader) { return (uint16_t)vh_get_number(reader, 2); }
uint32_t vh_get_u32(vh_reader *reader) { return (uint32_t)vh_get_number(reader, 4); }
uint64_t vh_get_u64(vh_reader *reader) { return vh_get_number(reader, 8); }
