/*
 * What the core needs of a port: nothing else of the board is known to it.
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

/* A counter that runs freely and wraps at 2^32; never the count of a periodic tick, which loses some. */
uint32_t vh_hal_counter(void);

/* How often the counter counts in a second; a constant. */
uint32_t vh_hal_counter_hz(void);

/* A number that differs from boot to boot (random, or counted in memory that survives). */
uint32_t vh_hal_boot_id(void);

/*
 * Takes at most `room` received bytes without waiting, and tells in `stamp` what the counter showed when the last of
 * them came. A port that stamps in its interrupt returns no byte beyond a stamped 0x00.
 */
size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp);

/* Sends all of the bytes, or none and false when there is no room for them. Waits no longer than it takes to send. */
bool vh_hal_uart_write(uint8_t const *bytes, size_t size);

/* Opens the byte stream to the MQTT broker, or goes on opening it; true when it is open. False on a board without. */
bool vh_hal_net_open(void);

/* Takes at most `room` bytes from the broker without waiting; false when the stream is broken. `size` may be 0. */
bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size);

/* Takes up to `size` bytes for the broker without waiting, and returns how many it took. */
size_t vh_hal_net_write(uint8_t const *bytes, size_t size);

/* Drops the stream to the broker. */
void vh_hal_net_close(void);

/* Sleeps until a byte comes, for at most some 10 ms. */
void vh_hal_idle(void);

/* Starts the board anew. May return; the core then does nothing more until the port calls vh_board_start. */
void vh_hal_reset(void);

/* Told once for each event right after its time was taken from vh_hal_counter; for ports that keep a truth. */
void vh_hal_event_noted(uint32_t number);

#endif
