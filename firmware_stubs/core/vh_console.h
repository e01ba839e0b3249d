/* The board's events as readable lines, in the styles of three log systems. */
#ifndef VH_CONSOLE_H
#define VH_CONSOLE_H

#include <stdbool.h>

#include "vh_text.h"

enum { VH_STYLE_NONE = 0, VH_STYLE_ESP_IDF = 1, VH_STYLE_ZEPHYR = 2, VH_STYLE_ARDUINO = 3, VH_STYLES = 4 };

/* Writes the line of an event or log message, with its line end. Returns false if this style has none for it. */
bool vh_console_line(uint8_t style, uint8_t type, uint8_t const *payload, size_t size, vh_text *line);

#endif
