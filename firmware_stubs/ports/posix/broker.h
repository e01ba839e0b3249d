/* The TCP stream to the MQTT broker. */
#ifndef VH_POSIX_BROKER_H
#define VH_POSIX_BROKER_H

#include <stdbool.h>

/* "HOST:PORT"; false when it is none. Must be called before the board starts. */
bool broker_address(char const *address);

/* The socket to wait for, or -1. */
int broker_socket(void);

#endif
