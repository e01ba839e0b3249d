/* Only the look-up of a host name blocks; use a numeric address where that matters. */
#include "broker.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vh_hal.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* where there are no signals */
#endif

static char host[256];
static char service[16];
static int stream = -1;

bool broker_address(char const *address) {
    char const *colon = strrchr(address, ':');
    if (colon == NULL || colon == address || (size_t)(colon - address) >= sizeof host || colon[1] == 0 ||
        strlen(colon + 1) >= sizeof service) {
        return false;
    }
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = 0;
    strcpy(service, colon + 1);
    return true;
}

int broker_socket(void) { return stream; }

static bool start(void) {
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int on = 1;
    if (getaddrinfo(host, service, &wanted, &found) != 0) {
        return false;
    }
    stream = socket(found->ai_family, SOCK_STREAM, 0);
    bool going = stream >= 0 && fcntl(stream, F_SETFL, O_NONBLOCK) == 0 &&
                 (connect(stream, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
    freeaddrinfo(found);
    if (going) {
        (void)setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    } else {
        vh_hal_net_close();
    }
    return going;
}

bool vh_hal_net_open(void) {
    int error = 0;
    socklen_t size = sizeof error;
    if (host[0] == 0 || (stream < 0 && !start())) {
        return false;
    }
    struct pollfd wait = {.fd = stream, .events = POLLOUT};
    if (poll(&wait, 1, 0) == 0) {
        return false;
    }
    if (getsockopt(stream, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        vh_hal_net_close();
        return false;
    }
    return true;
}

bool vh_hal_net_read(uint8_t *into, size_t room, size_t *size) {
    ssize_t count = stream < 0 ? 0 : recv(stream, into, room, 0);
    *size = count > 0 ? (size_t)count : 0;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

size_t vh_hal_net_write(uint8_t const *bytes, size_t size) {
    ssize_t count = stream < 0 ? 0 : send(stream, bytes, size, MSG_NOSIGNAL);
    return count > 0 ? (size_t)count : 0;
}

void vh_hal_net_close(void) {
    if (stream >= 0) {
        (void)close(stream);
        stream = -1;
    }
}
