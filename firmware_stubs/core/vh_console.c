#include "vh_console.h"

#include "vh_messages.h"

static void put_head(uint8_t style, uint8_t level, uint64_t time_us, vh_text *line) {
    static char const letters[] = "?EWID";
    static char const *const names[] = {"err", "err", "wrn", "inf", "dbg"};
    uint64_t seconds = time_us / 1000000u;
    level = level > VH_LOG_DEBUG ? VH_LOG_DEBUG : level;
    switch (style) {
    case VH_STYLE_ESP_IDF: {
        char letter[2] = {letters[level], 0};
        vh_text_put(line, letter);
        vh_text_put(line, " (");
        vh_text_put_number(line, time_us / 1000u, 1);
        vh_text_put(line, ") vh: ");
        break;
    }
    case VH_STYLE_ZEPHYR:
        vh_text_put(line, "[");
        vh_text_put_number(line, seconds / 3600u, 2);
        vh_text_put(line, ":");
        vh_text_put_number(line, seconds / 60u % 60u, 2);
        vh_text_put(line, ":");
        vh_text_put_number(line, seconds % 60u, 2);
        vh_text_put(line, ".");
        vh_text_put_number(line, time_us / 1000u % 1000u, 3);
        vh_text_put(line, ",");
        vh_text_put_number(line, time_us % 1000u, 3);
        vh_text_put(line, "] <");
        vh_text_put(line, names[level]);
        vh_text_put(line, "> vh: ");
        break;
    default: /* Arduino: sketches print neither level nor time */
        break;
    }
}

static void put_rest(vh_reader *reader, char const *before, vh_text *line) {
    vh_text_put(line, before);
    vh_text_put_foreign(line, reader->bytes, reader->left);
}

bool vh_console_line(uint8_t style, uint8_t type, uint8_t const *payload, size_t size, vh_text *line) {
    static char const *const states[] = {"idle", "listening", "thinking", "speaking", "dialogue open", "started"};
    vh_reader reader = vh_reader_over(payload, size);
    uint64_t time_us = vh_get_u64(&reader);
    vh_text_clear(line);
    if (style == VH_STYLE_NONE || style >= VH_STYLES) {
        return false;
    }
    uint8_t level = type == VH_ERROR ? VH_LOG_ERROR : VH_LOG_INFO;
    if (type == VH_LOG) {
        level = vh_get_u8(&reader);
    }
    put_head(style, level, time_us, line);
    switch (type) {
    case VH_WAKE: {
        uint64_t sample = vh_get_u64(&reader);
        uint16_t score = vh_get_u16(&reader);
        put_rest(&reader, "wake word: ", line);
        vh_text_put(line, ", score: ");
        vh_text_put_score(line, score);
        vh_text_put(line, ", sample: ");
        vh_text_put_number(line, sample, 1);
        break;
    }
    case VH_TRANSCRIPT:
        (void)vh_get_u64(&reader);
        (void)vh_get_u8(&reader);
        put_rest(&reader, "heard: ", line);
        break;
    case VH_INTENT: {
        (void)vh_get_u64(&reader);
        (void)vh_get_u16(&reader);
        size_t length = vh_get_u8(&reader);
        reader.left = length < reader.left ? length : reader.left;
        put_rest(&reader, "intent: ", line);
        break;
    }
    case VH_RESPONSE:
        put_rest(&reader, "reply: ", line);
        break;
    case VH_STATUS: {
        uint8_t state = vh_get_u8(&reader);
        vh_text_put(line, "state: ");
        vh_text_put(line, state < sizeof states / sizeof *states ? states[state] : "unknown");
        break;
    }
    case VH_LOG:
        put_rest(&reader, "", line);
        break;
    case VH_ERROR:
        vh_text_put(line, "error ");
        vh_text_put_number(line, vh_get_u16(&reader), 1);
        put_rest(&reader, ": ", line);
        break;
    default:
        return false;
    }
    if (line->size + 3u > sizeof line->text) {
        line->size = sizeof line->text - 3u; /* a long line is cut, but keeps its line end */
    }
    vh_text_put(line, "\r\n");
    return !reader.too_short;
}
