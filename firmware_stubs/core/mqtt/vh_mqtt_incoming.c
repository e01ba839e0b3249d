#include <string.h>

#include "vh_mqtt_session.h"

static void acknowledge(vh_mqtt_t *client, const uint8_t id[2]) {
    uint8_t packet[4] = {VH_MQTT_PUBACK, 2, id[0], id[1]};
    /* Without room for it, the broker sends the message again on the next connection. */
    (void)vh_mqtt_queue(client, packet, sizeof packet);
}

static bool take_publish(vh_mqtt_t *client, bool whole) {
    unsigned qos = client->rx_type >> 1 & 3u;
    uint32_t held = whole ? client->rx_expected : VH_MQTT_IN_MAX;
    if (qos > 1u || client->rx_expected < 2u) return false;
    size_t topic_len = (size_t)client->rx[0] << 8 | client->rx[1], start = 2u + topic_len + (qos ? 2u : 0u);
    if (start > client->rx_expected || topic_len == 0) return false;
    if (!whole) {
        client->counters.oversize++;
        if (qos && start <= held) acknowledge(client, client->rx + 2u + topic_len);
        return true;
    }
    const uint8_t *id = client->rx + 2u + topic_len;
    if (qos && id[0] == 0 && id[1] == 0) return false;
    vh_mqtt_message_t message = {client->rx + 2, topic_len, client->rx + start, client->rx_expected - start,
                                 (uint8_t)qos, (client->rx_type & VH_MQTT_RETAIN) != 0, (client->rx_type & VH_MQTT_DUP) != 0};
    uint8_t answer[2] = {qos ? id[0] : 0u, qos ? id[1] : 0u};
    client->counters.received++;
    client->config.message(client->config.user, &message);
    if (qos) acknowledge(client, answer);
    return true;
}

static bool take_connack(vh_mqtt_t *client, uint64_t now_us) {
    if (client->state != VH_MQTT_CONNECTING || client->rx_expected != 2u) return false;
    if (client->rx[1] != 0) {
        client->counters.refused++;
        vh_mqtt_go_offline(client, now_us);
        return true;
    }
    client->state = VH_MQTT_ONLINE;
    client->attempts = 0;
    client->counters.connects++;
    if (client->config.online) client->config.online(client->config.user, true);
    return true;
}

/* One whole packet in rx, or the head of one that is too large. False: these bytes are not MQTT. */
static bool take_packet(vh_mqtt_t *client, bool whole, uint64_t now_us) {
    unsigned type = client->rx_type & 0xF0u, flags = client->rx_type & 0x0Fu;
    if (type == VH_MQTT_CONNACK) return flags == 0 && whole && take_connack(client, now_us);
    if (client->state != VH_MQTT_ONLINE) return false;
    if (type == VH_MQTT_PUBLISH) return take_publish(client, whole);
    if (flags != 0 || !whole) return false;
    unsigned id = client->rx_expected >= 2u ? (unsigned)client->rx[0] << 8 | client->rx[1] : 0u;
    if (type == VH_MQTT_PUBACK) {
        if (client->rx_expected != 2u || id == 0) return false;
        for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) {
            if (client->slots[i].id != id) continue;
            client->slots[i].id = 0;
            client->counters.published++;
        }
        return true;
    }
    if (type == VH_MQTT_SUBACK) {
        if (client->rx_expected != 3u || id == 0) return false;
        for (unsigned i = 0; i < client->filter_count; i++) {
            if (client->filter_id[i] != id) continue;
            client->filter_id[i] = 0;
            client->counters.denied += client->rx[2] > 2u;
        }
        return true;
    }
    if (type == VH_MQTT_PINGRESP) {
        client->ping_open = false;
        return client->rx_expected == 0;
    }
    return false;
}

/* What a broker may send to a client. */
static bool known(unsigned first) {
    unsigned type = first & 0xF0u;
    return type == VH_MQTT_PUBLISH || first == VH_MQTT_CONNACK || first == VH_MQTT_PUBACK || first == VH_MQTT_SUBACK || first == VH_MQTT_PINGRESP;
}

/* Takes some of the bytes (at least one) and returns how many; 0: they are not MQTT. */
static size_t take_bytes(vh_mqtt_t *client, const uint8_t *bytes, size_t count, uint64_t now_us) {
    if (client->rx_stage == 0) {
        client->rx_type = bytes[0];
        client->rx_expected = client->rx_got = 0;
        client->rx_shift = 0;
        client->rx_stage = 1;
        return known(bytes[0]) ? 1u : 0u;
    }
    size_t taken = 1;
    if (client->rx_stage == 1) {
        client->rx_expected |= (uint32_t)(bytes[0] & 0x7Fu) << client->rx_shift;
        client->rx_shift = (uint8_t)(client->rx_shift + 7u);
        if (bytes[0] & 0x80u) return client->rx_shift < 28u ? 1u : 0u;
        client->rx_stage = 2;
    } else {
        taken = client->rx_expected - client->rx_got;
        if (taken > count) taken = count;
        if (client->rx_got < VH_MQTT_IN_MAX) {
            size_t kept = VH_MQTT_IN_MAX - client->rx_got;
            memcpy(client->rx + client->rx_got, bytes, kept < taken ? kept : taken);
        }
        client->rx_got += (uint32_t)taken;
    }
    if (client->rx_got < client->rx_expected) return taken;
    client->rx_stage = 0;
    return take_packet(client, client->rx_expected <= VH_MQTT_IN_MAX, now_us) ? taken : 0u;
}

void vh_mqtt_feed(vh_mqtt_t *client, const uint8_t *bytes, size_t count, uint64_t now_us) {
    while (count && client->state != VH_MQTT_OFFLINE) {
        size_t taken = take_bytes(client, bytes, count, now_us);
        if (taken == 0) {
            client->counters.malformed++;
            vh_mqtt_go_offline(client, now_us);
            return;
        }
        client->heard_us = now_us;
        bytes += taken;
        count -= taken;
    }
    if (client->state != VH_MQTT_OFFLINE) vh_mqtt_flush(client);
}
