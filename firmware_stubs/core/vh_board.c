#include "vh_board.h"

#include <string.h>

#include "vh_answers.h"
#include "vh_codecs.h"
#include "vh_hal.h"

enum {
    PIECE = 256,               /* samples that are decoded at once */
    HEARING_US = 500000,       /* the board hears audio now if some came in the last half second */
    LISTEN_LEAST = 16000 / 2,  /* a command takes half a second at least, */
    LISTEN_MOST = 5 * 16000,   /* and five at most */
    EVENTS_OF_A_FRAME = 8,     /* room that has to be left for them */
    TEXT_OF_EVENT = 400
};

static uint64_t now_us(vh_board *board) { return vh_clock_us(&board->clock, vh_hal_counter()); }

static bool send(vh_board *board, unsigned link, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size) {
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

/* An event begins with its time; the caller writes what follows, and ends it with event_tell. */
static vh_writer event_open(vh_board *board, uint8_t type, vh_event **event) {
    uint64_t time_us = now_us(board);
    *event = vh_events_add(&board->events, type);
    vh_hal_event_noted((*event)->number);
    vh_writer writer = vh_writer_over((*event)->payload, sizeof(*event)->payload);
    vh_put_u64(&writer, time_us);
    return writer;
}

static void event_tell(vh_board *board, vh_event *event, vh_writer const *writer) {
    event->size = (uint16_t)writer->size;
    print(board, event->type, event->payload, event->size);
}

static void tell_status(vh_board *board, uint8_t state, char const *detail) {
    vh_event *event;
    vh_writer writer = event_open(board, VH_STATUS, &event);
    board->state = state;
    vh_put_u8(&writer, state);
    vh_put_text(&writer, detail);
    event_tell(board, event, &writer);
}

static void tell_error(vh_board *board, uint16_t code, char const *text) {
    vh_event *event;
    vh_writer writer = event_open(board, VH_ERROR, &event);
    vh_put_u16(&writer, code);
    vh_put_text(&writer, text);
    event_tell(board, event, &writer);
}

static void tell_hello(vh_board *board, unsigned link) {
    vh_writer writer = vh_writer_over(board->payload, sizeof board->payload);
    vh_put_u16(&writer, VH_PROTOCOL);
    vh_put_u32(&writer, board->boot_id);
    vh_put_u64(&writer, now_us(board));
    vh_put_u32(&writer, VH_SPOTTER_RATE_HZ);
    vh_put_u32(&writer, board->config.window);
    vh_put_short_text(&writer, board->config.firmware);
    vh_put_u8(&writer, 1);
    vh_put_short_text(&writer, VH_SPOTTER_PHRASE);
    (void)send(board, link, VH_HELLO, 0, board->payload, writer.size);
}

static void tell_pong(vh_board *board, unsigned link, vh_reader *reader) {
    uint32_t token = vh_get_u32(reader);
    vh_writer writer = vh_writer_over(board->payload, sizeof board->payload);
    if (reader->short_of) {
        board->counters.malformed++;
        return;
    }
    vh_put_u32(&writer, token);
    vh_put_u64(&writer, board->stamp_us);
    uint64_t sent_us = now_us(board);
    vh_put_u64(&writer, sent_us);
    vh_put_u8(&writer, board->next_sample > 0 && sent_us - board->audio_us < HEARING_US ? 1 : 0);
    (void)send(board, link, VH_PONG, 0, board->payload, writer.size);
}

static void tell_audio(vh_board *board, unsigned link) {
    uint8_t payload[12];
    vh_writer writer = vh_writer_over(payload, sizeof payload);
    vh_put_u64(&writer, board->next_sample);
    vh_put_u32(&writer, board->events.last);
    (void)send(board, link, VH_AUDIO_ACK, 0, payload, writer.size);
}

static void found(void *user, vh_spotter_event_t const *spot) {
    vh_board *board = user;
    vh_event *event;
    vh_writer writer = event_open(board, VH_WAKE, &event);
    vh_put_u64(&writer, spot->sample);
    vh_put_u16(&writer, spot->score);
    vh_put_text(&writer, spot->phrase);
    event_tell(board, event, &writer);
    board->listen_least = spot->sample + LISTEN_LEAST;
    board->listen_most = spot->sample + LISTEN_MOST;
    if (board->state != VH_LISTENING) {
        tell_status(board, VH_LISTENING, "");
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
            tell_status(board, VH_IDLE, "");
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
    if (vh_events_waiting(&board->events, link) > VH_EVENTS_KEPT - EVENTS_OF_A_FRAME) {
        /* Silence: the host sends it again later. Heard now, it could push out events that nobody has got yet. */
        board->counters.audio_dropped++;
        return;
    }
    if (first == board->next_sample) {
        hear(board, &unpacking);
        board->audio_us = now_us(board);
        board->counters.audio_frames++;
    } else {
        board->counters.audio_dropped++;
    }
    tell_audio(board, link);
}

/* Whether a command is to be carried out: each number is once. */
static bool command_new(vh_commands *commands, uint32_t number) {
    if (number > commands->newest) {
        uint32_t ahead = number - commands->newest;
        uint32_t known = commands->newest != 0 ? 1u : 0u;
        commands->before = ahead > 32 ? 0u : (ahead == 32 ? 0u : commands->before << ahead) | known << (ahead - 1u);
        commands->newest = number;
        return true;
    }
    uint32_t behind = commands->newest - number;
    if (number == 0 || behind == 0 || behind > 32 || (commands->before & 1u << (behind - 1u)) != 0) {
        return false;
    }
    commands->before |= 1u << (behind - 1u);
    return true;
}

static void acknowledge_command(vh_board *board, unsigned link, uint32_t number) {
    uint8_t payload[4];
    vh_writer writer = vh_writer_over(payload, sizeof payload);
    vh_put_u32(&writer, number);
    (void)send(board, link, VH_COMMAND_ACK, 0, payload, writer.size);
}

static void take_text(vh_board *board, vh_reader const *reader) {
    vh_answer answer;
    vh_event *event;
    size_t size = reader->left < TEXT_OF_EVENT ? reader->left : TEXT_OF_EVENT;
    while (size > 0 && size < reader->left && (reader->bytes[size] & 0xC0u) == 0x80u) {
        size--; /* no half of a UTF-8 character */
    }
    vh_writer writer = event_open(board, VH_TRANSCRIPT, &event);
    vh_put_u64(&writer, board->next_sample);
    vh_put_u8(&writer, 1);
    vh_put_bytes(&writer, reader->bytes, size);
    event_tell(board, event, &writer);

    if (vh_answer_query(reader->bytes, reader->left, now_us(board), &answer)) {
        writer = event_open(board, VH_INTENT, &event);
        vh_put_u64(&writer, board->next_sample);
        vh_put_u16(&writer, 65535);
        vh_put_short_text(&writer, answer.intent);
        vh_put_u8(&writer, answer.slot != NULL ? 1 : 0);
        if (answer.slot != NULL) {
            vh_put_short_text(&writer, answer.slot);
            vh_put_short_text(&writer, answer.value);
        }
        event_tell(board, event, &writer);
    } else {
        tell_error(board, VH_ERROR_NOT_UNDERSTOOD, "not understood");
    }
    writer = event_open(board, VH_RESPONSE, &event);
    vh_put_text(&writer, answer.response.text);
    event_tell(board, event, &writer);
}

static void take_set(vh_board *board, vh_reader *reader) {
    uint8_t key = vh_get_u8(reader);
    int32_t value = (int32_t)vh_get_u32(reader);
    if (!reader->short_of && key == VH_KEY_OPERATING_POINT && value >= 0 && value <= 100) {
        vh_spotter_set_operating_point(&board->spotter, (uint8_t)value);
    } else if (!reader->short_of && key == VH_KEY_STYLE && value >= 0 && value < VH_STYLES) {
        board->style = (uint8_t)value;
    } else {
        tell_error(board, VH_ERROR_BAD_COMMAND, "no such setting");
    }
}

static void take(vh_board *board, unsigned link, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size) {
    vh_reader reader = vh_reader_over(payload, size);
    switch (type) {
    case VH_PING:
        tell_pong(board, link, &reader);
        break;
    case VH_AUDIO:
        take_audio(board, link, &reader);
        break;
    case VH_TEXT:
    case VH_SET:
        if (vh_events_waiting(&board->events, link) > VH_EVENTS_KEPT - EVENTS_OF_A_FRAME) {
            break; /* it is sent again */
        }
        if (command_new(&board->commands[link], seq)) {
            if (type == VH_TEXT) {
                take_text(board, &reader);
            } else {
                take_set(board, &reader);
            }
        }
        acknowledge_command(board, link, seq);
        break;
    case VH_RESET:
        board->reset = true;
        break;
    case VH_HELLO_REQUEST:
        tell_hello(board, link);
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
    tell_hello(board, VH_LINK_SERIAL);
    tell_status(board, VH_STARTED, "");
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
    uint64_t now = now_us(board);
    while ((event = vh_events_due(&board->events, VH_LINK_SERIAL, now)) != NULL) {
        vh_events_sent(event, VH_LINK_SERIAL, now); /* also when there was no room: the next time is soon enough */
        if (!send(board, VH_LINK_SERIAL, event->type, event->number, event->payload, event->size)) {
            break;
        }
    }
    return any;
}

static bool round_mqtt(vh_board *board) {
    uint8_t bytes[512];
    size_t size = 0;
    uint64_t now = now_us(board);
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
           send(board, VH_LINK_MQTT, event->type, event->number, event->payload, event->size)) {
        vh_events_acknowledge(&board->events, VH_LINK_MQTT, event->number); /* the client keeps it from here on */
    }
    vh_mqtt_board_poll(&board->mqtt, now_us(board));
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
