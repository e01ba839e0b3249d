/* How the board answers a query in words: enough for an intent and a response to observe. */
#ifndef VH_ANSWERS_H
#define VH_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vh_text.h"

typedef struct vh_answer {
    char const *intent;
    char const *slot;  /* NULL: none */
    char const *value;
    vh_text response;
} vh_answer;

/* Returns false if it does not understand the words. The response then says so. */
bool vh_answer_query(uint8_t const *words, size_t size, uint64_t time_us, vh_answer *answer);

#endif
