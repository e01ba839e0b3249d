/* The board on an ESP32 under ESP-IDF: a UART driver with its own rings, the system timer, the hardware's random numbers. */
#include "broker.h"
#include "driver/uart.h"
#include "esp_err.h"
#include "esp_event.h"
#include "esp_netif.h"
#include "esp_random.h"
#include "esp_system.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "nvs_flash.h"
#include "protocol_examples_common.h"
#include "sdkconfig.h"
#include "vh_board.h"
#include "vh_hal.h"

#define LINE ((uart_port_t)CONFIG_VH_UART)
#define LINE_BUFFER 16384
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

static vh_board board;

uint32_t vh_hal_counter(void) { return (uint32_t)esp_timer_get_time(); }

uint32_t vh_hal_counter_hz(void) { return 1000000u; }

uint32_t vh_hal_boot_id(void) {
    uint32_t id;
    do {
        id = esp_random();
    } while (id == 0);
    return id;
}

size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp) {
    int size = uart_read_bytes(LINE, into, room, 0);
    *stamp = vh_hal_counter();
    return size > 0 ? (size_t)size : 0;
}

bool vh_hal_uart_write(uint8_t const *bytes, size_t size) {
    size_t room = 0;
    if (uart_get_tx_buffer_free_size(LINE, &room) != ESP_OK || room < size) {
        return false;
    }
    return uart_write_bytes(LINE, bytes, size) == (int)size;
}

void vh_hal_idle(void) { vTaskDelay(1); }

void vh_hal_reset(void) { esp_restart(); }

void vh_hal_event_noted(uint32_t number) { (void)number; }

static void open_line(void) {
    uart_config_t const line = {.baud_rate = CONFIG_VH_UART_BAUD,
                                .data_bits = UART_DATA_8_BITS,
                                .parity = UART_PARITY_DISABLE,
                                .stop_bits = UART_STOP_BITS_1,
                                .flow_ctrl = UART_HW_FLOWCTRL_DISABLE};
    ESP_ERROR_CHECK(uart_driver_install(LINE, LINE_BUFFER, LINE_BUFFER, 0, NULL, 0));
    ESP_ERROR_CHECK(uart_param_config(LINE, &line));
    ESP_ERROR_CHECK(
        uart_set_pin(LINE, CONFIG_VH_UART_TX_PIN, CONFIG_VH_UART_RX_PIN, UART_PIN_NO_CHANGE, UART_PIN_NO_CHANGE));
}

void app_main(void) {
    bool const mqtt = sizeof CONFIG_VH_DEVICE > 1;
    open_line();
    if (mqtt) {
        (void)broker_address(CONFIG_VH_BROKER_HOST ":" TEXT(CONFIG_VH_BROKER_PORT));
        ESP_ERROR_CHECK(nvs_flash_init());
        ESP_ERROR_CHECK(esp_netif_init());
        ESP_ERROR_CHECK(esp_event_loop_create_default());
        ESP_ERROR_CHECK(example_connect());
    }
    /* The window in bytes is less than the receive buffer, so that a burst of PCM16 is never lost. */
    vh_board_config const config = {.firmware = "voice-harness stub esp_idf",
                                    .device = mqtt ? CONFIG_VH_DEVICE : NULL,
                                    .style = VH_STYLE_ESP_IDF,
                                    .window = LINE_BUFFER / 4};
    vh_board_start(&board, &config);
    for (;;) {
        if (!vh_board_round(&board)) {
            vh_hal_idle();
        }
    }
}
