#!/usr/bin/env bash
# cargo's runner of test programs, for test.sh: `runner.sh only|without NAME PROGRAM ARGS...` runs the program of that name alone, or all
# but it. So two commands that name the same packages, and thus compile nothing twice, share the tests between them.
# libtest tells the time of each test only where unstable options are let in, which it asks the environment when it runs. Of
# the tests alone: for the compiler the same word would be another build.
part=$1 name=$2
shift 2
case "$part:${1##*/}" in
    only:"$name"-*) ;;
    only:* | without:"$name"-*) exit 0 ;;
esac
RUSTC_BOOTSTRAP=1 exec "$@"
