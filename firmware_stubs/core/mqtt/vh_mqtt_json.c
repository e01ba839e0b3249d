#include "vh_mqtt_json.h"

#include <string.h>

#include "vh_json.h"
#include "vh_messages.h"

static const char *const states[] = {"idle", "listening", "thinking", "speaking", "dialogue_open", "started"};

/* Members of an event after boot and seq. What is left of the payload may be text. */
static void put_text(vh_json_writer_t *json, const char *name, const vh_reader *reader) {
    (void)vh_json_text(json, name, reader->bytes, reader->left);
}

static void put_short_text(vh_json_writer_t *json, const char *name, vh_reader *reader) {
    size_t len = vh_get_u8(reader);
    if (len > reader->left) {
        reader->too_short = true;
        return;
    }
    (void)vh_json_text(json, name, reader->bytes, len);
    reader->bytes += len;
    reader->left -= len;
}

static void put_hello(vh_mqtt_board_t *board, vh_json_writer_t *json, vh_reader *reader) {
    (void)vh_json_number(json, "protocol", vh_get_u16(reader));
    uint32_t boot = vh_get_u32(reader);
    reader->too_short = reader->too_short || boot != board->config.boot_id;
    (void)vh_json_number(json, "time_us", vh_get_u64(reader));
    (void)vh_json_number(json, "rate_hz", vh_get_u32(reader));
    (void)vh_json_number(json, "window", vh_get_u32(reader));
    put_short_text(json, "firmware", reader);
    (void)vh_json_open(json, "wake_phrases", '[');
    for (unsigned left = vh_get_u8(reader); left && !reader->too_short; left--) put_short_text(json, NULL, reader);
    vh_json_close(json);
}

static void put_intent(vh_json_writer_t *json, vh_reader *reader) {
    (void)vh_json_score(json, "score", vh_get_u16(reader));
    put_short_text(json, "name", reader);
    unsigned left = vh_get_u8(reader);
    bool open = vh_json_open(json, "slots", '{');
    for (; left && !reader->too_short; left--) {
        size_t name_len = vh_get_u8(reader);
        const uint8_t *name = reader->bytes;
        if (name_len >= reader->left) {
            reader->too_short = true;
            return;
        }
        reader->bytes += name_len;
        reader->left -= name_len;
        size_t len = vh_get_u8(reader);
        if (len > reader->left) {
            reader->too_short = true;
            return;
        }
        if (open) (void)vh_json_pair(json, name, name_len, reader->bytes, len);
        reader->bytes += len;
        reader->left -= len;
    }
    if (open) vh_json_close(json);
}

static void put_event(vh_json_writer_t *json, uint8_t type, vh_reader *reader) {
    (void)vh_json_number(json, "time_us", vh_get_u64(reader));
    if (type == VH_WAKE || type == VH_TRANSCRIPT || type == VH_INTENT)
        (void)vh_json_number(json, "sample", vh_get_u64(reader));
    switch (type) {
    case VH_WAKE:
        (void)vh_json_score(json, "score", vh_get_u16(reader));
        put_text(json, "phrase", reader);
        break;
    case VH_TRANSCRIPT:
        (void)vh_json_bool(json, "final", vh_get_u8(reader) != 0);
        put_text(json, "text", reader);
        break;
    case VH_INTENT:
        put_intent(json, reader);
        break;
    case VH_RESPONSE:
        put_text(json, "text", reader);
        break;
    case VH_STATUS: {
        unsigned state = vh_get_u8(reader);
        if (state >= sizeof states / sizeof states[0]) {
            reader->too_short = true;
            return;
        }
        (void)vh_json_text(json, "state", (const uint8_t *)states[state], strlen(states[state]));
        put_text(json, "detail", reader);
        break;
    }
    case VH_LOG:
        (void)vh_json_number(json, "level", vh_get_u8(reader));
        put_text(json, "text", reader);
        break;
    default: /* VH_ERROR */
        (void)vh_json_number(json, "code", vh_get_u16(reader));
        put_text(json, "text", reader);
        break;
    }
}

size_t vh_mqtt_json_write(vh_mqtt_board_t *board, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len) {
    vh_reader reader = vh_reader_over(payload, len);
    vh_json_writer_t json;
    vh_json_begin(&json, board->json, sizeof board->json);
    (void)vh_json_hex(&json, "boot", board->config.boot_id);
    switch (type) {
    case VH_HELLO:
        put_hello(board, &json, &reader);
        break;
    case VH_PONG:
        (void)vh_json_number(&json, "token", vh_get_u32(&reader));
        (void)vh_json_number(&json, "received_us", vh_get_u64(&reader));
        (void)vh_json_number(&json, "sent_us", vh_get_u64(&reader));
        (void)vh_json_bool(&json, "listening", vh_get_u8(&reader) != 0);
        break;
    case VH_AUDIO_ACK:
    case VH_COMMAND_ACK:
        if (type == VH_AUDIO_ACK) {
            board->next = vh_get_u64(&reader);
            board->events = vh_get_u32(&reader);
        } else {
            board->command = vh_get_u32(&reader);
        }
        (void)vh_json_number(&json, "next", board->next);
        (void)vh_json_number(&json, "events", board->events);
        (void)vh_json_number(&json, "command", board->command);
        break;
    default:
        if (type != VH_LOG) (void)vh_json_number(&json, "seq", seq);
        put_event(&json, type, &reader);
        break;
    }
    if (reader.too_short) return 0;
    board->counters.shortened += json.shortened;
    return vh_json_end(&json);
}
