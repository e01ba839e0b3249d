/* Numbered events: kept until every link has them, sent again on the serial line until acknowledged. */
#ifndef VH_EVENTS_H
#define VH_EVENTS_H

#include "vh_messages.h"

#define VH_EVENTS_KEPT 32u
#define VH_EVENT_PAYLOAD_MAX 512u
#define VH_EVENT_AGAIN_US 200000u

enum { VH_LINK_SERIAL = 0, VH_LINK_MQTT = 1, VH_LINKS = 2 };

typedef struct vh_event {
    uint32_t number;
    uint64_t sent_us[VH_LINKS];
    uint8_t waiting; /* a bit for each link that does not have it yet */
    uint8_t sent;    /* a bit for each link on which it was sent */
    uint8_t type;
    uint16_t size;
    uint8_t payload[VH_EVENT_PAYLOAD_MAX];
} vh_event;

typedef struct vh_events {
    uint32_t last;  /* number of the newest one */
    uint8_t links;  /* a bit for each link that gets events */
    uint32_t lost;  /* overwritten before every link had them */
    vh_event kept[VH_EVENTS_KEPT]; /* number n at n modulo VH_EVENTS_KEPT */
} vh_events;

void vh_events_init(vh_events *events, uint8_t links);

/* Adds the next event, and drops the oldest. The caller writes its payload and its size. */
vh_event *vh_events_add(vh_events *events, uint8_t type);

/* The oldest event to send on the link now; NULL if none is due. The caller then calls vh_events_sent. */
vh_event *vh_events_due(vh_events *events, unsigned link, uint64_t now_us);
void vh_events_sent(vh_event *event, unsigned link, uint64_t now_us);

/* Records that the link has event `number`. An unknown number is ignored. */
void vh_events_acknowledge(vh_events *events, unsigned link, uint32_t number);

/* Number of events from the oldest one that the link does not have to the newest. New events must not overwrite it. */
size_t vh_events_held(vh_events const *events, unsigned link);

#endif
