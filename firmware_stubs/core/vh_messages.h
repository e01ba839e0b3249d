/* The numbers of the messages, and how their little-endian payloads are written and read. */
#ifndef VH_MESSAGES_H
#define VH_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VH_PROTOCOL 1u
#define VH_PAYLOAD_MAX 1024u

enum {
#define VH_TO_BOARD(name, number) VH_##name = number,
#define VH_FROM_BOARD(name, number) VH_##name = number,
#define VH_EVENT(name, number) VH_##name = number,
#include "vh_messages.def"
#undef VH_TO_BOARD
#undef VH_FROM_BOARD
#undef VH_EVENT
};

enum { VH_PCM16 = 0, VH_MULAW = 1, VH_ADPCM = 2 };
enum { VH_KEY_OPERATING_POINT = 1, VH_KEY_STYLE = 2 };
enum { VH_IDLE = 0, VH_LISTENING = 1, VH_THINKING = 2, VH_SPEAKING = 3, VH_DIALOGUE_OPEN = 4, VH_STARTED = 5 };
enum { VH_LOG_ERROR = 1, VH_LOG_WARNING = 2, VH_LOG_INFO = 3, VH_LOG_DEBUG = 4 };
enum { VH_ERROR_BAD_COMMAND = 1, VH_ERROR_NOT_UNDERSTOOD = 2 };

bool vh_message_known(uint8_t type);

/* Writes to `bytes`. What does not fit is left out, and `full` is set. */
typedef struct vh_writer {
    uint8_t *bytes;
    size_t room;
    size_t size;
    bool full;
} vh_writer;

vh_writer vh_writer_over(uint8_t *bytes, size_t room);
void vh_put_bytes(vh_writer *writer, void const *bytes, size_t size);
void vh_put_number(vh_writer *writer, uint64_t number, size_t width);
void vh_put_u8(vh_writer *writer, uint8_t number);
void vh_put_u16(vh_writer *writer, uint16_t number);
void vh_put_u32(vh_writer *writer, uint32_t number);
void vh_put_u64(vh_writer *writer, uint64_t number);
void vh_put_text(vh_writer *writer, char const *text);
/* A length byte before the text, which is cut at 255 bytes. */
void vh_put_short_text(vh_writer *writer, char const *text);

/* Reads from `bytes`. Beyond the end, it returns zeros and sets `too_short`. */
typedef struct vh_reader {
    uint8_t const *bytes;
    size_t left;
    bool too_short;
} vh_reader;

vh_reader vh_reader_over(uint8_t const *bytes, size_t size);
uint64_t vh_get_number(vh_reader *reader, size_t width);
uint8_t vh_get_u8(vh_reader *reader);
uint16_t vh_get_u16(vh_reader *reader);
uint32_t vh_get_u32(vh_reader *reader);
uint64_t vh_get_u64(vh_reader *reader);

#endif
