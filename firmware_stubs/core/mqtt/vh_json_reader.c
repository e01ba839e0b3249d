#include <string.h>

#include "vh_json.h"
#include "vh_utf8.h"

#define DEPTH_MAX 8u

typedef struct {
    const uint8_t *at, *end;
} reader_t;

/* Index of the character in `set`; -1 if it is not there. */
static int place(const char *set, uint8_t c) {
    for (int i = 0; set[i]; i++)
        if ((uint8_t)set[i] == c) return i;
    return -1;
}

static void skip_blanks(reader_t *reader) {
    while (reader->at < reader->end && place(" \t\n\r", *reader->at) >= 0) reader->at++;
}

static bool take(reader_t *reader, char wanted) {
    skip_blanks(reader);
    if (reader->at == reader->end || *reader->at != (uint8_t)wanted) return false;
    reader->at++;
    return true;
}

static bool take_hex(reader_t *reader, uint32_t *value) {
    if (reader->end - reader->at < 4) return false;
    *value = 0;
    for (unsigned i = 0; i < 4u; i++) {
        uint8_t c = *reader->at++;
        int digit = place("0123456789abcdef", c >= 'A' && c <= 'F' ? (uint8_t)(c - 'A' + 'a') : c);
        if (digit < 0) return false;
        *value = *value << 4 | (uint32_t)digit;
    }
    return true;
}

static bool take_escape(reader_t *reader, uint32_t *character) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (reader->at == reader->end) return false;
    uint8_t c = *reader->at++;
    if (c != 'u') {
        int known = place(names, c);
        if (known < 0) return false;
        *character = (uint8_t)values[known];
        return true;
    }
    uint32_t high, low;
    if (!take_hex(reader, &high)) return false;
    *character = high;
    if (high < 0xD800u || high >= 0xE000u) return true;
    if (high >= 0xDC00u || reader->end - reader->at < 6 || reader->at[0] != '\\' || reader->at[1] != 'u') return false;
    reader->at += 2;
    if (!take_hex(reader, &low) || low < 0xDC00u || low >= 0xE000u) return false;
    *character = 0x10000u + ((high - 0xD800u) << 10) + (low - 0xDC00u);
    return true;
}

/* A string; into `out` when that is given (`*size` is its room before, its size after). */
static bool take_string(reader_t *reader, uint8_t *out, size_t *size) {
    size_t room = out ? *size : 0u, used = 0;
    if (!take(reader, '"')) return false;
    while (reader->at < reader->end && *reader->at != '"') {
        uint32_t character;
        if (*reader->at < 0x20u) return false;
        if (*reader->at == '\\') {
            reader->at++;
            if (!take_escape(reader, &character)) return false;
        } else {
            size_t took = vh_utf8_take(reader->at, (size_t)(reader->end - reader->at), &character);
            if (character == VH_UTF8_WRONG && took == 1u) return false;
            reader->at += took;
        }
        if (out == NULL) continue;
        uint8_t bytes[4];
        size_t count = vh_utf8_put(character, bytes);
        if (count > room - used) return false;
        memcpy(out + used, bytes, count);
        used += count;
    }
    if (reader->at == reader->end) return false;
    reader->at++;
    if (out) *size = used;
    return true;
}

/* A whole number of at most 18 digits, without point and exponent. */
static bool take_whole(reader_t *reader, int64_t *value) {
    bool negative = take(reader, '-');
    unsigned digits = 0;
    int64_t sum = 0;
    const uint8_t *first = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' && digits < 18u) {
        sum = sum * 10 + (*reader->at++ - '0');
        digits++;
    }
    if (digits == 0 || (digits > 1u && *first == '0')) return false;
    if (reader->at < reader->end && place("0123456789.eE", *reader->at) >= 0) return false;
    *value = negative ? -sum : sum;
    return true;
}

static bool skip_word(reader_t *reader) {
    static const char *const words[] = {"true", "false", "null"};
    for (unsigned i = 0; i < 3u; i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, words[i], len) != 0) continue;
        reader->at += len;
        return true;
    }
    /* Any number, checked only enough to find its end. */
    const uint8_t *first = reader->at;
    while (reader->at < reader->end && place("+-.0123456789eE", *reader->at) >= 0) reader->at++;
    return reader->at > first && reader->at[-1] >= '0' && reader->at[-1] <= '9' && *first != '+' && *first != '.';
}

/* Any value, without recursion. */
static bool skip_value(reader_t *reader) {
    char closing[DEPTH_MAX];
    unsigned depth = 0;
    for (;;) {
        skip_blanks(reader);
        if (reader->at == reader->end) return false;
        uint8_t c = *reader->at;
        bool opened = c == '{' || c == '[';
        if (opened) {
            if (depth == DEPTH_MAX) return false;
            closing[depth++] = c == '{' ? '}' : ']';
            reader->at++;
        } else if (c == '"') {
            if (!take_string(reader, NULL, NULL)) return false;
        } else if (!skip_word(reader)) {
            return false;
        }
        if (opened && take(reader, closing[depth - 1u])) {
            depth--;
            opened = false;
        }
        while (!opened && depth && !take(reader, ',')) {
            if (!take(reader, closing[depth - 1u])) return false;
            depth--;
        }
        if (depth == 0) return true;
        if (closing[depth - 1u] == '}' && (!take_string(reader, NULL, NULL) || !take(reader, ':'))) return false;
    }
}

/* Where the value of the member begins. False as in vh_json_find_number; the whole text was read. */
static bool find(const uint8_t *text, size_t len, const char *name, reader_t *value) {
    reader_t reader = {text, text + len};
    bool found = false;
    if (!take(&reader, '{')) return false;
    if (!take(&reader, '}')) {
        do {
            uint8_t key[32];
            size_t size = sizeof key;
            reader_t before = reader;
            bool known = take_string(&reader, key, &size);
            if (!known) { /* longer than every name that is searched for */
                reader = before;
                if (!take_string(&reader, NULL, NULL)) return false;
            }
            if (!take(&reader, ':')) return false;
            if (known && size == strlen(name) && memcmp(key, name, size) == 0) {
                if (found) return false;
                found = true;
                *value = reader;
            }
            if (!skip_value(&reader)) return false;
        } while (take(&reader, ','));
        if (!take(&reader, '}')) return false;
    }
    skip_blanks(&reader);
    return found && reader.at == reader.end;
}

bool vh_json_find_number(const uint8_t *text, size_t len, const char *name, int64_t *value) {
    reader_t at;
    return find(text, len, name, &at) && take_whole(&at, value);
}

bool vh_json_find_text(const uint8_t *text, size_t len, const char *name, uint8_t *value, size_t *value_len) {
    reader_t at;
    return find(text, len, name, &at) && take_string(&at, value, value_len);
}
