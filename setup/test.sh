#!/bin/sh
# Runs all tests in three lots, by what they need of the machine; fails when one of them does.
# usage: setup/test.sh PYTHON
set -u
python=$1
conformance=tests/conformance

# Waits for nothing: takes what the others leave of the processors, and never keeps them from theirs.
unit=tests/unit
pure="$unit/annotation $unit/base $unit/devices/profiles $unit/model $unit/offline/figures $unit/offline/reports $unit/rating
    $unit/report $unit/scenario $unit/session/figures $unit/sound/stimuli $unit/statistics $unit/transcripts
    $unit/understanding $unit/wake $unit/web $conformance/scoring"

# What deals with moments runs once more where it fails: a machine that others share may miss one. A second failure counts,
# and the first is printed whole even where the second run passes.
again="--reruns 1"

# Waits for what comes about, within generous limits: two at a time, the longest first.
waiting="$conformance/test_board_faults.py $conformance/test_new_board.py $conformance/test_board_refusals.py
    $conformance/test_engine_life.py $conformance/test_engine_kill.py $conformance/test_mqtt_driver.py
    $conformance/test_wake_truth.py $conformance/test_mqtt_faults.py $conformance/test_mqtt_security.py
    $conformance/test_mqtt_embedded.py $conformance/test_mqtt_hermes.py $conformance/rating $conformance/annotation
    $conformance/understanding $conformance/offline tests/dashboard tests/unit"

# Deals with real sound, serial lines and moments: one at a time.
engines="tests/dashboard/test_with_engine.py tests/dashboard/test_with_engine.py"
alone="$conformance $engines"

without() { for path in "$@"; do printf -- '--ignore=%s ' "$path"; done; }

# Beside two that always compute, who wakes up is late by 2.4 ms (99 %) with `nice`, and by 0.4 ms with `chrt --idle`.
beside="nice -n 19"
if command -v chrt >/dev/null 2>&1; then beside="chrt --idle 0"; fi

said=$(mktemp)
$beside "$python" -m pytest $pure -n 2 --dist loadfile >"$said" 2>&1 &
meanwhile=$!
trap 'kill $meanwhile; rm -f "$said"; exit 130' INT TERM

"$python" -m pytest $alone $(without $pure $waiting) $again
one=$?
wait $meanwhile
two=$?
trap - INT TERM
cat "$said"
rm -f "$said"
"$python" -m pytest $waiting $(without $pure $engines) -n 2 --dist loadfile --no-loadscope-reorder $again
three=$?

[ $one -eq 0 ] && [ $two -eq 0 ] && [ $three -eq 0 ]
