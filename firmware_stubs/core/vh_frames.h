/* Frames on a byte stream: 0x00 | COBS(type, seq, payload, crc32) | 0x00. See docs/reference/framing.md. */
#ifndef VH_FRAMES_H
#define VH_FRAMES_H

#include "vh_messages.h"

#define VH_BODY_MAX (1u + 4u + VH_PAYLOAD_MAX + 4u)
/* COBS adds one byte at the start and one for every 254. */
#define VH_SEGMENT_MAX (VH_BODY_MAX + 1u + VH_BODY_MAX / 254u)
#define VH_FRAME_MAX (VH_SEGMENT_MAX + 2u)

/* zlib's CRC32; `crc`: 0 for the first piece, then the previous result. */
uint32_t vh_crc32(uint32_t crc, uint8_t const *bytes, size_t size);

/* Writes a frame of at most VH_FRAME_MAX bytes. Returns its size; 0 if the payload is too long, or `room` too small. */
size_t vh_frame_encode(uint8_t type, uint32_t seq, uint8_t const *payload, size_t size, uint8_t *into, size_t room);

typedef struct vh_frame {
    uint8_t type;
    uint32_t seq;
    uint8_t const *payload; /* within the decoder; valid until it is fed again */
    size_t size;
} vh_frame;

typedef struct vh_decoder {
    uint8_t segment[VH_SEGMENT_MAX];
    size_t size;
    bool too_long;
    uint32_t frames;  /* valid ones so far */
    uint32_t garbage; /* segments that were not valid frames */
} vh_decoder;

void vh_decoder_init(vh_decoder *decoder);

/*
 * Takes bytes up to the end of the first valid frame, or all of them. Returns how many were taken. `*found`: whether
 * `*frame` is valid.
 */
size_t vh_decoder_feed(vh_decoder *decoder, uint8_t const *bytes, size_t size, vh_frame *frame, bool *found);

#endif
