/* Numbered commands: each is carried out once, however often and in whatever order its number arrives. */
#ifndef VH_COMMANDS_H
#define VH_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers that were carried out: the newest, and a bit for each of the 32 before it. Older ones count as done. */
typedef struct vh_commands {
    uint32_t newest; /* 0: none yet */
    uint32_t before;
} vh_commands;

/* Whether to carry out the command now; from then on it counts as done. 0 is not a valid number. */
bool vh_command_new(vh_commands *commands, uint32_t number);

#endif
