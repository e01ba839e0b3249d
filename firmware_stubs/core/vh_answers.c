#include "vh_answers.h"

#include <string.h>

static uint8_t lower(uint8_t letter) { return letter >= 'A' && letter <= 'Z' ? (uint8_t)(letter + 32) : letter; }

/* Whether the words contain the phrase, as whole words in any case. */
static bool says(uint8_t const *words, size_t size, char const *phrase) {
    size_t length = strlen(phrase);
    for (size_t at = 0; at + length <= size; at++) {
        size_t same = 0;
        while (same < length && lower(words[at + same]) == (uint8_t)phrase[same]) {
            same++;
        }
        bool starts = at == 0 || words[at - 1] == ' ';
        bool ends = at + length == size || lower(words[at + length]) < 'a' || lower(words[at + length]) > 'z';
        if (same == length && starts && ends) {
            return true;
        }
    }
    return false;
}

bool vh_answer_query(uint8_t const *words, size_t size, uint64_t time_us, vh_answer *answer) {
    bool light = says(words, size, "light") || says(words, size, "lights") || says(words, size, "lamp");
    answer->slot = NULL;
    answer->value = NULL;
    vh_text_clear(&answer->response);
    if (light && (says(words, size, "on") || says(words, size, "off"))) {
        answer->intent = "switch_light";
        answer->slot = "state";
        answer->value = says(words, size, "on") ? "on" : "off";
        vh_text_put(&answer->response, "The light is ");
        vh_text_put(&answer->response, answer->value);
        vh_text_put(&answer->response, ".");
        return true;
    }
    if (says(words, size, "how long") || says(words, size, "uptime")) {
        answer->intent = "uptime";
        vh_text_put(&answer->response, "I have been on for ");
        vh_text_put_number(&answer->response, time_us / 1000000u, 1);
        vh_text_put(&answer->response, " seconds.");
        return true;
    }
    vh_text_put(&answer->response, "Sorry, I did not understand.");
    return false;
}
