/* Shared by the two halves of the client: vh_mqtt.c sends and keeps the session, vh_mqtt_incoming.c reads. */
#ifndef VH_MQTT_SESSION_H
#define VH_MQTT_SESSION_H

#include "vh_mqtt_packet.h"

/* Bytes that wait for the transport, taken whole or not at all (false). */
bool vh_mqtt_queue(vh_mqtt_t *client, const uint8_t *bytes, size_t count);
/* As much of them as the transport takes now. */
void vh_mqtt_flush(vh_mqtt_t *client);
/* The session is over; the next attempt comes after the back-off. */
void vh_mqtt_go_offline(vh_mqtt_t *client, uint64_t now_us);

#endif
