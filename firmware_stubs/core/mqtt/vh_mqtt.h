/* MQTT 3.1.1 client without malloc, threads, sockets or a clock of its own.
 *
 * Bytes go out through one callback and come in through vh_mqtt_feed; time is given with each call. The transport may
 * be a TCP socket, or a UART that is bridged to the broker's port. On a UART, only silence (no PINGRESP, no PUBACK) shows
 * that the far end is gone.
 *
 * Every connection is a clean session. What was published with QoS 1 and not acknowledged is sent again, with DUP, after
 * `retry_ms` and after a new connection; the receiver must know duplicates by the message itself. */
#ifndef VH_MQTT_H
#define VH_MQTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef VH_MQTT_IN_FLIGHT
#define VH_MQTT_IN_FLIGHT 8u   /* unacknowledged QoS 1 publishes, at most 8 */
#endif
#ifndef VH_MQTT_OUT_MAX
#define VH_MQTT_OUT_MAX 1280u  /* bytes of the largest packet that goes out, header included */
#endif
#ifndef VH_MQTT_IN_MAX
#define VH_MQTT_IN_MAX 1280u   /* bytes of the largest packet that is accepted; larger ones are skipped and counted */
#endif
#define VH_MQTT_TX (2u * VH_MQTT_OUT_MAX)
#define VH_MQTT_SUBSCRIPTIONS 4u

typedef enum {
    VH_MQTT_OFFLINE,    /* waiting for the back-off to end, or for the transport */
    VH_MQTT_CONNECTING, /* CONNECT sent, no CONNACK yet */
    VH_MQTT_ONLINE
} vh_mqtt_state_t;

typedef struct {
    const uint8_t *topic; /* not NUL-terminated; UTF-8 not checked */
    size_t topic_len;
    const uint8_t *payload;
    size_t payload_len;
    uint8_t qos; /* 0 or 1 */
    bool retained, duplicate;
} vh_mqtt_message_t;

/* Strings are NUL-terminated and must outlive the client; NULL means "without". */
typedef struct {
    void *transport; /* first argument of send and connect */
    void *user;      /* first argument of message and online */
    /* Takes up to `count` bytes, returns how many it took (0: none now, will be offered again). Never blocks. */
    size_t (*send)(void *transport, const uint8_t *bytes, size_t count);
    /* Asks the transport for a fresh connection, before each attempt. Returns false when it has none yet. May be NULL. */
    bool (*connect)(void *transport);
    /* A message came. It may call vh_mqtt_publish. Payload and topic are valid within the call only. */
    void (*message)(void *user, const vh_mqtt_message_t *message);
    /* The session came up (true) or went away (false). May be NULL. */
    void (*online)(void *user, bool online);
    const char *client_id, *user_name, *password;
    const char *will_topic;
    const uint8_t *will_payload;
    uint16_t will_len;
    uint8_t will_qos;
    bool will_retained;
    uint16_t keepalive_s;    /* 1 … 65535: PINGREQ every half of it, gone after a whole one without a byte */
    uint16_t connack_ms;     /* time limit for a CONNACK */
    uint16_t retry_ms;       /* a QoS 1 publish is sent again after it; after five such times the link is given up */
    uint16_t back_off_ms;    /* before the next attempt; doubled with each failure up to back_off_max_ms */
    uint16_t back_off_max_ms;
} vh_mqtt_config_t;

typedef struct {
    uint32_t connects;     /* sessions that came up */
    uint32_t lost;         /* sessions that went away */
    uint32_t refused;      /* CONNACKs with a refusal */
    uint32_t published;    /* QoS 1 publishes acknowledged */
    uint32_t repeated;     /* publishes sent again */
    uint32_t received;     /* messages handed over */
    uint32_t oversize;     /* packets skipped, too large */
    uint32_t malformed;    /* connections dropped for bytes that are not MQTT */
    uint32_t denied;       /* subscriptions that the broker refused */
} vh_mqtt_counters_t;

typedef struct {
    uint16_t id;       /* 0: free */
    uint16_t len;
    uint32_t order;    /* the oldest goes first */
    uint8_t sent;      /* times on this connection */
    bool ever;         /* sent before: DUP */
    uint64_t sent_us;
    uint8_t packet[VH_MQTT_OUT_MAX];
} vh_mqtt_slot_t;

/* The caller owns it; its members belong to the client. About 15 kB with the sizes above. */
typedef struct {
    vh_mqtt_config_t config;
    vh_mqtt_counters_t counters;
    vh_mqtt_state_t state;
    uint8_t attempts; /* since the last session, saturating */
    uint64_t wait_until_us, connect_us, heard_us, ping_us;
    uint64_t asked_us; /* last CONNECT or PINGREQ */
    bool ping_open;
    uint16_t next_id;
    uint32_t next_order;
    const char *filters[VH_MQTT_SUBSCRIPTIONS];
    uint8_t filter_qos[VH_MQTT_SUBSCRIPTIONS];
    uint16_t filter_id[VH_MQTT_SUBSCRIPTIONS]; /* of the SUBSCRIBE that waits for its SUBACK */
    uint8_t filter_count, filters_sent;
    vh_mqtt_slot_t slots[VH_MQTT_IN_FLIGHT];
    size_t tx_head, tx_len;
    uint8_t tx[VH_MQTT_TX];
    uint8_t rx_stage;       /* 0 type, 1 length, 2 body */
    uint8_t rx_type, rx_shift;
    uint32_t rx_expected, rx_got;
    uint8_t rx[VH_MQTT_IN_MAX];
} vh_mqtt_t;

/* False when the configuration cannot make a CONNECT that fits, or lacks `send` or `message`. */
bool vh_mqtt_init(vh_mqtt_t *client, const vh_mqtt_config_t *config);

/* Subscribed now and after every new connection. At most VH_MQTT_SUBSCRIPTIONS; the filter must outlive the client. */
bool vh_mqtt_subscribe(vh_mqtt_t *client, const char *filter, uint8_t qos);

/* QoS 0 goes when online and there is room, QoS 1 is kept until acknowledged, also while offline.
 * False: no room now, or too large (vh_mqtt_fits shows which). */
bool vh_mqtt_publish(vh_mqtt_t *client, const char *topic, const uint8_t *payload, size_t payload_len, uint8_t qos,
                     bool retained);
bool vh_mqtt_fits(const char *topic, size_t payload_len, uint8_t qos);

/* Room for one more QoS 1 publish. */
bool vh_mqtt_has_room(const vh_mqtt_t *client);
/* QoS 1 publishes that are not acknowledged yet. */
size_t vh_mqtt_in_flight(const vh_mqtt_t *client);

/* Handles any number of bytes from the transport: sends answers, and delivers messages. */
void vh_mqtt_feed(vh_mqtt_t *client, const uint8_t *bytes, size_t count, uint64_t now_us);

/* Does what is due: connects, pings, sends again, flushes. Call it at least every 50 ms. */
void vh_mqtt_poll(vh_mqtt_t *client, uint64_t now_us);

/* The transport knows that its connection is gone (a socket does, a UART does not). */
void vh_mqtt_link_lost(vh_mqtt_t *client, uint64_t now_us);

#ifdef __cplusplus
}
#endif
#endif
