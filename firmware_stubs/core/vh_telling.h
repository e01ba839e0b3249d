/* The messages that the board sends, on one link or as events on all of them. */
#ifndef VH_TELLING_H
#define VH_TELLING_H

#include "vh_board.h"

uint64_t vh_board_now_us(vh_board *board);

/* Sends a frame on a link. Without room for it, counts it as unsent and returns false. */
bool vh_tell(vh_board *board, unsigned link, uint8_t type, uint32_t seq, uint8_t const *payload, size_t size);

/* Begins an event with its time. The caller writes the rest of the payload, then calls vh_event_tell. */
vh_writer vh_event_open(vh_board *board, uint8_t type, vh_event **event);
void vh_event_tell(vh_board *board, vh_event *event, vh_writer const *writer);
void vh_tell_status(vh_board *board, uint8_t state, char const *detail);
void vh_tell_error(vh_board *board, uint16_t code, char const *text);

void vh_tell_hello(vh_board *board, unsigned link);
/* Answers a PING, whose payload the reader reads. */
void vh_tell_pong(vh_board *board, unsigned link, vh_reader *reader);
void vh_tell_audio(vh_board *board, unsigned link);
void vh_tell_command(vh_board *board, unsigned link, uint32_t number);

#endif
