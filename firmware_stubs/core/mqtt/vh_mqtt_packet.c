#include "vh_mqtt_packet.h"

#include <string.h>

vh_mqtt_packet_t vh_mqtt_packet_over(uint8_t *bytes, size_t room) {
    vh_mqtt_packet_t packet = {bytes, room, 0, false};
    return packet;
}

void vh_mqtt_put(vh_mqtt_packet_t *packet, const void *bytes, size_t count) {
    if (packet->full || count > packet->room - packet->size) {
        packet->full = true;
        return;
    }
    if (count) memcpy(packet->bytes + packet->size, bytes, count);
    packet->size += count;
}

void vh_mqtt_put_u8(vh_mqtt_packet_t *packet, unsigned value) {
    uint8_t byte = (uint8_t)value;
    vh_mqtt_put(packet, &byte, 1);
}

void vh_mqtt_put_u16(vh_mqtt_packet_t *packet, size_t value) {
    vh_mqtt_put_u8(packet, (unsigned)(value >> 8));
    vh_mqtt_put_u8(packet, (unsigned)(value & 0xFFu));
}

void vh_mqtt_put_text(vh_mqtt_packet_t *packet, const char *text, size_t len) {
    if (len > 0xFFFFu) packet->full = true;
    vh_mqtt_put_u16(packet, len);
    vh_mqtt_put(packet, text, len);
}

void vh_mqtt_put_head(vh_mqtt_packet_t *packet, unsigned type, size_t remaining) {
    vh_mqtt_put_u8(packet, type);
    do {
        unsigned byte = (unsigned)(remaining & 0x7Fu);
        remaining >>= 7;
        vh_mqtt_put_u8(packet, remaining ? byte | 0x80u : byte);
    } while (remaining);
}

size_t vh_mqtt_head_size(size_t remaining) {
    size_t size = 2;
    while (remaining >>= 7) size++;
    return size;
}

static size_t text_size(const char *text) { return text ? 2u + strlen(text) : 0u; }

static size_t connect_size(const vh_mqtt_config_t *config) {
    size_t size = 10u + text_size(config->client_id ? config->client_id : "");
    if (config->will_topic) size += text_size(config->will_topic) + 2u + config->will_len;
    if (config->user_name) size += text_size(config->user_name) + text_size(config->password);
    return size;
}

vh_mqtt_packet_t vh_mqtt_connect_packet(const vh_mqtt_config_t *config, uint8_t *bytes, size_t room) {
    vh_mqtt_packet_t packet = vh_mqtt_packet_over(bytes, room);
    unsigned flags = 0x02u; /* clean session */
    if (config->will_topic) flags |= 0x04u | (unsigned)(config->will_qos & 1u) << 3 | (config->will_retained ? 0x20u : 0u);
    if (config->user_name) flags |= 0x80u | (config->password ? 0x40u : 0u);
    vh_mqtt_put_head(&packet, VH_MQTT_CONNECT, connect_size(config));
    vh_mqtt_put_text(&packet, "MQTT", 4);
    vh_mqtt_put_u8(&packet, 4);
    vh_mqtt_put_u8(&packet, flags);
    vh_mqtt_put_u16(&packet, config->keepalive_s);
    const char *id = config->client_id ? config->client_id : "";
    vh_mqtt_put_text(&packet, id, strlen(id));
    if (config->will_topic) {
        vh_mqtt_put_text(&packet, config->will_topic, strlen(config->will_topic));
        vh_mqtt_put_u16(&packet, config->will_len);
        vh_mqtt_put(&packet, config->will_payload, config->will_len);
    }
    if (config->user_name) {
        vh_mqtt_put_text(&packet, config->user_name, strlen(config->user_name));
        if (config->password) vh_mqtt_put_text(&packet, config->password, strlen(config->password));
    }
    return packet;
}
