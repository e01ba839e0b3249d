#include "vh_board.h"

#include <string.h>

#include "vh_answers.h"
#include "vh_codecs.h"
#include "vh_hal.h"
#include "vh_telling.h"

enum {
    PIECE = 256,              /* samples that are decoded at a time */
    MIN_COMMAND = 16000 / 2,  /* samples of the shortest command: half a second */
    MAX_COMMAND = 5 * 16000,  /* samples of the longest one: five seconds */
    MAX_EVENTS_PER_FRAME = 8, /* places that must be free before a frame is handled */
    MAX_EVENT_TEXT = 400
};

static void on_wake_word(void *user, vh_spotter_event_t const *spot) {
    vh_board *board = user;
    vh_event *event;
    vh_writer writer = vh_event_open(board, VH_WAKE, &event);
    vh_put_u64(&writer, spot->sample);
    vh_put_u16(&writer, spot->score);
    vh_put_text(&writer, spot->phrase);
    vh_event_tell(board, event, &writer);
    board->min_listen_end = spot->sample + MIN_COMMAND;
    board->max_listen_end = spot->sample + MAX_COMMAND;
    if (board->state != VH_LISTENING) {
        vh_tell_status(board, VH_LISTENING, "");
    }
}

static void process_audio(vh_board *board, vh_unpacking *unpacking) {
    int16_t samples[PIECE];
    size_t count;
    while ((count = vh_unpack(unpacking, samples, PIECE)) > 0) {
        vh_vad_feed(&board->vad, samples, count);
        (void)vh_spotter_feed(&board->spotter, samples, count, on_wake_word, board);
        board->next_sample += count;
        bool over = board->next_sample >= board->max_listen_end ||
                    (board->next_sample >= board->min_listen_end && !vh_vad_speech(&board->vad));
        if (board->state == VH_LISTENING && over) {
            vh_tell_status(board, VH_IDLE, "");
        }
    }
}

static void handle_audio(vh_board *board, unsigned link, vh_reader *reader) {
    vh_unpacking unpacking;
    uint8_t encoding = vh_get_u8(reader);
    (void)vh_get_u8(reader);
    uint64_t first = vh_get_u64(reader);
    if (reader->too_short || !vh_unpack_start(&unpacking, encoding, reader->bytes, reader->left)) {
        board->counters.malformed++;
        return;
    }
    if (vh_events_held(&board->events, link) > VH_EVENTS_KEPT - MAX_EVENTS_PER_FRAME) {
        /* No answer, so the host sends it again later. Handled now, it could overwrite undelivered events. */
        board->counters.audio_dropped++;
        return;
    }
    if (first == board->next_sample) {
        process_audio(board, &unpacking);
        board->audio_us = vh_board_now_us(board);
        board->counters.audio_frames++;
    } else {
        board->counters.audio_dropped++;
    }
    vh_tell_audio(board, link);
}

static void handle_text(vh_board *board, vh_reader const *reader) {
    vh_answer answer;
    vh_event *event;
    size_t size = reader->left < MAX_EVENT_TEXT ? reader->left : MAX_EVENT_TEXT;
    while (size > 0 && size < reader->left && (reader->bytes[size] & 0xC0u) == 0x80u) {
        size--; /* do not cut a UTF-8 character */
    }
    vh_writer writer = vh_event_open(board, VH_TRANSCRIPT, &event);
    vh_put_u64(&writer, board->next_sample);
    vh_put_u8(&writer, 1);
    vh_put_bytes(&writer, reader->bytes, size);
    vh_event_tell(board, event, &writer);

    if (vh_answer_query(reader->bytes, reader->left, vh_board_now_us(board), &answer)) {
        writer = vh_event_open(board, VH_INTENT, &event);
        vh_put_u64(&writer, board->next_sample);
        vh_put_u16(&writer, 65535);
        vh_put_short_text(&writer, answer.intent);
        vh_put_u8(&writer, answer.slot != NULL ? 1 : 0);
        if (answer.slot != NULL) {
            vh_put_short_text(&writer, answer.slot);
            vh_put_short_text(&writer, answer.value);
        }
        vh_event_tell(board, event, &writer);
    } else {
        vh_tell_error(board, VH_ERROR_NOT_UNDERSTOOD, "not understood");
    }
    writer = vh_event_open(board, VH_RESPONSE, &event);
    vh_put_text(&writer, answer.response.text);
    vh_event_tell(board, event, &writer);
}

static void handle_set(vh_board *board, vh_reader *reader) {
    uint8_t key = vh_get_u8(reader);
    int32_t value = (int32_t)vh_get_u32(reader);
    if (!reader->too_short && key == VH_KEY_OPERATING_POINT && value >= 0 && value <= 100) {
        vh_spotter_set_operating_point(&board->spotter, (uint8_t)value);
    } else if (!reader->too_short && key == VH_KEY_STYLE && value >= 0 && value < VH_STYLES) {
        board->style = (uint8_t)value;
    } else {
        vh_tell_error(board, VH_ERROR_BAD_COMMAND, "no such setting");
    }
}

