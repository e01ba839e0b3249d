/*
 * The board: receives audio and commands over its links, detects wake words, and reports events. A port calls
 * vh_board_round in an endless loop, and vh_hal_idle after each round that had nothing to do.
 */
#ifndef VH_BOARD_H
#define VH_BOARD_H

#include "mqtt/vh_mqtt_board.h"
#include "spotter/vh_spotter.h"
#include "vh_clock.h"
#include "vh_commands.h"
#include "vh_console.h"
#include "vh_events.h"
#include "vh_frames.h"
#include "vh_vad.h"

/* The texts must stay valid as long as the board. */
typedef struct vh_board_config {
    char const *firmware;  /* reported in HELLO */
    char const *device;    /* name in the MQTT topics; NULL: no MQTT */
    char const *user_name; /* of the broker, or NULL */
    char const *password;
    uint8_t style;         /* of the console lines */
    uint32_t window;       /* samples that may be unacknowledged; the port's receive buffer must hold them */
    uint64_t start_us;     /* what the event clock shows at boot */
} vh_board_config;

typedef struct vh_counters {
    uint32_t audio_frames;  /* processed */
    uint32_t audio_dropped; /* not the expected one, or no room for its events */
    uint32_t malformed;     /* valid frames with an impossible payload */
    uint32_t unsent;        /* frames for which the line had no room */
} vh_counters;

/* The caller owns it; its members belong to the board. */
typedef struct vh_board {
    vh_board_config config;
    vh_counters counters;
    uint32_t boot_id;
    vh_clock clock;
    vh_decoder decoder;
    vh_events events;
    vh_commands commands[VH_LINKS];
    vh_spotter_t spotter;
    vh_vad vad;
    uint64_t next_sample;
    uint64_t audio_us;      /* when audio was last heard; 0: never */
    uint8_t state;          /* as STATUS reports it */
    uint64_t min_listen_end; /* sample before which a command is not over */
    uint64_t max_listen_end; /* sample at which a command is over in any case */
    uint8_t style;
    uint64_t stamp_us;      /* when the current frame arrived */
    bool reset;             /* a reset is due, and nothing else is done */
    size_t rx_size;
    size_t rx_taken;
    uint8_t rx[512];
    uint8_t payload[VH_PAYLOAD_MAX];
    uint8_t frame[VH_FRAME_MAX];
    vh_text line;
    bool mqtt_open;
    vh_mqtt_board_t mqtt;
} vh_board;

/* Starts a boot: gets its boot id, then sends HELLO and the event STATUS(started). */
void vh_board_start(vh_board *board, vh_board_config const *config);

/* Handles received bytes, and sends events that are due. Returns false when there was nothing to do. */
bool vh_board_round(vh_board *board);

#endif
