#!/bin/sh
# Runs all tests in three groups, by what they need from the machine. Fails if one of them fails.
# usage: setup/test.sh PYTHON
set -u
python=$1
some="not soak and not hardware"
options="--dist loadfile --no-loadscope-reorder --durations 20 --durations-min 5"
live="tests/conformance/test_board_faults.py tests/conformance/test_wake_truth.py tests/conformance tests/dashboard"

# Unit tests without sound use the processor time that the other groups leave. A live test beside two busy processes
# wakes up 2.4 ms late (99 %) if they run under `nice`, and 0.4 ms late under `chrt --idle`.
beside="nice -n 19"
if command -v chrt >/dev/null 2>&1; then beside="chrt --idle 0"; fi
said=$(mktemp)
$beside "$python" -m pytest tests/unit -m "$some and not sound" -n 2 $options >"$said" 2>&1 &
meanwhile=$!
trap 'kill $meanwhile; rm -f "$said"; exit 130' INT TERM

# With real sound: two virtual labs side by side, each with a sound server of its own.
"$python" -m pytest tests -m "$some and sound" -n 2 $options
sound=$?
# With boards, brokers, browsers, screens and engines, within generous limits: the longest first.
"$python" -m pytest $live -m "$some and not sound" -n 3 $options
waiting=$?

wait $meanwhile
rest=$?
trap - INT TERM
cat "$said"
rm -f "$said"
[ $sound -eq 0 ] && [ $waiting -eq 0 ] && [ $rest -eq 0 ]
