/*
 * The board: hears audio and commands over its links, finds wake words, tells events. One round of its main loop is
 * vh_board_round; a port calls it for ever, and vh_hal_idle when it had nothing to do.
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

/* Its texts must outlive the board. */
typedef struct vh_board_config {
    char const *firmware;  /* named in HELLO */
    char const *device;    /* name in the MQTT topics; NULL: no MQTT */
    char const *user_name; /* of the broker, or NULL */
    char const *password;
    uint8_t style;         /* of the console lines */
    uint32_t window;       /* samples that the host may have on their way: what the port's receive buffer takes */
    uint64_t start_us;     /* what the event clock shows at boot */
} vh_board_config;

typedef struct vh_counters {
    uint32_t audio_frames;  /* heard */
    uint32_t audio_dropped; /* not the one that was expected, or no room for its events */
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
    uint8_t state;          /* as STATUS tells it */
    uint64_t listen_least;  /* sample before which a command is not over */
    uint64_t listen_most;   /* sample at which it is over whatever is heard */
    uint8_t style;
    uint64_t stamp_us;      /* when the frame that is worked on came */
    bool reset;             /* asked for; nothing more is done */
    size_t rx_size;
    size_t rx_taken;
    uint8_t rx[512];
    uint8_t payload[VH_PAYLOAD_MAX];
    uint8_t frame[VH_FRAME_MAX];
    vh_text line;
    bool mqtt_open;
    vh_mqtt_board_t mqtt;
} vh_board;

/* A new boot: takes a boot id, and tells HELLO and the event STATUS(started). */
void vh_board_start(vh_board *board, vh_board_config const *config);

/* One round: bytes in, events out. False when there was nothing to do. */
bool vh_board_round(vh_board *board);

#endif
