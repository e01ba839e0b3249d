// The board as an Arduino sketch: Serial is the line, a WiFiClient the stream to the broker. See README.md.
#include <Arduino.h>
#include <WiFi.h>

extern "C" {
#include "src/core/vh_board.h"
#include "src/core/vh_hal.h"
}

// Empty: no MQTT.
static char const DEVICE[] = "";
static char const NETWORK[] = "", SECRET[] = "";
static char const BROKER[] = "192.168.1.2";
static uint16_t const BROKER_PORT = 1883;
static uint32_t const BAUD = 921600;
static size_t const RX_BUFFER = 16384;

static vh_board board;
static WiFiClient broker;

extern "C" {

uint32_t vh_hal_counter(void) { return micros(); }

uint32_t vh_hal_counter_hz(void) { return 1000000; }

uint32_t vh_hal_boot_id(void) {
  uint32_t id = 0;
  while (id == 0) {
#if defined(ARDUINO_ARCH_ESP32)
    id = esp_random();
#elif defined(ARDUINO_ARCH_RP2040)
    id = rp2040.hwrand32();
#else
#error "no source of a boot id is known for this board: add one here"
#endif
  }
  return id;
}

size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp) {
  size_t size = 0;
  *stamp = micros();
  while (size < room && Serial.available() > 0) {
    into[size++] = (uint8_t)Serial.read();
    *stamp = micros();
    // No byte beyond a delimiter, so that its time is not that of a later one.
    if (into[size - 1] == 0) break;
  }
  return size;
}

bool vh_hal_uart_write(uint8_t const *bytes, size_t size) {
  // The largest frame may be larger than the buffer, so it is not asked for room; write() waits as long as sending takes.
  return Serial.write(bytes, size) == size;
}

bool vh_hal_net_open(void) {
  // connect() waits, for at most the second that is given here; the line's buffer must bear it.
  if (broker.connected()) return true;
  if (WiFi.status() != WL_CONNECTED) return false;
  broker.setTimeout(1);
  if (broker.connect(BROKER, BROKER_PORT) != 1) return false;
  broker.setNoDelay(true);
  return true;
}

bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size) {
  int came = broker.available() > 0 ? broker.read(into, room) : 0;
  *size = came > 0 ? (size_t)came : 0;
  return came > 0 || broker.connected();
}

size_t vh_hal_net_write(uint8_t const *bytes, size_t size) { return broker.connected() ? broker.write(bytes, size) : 0; }

void vh_hal_net_close(void) { broker.stop(); }

void vh_hal_idle(void) { delay(1); }

void vh_hal_reset(void) {
#if defined(ARDUINO_ARCH_ESP32)
  ESP.restart();
#elif defined(ARDUINO_ARCH_RP2040)
  rp2040.reboot();
#endif
}

void vh_hal_event_noted(uint32_t number) { (void)number; }

}  // extern "C"

void setup() {
#if defined(ARDUINO_ARCH_ESP32)
  Serial.setRxBufferSize(RX_BUFFER);
#elif defined(ARDUINO_ARCH_RP2040)
  Serial.setFIFOSize(RX_BUFFER);
#endif
  Serial.begin(BAUD);
  if (NETWORK[0] != 0) WiFi.begin(NETWORK, SECRET);
  vh_board_config config = {};
  config.firmware = "voice-harness stub arduino";
  config.device = DEVICE[0] != 0 ? DEVICE : nullptr;
  config.style = VH_STYLE_ARDUINO;
  // In bytes less than the receive buffer, so that a burst of PCM16 is never lost.
  config.window = RX_BUFFER / 4;
  vh_board_start(&board, &config);
}

void loop() {
  if (!vh_board_round(&board)) vh_hal_idle();
}
