#!/bin/sh
# Runs all tests in groups, by what they need from the machine. Fails if one of them fails.
# usage: setup/test.sh PYTHON
set -u
python=$1
some="not soak and not hardware"
options="--dist loadfile --no-loadscope-reorder --durations 20 --durations-min 5"
# Tests of these rooms compute and wait for nothing: they may stand still for a while.
computing='' others=''
for room in annotation model rating report scenario statistics transcripts understanding wake; do
    computing="$computing tests/unit/$room" others="$others --ignore=tests/unit/$room"
done

said=$(mktemp -d) first= second=
trap 'kill $first $second 2>/dev/null; rm -rf "$said"; exit 130' INT TERM
# Unit tests take what the other groups leave, since those keep time.
nice -n 10 "$python" -m pytest $computing -m "$some and not sound" -n 2 $options >"$said/computing" 2>&1 &
first=$!
# With real sound: virtual labs side by side, each with a sound server of its own.
"$python" -m pytest tests/conformance tests/unit/lab -m "$some and sound" -n 3 $options
heard=$?
nice -n 10 "$python" -m pytest tests/unit $others -m "$some and not sound" -n 2 $options >"$said/others" 2>&1 &
second=$!
# With boards, brokers, browsers, screens and engines, within generous limits. They mostly wait.
"$python" -m pytest tests/conformance tests/dashboard -m "$some and not sound" -n 4 $options
waited=$?
wait $first
computed=$?
wait $second
tried=$?
cat "$said/computing" "$said/others"
rm -rf "$said"
[ $heard -eq 0 ] && [ $waited -eq 0 ] && [ $computed -eq 0 ] && [ $tried -eq 0 ]
