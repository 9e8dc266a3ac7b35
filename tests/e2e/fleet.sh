#!/usr/bin/env bash
# Four hosts that are network namespaces on one bridge: a controller with its server, and three agents. They run on native files
# together; one that loses its link during the run is lost alone, and the record is of the other two.
source "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "no ip (package iproute2)"
PATH=$PATH:/usr/sbin command -v nats-server >/dev/null || skip "no nats-server (package nats-server)"

net=as$$
hosts=(a b c)
started=()
take_down() {
    local name
    for pid in "${started[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    for name in up "${hosts[@]}"; do
        ip netns del "$net$name" 2>/dev/null || true
    done
    ip netns del "${net}br" 2>/dev/null || true
}
trap take_down EXIT

# The bridge has a namespace of its own, so that nothing of this box changes.
ip netns add "${net}br" 2>/dev/null || skip "no network namespaces here"
ip -n "${net}br" link add br0 type bridge 2>/dev/null || skip "this kernel has no bridge"
ip -n "${net}br" link set br0 up
number=1
for name in up "${hosts[@]}"; do
    ip netns add "$net$name"
    ip link add eth0 netns "$net$name" type veth peer name "to-$name" netns "${net}br"
    ip -n "${net}br" link set "to-$name" master br0 up
    ip -n "$net$name" link set lo up
    ip -n "$net$name" addr add "10.78.0.$number/24" dev eth0
    ip -n "$net$name" link set eth0 up
    number=$((number + 1))
done
# What runs on the controller's host; as a program in the background, it is the process that is ended.
controller=(ip netns exec "${net}up")

"${controller[@]}" "$ASSAY" fleet up --listen 10.78.0.1:4222 >up.txt 2>up-err.txt &
started+=($!)
wait_for 30 test -s assay-fleet/agent.url
for name in "${hosts[@]}"; do
    mkdir "$name"
    (cd "$name" && NATS_URL=$(cat ../assay-fleet/agent.url) exec ip netns exec "$net$name" \
        "$ASSAY" fleet agent --name "$name" --machine "$name" >agent.txt 2>&1) &
    started+=($!)
    wait_for 30 grep -q waits "$name/agent.txt"
done

fleet=("$ASSAY" fleet run --hosts 3 --max-skew 10s)
what=(run -s 2 --sessions 6 --warmup 0.5 "${SMALL[@]}" --set CACHE_MB=4)
expect 0 "${controller[@]}" "${fleet[@]}" -o three -- "${what[@]}" --time 3
has three/report.txt "3 of 3 hosts"
[ "$(json three/record.json parts.fleet.measured_count)" = 3 ] || fail "not all hosts are in the record"
for name in "${hosts[@]}"; do
    [ -e "$name/assay-data/control.assay" ] || fail "$name has no data of its own"
done

"${controller[@]}" "${fleet[@]}" --lost-after 3s -o two -- "${what[@]}" --time 12 >out.txt 2>err.txt &
pid=$!
started+=("$pid")
wait_for 60 eval 'grep -lq "\"mark\":\"begin\"" b/assay-runs/*/series.jsonl && [ "$(ls -d b/assay-runs/*-slob-* | wc -l)" = 2 ]'
last=$(ls -d b/assay-runs/*-slob-* | tail -n 1)
wait_for 60 grep -q '"mark":"second"' "$last/series.jsonl"
ip -n "${net}b" link set eth0 down
reap
[ "$code" = 4 ] || { cat err.txt; fail "exit $code with one host of three lost"; }
has err.txt "b is lost: nothing heard for"
has out.txt "partial: 2 of 3 hosts (b: nothing heard for"
[ "$(json two/record.json run.sessions)" = 4 ] || fail "the load of the lost host was given to others"

# The host that was cut off has its own record, and takes part again once it is back.
wait_for 90 test -s "$last/record.json"
ip -n "${net}b" link set eth0 up
wait_for 90 eval '[ "$(grep -c "is kept for the controller" b/agent.txt)" = 2 ]'
expect 0 "${controller[@]}" "${fleet[@]}" --wait 60s -o again -- "${what[@]}" --time 1
