#!/bin/sh
# The peers of `cargo xtask bench orders`.
#   scripts   a script of pgbench for each transaction of the current mix: the calls that assay makes, with inputs drawn by pgbench
#   copy      COPY by psql of the rows of the tables that hold nearly all, from files, into tables without keys
set -e
query() { psql -XAtq -v ON_ERROR_STOP=1 -c "$1"; }

# set NAME LOW HIGH; many NAME COUNT HIGH; array NAME COUNT
set_() { echo "\\set $1 random($2, $3)"; }
many() { for i in $(seq "$2"); do set_ "$1$i" 1 "$3"; done; }
array() { echo "array[$(seq -s, "$2" | sed "s/[0-9]\\+/:$1&/g")]::int4[]"; }
# The pause, which is none, is assay's own.
call() { echo "select * from soe_$1, 0::float8, 0::float8);"; }

scripts() {
    customers=$(query "select metadata_value from assay_orders.orderentry_metadata where metadata_key = 'SOE_MAX_CUSTOMER_ID'")
    # A first name by :f and a last name by :t, drawn as assay draws them: what pgbench sends otherwise is one name, whose pages
    # every client has at hand. It costs the server 10 to 20 us a call, which one transaction in five makes.
    begin="array['al','be','cor','da','el','fa','gri','ho','jo','ka']"
    middle="array['ba','ce','do','li','mo','na','ri','sa','te','vi']"
    first="array['','an','el','ia','na','ne','ra','ron','s','tta']"
    last="array['berg','by','croft','dale','ford','ham','ley','man','son','ton']"
    name() { echo "($begin)[1 + :$1 / 100] || ($middle)[1 + :$1 / 10 % 10] || ($2)[1 + :$1 % 10]"; }
    names="$(name f "$first"), $(name t "$last")"
    drawn=$(set_ f 0 999; set_ t 0 999; set_ h 1 199)
    customer=$(set_ c 1 "$customers"; set_ l 0 2)
    place="'Town'::text, 'County'::text, 'Country'::text, :h::int4"
    {
        echo "$drawn"
        set_ cr 100 4999; set_ m 145 170; set_ d 7300 21899; set_ k 1111111111 1410065406
        set_ e 365 1459; set_ s 1111 9998; set_ l 0 2
        call "customer_registration($names, 'EN'::text, 'Territory'::text, $place, :cr::int4, :m::int4, :d::int4, :k::int8, :e::int4, :s::int4, (:l = 0)"
    } >ncr.sql
    { echo "$drawn"; call "update_customer_details($names, $place"; } >ucd.sql
    { set_ n 1 23; many p 24 999; call "browse_products($(array p 24), :n::int4"; } >bp.sql
    {
        echo "$customer"
        set_ n 1 23; set_ x 1 999; set_ co 1 4; set_ b 2 7; set_ s 0 3; many g 24 198; many w 24 999; many st 8 999
        call "order_products(:c::int8, (:l = 0), $(array g 24), $(array w 24), :n::int4, :x::int4, :co::int4, :b::int4, $(array st 8), :s::int4"
    } >op.sql
    { set_ w 1 999; set_ s 5 9; call "process_orders(:w::int4, :s::int4"; } >po.sql
    { echo "$customer"; set_ a 0 1000000; set_ b 0 1000000; call "browse_orders(:c::int8, (:l = 0), :a::int8, :b::int8"; } >bo.sql
}

copy() {
    rows=0 seconds=0
    for table in order_items logon addresses card_details orders; do
        query "\\copy assay_orders.$table to '$table.copy'"
        query "create table copied (like assay_orders.$table)"
        query checkpoint
        begin=$(date +%s.%N)
        told=$(psql -XA -v ON_ERROR_STOP=1 -c "\\copy copied from '$table.copy'")
        seconds="$seconds + $(date +%s.%N) - $begin"
        rows="$rows + ${told#COPY }"
        query "drop table copied"
        rm "$table.copy"
    done
    awk "BEGIN { print \"rows_per_s=\" ($rows) / ($seconds) }"
}

"$1"
