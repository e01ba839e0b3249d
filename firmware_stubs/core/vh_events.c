#include "vh_events.h"

void vh_events_init(vh_events *events, uint8_t links) {
    events->last = 0;
    events->links = links;
    events->lost = 0;
    for (size_t i = 0; i < VH_EVENTS_KEPT; i++) {
        events->kept[i].number = 0;
        events->kept[i].waiting = 0;
    }
}

vh_event *vh_events_add(vh_events *events, uint8_t type) {
    events->last++;
    vh_event *event = &events->kept[events->last % VH_EVENTS_KEPT];
    events->lost += event->waiting != 0 ? 1u : 0u;
    event->number = events->last;
    event->waiting = events->links;
    event->sent = 0;
    event->type = type;
    event->size = 0;
    return event;
}

vh_event *vh_events_due(vh_events *events, unsigned link, uint64_t now_us) {
    for (uint32_t back = VH_EVENTS_KEPT; back-- > 0;) {
        vh_event *event = &events->kept[(events->last - back) % VH_EVENTS_KEPT];
        if ((event->waiting & 1u << link) == 0) {
            continue;
        }
        if ((event->sent & 1u << link) == 0 || now_us - event->sent_us[link] >= VH_EVENT_AGAIN_US) {
            return event;
        }
    }
    return NULL;
}

void vh_events_sent(vh_event *event, unsigned link, uint64_t now_us) {
    event->sent |= (uint8_t)(1u << link);
    event->sent_us[link] = now_us;
}

void vh_events_acknowledge(vh_events *events, unsigned link, uint32_t number) {
    vh_event *event = &events->kept[number % VH_EVENTS_KEPT];
    if (event->number == number) {
        event->waiting &= (uint8_t)~(1u << link);
    }
}

size_t vh_events_held(vh_events const *events, unsigned link) {
    for (uint32_t held = VH_EVENTS_KEPT; held > 0; held--) {
        if ((events->kept[(events->last - (held - 1)) % VH_EVENTS_KEPT].waiting & 1u << link) != 0) {
            return held;
        }
    }
    return 0;
}
