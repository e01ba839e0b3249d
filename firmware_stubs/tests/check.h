/* The smallest test frame: a check that fails prints its place, and the program ends in failure. */
#ifndef VH_CHECK_H
#define VH_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(holds)                                                           \
    do {                                                                       \
        if (!(holds)) {                                                        \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

#endif
