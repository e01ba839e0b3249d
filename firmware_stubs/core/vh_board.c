#include "vh_board.h"

#include <string.h>

#include "vh_answers.h"
#include "vh_codecs.h"
#include "vh_hal.h"
#include "vh_telling.h"

enum {
    PIECE = 256,               /* samples that are decoded at once */
    LISTEN_LEAST = 16000 / 2,  /* a command takes half a second at least, */
    LISTEN_MOST = 5 * 16000,   /* and five at most */
    EVENTS_OF_A_FRAME = 8,     /* room that has to be left for them */
    TEXT_OF_EVENT = 400
};

static void found(void *user, vh_spotter_event_t const *spot) {
    vh_board *board = user;
    vh_event *event;
    vh_writer writer = vh_event_open(board, VH_WAKE, &event);
    vh_put_u64(&writer, spot->sample);
    vh_put_u16(&writer, spot->score);
    vh_put_text(&writer, spot->phrase);
    vh_event_tell(board, event, &writer);
    board->listen_least = spot->sample + LISTEN_LEAST;
    board->listen_most = spot->sample + LISTEN_MOST;
    if (board->state != VH_LISTENING) {
        vh_tell_status(board, VH_LISTENING, "");
    }
}

static void hear(vh_board *board, vh_unpacking *unpacking) {
    int16_t samples[PIECE];
    size_t count;
    while ((count = vh_unpack(unpacking, samples, PIECE)) > 0) {
        vh_vad_feed(&board->vad, samples, count);
        (void)vh_spotter_feed(&board->spotter, samples, count, found, board);
        board->next_sample += count;
        bool over = board->next_sample >= board->listen_most ||
                    (board->next_sample >= board->listen_least && !vh_vad_speech(&board->vad));
        if (board->state == VH_LISTENING && over) {
            vh_tell_status(board, VH_IDLE, "");
        }
    }
}

static void take_audio(vh_board *board, unsigned link, vh_reader *reader) {
    vh_unpacking unpacking;
    uint8_t encoding = vh_get_u8(reader);
    (void)vh_get_u8(reader);
    uint64_t first = vh_get_u64(reader);
    if (reader->short_of || !vh_unpack_start(&unpacking, encoding, reader->bytes, reader->left)) {
        board->counters.malformed++;
        return;
    }
    if (vh_events_held(&board->events, link) > VH_EVENTS_KEPT - EVENTS_OF_A_FRAME) {
        /* Silence: the host sends it again later. Heard now, it could push out events that nobody has got yet. */
        board->counters.audio_dropped++;
        return;
    }
    if (first == board->next_sample) {
        hear(board, &unpacking);
        board->audio_us = vh_board_now_us(board);
        board->counters.audio_frames++;
    } else {
        board->counters.audio_dropped++;
    }
    vh_tell_audio(board, link);
}

static void take_text(vh_board *board, vh_reader const *reader) {
    vh_answer answer;
    vh_event *event;
    size_t size = reader->left < TEXT_OF_EVENT ? reader->left : TEXT_OF_EVENT;
    while (size > 0 && size < reader->left && (reader->bytes[size] & 0xC0u) == 0x80u) {
        size--; /* no half of a UTF-8 character */
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

static void take_set(vh_board *board, vh_reader *reader) {
    uint8_t key = vh_get_u8(reader);
    int32_t value = (int32_t)vh_get_u32(reader);
    if (!reader->short_of && key == VH_KEY_OPERATING_POINT && value >= 0 && value <= 100) {
        vh_spotter_set_operating_point(&board->spotter, (uint8_t)value);
    } else if (!reader->short_of && key == VH_KEY_STYLE && value >= 0 && value < VH_STYLES) {
        board->style = (uint8_t)value;
    } else {
        vh_tell_error(board, VH_ERROR_BAD_COMMAND, "no such setting");
    }
}

static void take(vh_board *board, unsigned link, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size) {
    vh_reader reader = vh_reader_over(payload, size);
    switch (type) {
    case VH_PING:
        vh_tell_pong(board, link, &reader);
        break;
    case VH_AUDIO:
        take_audio(board, link, &reader);
        break;
    case VH_TEXT:
    case VH_SET:
        if (vh_events_held(&board->events, link) > VH_EVENTS_KEPT - EVENTS_OF_A_FRAME) {
            break; /* it is sent again */
        }
        if (vh_command_new(&board->commands[link], seq)) {
            if (type == VH_TEXT) {
                take_text(board, &reader);
            } else {
                take_set(board, &reader);
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
        if (!reader.short_of) {
            vh_events_acknowledge(&board->events, link, number);
        }
        break;
    }
    default: /* one of the board's own messages, echoed by somebody */
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
    if (board->mqtt_open) { /* an attempt needs a fresh connection */
        vh_hal_net_close();
    }
    board->mqtt_open = vh_hal_net_open();
    return board->mqtt_open;
}

static void mqtt_frame(void *user, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size) {
    take(user, VH_LINK_MQTT, type, seq, payload, size);
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

static bool round_serial(vh_board *board) {
    bool any = false;
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
        any = true;
        board->rx_taken += vh_decoder_feed(&board->decoder, board->rx + board->rx_taken,
                                           board->rx_size - board->rx_taken, &frame, &whole);
        if (whole) {
            take(board, VH_LINK_SERIAL, frame.type, frame.seq, frame.payload, frame.size);
        }
    }
    vh_event *event;
    uint64_t now = vh_board_now_us(board);
    while ((event = vh_events_due(&board->events, VH_LINK_SERIAL, now)) != NULL) {
        vh_events_sent(event, VH_LINK_SERIAL, now); /* also when there was no room: the next time is soon enough */
        if (!vh_tell(board, VH_LINK_SERIAL, event->type, event->number, event->payload, event->size)) {
            break;
        }
    }
    return any;
}

static bool round_mqtt(vh_board *board) {
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
        vh_events_acknowledge(&board->events, VH_LINK_MQTT, event->number); /* the client keeps it from here on */
    }
    vh_mqtt_board_poll(&board->mqtt, vh_board_now_us(board));
    return size > 0;
}

bool vh_board_round(vh_board *board) {
    bool any = round_serial(board);
    if (!board->reset && board->config.device != NULL) {
        any = round_mqtt(board) || any;
    }
    if (board->reset) {
        vh_hal_reset();
        return true;
    }
    return any;
}
