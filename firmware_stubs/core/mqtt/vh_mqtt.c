#include "vh_mqtt.h"

#include <string.h>

/* Packet types with the flags that MQTT 3.1.1, 2.2.2 demands. */
#define CONNECT 0x10u
#define CONNACK 0x20u
#define PUBLISH 0x30u
#define PUBACK 0x40u
#define SUBSCRIBE 0x82u
#define SUBACK 0x90u
#define PINGREQ 0xC0u
#define PINGRESP 0xD0u

#define DUP 0x08u
#define RETAIN 0x01u
#define REPEATS_MAX 5u /* of one publish on one connection, before the link is given up */
#define HEAD_MAX 5u    /* type and remaining length */

typedef struct {
    uint8_t *bytes;
    size_t room, size;
    bool full;
} packet_t;

static void put(packet_t *packet, const void *bytes, size_t count) {
    if (packet->full || count > packet->room - packet->size) {
        packet->full = true;
        return;
    }
    if (count) memcpy(packet->bytes + packet->size, bytes, count);
    packet->size += count;
}

static void put_u8(packet_t *packet, unsigned value) {
    uint8_t byte = (uint8_t)value;
    put(packet, &byte, 1);
}

static void put_u16(packet_t *packet, unsigned value) {
    put_u8(packet, value >> 8);
    put_u8(packet, value & 0xFFu);
}

static void put_text(packet_t *packet, const char *text, size_t len) {
    if (len > 0xFFFFu) packet->full = true;
    put_u16(packet, (unsigned)len);
    put(packet, text, len);
}

static void put_head(packet_t *packet, unsigned type, size_t remaining) {
    put_u8(packet, type);
    do {
        unsigned byte = (unsigned)(remaining & 0x7Fu);
        remaining >>= 7;
        put_u8(packet, remaining ? byte | 0x80u : byte);
    } while (remaining);
}

static size_t head_size(size_t remaining) {
    size_t size = 2;
    while (remaining >>= 7) size++;
    return size;
}

static size_t text_size(const char *text) { return text ? 2u + strlen(text) : 0u; }

/* What waits is a ring, so that a packet is taken whole or not at all while bytes go out in pieces. */
static bool queue(vh_mqtt_t *client, const uint8_t *bytes, size_t count) {
    if (count > VH_MQTT_TX - client->tx_len) return false;
    size_t at = (client->tx_head + client->tx_len) % VH_MQTT_TX, first = VH_MQTT_TX - at;
    if (first > count) first = count;
    memcpy(client->tx + at, bytes, first);
    memcpy(client->tx, bytes + first, count - first);
    client->tx_len += count;
    return true;
}

static void flush(vh_mqtt_t *client) {
    while (client->tx_len) {
        size_t run = VH_MQTT_TX - client->tx_head;
        if (run > client->tx_len) run = client->tx_len;
        size_t took = client->config.send(client->config.transport, client->tx + client->tx_head, run);
        if (took > run) took = run;
        client->tx_head = (client->tx_head + took) % VH_MQTT_TX;
        client->tx_len -= took;
        if (took < run) return;
    }
}

static size_t connect_size(const vh_mqtt_config_t *config) {
    size_t size = 10u + text_size(config->client_id ? config->client_id : "");
    if (config->will_topic) size += text_size(config->will_topic) + 2u + config->will_len;
    if (config->user_name) size += text_size(config->user_name) + text_size(config->password);
    return size;
}

static packet_t connect_packet(const vh_mqtt_config_t *config, uint8_t *bytes, size_t room) {
    packet_t packet = {bytes, room, 0, false};
    unsigned flags = 0x02u; /* clean session */
    if (config->will_topic) flags |= 0x04u | (unsigned)(config->will_qos & 1u) << 3 | (config->will_retained ? 0x20u : 0u);
    if (config->user_name) flags |= 0x80u | (config->password ? 0x40u : 0u);
    put_head(&packet, CONNECT, connect_size(config));
    put_text(&packet, "MQTT", 4);
    put_u8(&packet, 4);
    put_u8(&packet, flags);
    put_u16(&packet, config->keepalive_s);
    const char *id = config->client_id ? config->client_id : "";
    put_text(&packet, id, strlen(id));
    if (config->will_topic) {
        put_text(&packet, config->will_topic, strlen(config->will_topic));
        put_u16(&packet, config->will_len);
        put(&packet, config->will_payload, config->will_len);
    }
    if (config->user_name) {
        put_text(&packet, config->user_name, strlen(config->user_name));
        if (config->password) put_text(&packet, config->password, strlen(config->password));
    }
    return packet;
}

