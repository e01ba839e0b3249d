/* Any bytes on the line: the board stays within its memory, goes on, and still answers. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "memory_hal.h"
#include "vh_board.h"

static vh_board board;
static vh_decoder decoder;

size_t fuzz_piece(uint8_t *into, size_t room) { return fuzz_frame(into, room); }

int LLVMFuzzerTestOneInput(uint8_t const *bytes, size_t size) {
    vh_board_config config = {.firmware = "fuzz", .window = 8000, .style = VH_STYLE_ZEPHYR};
    hal.counter = 0;
    hal.in_size = 0;
    hal.out_size = 0;
    vh_board_start(&board, &config);
    for (size_t at = 0; at < size && !board.reset;) {
        size_t given = size - at < 4096 ? size - at : 4096;
        memcpy(hal.in, bytes + at, given);
        hal.in_size = given;
        at += given;
        while (vh_board_round(&board) && !board.reset) {
        }
        hal.counter += 50000;
        hal.out_size = 0;
    }
    if (board.reset) {
        return 0;
    }
    hal.in[0] = 0;
    hal.in_size = 1 + vh_frame_encode(VH_PING, 0, (uint8_t const *)"\1\2\3\4", 4, hal.in + 1, sizeof hal.in - 1);
    while (vh_board_round(&board)) {
    }
    vh_decoder_init(&decoder);
    for (size_t at = 0; at < hal.out_size;) {
        vh_frame frame;
        bool found;
        at += vh_decoder_feed(&decoder, hal.out + at, hal.out_size - at, &frame, &found);
        if (found && frame.type == VH_PONG) {
            return 0;
        }
    }
    abort();
}
