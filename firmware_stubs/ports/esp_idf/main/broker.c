/* The stream to the broker over lwIP's sockets; nothing waits. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lwip/inet.h"
#include "lwip/sockets.h"
#include "sdkconfig.h"
#include "vh_hal.h"

static int broker = -1;
static bool is_open;

bool vh_hal_net_open(void) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(CONFIG_VH_BROKER_PORT)};
    int const on = 1;
    if (is_open) {
        return true;
    }
    place.sin_addr.s_addr = inet_addr(CONFIG_VH_BROKER_HOST);
    if (broker < 0) {
        broker = socket(AF_INET, SOCK_STREAM, 0);
        if (broker < 0 || fcntl(broker, F_SETFL, O_NONBLOCK) < 0) {
            vh_hal_net_close();
            return false;
        }
        (void)setsockopt(broker, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    is_open = connect(broker, (struct sockaddr *)&place, sizeof place) == 0 || errno == EISCONN;
    if (!is_open && errno != EINPROGRESS && errno != EALREADY) {
        vh_hal_net_close();
    }
    return is_open;
}

bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size) {
    ssize_t came = recv(broker, into, room, 0);
    *size = came > 0 ? (size_t)came : 0;
    return came > 0 || (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

size_t vh_hal_net_write(uint8_t const *bytes, size_t size) {
    ssize_t taken = broker < 0 ? -1 : send(broker, bytes, size, 0);
    return taken > 0 ? (size_t)taken : 0;
}

void vh_hal_net_close(void) {
    if (broker >= 0) {
        (void)close(broker);
    }
    broker = -1;
    is_open = false;
}