bool vh_mqtt_init(vh_mqtt_t *client, const vh_mqtt_config_t *config) {
    memset(client, 0, sizeof *client);
    if (!config->send || !config->message || config->keepalive_s == 0) return false;
    if (config->will_topic && config->will_len && !config->will_payload) return false;
    client->config = *config;
    client->next_id = 1;
    return !connect_packet(config, client->tx, sizeof client->tx).full;
}

/* The next packet id that nobody waits for; 0 is none. */
static uint16_t fresh_id(vh_mqtt_t *client) {
    for (;;) {
        uint16_t id = client->next_id++;
        bool used = id == 0;
        for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) used = used || client->slots[i].id == id;
        for (unsigned i = 0; i < client->filter_count; i++) used = used || client->filter_id[i] == id;
        if (!used) return id;
    }
}

bool vh_mqtt_subscribe(vh_mqtt_t *client, const char *filter, uint8_t qos) {
    size_t len = strlen(filter);
    if (client->filter_count == VH_MQTT_SUBSCRIPTIONS || len == 0 || len > VH_MQTT_OUT_MAX - 16u) return false;
    client->filters[client->filter_count] = filter;
    client->filter_qos[client->filter_count++] = qos & 1u;
    return true;
}

/* 0 when it cannot be sent at all. */
static size_t publish_size(const char *topic, size_t payload_len, uint8_t qos) {
    size_t len = strlen(topic);
    if (len == 0 || len > 0xFFFFu || payload_len > VH_MQTT_OUT_MAX || qos > 1u) return 0;
    size_t remaining = 2u + len + (qos ? 2u : 0u) + payload_len, whole = head_size(remaining) + remaining;
    return whole <= VH_MQTT_OUT_MAX ? remaining : 0;
}

bool vh_mqtt_fits(const char *topic, size_t payload_len, uint8_t qos) { return publish_size(topic, payload_len, qos) != 0; }

static bool queue_slot(vh_mqtt_t *client, vh_mqtt_slot_t *slot, uint64_t now_us) {
    uint8_t flags = slot->ever ? DUP : 0u;
    slot->packet[0] = (uint8_t)((slot->packet[0] & ~DUP) | flags);
    if (!queue(client, slot->packet, slot->len)) return false;
    client->counters.repeated += slot->ever;
    slot->ever = true;
    slot->sent++;
    slot->sent_us = now_us;
    return true;
}

bool vh_mqtt_publish(vh_mqtt_t *client, const char *topic, const uint8_t *payload, size_t payload_len, uint8_t qos,
                     bool retained) {
    size_t remaining = publish_size(topic, payload_len, qos);
    if (remaining == 0) return false;
    unsigned type = PUBLISH | (unsigned)qos << 1 | (retained ? RETAIN : 0u);
    if (qos == 0) {
        if (client->state != VH_MQTT_ONLINE || head_size(remaining) + remaining > VH_MQTT_TX - client->tx_len) return false;
        uint8_t head[HEAD_MAX + 2u];
        packet_t packet = {head, sizeof head, 0, false};
        put_head(&packet, type, remaining);
        put_u16(&packet, (unsigned)strlen(topic));
        (void)queue(client, head, packet.size);
        (void)queue(client, (const uint8_t *)topic, strlen(topic));
        if (payload_len) (void)queue(client, payload, payload_len);
        return true;
    }
    for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) {
        vh_mqtt_slot_t *slot = &client->slots[i];
        if (slot->id != 0) continue;
        packet_t packet = {slot->packet, sizeof slot->packet, 0, false};
        slot->id = fresh_id(client);
        slot->order = client->next_order++;
        slot->sent = 0;
        slot->ever = false;
        put_head(&packet, type, remaining);
        put_text(&packet, topic, strlen(topic));
        put_u16(&packet, slot->id);
        put(&packet, payload, payload_len);
        slot->len = (uint16_t)packet.size;
        return true;
    }
    return false;
}