static void handle_message(vh_board *board, unsigned link, uint8_t type, uint32_t seq, uint8_t const *payload,
                           size_t size) {
    vh_reader reader = vh_reader_over(payload, size);
    switch (type) {
    case VH_PING:
        vh_tell_pong(board, link, &reader);
        break;
    case VH_AUDIO:
        handle_audio(board, link, &reader);
        break;
    case VH_TEXT:
    case VH_SET:
        if (vh_events_held(&board->events, link) > VH_EVENTS_KEPT - MAX_EVENTS_PER_FRAME) {
            break; /* the host sends it again */
        }
        if (vh_command_new(&board->commands[link], seq)) {
            if (type == VH_TEXT) {
                handle_text(board, &reader);
            } else {
                handle_set(board, &reader);
            }
        }
        vh_tell_command(board, link, seq);
        break;
    case VH_RESET:
        board->reset = true;
        break;
    case VH_HELLO_REQUEST:
        vh_tell_hello(board, link);
        break;
    case VH_EVENT_ACK: {
        uint32_t number = vh_get_u32(&reader);
        if (!reader.too_short) {
            vh_events_acknowledge(&board->events, link, number);
        }
        break;
    }
    default: /* a message that only boards send, such as an echo */
        board->counters.malformed++;
        break;
    }
}

static size_t mqtt_write(void *user, uint8_t const *bytes, size_t size) {
    (void)user;
    return vh_hal_net_write(bytes, size);
}

static bool mqtt_connect(void *user) {
    vh_board *board = user;
    if (board->mqtt_open) { /* each attempt needs a new connection */
        vh_hal_net_close();
    }
    board->mqtt_open = vh_hal_net_open();
    return board->mqtt_open;
}

static void mqtt_frame(void *user, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size) {
    handle_message(user, VH_LINK_MQTT, type, seq, payload, size);
}

void vh_board_start(vh_board *board, vh_board_config const *config) {
    memset(board, 0, sizeof *board);
    board->config = *config;
    board->style = config->style;
    board->boot_id = vh_hal_boot_id();
    vh_clock_start(&board->clock, vh_hal_counter(), vh_hal_counter_hz(), config->start_us);
    vh_decoder_init(&board->decoder);
    vh_spotter_init(&board->spotter);
    vh_vad_init(&board->vad);
    vh_events_init(&board->events, 1u << VH_LINK_SERIAL);
    if (config->device != NULL) {
        vh_mqtt_board_config_t mqtt = {.device = config->device,
                                       .boot_id = board->boot_id,
                                       .user_name = config->user_name,
                                       .password = config->password,
                                       .user = board,
                                       .send = mqtt_write,
                                       .connect = mqtt_connect,
                                       .frame = mqtt_frame};
        if (vh_mqtt_board_init(&board->mqtt, &mqtt)) {
            board->events.links |= 1u << VH_LINK_MQTT;
        } else {
            board->config.device = NULL;
        }
    }
    vh_tell_hello(board, VH_LINK_SERIAL);
    vh_tell_status(board, VH_STARTED, "");
    board->state = VH_IDLE;
}

static bool serve_serial(vh_board *board) {
    bool had_work = false;
    if (board->rx_taken == board->rx_size) {
        uint32_t stamp = 0;
        board->rx_taken = 0;
        board->rx_size = vh_hal_uart_read(board->rx, sizeof board->rx, &stamp);
        if (board->rx_size > 0) {
            board->stamp_us = vh_clock_us(&board->clock, stamp);
        }
    }
    while (board->rx_taken < board->rx_size && !board->reset) {
        vh_frame frame;
        bool whole;
        had_work = true;
        board->rx_taken += vh_decoder_feed(&board->decoder, board->rx + board->rx_taken,
                                           board->rx_size - board->rx_taken, &frame, &whole);
        if (whole) {
            handle_message(board, VH_LINK_SERIAL, frame.type, frame.seq, frame.payload, frame.size);
        }
    }
    vh_event *event;
    uint64_t now = vh_board_now_us(board);
    while ((event = vh_events_due(&board->events, VH_LINK_SERIAL, now)) != NULL) {
        vh_events_sent(event, VH_LINK_SERIAL, now); /* even if there is no room: it is soon sent again */
        if (!vh_tell(board, VH_LINK_SERIAL, event->type, event->number, event->payload, event->size)) {
            break;
        }
    }
    return had_work;
}

static bool serve_mqtt(vh_board *board) {
    uint8_t bytes[512];
    size_t size = 0;
    uint64_t now = vh_board_now_us(board);
    if (board->mqtt_open) {
        if (!vh_hal_net_read(bytes, sizeof bytes, &size)) {
            vh_hal_net_close();
            board->mqtt_open = false;
            vh_mqtt_board_link_lost(&board->mqtt, now);
        } else if (size > 0) {
            board->stamp_us = now;
            vh_mqtt_board_feed(&board->mqtt, bytes, size, now);
        }
    }
    vh_event *event;
    while (vh_mqtt_board_has_room(&board->mqtt) &&
           (event = vh_events_due(&board->events, VH_LINK_MQTT, 0)) != NULL &&
           vh_tell(board, VH_LINK_MQTT, event->type, event->number, event->payload, event->size)) {
        vh_events_acknowledge(&board->events, VH_LINK_MQTT, event->number); /* from now on the client keeps it */
    }
    vh_mqtt_board_poll(&board->mqtt, vh_board_now_us(board));
    return size > 0;
}

bool vh_board_round(vh_board *board) {
    bool had_work = serve_serial(board);
    if (!board->reset && board->config.device != NULL) {
        had_work = serve_mqtt(board) || had_work;
    }
    if (board->reset) {
        vh_hal_reset();
        return true;
    }
    return had_work;
}
