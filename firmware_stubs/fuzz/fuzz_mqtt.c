/* Anything from the broker, at any time and in any pieces, while the board has messages to send: what the client sends stays
 * MQTT, and after a new connection the board still hears. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "mqtt/vh_mqtt_board.h"
#include "vh_messages.h"

enum { FEED = 0, PASS = 1, SAY = 2, LINK = 3 };

static vh_mqtt_board_t board;
static uint64_t now_us;
static uint8_t out[1u << 20]; /* of this connection */
static size_t out_size;
static size_t out_room;
static bool heard;

static void insist(bool holds) {
    if (!holds) {
        abort();
    }
}

/* Whole packets, one after the other, that begin with CONNECT; the last one may still be on its way. */
static void check_sent(void) {
    for (size_t at = 0; at < out_size;) {
        uint8_t first = out[at];
        size_t length = 0;
        unsigned shift = 0;
        insist((at == 0) == (first == 0x10));
        insist(first == 0x10 || first >> 4 == 3 || first == 0x40 || first == 0x82 || first == 0xC0);
        do {
            if (++at == out_size) {
                return;
            }
            insist(shift < 28);
            length |= (size_t)(out[at] & 0x7Fu) << shift;
            shift += 7;
        } while ((out[at] & 0x80u) != 0);
        insist(length <= VH_MQTT_OUT_MAX);
        at += 1 + length;
    }
}

static size_t send_some(void *user, uint8_t const *bytes, size_t size) {
    (void)user;
    size = size < out_room ? size : out_room;
    size = size < sizeof out - out_size ? size : sizeof out - out_size;
    memcpy(out + out_size, bytes, size);
    out_size += size;
    out_room -= size;
    return size;
}

static bool reach(void *user) {
    (void)user;
    check_sent();
    out_size = 0;
    return true;
}

static void take_frame(void *user, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size) {
    (void)user;
    insist(size <= VH_PAYLOAD_MAX && vh_message_known(type));
    heard = heard || type == VH_PING;
    uint8_t answer[21] = {0};
    if (type == VH_PING) {
        insist(size == 4);
        memcpy(answer, payload, 4);
        (void)vh_mqtt_board_send(&board, VH_PONG, 0, answer, sizeof answer);
    } else if (seq != 0) {
        (void)vh_mqtt_board_send(&board, VH_COMMAND_ACK, 0, answer, 4);
    }
}

static void feed(uint8_t const *bytes, size_t size) {
    uint8_t *exact = malloc(size > 0 ? size : 1);
    insist(exact != NULL);
    memcpy(exact, bytes, size);
    vh_mqtt_board_feed(&board, exact, size, now_us);
    free(exact);
}

int LLVMFuzzerTestOneInput(uint8_t const *bytes, size_t size) {
    static uint8_t const connack[4] = {0x20, 2, 0, 0};
    static uint8_t const ping[] = "\x30\x12\x00\x0Fvh/fuzz/in/ping7";
    static uint8_t const said[] = {VH_WAKE,   VH_TRANSCRIPT, VH_INTENT, VH_RESPONSE, VH_STATUS,      VH_LOG,
                                   VH_ERROR,  VH_HELLO,      VH_PONG,   VH_AUDIO_ACK, VH_COMMAND_ACK, 0x7F};
    vh_mqtt_board_config_t config = {
        .device = "fuzz", .boot_id = 1, .user_name = "a", .password = "b", .send = send_some, .connect = reach, .frame = take_frame};
    out_size = 0;
    out_room = SIZE_MAX;
    now_us = 0;
    insist(vh_mqtt_board_init(&board, &config));
    for (size_t at = 0; at + 2 <= size;) {
        uint8_t order = bytes[at] & 3u, value = bytes[at + 1];
        size_t given = value < size - at - 2 ? value : size - at - 2;
        at += 2;
        switch (order) {
        case FEED:
            feed(bytes + at, given);
            at += given;
            break;
        case PASS:
            now_us += value * 20000u;
            vh_mqtt_board_poll(&board, now_us);
            break;
        case SAY:
            (void)vh_mqtt_board_send(&board, said[bytes[at - 2] / 4u % sizeof said], value, bytes + at, given);
            at += given;
            break;
        default:
            out_room = value < 200 ? value : SIZE_MAX;
            if (value == 0) {
                vh_mqtt_board_link_lost(&board, now_us);
            }
            break;
        }
        insist(vh_mqtt_in_flight(&board.client) <= VH_MQTT_IN_FLIGHT && board.client.tx_len <= VH_MQTT_TX);
    }
    out_room = SIZE_MAX;
    vh_mqtt_board_link_lost(&board, now_us);
    heard = false;
    now_us += 10000000u;
    vh_mqtt_board_poll(&board, now_us);
    feed(connack, sizeof connack);
    insist(vh_mqtt_board_online(&board));
    feed(ping, sizeof ping - 1);
    vh_mqtt_board_poll(&board, now_us);
    insist(heard);
    check_sent();
    return 0;
}

