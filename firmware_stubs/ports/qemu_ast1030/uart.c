#include "uart.h"

#include "vh_hal.h"

enum { DATA = 0, INTERRUPTS = 1, FIFO = 2, LINE = 3, STATUS = 5 };
enum { RECEIVED = 1, ROOM = 0x20, FIFO_BYTES = 16 };

static inline uint32_t lock(void) {
    uint32_t before;
    __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(before)::"memory");
    return before;
}

static inline void unlock(uint32_t before) { __asm volatile("msr primask, %0" ::"r"(before) : "memory"); }

void uart_start(uart *port, uint32_t base) {
    port->registers = (volatile uint32_t *)(uintptr_t)base;
    port->registers[LINE] = 3;    /* 8 bits, no parity */
    port->registers[FIFO] = 0xC7; /* on and cleared; interrupts at 14 bytes, or after a few byte times */
    port->registers[INTERRUPTS] = RECEIVED;
}

void uart_drain(uart *port) {
    while (port->head - port->tail < UART_RING) {
        if ((port->registers[STATUS] & RECEIVED) == 0) {
            return;
        }
        uint8_t byte = (uint8_t)port->registers[DATA];
        port->ring[port->head % UART_RING] = byte;
        port->head++;
        if (byte == 0 && port->before != 0 && port->stamp_head - port->stamp_tail < UART_STAMPS) {
            port->stamps[port->stamp_head % UART_STAMPS].at = port->head;
            port->stamps[port->stamp_head % UART_STAMPS].counter = vh_hal_counter();
            port->stamp_head++;
        }
        port->before = byte;
    }
    port->registers[INTERRUPTS] = 0; /* full: new bytes wait on the line until uart_read has made room */
}

size_t uart_read(uart *port, uint8_t *into, size_t room, uint32_t *stamp) {
    uint32_t tail = port->tail;
    size_t count = port->head - tail;
    __asm volatile("" ::: "memory"); /* what the interrupt wrote before it counted is read after the count */
    count = count < room ? count : room;
    if (stamp != NULL) {
        *stamp = vh_hal_counter();
        if (port->stamp_tail != port->stamp_head &&
            port->stamps[port->stamp_tail % UART_STAMPS].at - tail <= count) {
            count = port->stamps[port->stamp_tail % UART_STAMPS].at - tail;
            *stamp = port->stamps[port->stamp_tail % UART_STAMPS].counter;
            port->stamp_tail++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        into[i] = port->ring[(tail + i) % UART_RING];
    }
    uint32_t before = lock();
    port->tail = tail + (uint32_t)count;
    if (port->head - port->tail <= UART_RING / 2u && port->registers[INTERRUPTS] == 0) {
        port->registers[INTERRUPTS] = RECEIVED;
    }
    unlock(before);
    return count;
}

size_t uart_write(uart *port, uint8_t const *bytes, size_t size, uint32_t patience_us) {
    uint32_t started = vh_hal_counter();
    size_t done = 0;
    while (done < size) {
        if ((port->registers[STATUS] & ROOM) != 0) {
            for (unsigned i = 0; i < FIFO_BYTES && done < size; i++) {
                port->registers[DATA] = bytes[done++];
            }
        } else if (vh_hal_counter() - started > patience_us) {
            break;
        }
    }
    return done;
}

bool uart_empty(uart const *port) { return port->head == port->tail; }
