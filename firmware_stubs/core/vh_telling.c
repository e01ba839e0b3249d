#include "vh_telling.h"

#include "vh_hal.h"

enum { HEARING_US = 500000 }; /* audio within the last half second shows that the board hears */

uint64_t vh_board_now_us(vh_board *board) { return vh_clock_us(&board->clock, vh_hal_counter()); }

bool vh_tell(vh_board *board, unsigned link, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size) {
    bool sent;
    if (link == VH_LINK_MQTT) {
        sent = vh_mqtt_board_send(&board->mqtt, type, seq, payload, size);
    } else {
        size_t length = vh_frame_encode(type, seq, payload, size, board->frame, sizeof board->frame);
        sent = length > 0 && vh_hal_uart_write(board->frame, length);
    }
    board->counters.unsent += sent ? 0u : 1u;
    return sent;
}

static void print(vh_board *board, uint8_t type, uint8_t const *payload, size_t size) {
    if (vh_console_line(board->style, type, payload, size, &board->line)) {
        (void)vh_hal_uart_write((uint8_t const *)board->line.text, board->line.size);
    }
}

vh_writer vh_event_open(vh_board *board, uint8_t type, vh_event **event) {
    uint64_t time_us = vh_board_now_us(board);
    *event = vh_events_add(&board->events, type);
    vh_hal_event_noted((*event)->number);
    vh_writer writer = vh_writer_over((*event)->payload, sizeof(*event)->payload);
    vh_put_u64(&writer, time_us);
    return writer;
}

void vh_event_tell(vh_board *board, vh_event *event, vh_writer const *writer) {
    event->size = (uint16_t)writer->size;
    print(board, event->type, event->payload, event->size);
}

void vh_tell_status(vh_board *board, uint8_t state, char const *detail) {
    vh_event *event;
    vh_writer writer = vh_event_open(board, VH_STATUS, &event);
    board->state = state;
    vh_put_u8(&writer, state);
    vh_put_text(&writer, detail);
    vh_event_tell(board, event, &writer);
}

void vh_tell_error(vh_board *board, uint16_t code, char const *text) {
    vh_event *event;
    vh_writer writer = vh_event_open(board, VH_ERROR, &event);
    vh_put_u16(&writer, code);
    vh_put_text(&writer, text);
    vh_event_tell(board, event, &writer);
}

void vh_tell_hello(vh_board *board, unsigned link) {
    vh_writer writer = vh_writer_over(board->payload, sizeof board->payload);
    vh_put_u16(&writer, VH_PROTOCOL);
    vh_put_u32(&writer, board->boot_id);
    vh_put_u64(&writer, vh_board_now_us(board));
    vh_put_u32(&writer, VH_SPOTTER_RATE_HZ);
    vh_put_u32(&writer, board->config.window);
    vh_put_short_text(&writer, board->config.firmware);
    vh_put_u8(&writer, 1);
    vh_put_short_text(&writer, VH_SPOTTER_PHRASE);
    (void)vh_tell(board, link, VH_HELLO, 0, board->payload, writer.size);
}

void vh_tell_pong(vh_board *board, unsigned link, vh_reader *reader) {
    uint32_t token = vh_get_u32(reader);
    vh_writer writer = vh_writer_over(board->payload, sizeof board->payload);
    if (reader->too_short) {
        board->counters.malformed++;
        return;
    }
    vh_put_u32(&writer, token);
    vh_put_u64(&writer, board->stamp_us);
    uint64_t sent_us = vh_board_now_us(board);
    vh_put_u64(&writer, sent_us);
    vh_put_u8(&writer, board->next_sample > 0 && sent_us - board->audio_us < HEARING_US ? 1 : 0);
    (void)vh_tell(board, link, VH_PONG, 0, board->payload, writer.size);
}

void vh_tell_audio(vh_board *board, unsigned link) {
    uint8_t payload[12];
    vh_writer writer = vh_writer_over(payload, sizeof payload);
    vh_put_u64(&writer, board->next_sample);
    vh_put_u32(&writer, board->events.last);
    (void)vh_tell(board, link, VH_AUDIO_ACK, 0, payload, writer.size);
}

void vh_tell_command(vh_board *board, unsigned link, uint32_t number) {
    uint8_t payload[4];
    vh_writer writer = vh_writer_over(payload, sizeof payload);
    vh_put_u32(&writer, number);
    (void)vh_tell(board, link, VH_COMMAND_ACK, 0, payload, writer.size);
}
