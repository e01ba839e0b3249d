/* Frames, clock, codecs, events, console: each by itself. */
#include <string.h>

#include "check.h"
#include "vh_clock.h"
#include "vh_codecs.h"
#include "vh_console.h"
#include "vh_events.h"
#include "vh_frames.h"
#include "vh_vad.h"

static uint32_t state = 1;
static uint32_t dice(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static size_t feed_all(vh_decoder *decoder, uint8_t const *bytes, size_t size, vh_frame *last) {
    size_t frames = 0;
    size_t at = 0;
    while (at < size) {
        vh_frame frame;
        bool found;
        size_t piece = 1 + dice() % 300;
        piece = piece < size - at ? piece : size - at;
        at += vh_decoder_feed(decoder, bytes + at, piece, &frame, &found);
        if (found) {
            *last = frame;
            frames++;
        }
    }
    return frames;
}

static void frames_come_back(void) {
    static vh_decoder decoder;
    uint8_t payload[VH_PAYLOAD_MAX];
    uint8_t coded[VH_FRAME_MAX];
    vh_frame frame;

    CHECK(vh_crc32(0, (uint8_t const *)"123456789", 9) == 0xCBF43926u); /* the check value of CRC-32 */
    vh_decoder_init(&decoder);
    for (size_t size = 0; size <= VH_PAYLOAD_MAX; size++) {
        uint32_t zeros = dice() % 4; /* none, some, many, all */
        for (size_t i = 0; i < size; i++) {
            payload[i] = (uint8_t)(zeros == 3 || dice() % 8 < zeros * 3 ? 0 : 1 + dice() % 255);
        }
        size_t length = vh_frame_encode(VH_AUDIO, 7 + (uint32_t)size, payload, size, coded, sizeof coded);
        CHECK(length > 0 && length <= VH_FRAME_MAX);
        CHECK(coded[0] == 0 && coded[length - 1] == 0 && memchr(coded + 1, 0, length - 2) == NULL);
        CHECK(feed_all(&decoder, coded, length, &frame) == 1);
        CHECK(frame.type == VH_AUDIO && frame.seq == 7 + size && frame.size == size);
        CHECK(memcmp(frame.payload, payload, size) == 0);
    }
    CHECK(decoder.garbage == 0);
    CHECK(vh_frame_encode(VH_AUDIO, 0, payload, VH_PAYLOAD_MAX + 1, coded, sizeof coded) == 0);
    CHECK(vh_frame_encode(VH_AUDIO, 0, payload, VH_PAYLOAD_MAX, coded, 500) == 0);
}

static void spoilt_frames_are_none(void) {
    static vh_decoder decoder;
    uint8_t coded[VH_FRAME_MAX];
    uint8_t long_line[3 * VH_SEGMENT_MAX];
    vh_frame frame;

    vh_decoder_init(&decoder);
    size_t length = vh_frame_encode(VH_PING, 0, (uint8_t const *)"\1\2\3\4", 4, coded, sizeof coded);
    for (size_t at = 1; at + 1 < length; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            coded[at] ^= (uint8_t)(1u << bit);
            CHECK(feed_all(&decoder, coded, length, &frame) == 0);
            coded[at] ^= (uint8_t)(1u << bit);
        }
    }
    memset(long_line, 'x', sizeof long_line);
    CHECK(feed_all(&decoder, long_line, sizeof long_line, &frame) == 0);
    CHECK(feed_all(&decoder, coded, length, &frame) == 1); /* it recovers */
    length = vh_frame_encode(0x7F, 0, NULL, 0, coded, sizeof coded);
    CHECK(feed_all(&decoder, coded, length, &frame) == 0); /* an unknown type */
}

