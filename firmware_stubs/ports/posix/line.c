#include "line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "vh_hal.h"

enum { TX_ROOM = 65536 };

static int master = -1;
static int slave = -1; /* kept open: otherwise reading fails whenever nobody else has the port open */
static char link_path[4096];
static char slave_path[128];
static uint8_t tx[TX_ROOM];
static size_t tx_size;
static double noise_rate;
static uint64_t noise_state;

static uint64_t noise_next(void) { /* xorshift64* */
    noise_state ^= noise_state >> 12;
    noise_state ^= noise_state << 25;
    noise_state ^= noise_state >> 27;
    return noise_state * 0x2545F4914F6CDD1Du;
}

void line_noise(double rate, uint64_t seed) {
    noise_rate = rate;
    noise_state = seed * 0x9E3779B97F4A7C15u + 1u;
}

static void corrupt(uint8_t *bytes, size_t size) {
    for (size_t i = 0; noise_rate > 0 && i < size; i++) {
        if ((double)(noise_next() >> 11) * 0x1p-53 < noise_rate) {
            bytes[i] ^= (uint8_t)(1u + noise_next() % 255u);
        }
    }
}

bool line_open(char const *link) {
    char fresh[4200];
    struct termios settings;
    if (strlen(link) >= sizeof link_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    char there[sizeof slave_path];
    if (readlink(link, there, sizeof there) < 0 && errno == EINVAL) {
        errno = EEXIST;
        return false;
    }
    master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ptsname_r(master, slave_path, sizeof slave_path) != 0) {
        return false;
    }
    slave = open(slave_path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 || tcgetattr(slave, &settings) != 0) {
        return false;
    }
    cfmakeraw(&settings);
    if (tcsetattr(slave, TCSANOW, &settings) != 0 || fcntl(master, F_SETFL, O_NONBLOCK) != 0) {
        return false;
    }
    (void)snprintf(fresh, sizeof fresh, "%s.%ld", link, (long)getpid());
    (void)unlink(fresh);
    if (symlink(slave_path, fresh) != 0 || rename(fresh, link) != 0) {
        return false;
    }
    strcpy(link_path, link);
    return true;
}

void line_close(void) {
    char there[sizeof slave_path];
    ssize_t size = link_path[0] == 0 ? -1 : readlink(link_path, there, sizeof there);
    if (size >= 0 && (size_t)size == strlen(slave_path) && memcmp(there, slave_path, (size_t)size) == 0) {
        (void)unlink(link_path);
    }
}

static void flush(void) {
    size_t done = 0;
    while (done < tx_size) {
        ssize_t count = write(master, tx + done, tx_size - done);
        if (count <= 0) {
            break;
        }
        done += (size_t)count;
    }
    memmove(tx, tx + done, tx_size - done);
    tx_size -= done;
}

void line_drop(void) {
    (void)tcflush(slave, TCOFLUSH); /* drops what the host sent, not what was sent to it */
    tx_size = 0;
}

size_t vh_hal_uart_read(uint8_t *into, size_t room, uint32_t *stamp) {
    ssize_t count = read(master, into, room);
    *stamp = vh_hal_counter();
    if (count <= 0) {
        return 0;
    }
    corrupt(into, (size_t)count);
    return (size_t)count;
}

bool vh_hal_uart_write(uint8_t const *bytes, size_t size) {
    if (size > sizeof tx - tx_size) {
        flush();
    }
    if (size > sizeof tx - tx_size) {
        return false; /* nobody reads */
    }
    memcpy(tx + tx_size, bytes, size);
    corrupt(tx + tx_size, size);
    tx_size += size;
    flush();
    return true;
}

void line_wait(int other, int timeout_ms) {
    struct pollfd waits[2] = {{.fd = master, .events = (short)(tx_size > 0 ? POLLIN | POLLOUT : POLLIN)},
                              {.fd = other, .events = POLLIN}};
    (void)poll(waits, 2, timeout_ms);
    if (tx_size > 0) {
        flush();
    }
}
