#include <stdio.h>
#include <stdlib.h>

#include "hearing.h"

void machine_print(char const *line) { (void)fputs(line, stdout); }

int main(int count, char **arguments) {
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) return 1;
    size_t size = (size_t)ftell(file);
    uint8_t *sound = malloc(size);
    rewind(file);
    if (sound == NULL || fread(sound, 1, size, file) != size) return 1;
    hear_all(sound + 4, size - 4);
    free(sound);
    (void)fclose(file);
    return 0;
}
