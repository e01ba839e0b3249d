/* Links the board while there is no MQTT client in the tree: it takes no device name. */
#include "mqtt/vh_mqtt_board.h"

bool vh_mqtt_board_init(vh_mqtt_board_t *board, const vh_mqtt_board_config_t *config) {
    board->config = *config;
    return false;
}
bool vh_mqtt_board_send(vh_mqtt_board_t *board, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len) {
    (void)board, (void)type, (void)seq, (void)payload, (void)len;
    return false;
}
bool vh_mqtt_board_has_room(const vh_mqtt_board_t *board) {
    (void)board;
    return false;
}
void vh_mqtt_board_feed(vh_mqtt_board_t *board, const uint8_t *bytes, size_t count, uint64_t now_us) {
    (void)board, (void)bytes, (void)count, (void)now_us;
}
void vh_mqtt_board_poll(vh_mqtt_board_t *board, uint64_t now_us) { (void)board, (void)now_us; }
void vh_mqtt_board_link_lost(vh_mqtt_board_t *board, uint64_t now_us) { (void)board, (void)now_us; }
