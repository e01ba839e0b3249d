/* What the program needs of the machine that it runs on: hearing_host.c or hearing_m4.c. */
#ifndef HEARING_H
#define HEARING_H

#include <stddef.h>
#include <stdint.h>

void machine_print(char const *line);

/* Decodes and hears `sound`: frames of encoding u8, size u32, data. Prints the events as `event sample score`, and about once
 * a second of sound `state samples crc-of-all-decoded crc-of-the-spotter`. */
void hear_all(uint8_t const *sound, size_t size);

#endif
