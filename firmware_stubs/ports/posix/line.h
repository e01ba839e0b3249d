/* The board's UART: the master's side of a pty, with a symbolic link at the slave's. */
#ifndef VH_POSIX_LINE_H
#define VH_POSIX_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns false and sets errno. An existing link is replaced, another file is not. */
bool line_open(char const *link);

/* Removes the link when it is still ours. */
void line_close(void);

/* Each byte in either direction is changed with this probability. */
void line_noise(double rate, uint64_t seed);

/* Drops received bytes that were not handled, and bytes not sent yet, as a reset does. */
void line_drop(void);

/* Waits until a byte arrives on the line or on `other` (-1: none). */
void line_wait(int other, int timeout_ms);

#endif