size_t vh_mqtt_in_flight(const vh_mqtt_t *client) {
    size_t used = 0;
    for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) used += client->slots[i].id != 0;
    return used;
}

bool vh_mqtt_has_room(const vh_mqtt_t *client) { return vh_mqtt_in_flight(client) < VH_MQTT_IN_FLIGHT; }

/* Nothing of the old connection may reach the new one; what has QoS 1 stays in its slot. */
static void forget_connection(vh_mqtt_t *client) {
    client->tx_head = client->tx_len = 0;
    client->rx_stage = 0;
    client->ping_open = false;
    client->filters_sent = 0;
    memset(client->filter_id, 0, sizeof client->filter_id);
    for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) client->slots[i].sent = 0;
}

static void go_offline(vh_mqtt_t *client, uint64_t now_us) {
    bool was_online = client->state == VH_MQTT_ONLINE;
    uint64_t wait_ms = client->config.back_off_ms;
    for (unsigned i = 1; i < client->attempts && wait_ms < client->config.back_off_max_ms; i++) wait_ms *= 2u;
    if (wait_ms > client->config.back_off_max_ms) wait_ms = client->config.back_off_max_ms;
    client->state = VH_MQTT_OFFLINE;
    client->wait_until_us = now_us + wait_ms * 1000u;
    forget_connection(client);
    if (!was_online) return;
    client->counters.lost++;
    if (client->config.online) client->config.online(client->config.user, false);
}

void vh_mqtt_link_lost(vh_mqtt_t *client, uint64_t now_us) {
    if (client->state != VH_MQTT_OFFLINE) go_offline(client, now_us);
}

static void try_connect(vh_mqtt_t *client, uint64_t now_us) {
    if (client->attempts < 255u) client->attempts++;
    forget_connection(client);
    if (client->config.connect && !client->config.connect(client->config.transport)) {
        go_offline(client, now_us);
        return;
    }
    client->tx_len = connect_packet(&client->config, client->tx, sizeof client->tx).size;
    client->state = VH_MQTT_CONNECTING;
    client->connect_us = client->asked_us = client->heard_us = now_us;
}

static void send_subscriptions(vh_mqtt_t *client) {
    while (client->filters_sent < client->filter_count) {
        unsigned i = client->filters_sent;
        const char *filter = client->filters[i];
        size_t len = strlen(filter), remaining = 2u + 2u + len + 1u;
        if (head_size(remaining) + remaining > VH_MQTT_TX - client->tx_len) return;
        uint8_t head[HEAD_MAX + 4u];
        packet_t packet = {head, sizeof head, 0, false};
        client->filter_id[i] = fresh_id(client);
        put_head(&packet, SUBSCRIBE, remaining);
        put_u16(&packet, client->filter_id[i]);
        put_u16(&packet, (unsigned)len);
        (void)queue(client, head, packet.size);
        (void)queue(client, (const uint8_t *)filter, len);
        (void)queue(client, &client->filter_qos[i], 1);
        client->filters_sent++;
    }
}

/* The oldest publish that is due; NULL when none is. */
static vh_mqtt_slot_t *due(vh_mqtt_t *client, uint64_t now_us) {
    vh_mqtt_slot_t *oldest = NULL;
    for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) {
        vh_mqtt_slot_t *slot = &client->slots[i];
        if (slot->id == 0) continue;
        if (slot->sent != 0 && now_us - slot->sent_us < (uint64_t)client->config.retry_ms * 1000u) continue;
        if (oldest == NULL || (int32_t)(slot->order - oldest->order) < 0) oldest = slot;
    }
    return oldest;
}

