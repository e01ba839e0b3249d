/* The stream to the broker over Zephyr's sockets; nothing waits. */
#include <errno.h>
#include <zephyr/net/socket.h>

#include "vh_hal.h"

static int broker = -1;
static bool is_open;

bool vh_hal_net_open(void) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(CONFIG_VH_BROKER_PORT)};
    int const on = 1;
    if (is_open) {
        return true;
    }
    if (zsock_inet_pton(AF_INET, CONFIG_VH_BROKER_HOST, &place.sin_addr) != 1) {
        return false;
    }
    if (broker < 0) {
        broker = zsock_socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
        if (broker < 0 || zsock_fcntl(broker, ZVFS_F_SETFL, ZVFS_O_NONBLOCK) < 0) {
            vh_hal_net_close();
            return false;
        }
        (void)zsock_setsockopt(broker, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    is_open = zsock_connect(broker, (struct sockaddr *)&place, sizeof place) == 0 || errno == EISCONN;
    if (!is_open && errno != EINPROGRESS && errno != EALREADY) {
        vh_hal_net_close();
    }
    return is_open;
}

bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size) {
    ssize_t came = zsock_recv(broker, into, room, 0);
    *size = came > 0 ? (size_t)came : 0;
    return came > 0 || (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

size_t vh_hal_net_write(uint8_t const *bytes, size_t size) {
    ssize_t taken = broker < 0 ? -1 : zsock_send(broker, bytes, size, 0);
    return taken > 0 ? (size_t)taken : 0;
}

void vh_hal_net_close(void) {
    if (broker >= 0) {
        (void)zsock_close(broker);
    }
    broker = -1;
    is_open = false;
}
