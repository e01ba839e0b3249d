#include "memory_hal.h"

#include <string.h>

#include "vh_hal.h"

memory_hal hal;

uint32_t vh_hal_counter(void) { return hal.counter; }
uint32_t vh_hal_counter_hz(void) { return 1000000u; }
uint32_t vh_hal_boot_id(void) { return ++hal.boots; }

size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp) {
    size_t size = hal.in_size < room ? hal.in_size : room;
    memcpy(into, hal.in, size);
    memmove(hal.in, hal.in + size, hal.in_size - size);
    hal.in_size -= size;
    *stamp = hal.counter;
    return size;
}

bool vh_hal_uart_write(uint8_t const *bytes, size_t size) {
    if (hal.deaf || size > sizeof hal.out - hal.out_size) {
        return false;
    }
    memcpy(hal.out + hal.out_size, bytes, size);
    hal.out_size += size;
    return true;
}

bool vh_hal_net_open(void) { return false; }
bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size) {
    (void)into;
    (void)room;
    *size = 0;
    return false;
}
size_t vh_hal_net_write(uint8_t const *bytes, size_t size) {
    (void)bytes;
    (void)size;
    return 0;
}
void vh_hal_net_close(void) {}
void vh_hal_idle(void) { hal.counter += 1000; }
void vh_hal_reset(void) { hal.resets++; }
void vh_hal_event_noted(uint32_t number) { (void)number; }
