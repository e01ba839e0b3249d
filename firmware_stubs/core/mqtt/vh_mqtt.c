#include <string.h>

#include "vh_mqtt_session.h"

#define REPEATS_MAX 5u /* of one publish on one connection, before the link is given up */

/* A ring buffer, so that packets are queued whole or not at all while bytes are sent in pieces. */
bool vh_mqtt_queue(vh_mqtt_t *client, const uint8_t *bytes, size_t count) {
    if (count > VH_MQTT_TX - client->tx_len) return false;
    size_t at = (client->tx_head + client->tx_len) % VH_MQTT_TX, first = VH_MQTT_TX - at;
    if (first > count) first = count;
    memcpy(client->tx + at, bytes, first);
    memcpy(client->tx, bytes + first, count - first);
    client->tx_len += count;
    return true;
}

void vh_mqtt_flush(vh_mqtt_t *client) {
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

bool vh_mqtt_init(vh_mqtt_t *client, const vh_mqtt_config_t *config) {
    memset(client, 0, sizeof *client);
    if (!config->send || !config->message || config->keepalive_s == 0) return false;
    if (config->will_topic && config->will_len && !config->will_payload) return false;
    client->config = *config;
    client->next_id = 1;
    return !vh_mqtt_connect_packet(config, client->tx, sizeof client->tx).full;
}

/* The next packet id that is not in use; 0 is not a valid id. */
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
    size_t remaining = 2u + len + (qos ? 2u : 0u) + payload_len, whole = vh_mqtt_head_size(remaining) + remaining;
    return whole <= VH_MQTT_OUT_MAX ? remaining : 0;
}

bool vh_mqtt_fits(const char *topic, size_t payload_len, uint8_t qos) { return publish_size(topic, payload_len, qos) != 0; }

static bool queue_slot(vh_mqtt_t *client, vh_mqtt_slot_t *slot, uint64_t now_us) {
    uint8_t flags = slot->ever ? VH_MQTT_DUP : 0u;
    slot->packet[0] = (uint8_t)((slot->packet[0] & ~VH_MQTT_DUP) | flags);
    if (!vh_mqtt_queue(client, slot->packet, slot->len)) return false;
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
    unsigned type = VH_MQTT_PUBLISH | (unsigned)qos << 1 | (retained ? VH_MQTT_RETAIN : 0u);
    if (qos == 0) {
        if (client->state != VH_MQTT_ONLINE || vh_mqtt_head_size(remaining) + remaining > VH_MQTT_TX - client->tx_len) return false;
        uint8_t head[VH_MQTT_HEAD_MAX + 2u];
        vh_mqtt_packet_t packet = vh_mqtt_packet_over(head, sizeof head);
        vh_mqtt_put_head(&packet, type, remaining);
        vh_mqtt_put_u16(&packet, strlen(topic));
        (void)vh_mqtt_queue(client, head, packet.size);
        (void)vh_mqtt_queue(client, (const uint8_t *)topic, strlen(topic));
        if (payload_len) (void)vh_mqtt_queue(client, payload, payload_len);
        return true;
    }
    for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) {
        vh_mqtt_slot_t *slot = &client->slots[i];
        if (slot->id != 0) continue;
        vh_mqtt_packet_t packet = vh_mqtt_packet_over(slot->packet, sizeof slot->packet);
        slot->id = fresh_id(client);
        slot->order = client->next_order++;
        slot->sent = 0;
        slot->ever = false;
        vh_mqtt_put_head(&packet, type, remaining);
        vh_mqtt_put_text(&packet, topic, strlen(topic));
        vh_mqtt_put_u16(&packet, slot->id);
        vh_mqtt_put(&packet, payload, payload_len);
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

/* Nothing of the old connection may reach the new one. Publishes with QoS 1 stay in their slots. */
static void forget_connection(vh_mqtt_t *client) {
    client->tx_head = client->tx_len = 0;
    client->rx_stage = 0;
    client->ping_open = false;
    client->filters_sent = 0;
    memset(client->filter_id, 0, sizeof client->filter_id);
    for (unsigned i = 0; i < VH_MQTT_IN_FLIGHT; i++) client->slots[i].sent = 0;
}

void vh_mqtt_go_offline(vh_mqtt_t *client, uint64_t now_us) {
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
    if (client->state != VH_MQTT_OFFLINE) vh_mqtt_go_offline(client, now_us);
}

static void try_connect(vh_mqtt_t *client, uint64_t now_us) {
    if (client->attempts < 255u) client->attempts++;
    forget_connection(client);
    if (client->config.connect && !client->config.connect(client->config.transport)) {
        vh_mqtt_go_offline(client, now_us);
        return;
    }
    client->tx_len = vh_mqtt_connect_packet(&client->config, client->tx, sizeof client->tx).size;
    client->state = VH_MQTT_CONNECTING;
    client->connect_us = client->asked_us = client->heard_us = now_us;
}

static void send_subscriptions(vh_mqtt_t *client) {
    while (client->filters_sent < client->filter_count) {
        unsigned i = client->filters_sent;
        const char *filter = client->filters[i];
        size_t len = strlen(filter), remaining = 2u + 2u + len + 1u;
        if (vh_mqtt_head_size(remaining) + remaining > VH_MQTT_TX - client->tx_len) return;
        uint8_t head[VH_MQTT_HEAD_MAX + 4u];
        vh_mqtt_packet_t packet = vh_mqtt_packet_over(head, sizeof head);
        client->filter_id[i] = fresh_id(client);
        vh_mqtt_put_head(&packet, VH_MQTT_SUBSCRIBE, remaining);
        vh_mqtt_put_u16(&packet, client->filter_id[i]);
        vh_mqtt_put_u16(&packet, len);
        (void)vh_mqtt_queue(client, head, packet.size);
        (void)vh_mqtt_queue(client, (const uint8_t *)filter, len);
        (void)vh_mqtt_queue(client, &client->filter_qos[i], 1);
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
        if (now_us - since_us >= period_us) vh_mqtt_go_offline(client, now_us);
        return;
    }
    if (now_us - client->asked_us < period_us / 2u) return;
    static const uint8_t ping[2] = {VH_MQTT_PINGREQ, 0};
    if (!vh_mqtt_queue(client, ping, sizeof ping)) return;
    client->ping_open = true;
    client->ping_us = client->asked_us = now_us;
}

void vh_mqtt_poll(vh_mqtt_t *client, uint64_t now_us) {
    if (client->state == VH_MQTT_OFFLINE && now_us >= client->wait_until_us) try_connect(client, now_us);
    if (client->state == VH_MQTT_CONNECTING && now_us - client->connect_us >= (uint64_t)client->config.connack_ms * 1000u)
        vh_mqtt_go_offline(client, now_us);
    if (client->state == VH_MQTT_ONLINE) {
        send_subscriptions(client);
        for (vh_mqtt_slot_t *slot; (slot = due(client, now_us)) != NULL;) {
            if (slot->sent > REPEATS_MAX) {
                vh_mqtt_go_offline(client, now_us);
                return;
            }
            if (!queue_slot(client, slot, now_us)) break;
        }
        keep_alive(client, now_us);
    }
    if (client->state != VH_MQTT_OFFLINE) vh_mqtt_flush(client);
}
