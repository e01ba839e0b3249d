/* Compiled with -fno-tree-loop-distribute-patterns, or the compiler makes each of these call itself. */
#include <stdint.h>
#include <string.h>

void *memcpy(void *restrict to, void const *restrict from, size_t size) {
    uint8_t *t = to;
    uint8_t const *f = from;
    while (size-- > 0) {
        *t++ = *f++;
    }
    return to;
}

void *memmove(void *to, void const *from, size_t size) {
    uint8_t *t = to;
    uint8_t const *f = from;
    if (t <= f) {
        while (size-- > 0) {
            *t++ = *f++;
        }
    } else {
        while (size-- > 0) {
            t[size] = f[size];
        }
    }
    return to;
}

void *memset(void *to, int value, size_t size) {
    uint8_t *t = to;
    while (size-- > 0) {
        *t++ = (uint8_t)value;
    }
    return to;
}

int memcmp(void const *left, void const *right, size_t size) {
    uint8_t const *l = left;
    uint8_t const *r = right;
    for (; size > 0; size--, l++, r++) {
        if (*l != *r) {
            return *l - *r;
        }
    }
    return 0;
}

void *memchr(void const *in, int value, size_t size) {
    uint8_t const *at = in;
    for (; size > 0; size--, at++) {
        if (*at == (uint8_t)value) {
            return (void *)(uintptr_t)at;
        }
    }
    return NULL;
}

size_t strlen(char const *text) {
    size_t size = 0;
    while (text[size] != 0) {
        size++;
    }
    return size;
}

int strcmp(char const *left, char const *right) {
    while (*left != 0 && *left == *right) {
        left++;
        right++;
    }
    return (uint8_t)*left - (uint8_t)*right;
}
