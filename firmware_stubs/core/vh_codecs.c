#include "vh_codecs.h"

#include "vh_messages.h"

static int16_t const steps[89] = {
    7,    8,    9,    10,   11,   12,   13,   14,   16,   17,   19,    21,    23,    25,    28,    31,    34,    37,
    41,   45,   50,   55,   60,   66,   73,   80,   88,   97,   107,   118,   130,   143,   157,   173,   190,   209,
    230,  253,  279,  307,  337,  371,  408,  449,  494,  544,  598,   658,   724,   796,   876,   963,   1060,  1166,
    1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327,  3660,  4026,  4428,  4871,  5358,  5894,  6484,
    7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767};

static int8_t const turns[8] = {-1, -1, -1, -1, 2, 4, 6, 8};

static int16_t mulaw(uint8_t code) {
    uint8_t bits = (uint8_t)~code;
    int32_t magnitude = ((((int32_t)bits & 0x0F) << 3) + 0x84) << ((bits >> 4) & 7);
    return (int16_t)((bits & 0x80) != 0 ? 0x84 - magnitude : magnitude - 0x84);
}

static int16_t adpcm(vh_unpacking *unpacking, uint8_t nibble) {
    int32_t step = steps[unpacking->index];
    int32_t change = step >> 3;
    change += (nibble & 4) != 0 ? step : 0;
    change += (nibble & 2) != 0 ? step >> 1 : 0;
    change += (nibble & 1) != 0 ? step >> 2 : 0;
    int32_t next = unpacking->predictor + ((nibble & 8) != 0 ? -change : change);
    next = next > 32767 ? 32767 : next;
    next = next < -32768 ? -32768 : next;
    unpacking->predictor = next;
    int32_t index = unpacking->index + turns[nibble & 7];
    index = index < 0 ? 0 : index;
    unpacking->index = index > 88 ? 88 : index;
    return (int16_t)next;
}

bool vh_unpack_start(vh_unpacking *unpacking, uint8_t encoding, uint8_t const *data, size_t size) {
    unpacking->encoding = encoding;
    unpacking->bytes = data;
    unpacking->nibble = 0;
    unpacking->predictor = 0;
    unpacking->index = 0;
    switch (encoding) {
    case VH_PCM16:
        unpacking->left = size / 2;
        return size % 2 == 0;
    case VH_MULAW:
        unpacking->left = size;
        return true;
    case VH_ADPCM:
        if (size < 4 || data[2] > 88) {
            return false;
        }
        unpacking->predictor = (int16_t)(uint16_t)(data[0] | data[1] << 8);
        unpacking->index = data[2];
        unpacking->bytes = data + 4;
        unpacking->left = (size - 4) * 2;
        return true;
    default:
        return false;
    }
}

size_t vh_unpack(vh_unpacking *unpacking, int16_t *into, size_t room) {
    size_t count = unpacking->left < room ? unpacking->left : room;
    uint8_t const *bytes = unpacking->bytes;
    switch (unpacking->encoding) {
    case VH_PCM16:
        for (size_t i = 0; i < count; i++) {
            into[i] = (int16_t)(uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
        }
        unpacking->bytes += 2 * count;
        break;
    case VH_MULAW:
        for (size_t i = 0; i < count; i++) {
            into[i] = mulaw(bytes[i]);
        }
        unpacking->bytes += count;
        break;
    default:
        for (size_t i = 0; i < count; i++) {
            size_t at = unpacking->nibble++;
            into[i] = adpcm(unpacking, (uint8_t)(at % 2 == 0 ? bytes[at / 2] & 0x0F : bytes[at / 2] >> 4));
        }
        break;
    }
    unpacking->left -= count;
    return count;
}
