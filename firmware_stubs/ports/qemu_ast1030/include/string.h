/* The functions of the C library that the core uses; this board has no library. Implemented in memory.c. */
#ifndef VH_STRING_H
#define VH_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, void const *restrict from, size_t size);
void *memmove(void *to, void const *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(void const *left, void const *right, size_t size);
void *memchr(void const *in, int value, size_t size);
size_t strlen(char const *text);
int strcmp(char const *left, char const *right);

#endif
