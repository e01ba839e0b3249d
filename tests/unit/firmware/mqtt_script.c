/* Drives the MQTT client (argument "client") or the board's messages over it ("board") by lines on stdin, on a clock of
 * the script's own, and prints what comes out. Each line is answered by any number of lines and then "."; bytes are hex. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mqtt/vh_mqtt_board.h"

static vh_mqtt_board_t board;
static vh_mqtt_t lone;
static vh_mqtt_t *client = &lone;
static uint64_t now_us;
static size_t send_room = SIZE_MAX;
static bool reachable = true;
static char line[16384], topic[4096];
static uint8_t bytes[8192];

static void print_hex(const uint8_t *from, size_t count) {
    for (size_t i = 0; i < count; i++) printf("%02x", from[i]);
    printf("\n");
}

static size_t take(void *transport, const uint8_t *from, size_t count) {
    (void)transport;
    if (count > send_room) count = send_room;
    if (send_room != SIZE_MAX) send_room -= count;
    if (count == 0) return 0;
    printf("sent ");
    print_hex(from, count);
    return count;
}

static bool reach(void *transport) {
    (void)transport;
    printf("connect\n");
    return reachable;
}

static void message(void *user, const vh_mqtt_message_t *came) {
    (void)user;
    printf("message %u%s%s %.*s ", came->qos, came->retained ? "r" : "", came->duplicate ? "d" : "", (int)came->topic_len,
           (const char *)came->topic);
    print_hex(came->payload, came->payload_len);
}

static void online(void *user, bool up) {
    (void)user;
    printf("online %d\n", up);
}

static void frame(void *user, uint8_t type, uint32_t seq, const uint8_t *payload, size_t len) {
    (void)user;
    printf("frame %u %lu ", type, (unsigned long)seq);
    print_hex(payload, len);
}

/* Into `bytes`, from the exact end of which an overrun is seen: it is copied to a block of its own size. */
static uint8_t *block(const char *hex, size_t *count) {
    *count = strlen(hex) / 2u;
    uint8_t *copy = malloc(*count ? *count : 1u);
    for (size_t i = 0; i < *count && i < sizeof bytes; i++) {
        unsigned value = 0;
        (void)sscanf(hex + 2u * i, "%2x", &value);
        copy[i] = (uint8_t)value;
    }
    return copy;
}

static void counters(void) {
    const vh_mqtt_counters_t *c = &client->counters;
    printf("counters connects=%u lost=%u refused=%u published=%u repeated=%u received=%u oversize=%u malformed=%u denied=%u "
           "in_flight=%zu state=%d\n",
           c->connects, c->lost, c->refused, c->published, c->repeated, c->received, c->oversize, c->malformed, c->denied,
           vh_mqtt_in_flight(client), client->state);
    printf("board bad_json=%u unknown_topic=%u unsaid=%u shortened=%u retained=%u\n", board.counters.bad_json,
           board.counters.unknown_topic, board.counters.refused, board.counters.shortened, board.counters.retained);
}

static void obey(bool whole_board) {
    unsigned long long number;
    unsigned one, two;
    static char text[12288];
    size_t count;
    text[0] = 0;
    if (sscanf(line, "time %llu", &number) == 1) {
        now_us = number;
    } else if (sscanf(line, "room %llu", &number) == 1) {
        send_room = (size_t)number;
    } else if (sscanf(line, "reachable %u", &one) == 1) {
        reachable = one != 0;
    } else if (strcmp(line, "poll") == 0) {
        if (whole_board) vh_mqtt_board_poll(&board, now_us);
        else vh_mqtt_poll(client, now_us);
    } else if (strcmp(line, "lost") == 0) {
        vh_mqtt_link_lost(client, now_us);
    } else if (strcmp(line, "counters") == 0) {
        counters();
    } else if (sscanf(line, "feed %12287s", text) == 1) {
        uint8_t *copy = block(text, &count);
        vh_mqtt_feed(client, copy, count, now_us);
        free(copy);
    } else if (sscanf(line, "publish %u %u %4095s %12287s", &one, &two, topic, text) >= 3) {
        uint8_t *copy = block(text, &count);
        printf("taken %d\n", vh_mqtt_publish(client, topic, copy, count, (uint8_t)one, two != 0));
        free(copy);
    } else if (sscanf(line, "frame %u %llu %12287s", &one, &number, text) >= 2) {
        uint8_t *copy = block(text, &count);
        printf("taken %d\n", vh_mqtt_board_send(&board, (uint8_t)one, (uint32_t)number, copy, count));
        free(copy);
    } else {
        printf("what?\n");
    }
}

int main(int count, char **arguments) {
    bool whole_board = count > 1 && strcmp(arguments[1], "board") == 0;
    if (whole_board) {
        vh_mqtt_board_config_t config = {.device = "kit", .boot_id = 0xCAFE0001u, .send = take, .connect = reach, .frame = frame};
        if (!vh_mqtt_board_init(&board, &config)) return 1;
        client = &board.client;
    } else {
        vh_mqtt_config_t config = {.send = take, .connect = reach, .message = message, .online = online,
                                   .client_id = "lone", .user_name = "tester", .password = "secret",
                                   .will_topic = "last/will", .will_payload = (const uint8_t *)"gone", .will_len = 4,
                                   .will_qos = 1, .will_retained = true, .keepalive_s = 4, .connack_ms = 1000,
                                   .retry_ms = 1000, .back_off_ms = 100, .back_off_max_ms = 1000};
        if (!vh_mqtt_init(client, &config) || !vh_mqtt_subscribe(client, "to/lone/#", 1)) return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        obey(whole_board);
        printf(".\n");
        fflush(stdout);
    }
    return 0;
}
