#include "vh_commands.h"

bool vh_command_new(vh_commands *commands, uint32_t number) {
    if (number > commands->newest) {
        uint32_t ahead = number - commands->newest;
        uint32_t newest_bit = commands->newest != 0 && ahead <= 32 ? 1u << (ahead - 1u) : 0u;
        commands->before = (ahead < 32 ? commands->before << ahead : 0u) | newest_bit;
        commands->newest = number;
        return true;
    }
    uint32_t behind = commands->newest - number;
    if (number == 0 || behind == 0 || behind > 32 || (commands->before & 1u << (behind - 1u)) != 0) {
        return false;
    }
    commands->before |= 1u << (behind - 1u);
    return true;
}
