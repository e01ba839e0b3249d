/* JSON without malloc: a bounded writer, and a reader of the members of one flat object. */
#ifndef VH_JSON_H
#define VH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects and lists may be nested. A member that does not fit is left out; a text is cut between characters. */
typedef struct {
    char *text; /* not NUL-terminated */
    size_t room, size;
    uint8_t open;    /* open brackets; there is always room to close them */
    bool shortened;  /* something was cut or left out */
    bool first;      /* nothing yet in the innermost bracket */
    char closing[4]; /* innermost last */
} vh_json_writer_t;

void vh_json_begin(vh_json_writer_t *json, char *text, size_t room);
/* In each function, `name` is NULL within a list. Returns false if the member was left out. */
bool vh_json_open(vh_json_writer_t *json, const char *name, char bracket);
void vh_json_close(vh_json_writer_t *json);
bool vh_json_number(vh_json_writer_t *json, const char *name, uint64_t value);
bool vh_json_signed(vh_json_writer_t *json, const char *name, int64_t value);
bool vh_json_bool(vh_json_writer_t *json, const char *name, bool value);
/* 0 to 65535 as 0.000000 to 1.000000: enough digits to distinguish them all. */
bool vh_json_score(vh_json_writer_t *json, const char *name, uint16_t score);
bool vh_json_hex(vh_json_writer_t *json, const char *name, uint32_t value);
/* Bytes that are not UTF-8 become U+FFFD; control characters are escaped. */
bool vh_json_text(vh_json_writer_t *json, const char *name, const uint8_t *text, size_t len);
/* As vh_json_text, with a name that is foreign as well. */
bool vh_json_pair(vh_json_writer_t *json, const uint8_t *name, size_t name_len, const uint8_t *text, size_t len);
/* Closes all brackets and returns the size. */
size_t vh_json_end(vh_json_writer_t *json);

/* The member `name` of the object that `text` is. False when `text` is not one whole JSON object, or the member
 * is missing, twice there, of another type or out of range. Other members may be of any kind, 8 brackets deep. */
bool vh_json_find_number(const uint8_t *text, size_t len, const char *name, int64_t *value);
/* `*value_len` is the room before and the length after; false when the text does not fit or is not UTF-8. */
bool vh_json_find_text(const uint8_t *text, size_t len, const char *name, uint8_t *value, size_t *value_len);

#ifdef __cplusplus
}
#endif
#endif
