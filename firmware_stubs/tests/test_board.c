/* The board's messages over a line in memory. */
#include <string.h>

#include "check.h"
#include "memory_hal.h"
#include "vh_board.h"

static vh_board board;
static vh_decoder decoder;
static vh_frame got[64];
static uint8_t payloads[64][VH_PAYLOAD_MAX];
static size_t count;

static void start(void) {
    vh_board_config config = {.firmware = "test", .window = 8000};
    uint32_t boots = hal.boots;
    memset(&hal, 0, sizeof hal);
    hal.boots = boots;
    hal.counter = 0xFFFFFFF0u;
    vh_board_start(&board, &config);
    vh_decoder_init(&decoder);
}

/* `got`: the frames that the board has sent since the last call. */
static void listen(void) {
    size_t at = 0;
    count = 0;
    while (vh_board_round(&board)) {
    }
    while (at < hal.out_size) {
        bool found;
        at += vh_decoder_feed(&decoder, hal.out + at, hal.out_size - at, &got[count], &found);
        if (found) {
            CHECK(count + 1 < sizeof got / sizeof *got);
            memcpy(payloads[count], got[count].payload, got[count].size);
            got[count].payload = payloads[count];
            count++;
        }
    }
    hal.out_size = 0;
}

static void say(uint8_t type, uint32_t seq, void const *payload, size_t size) {
    size_t length =
        vh_frame_encode(type, seq, payload, size, hal.in + hal.in_size, sizeof hal.in - hal.in_size);
    CHECK(length > 0);
    hal.in_size += length;
}

static void acknowledge(uint32_t number) {
    uint8_t payload[4];
    vh_writer writer = vh_writer_over(payload, sizeof payload);
    vh_put_u32(&writer, number);
    say(VH_EVENT_ACK, 0, payload, writer.size);
}

static void say_audio(uint64_t first, size_t samples) {
    uint8_t payload[VH_PAYLOAD_MAX];
    vh_writer writer = vh_writer_over(payload, sizeof payload);
    vh_put_u8(&writer, VH_PCM16);
    vh_put_u8(&writer, 0);
    vh_put_u64(&writer, first);
    for (size_t i = 0; i < samples; i++) {
        vh_put_u16(&writer, 0);
    }
    CHECK(!writer.full);
    say(VH_AUDIO, 0, payload, writer.size);
}

static vh_reader payload_of(size_t at, uint8_t type) {
    CHECK(at < count && got[at].type == type);
    return vh_reader_over(got[at].payload, got[at].size);
}

static void it_says_hello_at_boot_and_when_asked(void) {
    start();
    listen();
    CHECK(count == 2 && got[1].type == VH_STATUS && got[1].seq == 1);
    vh_reader reader = payload_of(0, VH_HELLO);
    CHECK(vh_get_u16(&reader) == VH_PROTOCOL);
    CHECK(vh_get_u32(&reader) == board.boot_id);
    CHECK(vh_get_u64(&reader) == 0);
    CHECK(vh_get_u32(&reader) == 16000 && vh_get_u32(&reader) == 8000);
    CHECK(reader.left == 5 + 7 && memcmp(reader.bytes, "\4test\1\5alexa", 12) == 0);
    acknowledge(1);
    say(VH_HELLO_REQUEST, 0, NULL, 0);
    listen();
    CHECK(count == 1 && got[0].type == VH_HELLO);
}

static void it_answers_pings_with_its_times(void) {
    start();
    acknowledge(1);
    listen();
    hal.counter += 1234; /* over the counter's wrap */
    say(VH_PING, 0, "\x78\x56\x34\x12", 4);
    say(VH_PING, 0, "\x78\x56", 2);
    listen();
    CHECK(count == 1 && board.counters.malformed == 1);
    vh_reader reader = payload_of(0, VH_PONG);
    CHECK(vh_get_u32(&reader) == 0x12345678u);
    CHECK(vh_get_u64(&reader) == 1234 && vh_get_u64(&reader) == 1234);
    CHECK(vh_get_u8(&reader) == 0); /* it hears nothing */
    say_audio(0, 160);
    say(VH_PING, 0, "\0\0\0\0", 4);
    listen();
    CHECK(count == 2 && got[1].payload[20] == 1);
    hal.counter += 600000;
    say(VH_PING, 0, "\0\0\0\0", 4);
    listen();
    CHECK(got[0].payload[20] == 0);
}

static uint64_t expected(size_t at) {
    vh_reader reader = payload_of(at, VH_AUDIO_ACK);
    return vh_get_u64(&reader);
}

