/* The UART of the harness, with its interrupt and rings. */
#ifndef VH_ZEPHYR_LINE_H
#define VH_ZEPHYR_LINE_H

#include <stdbool.h>

#define LINE_RX 16384u
#define LINE_TX 8192u

/* False when the devicetree's UART is not ready. */
bool line_open(void);
/* Waits until a byte arrives, for at most 10 ms. */
void line_wait(void);

#endif
