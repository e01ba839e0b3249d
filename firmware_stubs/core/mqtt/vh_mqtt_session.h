/* Shared by the two halves of the client: vh_mqtt.c sends and keeps the session, vh_mqtt_incoming.c reads. */
#ifndef VH_MQTT_SESSION_H
#define VH_MQTT_SESSION_H

#include "vh_mqtt_packet.h"

/* Queues bytes for the transport, all of them or none (false). */
bool vh_mqtt_queue(vh_mqtt_t *client, const uint8_t *bytes, size_t count);
/* Sends as many queued bytes as the transport accepts now. */
void vh_mqtt_flush(vh_mqtt_t *client);
/* Ends the session. The next attempt follows after the back-off. */
void vh_mqtt_go_offline(vh_mqtt_t *client, uint64_t now_us);

#endif
