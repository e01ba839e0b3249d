#include "vh_commands.h"

bool vh_command_new(vh_commands *commands, uint32_t number) {
    if (number > commands->newest) {
        uint32_t ahead = number - commands->newest;
        uint32_t known = commands->newest != 0 ? 1u : 0u;
        commands->before = ahead > 32 ? 0u : (ahead == 32 ? 0u : commands->before << ahead) | known << (ahead - 1u);
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
