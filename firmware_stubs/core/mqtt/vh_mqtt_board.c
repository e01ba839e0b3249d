#include "vh_mqtt_board.h"

#include <string.h>

#include "vh_json.h"
#include "vh_messages.h"
#include "vh_mqtt_json.h"

#define KEEPALIVE_S 2u
#define CONNACK_MS 1500u
#define RETRY_MS 3000u
#define BACK_OFF_MS 250u
#define BACK_OFF_MAX_MS 4000u

static const struct {
    uint8_t type;
    const char *name;
} topics[] = {
    {VH_HELLO, "hello"},       {VH_PONG, "pong"},     {VH_AUDIO_ACK, "ack"},     {VH_COMMAND_ACK, "ack"},
    {VH_WAKE, "wake"},         {VH_INTENT, "intent"}, {VH_RESPONSE, "response"}, {VH_TRANSCRIPT, "transcript"},
    {VH_STATUS, "status"},     {VH_LOG, "log"},       {VH_ERROR, "error"},
};

static const struct {
    uint8_t type;
    const char *name;
} orders[] = {
    {VH_PING, "in/ping"}, {VH_TEXT, "in/text"},   {VH_SET, "in/set"},
    {VH_AUDIO, "in/audio"}, {VH_RESET, "in/reset"}, {VH_HELLO_REQUEST, "in/hello"},
};

/* `vh/<device>/<rest>` into room for VH_MQTT_BOARD_TOPIC_MAX. */
static void make_topic(const vh_mqtt_board_t *board, const char *rest, char *topic) {
    size_t name = strlen(board->config.device), tail = strlen(rest);
    memcpy(topic, "vh/", 3);
    memcpy(topic + 3, board->config.device, name);
    topic[3u + name] = '/';
    memcpy(topic + 4u + name, rest, tail + 1u);
}

static bool good_name(const char *name) {
    size_t len = 0;
    if (name == NULL) return false;
    for (; name[len]; len++) {
        char c = name[len];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!good || len == VH_MQTT_BOARD_NAME_MAX) return false;
    }
    return len > 0;
}

static bool say(vh_mqtt_board_t *board, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len) {
    bool told_once = type == VH_PONG || type == VH_AUDIO_ACK || type == VH_COMMAND_ACK;
    const char *name = NULL;
    for (unsigned i = 0; i < sizeof topics / sizeof topics[0]; i++)
        if (topics[i].type == type) name = topics[i].name;
    if (!told_once && !vh_mqtt_has_room(&board->client)) return false;
    size_t size = name ? vh_mqtt_json_write(board, type, seq, payload, len) : 0;
    if (size == 0) {
        board->counters.refused++;
        return true;
    }
    make_topic(board, name, board->topic);
    bool sent = vh_mqtt_publish(&board->client, board->topic, (const uint8_t *)board->json, size,
                                (uint8_t)(told_once ? 0u : 1u), type == VH_STATUS);
    return sent || told_once;
}

bool vh_mqtt_board_send(vh_mqtt_board_t *board, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len) {
    if (!say(board, type, seq, payload, len)) return false;
    /* The last will takes the place of the retained status, so the status is said again after each connection. */
    if (type == VH_STATUS && len <= sizeof board->status) {
        memcpy(board->status, payload, len);
        board->status_len = (uint16_t)len;
        board->status_seq = seq;
    }
    return true;
}

static void hand_over(vh_mqtt_board_t *board, uint8_t type, uint32_t seq, size_t len) {
    board->config.frame(board->config.user, type, seq, board->frame, len);
}

static bool take_ping(vh_mqtt_board_t *board, const vh_mqtt_message_t *message) {
    uint64_t token = 0;
    if (message->payload_len == 0 || message->payload_len > 10u) return false;
    for (size_t i = 0; i < message->payload_len; i++) {
        if (message->payload[i] < '0' || message->payload[i] > '9') return false;
        token = token * 10u + (message->payload[i] - (unsigned)'0');
    }
    if (token > UINT32_MAX) return false;
    vh_writer writer = vh_writer_over(board->frame, sizeof board->frame);
    vh_put_u32(&writer, (uint32_t)token);
    hand_over(board, VH_PING, 0, writer.size);
    return true;
}

