/* On QEMU's mps2-an386, a Cortex-M4 with 16 MB into which QEMU loads the sound; it prints by semihosting. */
#include "hearing.h"

#define SOUND ((uint8_t const *)0x21000000)
enum { PRINT = 4, EXIT = 0x18, DONE = 0x20026 };

extern uint32_t bss_start[], bss_end[], stack_top[];
void start(void);

static void call(uint32_t number, uint32_t argument) {
    register uint32_t r0 __asm("r0") = number;
    register uint32_t r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void machine_print(char const *line) { call(PRINT, (uint32_t)line); }

void start(void) {
    for (uint32_t *word = bss_start; word < bss_end; word++) *word = 0;
    uint32_t size = SOUND[0] | (uint32_t)SOUND[1] << 8 | (uint32_t)SOUND[2] << 16 | (uint32_t)SOUND[3] << 24;
    hear_all(SOUND + 4, size);
    call(EXIT, DONE);
}

static void stuck(void) {
    machine_print("a fault\n");
    call(EXIT, DONE);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[7])(void) = {
    (void (*)(void))stack_top, start, stuck, stuck, stuck, stuck, stuck,
};
