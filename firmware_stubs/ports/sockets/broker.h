/* The TCP stream to the MQTT broker, for every port that has POSIX sockets. */
#ifndef VH_SOCKETS_BROKER_H
#define VH_SOCKETS_BROKER_H

#include <stdbool.h>

/* Sets "HOST:PORT"; returns false for any other text. Call it before the board starts; without it there is no broker. */
bool broker_address(char const *address);

/* The socket to wait for, or -1. */
int broker_socket(void);

#endif
