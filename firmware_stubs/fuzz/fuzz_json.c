/* Any text as JSON to the board: read within its bounds, and what was read can be written and read again. Any bytes as a
 * text of the board: the JSON that it becomes is JSON, however little room there is. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "mqtt/vh_json.h"

size_t fuzz_piece(uint8_t *into, size_t room) {
    static char const *const parts[] = {"{", "}", "[", "]", ",", ":", "\"", "\"text\":", "\"number\":", "{\"number\":7,",
                                        "\"key\"", "12", "-0", "1e9", "999999999999999999", "null", "true", "\\u00e9", "\\u00",
                                        "\\ud83d\\ude00", "\\ud83d", "\\n", "\\", "\xC3\xA9", "\xF0\x9F\x98\x80", "\xED\xA0\x80",
                                        "light on", " ", "{\"number\":1,\"text\":\"on\"}"};
    char const *part = parts[fuzz_dice(sizeof parts / sizeof *parts)];
    size_t size = strlen(part) < room ? strlen(part) : room;
    memcpy(into, part, size);
    return size;
}

static void insist(int holds) {
    if (!holds) {
        abort();
    }
}

/* {"text": what} in a block of just `room` bytes, read again. */
static void there_and_back(uint8_t const *what, size_t size, size_t room, int same) {
    char *text = malloc(room);
    uint8_t *again = malloc(3 * size + 1);
    size_t left = 3 * size + 1;
    vh_json_writer_t json;
    insist(text != NULL && again != NULL);
    vh_json_begin(&json, text, room);
    (void)vh_json_text(&json, "text", what, size);
    size_t written = vh_json_end(&json);
    insist(written <= room);
    bool found = vh_json_find_text((uint8_t const *)text, written, "text", again, &left);
    insist(found || json.shortened);
    insist(!same || json.shortened || (left == size && memcmp(again, what, size) == 0));
    free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(uint8_t const *bytes, size_t size) {
    uint8_t *exact = malloc(size > 0 ? size : 1); /* a block of its own, so that an overrun is seen */
    uint8_t value[1024];
    size_t length = sizeof value;
    int64_t number;
    insist(exact != NULL);
    memcpy(exact, bytes, size);
    (void)vh_json_find_number(exact, size, "number", &number);
    (void)vh_json_find_number(exact, size, "key", &number);
    if (vh_json_find_text(exact, size, "text", value, &length)) {
        insist(length <= sizeof value);
        there_and_back(value, length, 6 * length + 16, 1);
    }
    length = size > 0 ? bytes[0] % 8u : 0u;
    (void)vh_json_find_text(exact, size, "text", value, &length);
    there_and_back(exact, size, 16 + (size > 1 ? bytes[1] * 5u : 0u), 0);
    free(exact);
    return 0;
}