static void keep_alive(vh_mqtt_t *client, uint64_t now_us) {
    uint64_t period_us = (uint64_t)client->config.keepalive_s * 1000000u;
    if (client->ping_open) {
        uint64_t since_us = client->heard_us > client->ping_us ? client->heard_us : client->ping_us;
        if (now_us - since_us >= period_us) go_offline(client, now_us);
        return;
    }
    if (now_us - client->asked_us < period_us / 2u) return;
    static const uint8_t ping[2] = {PINGREQ, 0};
    if (!queue(client, ping, sizeof ping)) return;
    client->ping_open = true;
    client->ping_us = client->asked_us = now_us;
}

void vh_mqtt_poll(vh_mqtt_t *client, uint64_t now_us) {
    if (client->state == VH_MQTT_OFFLINE && now_us >= client->wait_until_us) try_connect(client, now_us);
    if (client->state == VH_MQTT_CONNECTING && now_us - client->connect_us >= (uint64_t)client->config.connack_ms * 1000u)
        go_offline(client, now_us);
    if (client->state == VH_MQTT_ONLINE) {
        send_subscriptions(client);
        for (vh_mqtt_slot_t *slot; (slot = due(client, now_us)) != NULL;) {
            if (slot->sent > REPEATS_MAX) {
                go_offline(client, now_us);
                return;
            }
            if (!queue_slot(client, slot, now_us)) break;
        }
        keep_alive(client, now_us);
    }
    if (client->state != VH_MQTT_OFFLINE) flush(client);
}

static void acknowledge(vh_mqtt_t *client, const uint8_t id[2]) {
    uint8_t packet[4] = {PUBACK, 2, id[0], id[1]};
    /* When there is no room the broker sends it again on the next connection. */
    (void)queue(client, packet, sizeof packet);
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
                                 (uint8_t)qos, (client->rx_type & RETAIN) != 0, (client->rx_type & DUP) != 0};
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
        go_offline(client, now_us);
        return true;
    }
    client->state = VH_MQTT_ONLINE;
    client->attempts = 0;
    client->counters.connects++;
    if (client->config.online) client->config.online(client->config.user, true);
    return true;
}

/* One whole packet in rx, or the head of one that is too large. False: these bytes are no MQTT. */
static bool take_packet(vh_mqtt_t *client, bool whole, uint64_t now_us) {
    unsigned type = client->rx_type & 0xF0u, flags = client->rx_type & 0x0Fu;
    if (type == CONNACK) return flags == 0 && whole && take_connack(client, now_us);
    if (client->state != VH_MQTT_ONLINE) return false;
    if (type == PUBLISH) return take_publish(client, whole);
    if (flags != 0 || !whole) return false;
    uint16_t id = client->rx_expected >= 2u ? (uint16_t)(client->rx[0] << 8 | client->rx[1]) : 0u;
    if (type == PUBACK) {
        if (client->rx_expected != 2u || id == 0) return false;
        for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) {
            if (client->slots[i].id != id) continue;
            client->slots[i].id = 0;
            client->counters.published++;
        }
        return true;
    }
    if (type == SUBACK) {
        if (client->rx_expected != 3u || id == 0) return false;
        for (unsigned i = 0; i < client->filter_count; i++) {
            if (client->filter_id[i] != id) continue;
            client->filter_id[i] = 0;
            client->counters.denied += client->rx[2] > 2u;
        }
        return true;
    }
    if (type == PINGRESP) {
        client->ping_open = false;
        return client->rx_expected == 0;
    }
    return false;
}

/* What a broker may send to a client. */
static bool known(unsigned first) {
    unsigned type = first & 0xF0u;
    return type == PUBLISH || first == CONNACK || first == PUBACK || first == SUBACK || first == PINGRESP;
}

/* Takes some of the bytes (at least one) and returns how many; 0: no MQTT. */
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
            go_offline(client, now_us);
            return;
        }
        client->heard_us = now_us;
        bytes += taken;
        count -= taken;
    }
    if (client->state != VH_MQTT_OFFLINE) flush(client);
}