static void clock_goes_on_over_the_wrap(void) {
    vh_clock clock;
    vh_clock_start(&clock, 0xFFFFFF00u, 1000000u, 5000);
    CHECK(vh_clock_us(&clock, 0xFFFFFF00u) == 5000);
    CHECK(vh_clock_us(&clock, 0x00000100u) == 5000 + 0x200);
    CHECK(vh_clock_us(&clock, 0x000000F0u) == 5000 + 0x1F0); /* a stamp of the interrupt, a little older */
    uint64_t before = vh_clock_us(&clock, 0x00000100u);
    for (uint32_t turn = 0; turn < 40; turn++) {
        uint64_t now = vh_clock_us(&clock, 0x100u + (turn + 1) * 0x40000000u);
        CHECK(now == before + 0x40000000u);
        before = now;
    }
    vh_clock_start(&clock, 0, 24000000u, 0);
    CHECK(vh_clock_us(&clock, 36) == 1);
    CHECK(vh_clock_us(&clock, 24000000u) == 1000000);
}

static void encodings_decode(void) {
    vh_unpacking unpacking;
    int16_t samples[8];
    static uint8_t const pcm[] = {0x00, 0x80, 0xFF, 0x7F, 0xFF, 0xFF};
    static uint8_t const mulaw[] = {0x00, 0x80, 0x7F, 0xFF, 0xAA}; /* G.711: both ends, both zeros, one within */
    static uint8_t const adpcm[] = {0xE8, 0x03, 10, 0, 0xF7, 0x40};

    CHECK(vh_unpack_start(&unpacking, VH_PCM16, pcm, sizeof pcm));
    CHECK(vh_unpack(&unpacking, samples, 2) == 2 && samples[0] == -32768 && samples[1] == 32767);
    CHECK(vh_unpack(&unpacking, samples, 2) == 1 && samples[0] == -1);
    CHECK(vh_unpack(&unpacking, samples, 2) == 0);
    CHECK(!vh_unpack_start(&unpacking, VH_PCM16, pcm, 3));

    CHECK(vh_unpack_start(&unpacking, VH_MULAW, mulaw, sizeof mulaw));
    CHECK(vh_unpack(&unpacking, samples, 8) == 5);
    CHECK(samples[0] == -32124 && samples[1] == 32124 && samples[2] == 0 && samples[3] == 0 && samples[4] == 5372);

    /* By hand from the IMA's table: step 19 +7 → +34, then step 41 −7 → −76, step 88 +0 → +11, step 80 +4 → +90. */
    CHECK(vh_unpack_start(&unpacking, VH_ADPCM, adpcm, sizeof adpcm));
    CHECK(vh_unpack(&unpacking, samples, 3) == 3);
    CHECK(samples[0] == 1034 && samples[1] == 958 && samples[2] == 969);
    CHECK(vh_unpack(&unpacking, samples, 3) == 1 && samples[0] == 1059);
    CHECK(!vh_unpack_start(&unpacking, VH_ADPCM, adpcm, 3));
    CHECK(!vh_unpack_start(&unpacking, VH_ADPCM, (uint8_t const *)"\0\0\131\0", 4)); /* no step 89 */
    CHECK(!vh_unpack_start(&unpacking, 3, pcm, sizeof pcm));
}

