/* The board as a process of this machine: its UART is a pty, its network a TCP socket. See README.md. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "broker.h"
#include "line.h"
#include "vh_board.h"
#include "vh_hal.h"

static vh_board board;
static int64_t boot_ns;
static int64_t read_ns; /* when the counter was read last */
static double drift_ppm;
static FILE *truth;
static volatile sig_atomic_t ended;
static volatile sig_atomic_t pressed; /* the reset button */

static int64_t host_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint32_t vh_hal_counter(void) {
    read_ns = host_ns();
    int64_t ns = read_ns - boot_ns;
    return (uint32_t)((ns + (int64_t)((double)ns * drift_ppm * 1e-6)) / 1000);
}

uint32_t vh_hal_counter_hz(void) { return 1000000u; }

uint32_t vh_hal_boot_id(void) {
    uint32_t id = 0;
    while (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id || id == 0) {
    }
    return id;
}

void vh_hal_idle(void) { line_wait(broker_socket(), 10); }

void vh_hal_reset(void) {} /* the loop in main handles it */

void vh_hal_event_noted(uint32_t number) {
    if (truth != NULL) {
        (void)fprintf(truth, "%lu %lld\n", (unsigned long)number, (long long)read_ns);
        (void)fflush(truth);
    }
}

static void end(int signal) {
    (void)signal;
    ended = 1;
}

static void press(int signal) {
    (void)signal;
    pressed = 1;
}

static int usage(char const *wrong) {
    (void)fprintf(stderr,
                  "vh_board: %s\n"
                  "usage: vh_board --pty LINK [options]\n"
                  "  --pty LINK                make a pty, and LINK a symbolic link to it\n"
                  "  --style STYLE             print events as log lines too: none, esp_idf, zephyr, arduino\n"
                  "  --device NAME             name in the MQTT topics (with --mqtt)\n"
                  "  --mqtt HOST:PORT          speak MQTT with this broker as well\n"
                  "  --mqtt-user NAME:PASSWORD log in to it\n"
                  "  --uart-noise RATE[:SEED]  change each byte on the line with this probability\n"
                  "  --clock-offset-us N       the event clock shows N at boot\n"
                  "  --clock-ppm X             the event clock runs X ppm fast\n"
                  "  --truth FILE              a line for each event: its number, CLOCK_MONOTONIC in ns\n"
                  "SIGUSR1 presses the reset button.\n",
                  wrong);
    return 2;
}

static bool style_named(char const *name, uint8_t *style) {
    static char const *const names[VH_STYLES] = {"none", "esp_idf", "zephyr", "arduino"};
    for (uint8_t i = 0; i < VH_STYLES; i++) {
        if (strcmp(name, names[i]) == 0) {
            *style = i;
            return true;
        }
    }
    return false;
}

static bool number_in(char const *text, double *number, char **rest) {
    errno = 0;
    *number = strtod(text, rest);
    return *rest != text && errno == 0 && isfinite(*number);
}

int main(int count, char **arguments) {
    static struct option const options[] = {
        {"pty", 1, 0, 'p'},        {"style", 1, 0, 's'},           {"device", 1, 0, 'd'},    {"mqtt", 1, 0, 'm'},
        {"uart-noise", 1, 0, 'n'}, {"clock-offset-us", 1, 0, 'o'}, {"clock-ppm", 1, 0, 'c'}, {"truth", 1, 0, 't'},
        {"mqtt-user", 1, 0, 'u'},  {0, 0, 0, 0}};
    vh_board_config config = {.firmware = "voice-harness stub posix", .window = 16384};
    char const *link = NULL;
    bool mqtt = false;
    double number;
    char *rest;
    int option;

    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        switch (option) {
        case 'p':
            link = optarg;
            break;
        case 's':
            if (!style_named(optarg, &config.style)) {
                return usage("--style: none, esp_idf, zephyr or arduino");
            }
            break;
        case 'd':
            config.device = optarg;
            break;
        case 'm':
            if (!broker_address(optarg)) {
                return usage("--mqtt: HOST:PORT");
            }
            mqtt = true;
            break;
        case 'u':
            config.user_name = optarg;
            rest = strchr(optarg, ':');
            if (rest == NULL) {
                return usage("--mqtt-user: NAME:PASSWORD");
            }
            *rest = 0;
            config.password = rest + 1;
            break;
        case 'n':
            if (!number_in(optarg, &number, &rest) || number < 0 || number > 1 || (*rest != 0 && *rest != ':')) {
                return usage("--uart-noise: a probability, or probability:seed");
            }
            line_noise(number, *rest == ':' ? strtoull(rest + 1, NULL, 10) : 1);
            break;
        case 'o':
            if (!number_in(optarg, &number, &rest) || number < 0 || number > 9e15 || *rest != 0) {
                return usage("--clock-offset-us: µs, not negative");
            }
            config.start_us = (uint64_t)number;
            break;
        case 'c':
            if (!number_in(optarg, &drift_ppm, &rest) || drift_ppm < -1e5 || drift_ppm > 1e5 || *rest != 0) {
                return usage("--clock-ppm: from -100000 to 100000");
            }
            break;
        case 't':
            truth = fopen(optarg, "we");
            if (truth == NULL) {
                perror(optarg);
                return 1;
            }
            break;
        default:
            return usage("wrong option");
        }
    }
    if (link == NULL || optind < count) {
        return usage("--pty LINK is needed, and nothing but options");
    }
    if (mqtt != (config.device != NULL)) {
        return usage("--device and --mqtt go together");
    }
    if (!line_open(link)) {
        perror(link);
        return 1;
    }
    struct sigaction ending = {.sa_handler = end};
    (void)sigaction(SIGTERM, &ending, NULL);
    (void)sigaction(SIGINT, &ending, NULL);
    (void)sigaction(SIGHUP, &ending, NULL);
    struct sigaction pressing = {.sa_handler = press};
    (void)sigaction(SIGUSR1, &pressing, NULL);

    while (!ended) {
        boot_ns = host_ns();
        pressed = 0;
        vh_board_start(&board, &config);
        if (config.device != NULL && board.config.device == NULL) {
            line_close();
            return usage("--device: letters, digits, - and _, at most 48");
        }
        while (!ended && !pressed && !board.reset) {
            if (!vh_board_round(&board)) {
                vh_hal_idle();
            }
        }
        vh_hal_net_close();
        if (!ended) {
            line_drop();
            if (truth != NULL) {
                (void)fprintf(truth, "# reset\n");
            }
        }
    }
    line_close();
    return 0;
}
