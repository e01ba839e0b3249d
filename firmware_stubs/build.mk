# The rules of what is built; called by the Makefile, which lets one at a time work.
CC := gcc

# Says which package brings a tool that is not there.
need = $(if $(shell command -v $(1)),,$(error $(1) is missing: apt-get install $(2)))

WARNINGS := -std=c11 -Wall -Wextra -Werror -Wconversion -Wcast-align=strict -Wcast-qual -Wshadow -Wundef -Wvla \
	-Wstrict-prototypes -Wmissing-prototypes
INCLUDES := -Icore
CORE := $(sort $(wildcard core/*.c core/mqtt/*.c core/spotter/*.c))
HEADERS := $(sort $(wildcard core/*.h core/*.def core/*/*.h ports/*/*.h ports/*/include/*.h tests/*.h fuzz/*.h))

.PHONY: all posix qemu_ast1030 host sane clean no_arm

all: posix host $(if $(shell command -v $(ARM)gcc),qemu_ast1030,no_arm)

no_arm:
	@echo "$(ARM)gcc is missing, so the Cortex-M4 image is left out: apt-get install gcc-arm-none-eabi" >&2

# The board as a process of this machine
POSIX := $(BUILD)/posix
POSIX_FLAGS := $(WARNINGS) -O2 -g -D_GNU_SOURCE -DVH_PORT_POSIX $(INCLUDES) -Iports/posix -Iports/sockets
POSIX_SOURCES := $(CORE) $(sort $(wildcard ports/posix/*.c ports/sockets/*.c))
posix: $(POSIX)/vh_board
$(POSIX)/vh_board: $(POSIX_SOURCES:%.c=$(POSIX)/%.o)
	@echo "link $@"
	@$(CC) -o $@.new $^ && mv -f $@.new $@
$(POSIX)/%.o: %.c $(HEADERS) build.mk
	$(call need,$(CC),gcc)@mkdir -p $(@D)
	@echo "cc   $@"
	@$(CC) $(POSIX_FLAGS) -c -o $@ $<

# The board on a Cortex-M4, without any library but the compiler's own arithmetic
M4 := $(BUILD)/qemu_ast1030
M4_PORT := ports/qemu_ast1030
M4_CPU := -mcpu=cortex-m4 -mthumb -mfloat-abi=soft
M4_FLAGS := $(WARNINGS) $(M4_CPU) -O2 -g -ffreestanding -ffunction-sections -fdata-sections \
	-fno-tree-loop-distribute-patterns -DVH_PORT_QEMU_AST1030 $(INCLUDES) -I$(M4_PORT) -I$(M4_PORT)/include
M4_SOURCES := $(CORE) $(sort $(wildcard $(M4_PORT)/*.c))
qemu_ast1030: $(M4)/vh_board.elf
$(M4)/vh_board.elf: $(M4_SOURCES:%.c=$(M4)/%.o) $(M4_PORT)/ast1030.ld
	@echo "link $@"
	@$(ARM)gcc $(M4_CPU) -nostdlib -nostartfiles -Wl,--gc-sections -Wl,-Map=$(M4)/vh_board.map \
		-T $(M4_PORT)/ast1030.ld -o $@.new $(filter %.o,$^) -lgcc && mv -f $@.new $@
$(M4)/%.o: %.c $(HEADERS) build.mk
	$(call need,$(ARM)gcc,gcc-arm-none-eabi)@mkdir -p $(@D)
	@echo "m4   $@"
	@$(ARM)gcc $(M4_FLAGS) -c -o $@ $<

# Tools of the host
HOST := $(BUILD)/host
host: $(HOST)/vh_spot
$(HOST)/vh_spot: $(patsubst %.c,$(POSIX)/%.o,host/vh_spot.c $(filter core/spotter/%,$(CORE)))
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) -o $@.new $^ && mv -f $@.new $@

# Host tests of the core, and fuzzing, under the sanitizers
SANE := $(BUILD)/sane
SANE_FLAGS := $(WARNINGS) -O1 -g -D_GNU_SOURCE -DVH_PORT_POSIX $(INCLUDES) -Itests -Ifuzz \
	-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANE_CORE := $(CORE:%.c=$(SANE)/%.o) $(SANE)/tests/memory_hal.o
TESTS := $(patsubst tests/%.c,$(SANE)/%,$(sort $(wildcard tests/test_*.c)))
FUZZ := $(patsubst fuzz/%.c,$(SANE)/%,$(sort $(wildcard fuzz/fuzz_*.c)))
.PRECIOUS: $(SANE)/%.o

sane: $(TESTS) $(FUZZ)

$(SANE)/test_%: $(SANE)/tests/test_%.o $(SANE_CORE)
	@$(CC) -fsanitize=address,undefined -o $@.new $^ && mv -f $@.new $@
$(SANE)/fuzz_%: $(SANE)/fuzz/fuzz_%.o $(SANE)/fuzz/driver.o $(SANE)/fuzz/pieces.o $(SANE_CORE)
	@$(CC) -fsanitize=address,undefined -o $@.new $^ && mv -f $@.new $@
$(SANE)/%.o: %.c $(HEADERS) build.mk
	$(call need,$(CC),gcc)@mkdir -p $(@D)
	@echo "sane $@"
	@$(CC) $(SANE_FLAGS) -c -o $@ $<

clean:
	rm -rf $(BUILD)
