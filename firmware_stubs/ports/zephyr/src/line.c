#include "line.h"

#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/ring_buffer.h>

#include "vh_hal.h"

#define STAMPS 32u /* a power of two */

RING_BUF_DECLARE(rx_ring, LINE_RX);
RING_BUF_DECLARE(tx_ring, LINE_TX);
K_SEM_DEFINE(came, 0, 1);

static struct device const *const line = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

/* The position and time of each delimiter, noted in the interrupt. The oldest ones are dropped. */
static struct {
    uint32_t place, counter;
} stamps[STAMPS];
static uint32_t stamped, unstamped; /* numbers of the next stamp to write and to read */
static uint32_t received, taken;    /* bytes since boot */

static void interrupted(struct device const *device, void *user) {
    ARG_UNUSED(user);
    uint8_t byte;
    while (uart_irq_update(device) && uart_irq_is_pending(device)) {
        while (uart_irq_rx_ready(device) && uart_fifo_read(device, &byte, 1) == 1) {
            if (ring_buf_put(&rx_ring, &byte, 1) == 0) {
                continue; /* the frame that lost it fails its CRC, and is sent again */
            }
            received++;
            if (byte == 0) {
                stamps[stamped % STAMPS].place = received;
                stamps[stamped++ % STAMPS].counter = vh_hal_counter();
            }
            k_sem_give(&came);
        }
        if (uart_irq_tx_ready(device)) {
            uint8_t *bytes;
            uint32_t size = ring_buf_get_claim(&tx_ring, &bytes, LINE_TX);
            if (size == 0) {
                uart_irq_tx_disable(device);
                continue;
            }
            int sent = uart_fifo_fill(device, bytes, (int)size);
            (void)ring_buf_get_finish(&tx_ring, sent > 0 ? (uint32_t)sent : 0u);
        }
    }
}

bool line_open(void) {
    if (!device_is_ready(line) || uart_irq_callback_user_data_set(line, interrupted, NULL) != 0) {
        return false;
    }
    uart_irq_rx_enable(line);
    return true;
}

void line_wait(void) { (void)k_sem_take(&came, K_MSEC(10)); }

size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp) {
    unsigned int key = irq_lock();
    *stamp = vh_hal_counter();
    if (stamped - unstamped > STAMPS) {
        unstamped = stamped - STAMPS;
    }
    while (unstamped != stamped && (int32_t)(stamps[unstamped % STAMPS].place - taken) <= 0) {
        unstamped++;
    }
    if (unstamped != stamped) { /* no byte beyond it, so that the stamp belongs to the last one */
        uint32_t up_to = stamps[unstamped % STAMPS].place - taken;
        if (up_to <= room) {
            room = up_to;
            *stamp = stamps[unstamped % STAMPS].counter;
        }
    }
    irq_unlock(key);
    uint32_t size = ring_buf_get(&rx_ring, into, (uint32_t)room);
    taken += size;
    return size;
}

bool vh_hal_uart_write(uint8_t const *bytes, size_t size) {
    unsigned int key = irq_lock();
    bool fits = ring_buf_space_get(&tx_ring) >= size;
    if (fits) {
        (void)ring_buf_put(&tx_ring, bytes, (uint32_t)size);
    }
    irq_unlock(key);
    if (fits) {
        uart_irq_tx_enable(line);
    }
    return fits;
}