static size_t packet(uint8_t *into) {
    static char const *const topics[] = {"in/ping", "in/text", "in/set", "in/audio", "in/hello", "in/reset", "in/", "wake"};
    static char const *const texts[] = {"7", "", "{\"number\":1,\"text\":\"lamp on\"}", "{\"number\":2,\"key\":1,\"value\":-3}", "4294967296"};
    switch (fuzz_dice(6)) {
    case 0:
        memcpy(into, "\x20\x02\x00\x00", 4);
        into[3] = (uint8_t)(fuzz_dice(6) == 0);
        return 4;
    case 1:
        memcpy(into, "\x40\x02\x00", 3);
        into[3] = (uint8_t)fuzz_dice(24);
        return 4;
    case 2:
        memcpy(into, "\x90\x03\x00\x01", 4);
        into[3] = (uint8_t)(1 + fuzz_dice(4));
        into[4] = fuzz_dice(4) == 0 ? 0x80 : 1;
        return 5;
    case 3:
        memcpy(into, "\xD0\x00", 2);
        return 2;
    default: {
        char const *topic = topics[fuzz_dice(sizeof topics / sizeof *topics)];
        char const *text = texts[fuzz_dice(sizeof texts / sizeof *texts)];
        uint8_t qos = (uint8_t)fuzz_dice(2);
        size_t at = 4, name = strlen(topic), rest = strlen(text);
        into[0] = (uint8_t)(0x30u | (unsigned)qos << 1 | (fuzz_dice(10) == 0 ? 1u : 0u));
        into[2] = 0;
        into[3] = (uint8_t)(8 + name);
        memcpy(into + at, "vh/fuzz/", 8);
        memcpy(into + at + 8, topic, name);
        at += 8 + name;
        if (qos == 1) {
            into[at++] = 0;
            into[at++] = (uint8_t)fuzz_dice(4);
        }
        memcpy(into + at, text, rest);
        at += rest;
        into[1] = (uint8_t)(at - 2);
        return at;
    }
    }
}

size_t fuzz_piece(uint8_t *into, size_t room) {
    if (room < 256) {
        return 0;
    }
    uint8_t order = (uint8_t)(fuzz_dice(3) == 0 ? 1 + fuzz_dice(3) : 0);
    into[0] = (uint8_t)(order | fuzz_dice(64) << 2);
    into[1] = (uint8_t)(order == PASS ? fuzz_dice(60) : fuzz_dice(256));
    if (order == PASS || order == LINK) {
        return 2;
    }
    size_t size = 0;
    if (order == FEED) {
        size = packet(into + 2);
    } else {
        size = 8 + fuzz_dice(60);
        for (size_t i = 0; i < size; i++) {
            into[2 + i] = (uint8_t)(fuzz_dice(2) == 0 ? fuzz_dice(6) : fuzz_dice(256));
        }
    }
    into[1] = (uint8_t)size;
    return 2 + size;
}
