/*
 * The functions that a port provides. The core knows nothing else about the board.
 *
 * A port is chosen by defining one of the VH_PORT_ macros when compiling; it implements every function below.
 * All of them are called from one thread (or the main loop) only.
 */
#ifndef VH_HAL_H
#define VH_HAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(VH_PORT_POSIX) && !defined(VH_PORT_QEMU_AST1030) && !defined(VH_PORT_ESP_IDF) && \
    !defined(VH_PORT_ZEPHYR) && !defined(VH_PORT_ARDUINO)
#error "unknown port: define VH_PORT_POSIX, _QEMU_AST1030, _ESP_IDF, _ZEPHYR or _ARDUINO, or add a port under ports/"
#endif

/* A free-running counter that wraps at 2^32. Do not count a periodic tick, which may be lost. */
uint32_t vh_hal_counter(void);

/* Counts per second of the counter; a constant. */
uint32_t vh_hal_counter_hz(void);

/* A number that differs from boot to boot (random, or counted in memory that survives). */
uint32_t vh_hal_boot_id(void);

/*
 * Takes at most `room` received bytes without waiting. `stamp`: the counter when the last of them arrived. A port that
 * stamps in its interrupt returns no byte beyond a stamped 0x00.
 */
size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp);

/* Sends all bytes, or none if there is no room for them (false). Waits no longer than it takes to send. */
bool vh_hal_uart_write(uint8_t const *bytes, size_t size);

/* Opens the byte stream to the MQTT broker, or continues to. True when it is open; always false without a network. */
bool vh_hal_net_open(void);

/* Takes at most `room` bytes from the broker without waiting; false when the stream is broken. `size` may be 0. */
bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size);

/* Takes up to `size` bytes for the broker without waiting, and returns how many it took. */
size_t vh_hal_net_write(uint8_t const *bytes, size_t size);

/* Drops the stream to the broker. */
void vh_hal_net_close(void);

/* Sleeps until a byte arrives, for at most about 10 ms. */
void vh_hal_idle(void);

/* Restarts the board. If it returns, the core does nothing more until the port calls vh_board_start. */
void vh_hal_reset(void);

/* Called once for each event, right after its time was read from vh_hal_counter, for ports that record true times. */
void vh_hal_event_noted(uint32_t number);

#endif
