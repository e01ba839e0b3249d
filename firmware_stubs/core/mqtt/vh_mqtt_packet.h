/* Writes MQTT 3.1.1 packets, piece by piece, into memory of the caller. */
#ifndef VH_MQTT_PACKET_H
#define VH_MQTT_PACKET_H

#include "vh_mqtt.h"

/* Packet types with the flags that MQTT 3.1.1, 2.2.2 demands. */
#define VH_MQTT_CONNECT 0x10u
#define VH_MQTT_CONNACK 0x20u
#define VH_MQTT_PUBLISH 0x30u
#define VH_MQTT_PUBACK 0x40u
#define VH_MQTT_SUBSCRIBE 0x82u
#define VH_MQTT_SUBACK 0x90u
#define VH_MQTT_PINGREQ 0xC0u
#define VH_MQTT_PINGRESP 0xD0u

#define VH_MQTT_DUP 0x08u
#define VH_MQTT_RETAIN 0x01u
#define VH_MQTT_HEAD_MAX 5u /* type and remaining length */

typedef struct {
    uint8_t *bytes;
    size_t room, size;
    bool full; /* a piece did not fit; nothing was written from there on */
} vh_mqtt_packet_t;

vh_mqtt_packet_t vh_mqtt_packet_over(uint8_t *bytes, size_t room);
void vh_mqtt_put(vh_mqtt_packet_t *packet, const void *bytes, size_t count);
void vh_mqtt_put_u8(vh_mqtt_packet_t *packet, unsigned value);
void vh_mqtt_put_u16(vh_mqtt_packet_t *packet, size_t value);
/* The text, after its length in two bytes. */
void vh_mqtt_put_text(vh_mqtt_packet_t *packet, const char *text, size_t len);
/* The type, and how many bytes follow. */
void vh_mqtt_put_head(vh_mqtt_packet_t *packet, unsigned type, size_t remaining);
/* Bytes of that head. */
size_t vh_mqtt_head_size(size_t remaining);

/* The CONNECT of this configuration, with a clean session; `full` when it does not fit. */
vh_mqtt_packet_t vh_mqtt_connect_packet(const vh_mqtt_config_t *config, uint8_t *bytes, size_t room);

#endif
