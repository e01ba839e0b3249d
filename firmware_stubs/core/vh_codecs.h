/* Decoders of the encodings that an AUDIO frame may have. */
#ifndef VH_CODECS_H
#define VH_CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of decoding one frame's data. Samples are returned in pieces, so that no frame needs a large buffer. */
typedef struct vh_unpacking {
    uint8_t encoding;
    uint8_t const *bytes;
    size_t left;    /* samples */
    size_t nibble;  /* ADPCM: the next one */
    int32_t predictor;
    int32_t index;
} vh_unpacking;

/* Returns false if the encoding is unknown, or the size is not that of whole samples. */
bool vh_unpack_start(vh_unpacking *unpacking, uint8_t encoding, uint8_t const *data, size_t size);

/* The next samples, at most `room`; 0 at the end. */
size_t vh_unpack(vh_unpacking *unpacking, int16_t *into, size_t room);

#endif