static void it_takes_audio_in_order_only(void) {
    start();
    acknowledge(1);
    listen();
    say_audio(0, 500);
    say_audio(500, 7);
    say_audio(1000, 500); /* one is missing before it */
    say_audio(0, 500);    /* an old one */
    say_audio(507, 1);
    listen();
    CHECK(count == 5);
    CHECK(expected(0) == 500 && expected(1) == 507 && expected(2) == 507 && expected(3) == 507 && expected(4) == 508);
    CHECK(board.spotter.samples == 508 && board.counters.audio_dropped == 2);
    say(VH_AUDIO, 0, "\0\0", 2);
    say(VH_AUDIO, 0, "\7\0\0\0\0\0\0\0\0\0\0\0", 12);
    listen();
    CHECK(count == 0 && board.counters.malformed == 2);
}

static void events_come_again_until_acknowledged(void) {
    start();
    listen();
    listen();
    CHECK(count == 0);
    hal.counter += VH_EVENT_AGAIN_US;
    listen();
    CHECK(count == 1 && got[0].type == VH_STATUS && got[0].seq == 1);
    acknowledge(1);
    hal.counter += VH_EVENT_AGAIN_US;
    listen();
    CHECK(count == 0);
}

static void commands_are_carried_out_once(void) {
    start();
    acknowledge(1);
    listen();
    say(VH_TEXT, 1, "Turn on the light!", 18);
    say(VH_TEXT, 1, "Turn on the light!", 18);
    say(VH_TEXT, 3, "What?", 5);
    say(VH_TEXT, 2, "how long are you on", 19); /* late */
    say(VH_TEXT, 2, "how long are you on", 19);
    listen();
    CHECK(count == 5 + 9); /* each is acknowledged */
    uint8_t events[10] = {0};
    for (size_t i = 0; i < count; i++) {
        if (got[i].seq != 0) {
            events[got[i].seq - 2] = got[i].type;
        }
    }
    static uint8_t const wanted[9] = {VH_TRANSCRIPT, VH_INTENT,   VH_RESPONSE, VH_TRANSCRIPT, VH_ERROR,
                                      VH_RESPONSE,   VH_TRANSCRIPT, VH_INTENT, VH_RESPONSE};
    CHECK(memcmp(events, wanted, 9) == 0);
}

static void settings_hold_or_are_refused(void) {
    start();
    acknowledge(1);
    listen();
    say(VH_SET, 1, "\1\x4B\0\0\0", 5);
    say(VH_SET, 2, "\2\3\0\0\0", 5);
    listen();
    CHECK(count == 2 && board.spotter.operating_point == 75 && board.style == VH_STYLE_ARDUINO);
    say(VH_SET, 3, "\1\x65\0\0\0", 5); /* 101 */
    say(VH_SET, 4, "\1\xFF\xFF\xFF\xFF", 5);
    say(VH_SET, 5, "\2\4\0\0\0", 5);
    say(VH_SET, 6, "\x9\1\0\0\0", 5);
    say(VH_SET, 7, "\1\1", 2);
    listen();
    CHECK(count == 10 && board.events.last == 6 && board.spotter.operating_point == 75);
}

static void no_event_is_pushed_out_by_audio(void) {
    start();
    listen();
    for (uint32_t i = 1; board.events.last < VH_EVENTS_KEPT - 7; i++) {
        say(VH_SET, i, "\x9\1\0\0\0", 5);
        listen();
    }
    say_audio(0, 10);
    listen();
    CHECK(board.next_sample == 0 && board.events.lost == 0); /* the host will send it again */
    for (uint32_t number = 1; number <= board.events.last; number++) {
        acknowledge(number);
    }
    say_audio(0, 10);
    listen();
    CHECK(board.next_sample == 10);
}

static void a_line_that_takes_nothing_loses_no_event(void) {
    start();
    acknowledge(1);
    listen();
    hal.deaf = true;
    say(VH_TEXT, 1, "what", 4);
    listen();
    CHECK(count == 0 && board.counters.unsent > 0);
    hal.deaf = false;
    hal.counter += VH_EVENT_AGAIN_US;
    listen();
    CHECK(count == 3 && got[0].seq == 2 && got[2].seq == 4);
}

static void a_reset_ends_the_boot(void) {
    start();
    listen();
    uint32_t before = board.boot_id;
    say(VH_RESET, 0, NULL, 0);
    say(VH_HELLO_REQUEST, 0, NULL, 0);
    CHECK(vh_board_round(&board));
    CHECK(hal.resets == 1 && board.reset);
    start();
    CHECK(board.boot_id != before && board.next_sample == 0 && board.events.last == 1);
}

int main(void) {
    it_says_hello_at_boot_and_when_asked();
    it_answers_pings_with_its_times();
    it_takes_audio_in_order_only();
    events_come_again_until_acknowledged();
    commands_are_carried_out_once();
    settings_hold_or_are_refused();
    no_event_is_pushed_out_by_audio();
    a_line_that_takes_nothing_loses_no_event();
    a_reset_ends_the_boot();
    (void)puts("board: ok");
    return 0;
}
