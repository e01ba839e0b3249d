/* The board's frames as the JSON of docs/reference/framing.md, section MQTT. */
#ifndef VH_MQTT_JSON_H
#define VH_MQTT_JSON_H

#include "vh_mqtt_board.h"

/* The frame as JSON in board->json; its size, or 0 when the frame cannot be read. An ack reports all three numbers, so the
 * board keeps the latest of each. */
size_t vh_mqtt_json_write(vh_mqtt_board_t *board, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len);

#endif
