/* The board on an Aspeed AST1030 (Cortex-M4), as QEMU's ast1030-evb has it: UART5 is the line, UART1 the broker. */
#include <string.h>

#include "uart.h"
#include "vh_board.h"
#include "vh_hal.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

enum { UART5_INTERRUPT = 8, UART1_INTERRUPT = 47, INTERRUPTS = 48 };

#define UART1 0x7E783000u
#define UART5 0x7E784000u
#define TIMER_COUNT REGISTER(0x7E782000u)
#define TIMER_RELOAD REGISTER(0x7E782004u)
#define TIMER_CONTROL REGISTER(0x7E782030u)
#define SCU_RANDOM REGISTER(0x7E6E2540u)
#define SYSTICK_CONTROL REGISTER(0xE000E010u)
#define SYSTICK_RELOAD REGISTER(0xE000E014u)
#define SYSTICK_VALUE REGISTER(0xE000E018u)
#define NVIC_ENABLE(interrupt) REGISTER(0xE000E100u + 4u * ((interrupt) / 32u))
#define RESET_CONTROL REGISTER(0xE000ED0Cu)
#define FPU_ACCESS REGISTER(0xE000ED88u)

enum { CORE_HZ = 200000000, TICK_HZ = 1000, PATIENCE_US = 20000 };

extern uint32_t vh_data_load[], vh_data_start[], vh_data_end[], vh_bss_start[], vh_bss_end[], vh_stack_top[];

/* Settings that QEMU may load at the end of the memory; otherwise zeros. See README.md. */
typedef struct settings {
    char device[64];
    char user_name[64];
    char password[64];
    uint32_t style;
} settings;
extern settings const vh_settings;

static vh_board board;
static uart line;
static uart broker;

void vh_reset_entry(void);
void vh_tick(void);
void vh_line_interrupt(void);
void vh_broker_interrupt(void);
void vh_stuck(void);

/* Counts down from 2^32 at 1 MHz, without end. */
uint32_t vh_hal_counter(void) { return ~TIMER_COUNT; }
uint32_t vh_hal_counter_hz(void) { return 1000000u; }

uint32_t vh_hal_boot_id(void) {
    uint32_t id = SCU_RANDOM;
    return id != 0 ? id : 1u;
}

size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp) { return uart_read(&line, into, room, stamp); }

bool vh_hal_uart_write(uint8_t const *bytes, size_t size) {
    return uart_write(&line, bytes, size, PATIENCE_US) == size;
}

/* QEMU holds the TCP connection; only silence shows the client that it is gone. */
bool vh_hal_net_open(void) { return true; }
void vh_hal_net_close(void) {}

bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size) {
    *size = uart_read(&broker, into, room, NULL);
    return true;
}

size_t vh_hal_net_write(uint8_t const *bytes, size_t size) { return uart_write(&broker, bytes, size, PATIENCE_US); }

void vh_hal_idle(void) {
    __asm volatile("cpsid i" ::: "memory");
    if (uart_empty(&line) && uart_empty(&broker)) {
        __asm volatile("dsb\n\twfi" ::: "memory"); /* a pending interrupt ends the wait, even if it is masked */
    }
    __asm volatile("cpsie i" ::: "memory");
}

void vh_hal_reset(void) {
    RESET_CONTROL = 0x05FA0004u;
    for (;;) {
    }
}

void vh_hal_event_noted(uint32_t number) { (void)number; }

/* Without a periodic tick, fewer bytes than the FIFO's threshold arrive late or never. */
void vh_tick(void) {
    uart_drain(&line);
    uart_drain(&broker);
}

void vh_line_interrupt(void) { uart_drain(&line); }
void vh_broker_interrupt(void) { uart_drain(&broker); }

void vh_stuck(void) { vh_hal_reset(); }

static void run(void) {
    vh_board_config config = {.firmware = "voice-harness stub ast1030", .window = 10000};
    TIMER_CONTROL = 0;
    TIMER_RELOAD = 0xFFFFFFFFu;
    TIMER_CONTROL = 3; /* on, at 1 MHz */
    uart_start(&line, UART5);
    uart_start(&broker, UART1);
    SYSTICK_RELOAD = CORE_HZ / TICK_HZ - 1; /* before it is enabled, or it never counts */
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7;
    NVIC_ENABLE(UART5_INTERRUPT) = 1u << UART5_INTERRUPT % 32;
    NVIC_ENABLE(UART1_INTERRUPT) = 1u << UART1_INTERRUPT % 32;
    if (vh_settings.device[0] != 0) {
        config.device = vh_settings.device;
    }
    if (vh_settings.user_name[0] != 0) {
        config.user_name = vh_settings.user_name;
        config.password = vh_settings.password;
    }
    config.style = (uint8_t)vh_settings.style;
    vh_board_start(&board, &config);
    for (;;) {
        if (!vh_board_round(&board)) {
            vh_hal_idle();
        }
    }
}

void vh_reset_entry(void) {
    memcpy(vh_data_start, vh_data_load, (size_t)((uint8_t *)vh_data_end - (uint8_t *)vh_data_start));
    memset(vh_bss_start, 0, (size_t)((uint8_t *)vh_bss_end - (uint8_t *)vh_bss_start));
    FPU_ACCESS |= 0xFu << 20;
    run();
}

typedef union vector {
    void (*handler)(void);
    uint32_t *stack;
} vector;

__attribute__((section(".vectors"), used)) static vector const vectors[16 + INTERRUPTS] = {
    [0] = {.stack = vh_stack_top},
    [1] = {.handler = vh_reset_entry},
    [2] = {.handler = vh_stuck},
    [3] = {.handler = vh_stuck},
    [4] = {.handler = vh_stuck},
    [5] = {.handler = vh_stuck},
    [6] = {.handler = vh_stuck},
    [15] = {.handler = vh_tick},
    [16 + UART5_INTERRUPT] = {.handler = vh_line_interrupt},
    [16 + UART1_INTERRUPT] = {.handler = vh_broker_interrupt},
};
