/* The board's messages over MQTT: topics and JSON of docs/reference/framing.md, section MQTT.
 *
 * It translates between the board's frames and MQTT, so that a board has one set of messages for both links. The board
 * passes the content of a frame (type, seq, payload) to vh_mqtt_board_send. A message from the broker arrives as the
 * frame with the same meaning (PING, TEXT, AUDIO, SET, RESET, HELLO_REQUEST). */
#ifndef VH_MQTT_BOARD_H
#define VH_MQTT_BOARD_H

#include "vh_mqtt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VH_MQTT_BOARD_NAME_MAX 48u
#define VH_MQTT_BOARD_TOPIC_MAX (VH_MQTT_BOARD_NAME_MAX + 24u)
#define VH_MQTT_BOARD_JSON_MAX 1152u
#define VH_MQTT_BOARD_STATUS_MAX 256u

/* A frame that came from the broker. `payload` is valid within the call only. */
typedef void (*vh_mqtt_board_frame_t)(void *user, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len);

typedef struct {
    const char *device;     /* name in the topics, [A-Za-z0-9_-], at most VH_MQTT_BOARD_NAME_MAX; also the client id */
    uint32_t boot_id;
    const char *user_name, *password; /* or NULL */
    void *user;             /* first argument of the callbacks */
    size_t (*send)(void *user, const uint8_t *bytes, size_t count); /* as in vh_mqtt_config_t */
    bool (*connect)(void *user);                                    /* as in vh_mqtt_config_t, may be NULL */
    vh_mqtt_board_frame_t frame;
    uint16_t keepalive_s;   /* 0: 2 s, so that a bridged UART is back 3 s after its broker */
} vh_mqtt_board_config_t;

typedef struct {
    uint32_t bad_json;      /* messages to the board that could not be read */
    uint32_t unknown_topic;
    uint32_t refused;       /* frames to the broker without an MQTT message, or with an invalid payload */
    uint32_t shortened;     /* texts cut to fit */
    uint32_t retained;      /* retained messages to the board, which are not current commands */
} vh_mqtt_board_counters_t;

/* The caller owns it; its members belong to it. */
typedef struct {
    vh_mqtt_board_config_t config;
    vh_mqtt_board_counters_t counters;
    vh_mqtt_t client;
    uint8_t greet;          /* after connecting: 2 publish the status again, 1 request the board's HELLO */
    uint32_t command;       /* number of the last command carried out */
    uint64_t next;          /* of the last AUDIO_ACK */
    uint32_t events;
    uint32_t status_seq;
    uint16_t status_len;    /* 0: none yet */
    uint8_t status[VH_MQTT_BOARD_STATUS_MAX];
    char filter[VH_MQTT_BOARD_TOPIC_MAX];
    char will_topic[VH_MQTT_BOARD_TOPIC_MAX];
    char will[48];
    char topic[VH_MQTT_BOARD_TOPIC_MAX];
    char json[VH_MQTT_BOARD_JSON_MAX];
    uint8_t frame[1024];    /* of the message that is handed over */
} vh_mqtt_board_t;

/* False: bad name, or no `send` or `frame`. */
bool vh_mqtt_board_init(vh_mqtt_board_t *board, const vh_mqtt_board_config_t *config);

/* Publishes the frame as a message: HELLO, PONG, AUDIO_ACK, WAKE, COMMAND_ACK, TRANSCRIPT, INTENT, RESPONSE, STATUS, LOG, ERROR.
 * Events, hello and logs have QoS 1 and are kept until acknowledged; ack and pong have QoS 0 and are dropped when offline.
 * False: no room now, pass it again later. A frame without an MQTT message is counted, and returns true. */
bool vh_mqtt_board_send(vh_mqtt_board_t *board, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len);

/* Room for one more event, hello or log. */
bool vh_mqtt_board_has_room(const vh_mqtt_board_t *board);
bool vh_mqtt_board_online(const vh_mqtt_board_t *board);

/* As vh_mqtt_feed, vh_mqtt_poll and vh_mqtt_link_lost. */
void vh_mqtt_board_feed(vh_mqtt_board_t *board, const uint8_t *bytes, size_t count, uint64_t now_us);
void vh_mqtt_board_poll(vh_mqtt_board_t *board, uint64_t now_us);
void vh_mqtt_board_link_lost(vh_mqtt_board_t *board, uint64_t now_us);

#ifdef __cplusplus
}
#endif
#endif
