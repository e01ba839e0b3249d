/* A 16550 whose interrupt fills a ring. */
#ifndef VH_AST1030_UART_H
#define VH_AST1030_UART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UART_RING 32768u /* a power of two */
#define UART_STAMPS 64u

typedef struct uart {
    volatile uint32_t *registers; /* one a word */
    volatile uint32_t head;       /* counts all bytes; written by the interrupt */
    volatile uint32_t tail;
    volatile uint32_t stamp_head;
    uint32_t stamp_tail;
    uint8_t before; /* the byte before */
    struct {
        uint32_t at; /* the byte after the delimiter, as `head` counts */
        uint32_t counter;
    } stamps[UART_STAMPS];
    uint8_t ring[UART_RING];
} uart;

void uart_start(uart *port, uint32_t base);

/* Call it from its interrupt and from the tick. */
void uart_drain(uart *port);

/* Not beyond a stamped delimiter when `stamp` is wanted. */
size_t uart_read(uart *port, uint8_t *into, size_t room, uint32_t *stamp);

/* Returns how many were sent within `patience_us`. */
size_t uart_write(uart *port, uint8_t const *bytes, size_t size, uint32_t patience_us);

bool uart_empty(uart const *port);

#endif
