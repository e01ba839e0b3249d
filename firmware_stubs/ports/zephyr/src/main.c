/* The board under Zephyr: the cycle counter, the entropy driver, the UART of line.c, the sockets that all ports share. */
#include <zephyr/kernel.h>
#include <zephyr/random/random.h>
#include <zephyr/sys/reboot.h>

#include "broker.h"
#include "line.h"
#include "vh_board.h"
#include "vh_hal.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

static vh_board board;

uint32_t vh_hal_counter(void) { return k_cycle_get_32(); }

uint32_t vh_hal_counter_hz(void) { return (uint32_t)sys_clock_hw_cycles_per_sec(); }

uint32_t vh_hal_boot_id(void) {
    uint32_t id;
    do {
        id = sys_rand32_get();
    } while (id == 0);
    return id;
}

void vh_hal_idle(void) { line_wait(); }

void vh_hal_reset(void) { sys_reboot(SYS_REBOOT_COLD); }

void vh_hal_event_noted(uint32_t number) { ARG_UNUSED(number); }

int main(void) {
    /* The window in bytes is less than the receive ring, so that a burst of PCM16 is never lost. */
    vh_board_config const config = {.firmware = "voice-harness stub zephyr",
                                    .device = sizeof CONFIG_VH_DEVICE > 1 ? CONFIG_VH_DEVICE : NULL,
                                    .style = VH_STYLE_ZEPHYR,
                                    .window = LINE_RX / 4u};
    (void)broker_address(CONFIG_VH_BROKER_HOST ":" TEXT(CONFIG_VH_BROKER_PORT));
    if (!line_open()) {
        return 0;
    }
    vh_board_start(&board, &config);
    for (;;) {
        if (!vh_board_round(&board)) {
            vh_hal_idle();
        }
    }
}
