/* Numbered commands: each is carried out once, however often and in whatever order its number comes. */
#ifndef VH_COMMANDS_H
#define VH_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers that were carried out: the newest, and a bit for each of the 32 before it. What is older counts as done. */
typedef struct vh_commands {
    uint32_t newest; /* 0: none yet */
    uint32_t before;
} vh_commands;

/* Whether it is to be carried out now; it is taken as done from here on. 0 is no number. */
bool vh_command_new(vh_commands *commands, uint32_t number);

#endif