static bool take_command(vh_mqtt_board_t *board, uint8_t type, const vh_mqtt_message_t *message) {
    int64_t number, key, value;
    const uint8_t *text = message->payload;
    size_t len = message->payload_len;
    vh_writer writer = vh_writer_over(board->frame, sizeof board->frame);
    if (!vh_json_find_number(text, len, "number", &number) || number < 1 || number > UINT32_MAX) return false;
    if (type == VH_SET) {
        if (!vh_json_find_number(text, len, "key", &key) || key < 0 || key > UINT8_MAX) return false;
        if (!vh_json_find_number(text, len, "value", &value) || value < INT32_MIN || value > INT32_MAX) return false;
        vh_put_u8(&writer, (uint8_t)key);
        vh_put_u32(&writer, (uint32_t)value);
    } else {
        writer.size = sizeof board->frame;
        if (!vh_json_find_text(text, len, "text", board->frame, &writer.size)) return false;
    }
    hand_over(board, type, (uint32_t)number, writer.size);
    return true;
}

static void take_message(void *user, const vh_mqtt_message_t *message) {
    vh_mqtt_board_t *board = user;
    size_t before = 4u + strlen(board->config.device);
    uint8_t type = 0;
    bool good = true;
    for (unsigned i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        size_t len = strlen(orders[i].name);
        if (message->topic_len == before + len && memcmp(message->topic + before, orders[i].name, len) == 0)
            type = orders[i].type;
    }
    if (type != 0 && message->retained) {
        board->counters.retained++;
        return;
    }
    switch (type) {
    case VH_PING:
        good = take_ping(board, message);
        break;
    case VH_TEXT:
    case VH_SET:
        good = take_command(board, type, message);
        break;
    case VH_AUDIO:
        good = message->payload_len <= sizeof board->frame;
        if (good && message->payload_len) memcpy(board->frame, message->payload, message->payload_len);
        if (good) hand_over(board, type, 0, message->payload_len);
        break;
    case VH_RESET:
    case VH_HELLO_REQUEST:
        hand_over(board, type, 0, 0);
        break;
    default:
        board->counters.unknown_topic++;
        break;
    }
    board->counters.bad_json += !good;
}

static void take_online(void *user, bool online) { ((vh_mqtt_board_t *)user)->greet = online ? 2u : 0u; }

bool vh_mqtt_board_init(vh_mqtt_board_t *board, const vh_mqtt_board_config_t *config) {
    memset(board, 0, sizeof *board);
    board->config = *config;
    if (!good_name(config->device) || !config->send || !config->frame) return false;
    make_topic(board, "in/+", board->filter);
    make_topic(board, "status", board->will_topic);
    vh_json_writer_t will;
    vh_json_begin(&will, board->will, sizeof board->will);
    (void)vh_json_hex(&will, "boot", config->boot_id);
    (void)vh_json_text(&will, "state", (const uint8_t *)"gone", 4);
    vh_mqtt_config_t mqtt = {
        .transport = config->user,
        .user = board,
        .send = config->send,
        .connect = config->connect,
        .message = take_message,
        .online = take_online,
        .client_id = config->device,
        .user_name = config->user_name,
        .password = config->password,
        .will_topic = board->will_topic,
        .will_payload = (const uint8_t *)board->will,
        .will_len = (uint16_t)vh_json_end(&will),
        .will_qos = 1,
        .will_retained = true,
        .keepalive_s = config->keepalive_s ? config->keepalive_s : KEEPALIVE_S,
        .connack_ms = CONNACK_MS,
        .retry_ms = RETRY_MS,
        .back_off_ms = BACK_OFF_MS,
        .back_off_max_ms = BACK_OFF_MAX_MS,
    };
    return vh_mqtt_init(&board->client, &mqtt) && vh_mqtt_subscribe(&board->client, board->filter, 1);
}

bool vh_mqtt_board_has_room(const vh_mqtt_board_t *board) { return vh_mqtt_has_room(&board->client); }

bool vh_mqtt_board_online(const vh_mqtt_board_t *board) { return board->client.state == VH_MQTT_ONLINE; }

/* After a connection: the status again, and the board's hello. */
static void greet(vh_mqtt_board_t *board) {
    if (board->greet == 2u) {
        if (board->status_len && !say(board, VH_STATUS, board->status_seq, board->status, board->status_len)) return;
        board->greet = 1;
    }
    if (board->greet != 1u || !vh_mqtt_has_room(&board->client)) return;
    board->greet = 0;
    hand_over(board, VH_HELLO_REQUEST, 0, 0);
}

void vh_mqtt_board_feed(vh_mqtt_board_t *board, const uint8_t *bytes, size_t count, uint64_t now_us) {
    vh_mqtt_feed(&board->client, bytes, count, now_us);
}

void vh_mqtt_board_poll(vh_mqtt_board_t *board, uint64_t now_us) {
    greet(board);
    vh_mqtt_poll(&board->client, now_us);
}

void vh_mqtt_board_link_lost(vh_mqtt_board_t *board, uint64_t now_us) { vh_mqtt_link_lost(&board->client, now_us); }
