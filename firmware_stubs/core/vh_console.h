/* The board's events as the lines that a person reads, in the manner of three log systems. */
#ifndef VH_CONSOLE_H
#define VH_CONSOLE_H

#include <stdbool.h>

#include "vh_text.h"

enum { VH_STYLE_NONE = 0, VH_STYLE_ESP_IDF = 1, VH_STYLE_ZEPHYR = 2, VH_STYLE_ARDUINO = 3, VH_STYLES = 4 };

/* The line of an event or log message, with its end of line; false when there is none in this style. */
bool vh_console_line(uint8_t style, uint8_t type, uint8_t const *payload, size_t size, vh_text *line);

#endif