static void events_are_kept(void) {
    static vh_events events;
    vh_events_init(&events, 3);
    CHECK(vh_events_due(&events, 0, 0) == NULL);
    for (uint32_t i = 1; i <= 40; i++) {
        CHECK(vh_events_add(&events, VH_WAKE)->number == i);
    }
    CHECK(events.lost == 8 && vh_events_held(&events, 0) == 32 && vh_events_held(&events, 1) == 32);
    for (uint32_t i = 9; i <= 40; i++) { /* in the order of their numbers */
        vh_event *event = vh_events_due(&events, 0, 1000);
        CHECK(event != NULL && event->number == i);
        vh_events_sent(event, 0, 1000);
    }
    CHECK(vh_events_due(&events, 0, 1000 + VH_EVENT_AGAIN_US - 1) == NULL);
    CHECK(vh_events_due(&events, 0, 1000 + VH_EVENT_AGAIN_US)->number == 9);
    vh_events_acknowledge(&events, 0, 9);
    vh_events_acknowledge(&events, 0, 8);  /* long gone */
    vh_events_acknowledge(&events, 0, 41); /* not yet there */
    CHECK(vh_events_due(&events, 0, 1000 + VH_EVENT_AGAIN_US)->number == 10);
    CHECK(vh_events_held(&events, 0) == 31 && vh_events_held(&events, 1) == 32);
    for (uint32_t i = 12; i <= 40; i++) { /* all but two that were lost on their way */
        vh_events_acknowledge(&events, 0, i);
    }
    CHECK(vh_events_held(&events, 0) == 31); /* the oldest still has its place */
    vh_events_acknowledge(&events, 0, 10);
    CHECK(vh_events_held(&events, 0) == 30);
    vh_events_acknowledge(&events, 0, 11);
    CHECK(vh_events_held(&events, 0) == 0);
}

static void lines_look_like_those_of_the_systems(void) {
    uint8_t payload[64];
    vh_text line;
    vh_writer writer = vh_writer_over(payload, sizeof payload);
    vh_put_u64(&writer, 3723004005u); /* 1 h 2 min 3.004005 s */
    vh_put_u64(&writer, 16320);
    vh_put_u16(&writer, 54394);
    vh_put_text(&writer, "al\nexa");
    CHECK(vh_console_line(VH_STYLE_ESP_IDF, VH_WAKE, payload, writer.size, &line));
    CHECK(strcmp(line.text, "I (3723004) vh: wake word: al?exa, score: 0.8300, sample: 16320\r\n") == 0);
    CHECK(vh_console_line(VH_STYLE_ZEPHYR, VH_WAKE, payload, writer.size, &line));
    CHECK(strcmp(line.text, "[01:02:03.004,005] <inf> vh: wake word: al?exa, score: 0.8300, sample: 16320\r\n") == 0);
    CHECK(vh_console_line(VH_STYLE_ARDUINO, VH_WAKE, payload, writer.size, &line));
    CHECK(strcmp(line.text, "wake word: al?exa, score: 0.8300, sample: 16320\r\n") == 0);
    CHECK(!vh_console_line(VH_STYLE_NONE, VH_WAKE, payload, writer.size, &line));
    CHECK(!vh_console_line(VH_STYLE_ZEPHYR, VH_WAKE, payload, 12, &line)); /* cut short */
}

static void speech_is_told_from_quiet(void) {
    vh_vad vad;
    int16_t quiet[VH_VAD_FRAME];
    int16_t loud[VH_VAD_FRAME];
    for (size_t i = 0; i < VH_VAD_FRAME; i++) {
        quiet[i] = (int16_t)(dice() % 41) - 20;
        loud[i] = (int16_t)((int32_t)(dice() % 8001) - 4000);
    }
    vh_vad_init(&vad);
    for (int i = 0; i < 100; i++) {
        vh_vad_feed(&vad, quiet, VH_VAD_FRAME);
        CHECK(!vh_vad_speech(&vad));
    }
    vh_vad_feed(&vad, loud, VH_VAD_FRAME);
    CHECK(vh_vad_speech(&vad));
    for (unsigned i = 0; i < VH_VAD_HANGOVER; i++) {
        CHECK(vh_vad_speech(&vad));
        vh_vad_feed(&vad, quiet, VH_VAD_FRAME);
    }
    CHECK(!vh_vad_speech(&vad));
}

int main(void) {
    frames_come_back();
    spoilt_frames_are_none();
    clock_goes_on_over_the_wrap();
    encodings_decode();
    events_are_kept();
    lines_look_like_those_of_the_systems();
    speech_is_told_from_quiet();
    (void)puts("parts: ok");
    return 0;
}
