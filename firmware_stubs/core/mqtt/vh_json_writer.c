#include <string.h>

#include "vh_json.h"
#include "vh_utf8.h"

static bool fits(const vh_json_writer_t *json, size_t count) {
    return json->size + count + json->open <= json->room;
}

static void put(vh_json_writer_t *json, const char *bytes, size_t count) {
    memcpy(json->text + json->size, bytes, count);
    json->size += count;
}

static bool refuse(vh_json_writer_t *json, size_t mark) {
    json->size = mark;
    json->shortened = true;
    return false;
}

/* One character of a string, escaped as needed; returns its size in `out`. */
static size_t escaped(uint32_t character, char out[6]) {
    static const char digits[] = "0123456789abcdef";
    if (character == '"' || character == '\\') {
        out[0] = '\\';
        out[1] = (char)character;
        return 2;
    }
    if (character < 0x20u || character == 0x7Fu) {
        memcpy(out, "\\u00", 4);
        out[4] = digits[character >> 4];
        out[5] = digits[character & 15u];
        return 6;
    }
    return vh_utf8_put(character, (uint8_t *)out);
}

/* A quoted text, cut where the room ends; false when not even the quotes fit. `cut` is set when something is missing. */
static bool put_string(vh_json_writer_t *json, const uint8_t *text, size_t len, bool *cut) {
    if (!fits(json, 2)) return false;
    put(json, "\"", 1);
    while (len) {
        char piece[6];
        uint32_t character;
        size_t took = vh_utf8_take(text, len, &character), size = escaped(character, piece);
        if (!fits(json, size + 1u)) {
            *cut = true;
            break;
        }
        put(json, piece, size);
        text += took;
        len -= took;
    }
    put(json, "\"", 1);
    return true;
}

/* The comma and the name. */
static bool put_name(vh_json_writer_t *json, const uint8_t *name, size_t len) {
    bool cut = false;
    if (!json->first) {
        if (!fits(json, 1)) return false;
        put(json, ",", 1);
    }
    if (name == NULL) return true;
    if (!put_string(json, name, len, &cut) || cut || !fits(json, 1)) return false;
    put(json, ":", 1);
    return true;
}

static bool put_member(vh_json_writer_t *json, const char *name, const char *value, size_t count) {
    size_t mark = json->size;
    if (!put_name(json, (const uint8_t *)name, name ? strlen(name) : 0u) || !fits(json, count)) return refuse(json, mark);
    put(json, value, count);
    json->first = false;
    return true;
}

void vh_json_begin(vh_json_writer_t *json, char *text, size_t room) {
    memset(json, 0, sizeof *json);
    json->text = text;
    json->room = room;
    json->first = true;
    (void)vh_json_open(json, NULL, '{');
}

bool vh_json_open(vh_json_writer_t *json, const char *name, char bracket) {
    size_t mark = json->size;
    if (json->open == sizeof json->closing || !fits(json, 1)) return refuse(json, mark);
    json->closing[json->open++] = bracket == '{' ? '}' : ']';
    if (!put_member(json, name, &bracket, 1)) {
        json->open--;
        return false;
    }
    json->first = true;
    return true;
}

void vh_json_close(vh_json_writer_t *json) {
    if (json->open == 0) return;
    put(json, &json->closing[--json->open], 1);
    json->first = false;
}

size_t vh_json_end(vh_json_writer_t *json) {
    while (json->open) vh_json_close(json);
    return json->size;
}

/* Decimal digits of `value`, the last one at `end`; returns the first. */
static char *digits_before(char *end, uint64_t value) {
    do {
        *--end = (char)('0' + value % 10u);
        value /= 10u;
    } while (value);
    return end;
}

bool vh_json_number(vh_json_writer_t *json, const char *name, uint64_t value) {
    char room[20], *end = room + sizeof room, *start = digits_before(end, value);
    return put_member(json, name, start, (size_t)(end - start));
}

bool vh_json_signed(vh_json_writer_t *json, const char *name, int64_t value) {
    char room[21], *end = room + sizeof room;
    char *start = digits_before(end, value < 0 ? 0u - (uint64_t)value : (uint64_t)value);
    if (value < 0) *--start = '-';
    return put_member(json, name, start, (size_t)(end - start));
}

bool vh_json_bool(vh_json_writer_t *json, const char *name, bool value) {
    return put_member(json, name, value ? "true" : "false", value ? 4u : 5u);
}

bool vh_json_score(vh_json_writer_t *json, const char *name, uint16_t score) {
    uint32_t parts = (uint32_t)(((uint64_t)score * 1000000u + 32767u) / 65535u);
    char room[8] = {(char)('0' + parts / 1000000u), '.', '0', '0', '0', '0', '0', '0'};
    for (unsigned i = 7; i > 1; i--, parts /= 10u) room[i] = (char)('0' + parts % 10u);
    return put_member(json, name, room, sizeof room);
}

bool vh_json_hex(vh_json_writer_t *json, const char *name, uint32_t value) {
    static const char digits[] = "0123456789abcdef";
    char room[10] = {'"', 0, 0, 0, 0, 0, 0, 0, 0, '"'};
    for (unsigned i = 8; i > 0; i--, value >>= 4) room[i] = digits[value & 15u];
    return put_member(json, name, room, sizeof room);
}

static bool put_pair(vh_json_writer_t *json, const uint8_t *name, size_t name_len, const uint8_t *text, size_t len) {
    size_t mark = json->size;
    bool cut = false;
    if (!put_name(json, name, name_len) || !put_string(json, text, len, &cut)) return refuse(json, mark);
    json->shortened = json->shortened || cut;
    json->first = false;
    return true;
}

bool vh_json_text(vh_json_writer_t *json, const char *name, const uint8_t *text, size_t len) {
    return put_pair(json, (const uint8_t *)name, name ? strlen(name) : 0u, text, len);
}

bool vh_json_pair(vh_json_writer_t *json, const uint8_t *name, size_t name_len, const uint8_t *text, size_t len) {
    return put_pair(json, name, name_len, text, len);
}
