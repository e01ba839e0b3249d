/* Decodes the data of one AUDIO frame: the encoding's number is the argument, data comes in, PCM16 goes out. */
#include <stdio.h>
#include <stdlib.h>

#include "vh_codecs.h"

int main(int count, char **arguments) {
    static uint8_t data[2048];
    vh_unpacking unpacking;
    int16_t samples[100]; /* a piece smaller than the frame */
    size_t got;
    size_t size = fread(data, 1, sizeof data, stdin);
    if (count != 2 || !vh_unpack_start(&unpacking, (uint8_t)atoi(arguments[1]), data, size)) {
        return 1;
    }
    while ((got = vh_unpack(&unpacking, samples, sizeof samples / sizeof *samples)) > 0) {
        for (size_t i = 0; i < got; i++) {
            uint8_t bytes[2] = {(uint8_t)((uint16_t)samples[i] & 0xFF), (uint8_t)((uint16_t)samples[i] >> 8)};
            (void)fwrite(bytes, 1, 2, stdout);
        }
    }
    return 0;
}
