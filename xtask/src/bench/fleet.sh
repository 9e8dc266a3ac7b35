# fleet.sh PROGRAM HOSTS SECONDS: a server, so many agents on this machine, and one run of the null engine on them, which leave the
# CPUs alone. Prints the spread of the starts and the CPU time of the controller beside the record.
set -eu
program=$1 hosts=$2 seconds=$3
mkdir -p shot
"$program" fleet up --listen 127.0.0.1:0 >shot/up.txt 2>&1 &
started=$!
trap 'kill $started; wait' EXIT
until [ -s shot/up.txt ]; do sleep 0.1; done
host=0
while [ $host -lt "$hosts" ]; do
    host=$((host + 1))
    mkdir shot/h$host
    (cd shot/h$host && exec "$program" fleet agent --dir ../../assay-fleet --name h$host --machine m$host >agent.txt 2>&1) &
    started="$started $!"
done
"$program" fleet run --hosts "$hosts" --wait 2m --max-skew 1h --format json -o shot/run -- \
    run --target null: -s 1 --sessions "$hosts" --set RATE=$((hosts * 10)) --warmup 0 --time "$seconds" >shot/record.json 2>shot/said.txt &
controller=$!
# Its CPU time as long as it lives, in hundredths of a second: the last look counts.
while [ -r /proc/$controller/stat ]; do
    used=$(sed 's/.*) //' /proc/$controller/stat 2>/dev/null | awk '{ print $12 + $13 }') || break
    [ -z "$used" ] || cpu=$used
    sleep 0.1
done
wait $controller
cat shot/record.json
awk -v RS=, -F: '/"start_ms"/ { print $2 + 0 }' shot/record.json | sort -g >shot/starts.txt
awk -v cpu="$cpu" -v seconds="$seconds" -v hosts="$hosts" '
    { at[NR] = $1 }
    END {
        print "start_ms_spread_p99=" at[int(NR * 0.99 + 0.5)] - at[1]
        print "controller_cpu_pct_100=" cpu / seconds / hosts * 100
    }' shot/starts.txt
