#!/bin/sh
# Runs all tests in three groups, by what they need from the machine, one after the other. Fails if one of them fails.
# usage: setup/test.sh PYTHON
set -u
python=$1
some="not soak and not hardware"
options="--dist loadfile --no-loadscope-reorder --durations 20 --durations-min 5"
live="tests/conformance/test_board_faults.py tests/conformance/test_wake_truth.py tests/conformance tests/dashboard"

# With real sound: two virtual labs side by side, each with a sound server of its own.
"$python" -m pytest tests -m "$some and sound" -n 2 $options
sound=$?
# With boards, brokers, browsers, screens and engines, within generous limits: the longest first. They mostly wait.
"$python" -m pytest $live -m "$some and not sound" -n 3 $options
waiting=$?
"$python" -m pytest tests/unit -m "$some and not sound" -n 2 $options
rest=$?

[ $sound -eq 0 ] && [ $waiting -eq 0 ] && [ $rest -eq 0 ]
