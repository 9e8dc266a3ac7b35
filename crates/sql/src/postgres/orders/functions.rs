//! The transactions as functions that the server performs by itself, and as single statements: the same steps on the
//! same inputs. Names resolve through the session's search path, which [`super::session`] pins.

use crate::orders::text::{self, BEST, CUSTOMER, NEW_ADDRESS, NEW_CARD, NEW_CUSTOMER, NEW_ORDER, filled, wanted};
use assay_orders::mix::Tx;
use assay_orders::program::Statement;

/// Last arguments and results of every function.
const PAUSE: &str = "p_min float8, p_max float8";
const RETURNS: &str = "out o_selects int8, out o_inserts int8, out o_updates int8, out o_logons int8, \
                       out o_lines int8, out o_found int8";

/// A function: its transaction, its arguments before the pause, its variables, its body.
struct Function {
    tx: Tx,
    arguments: &'static str,
    variables: &'static str,
    body: &'static str,
}

/// The function's name.
pub(super) fn name(tx: Tx) -> String {
    format!("soe_{}", tx.key())
}

/// The name of the procedure that does the same and commits the logon separately, which a function cannot.
pub(super) fn early_name(tx: Tx) -> String {
    format!("{}_early", name(tx))
}

/// Sleeps for the requested pause.
pub(super) const PAUSE_NAME: &str = "soe_pause";
/// Looks a customer up and records the logon.
pub(super) const LOGON_NAME: &str = "soe_logon";

const NEW_ITEM: &str = "insert into order_items (order_id, line_item_id, product_id, unit_price, quantity, gift_wrap, \
    condition, estimated_delivery)";
const TOTALS: &str = "select o.order_mode, o.warehouse_id, sum(o.order_total), count(*) from orders o \
    join warehouses h using (warehouse_id) where h.warehouse_id = $1 group by cube (o.order_mode, o.warehouse_id)";
const HOUR: &str = "select o.warehouse_id, s.hi, s.lo, sum(o.order_total), count(*) from \
    (select now() - (n - 1) * interval '5 min' as hi, now() - n * interval '5 min' as lo from generate_series(1, 12) as n) s \
    join orders o on o.order_date between s.lo and s.hi where o.warehouse_id = $1 group by 1, 2, 3 order by s.hi, s.lo desc";

const FUNCTIONS: [Function; 9] = [
    Function {
        tx: Tx::CustomerRegistration,
        arguments: "p_first text, p_last text, p_lang text, p_terr text, p_town text, p_county text, p_country text, \
                    p_house int4, p_credit int4, p_mgr int4, p_age int4, p_card int8, p_expires int4, p_sec int4, p_logon bool",
        variables: "v_c int8 := nextval('customer_seq'); v_a int8 := nextval('address_seq'); v_k int8 := nextval('card_details_seq');",
        body: "
  {NEW_CUSTOMER} values (v_c, p_first, p_last, p_lang, p_terr, p_credit, p_first || '.' || p_last || '@oracle.com', p_mgr,
    current_date, 'Occasional', 'Music', current_date - p_age, 'Y', 'N', v_a, v_k);
  {NEW_ADDRESS} values (v_a, v_c, date_trunc('minute', localtimestamp), p_house::text, 'Street Name', p_town, p_county,
    p_country, 'Postcode', null);
  {NEW_CARD} values (v_k, v_c, 'Visa(Debit)', p_card, current_date + p_expires, 'Y', p_sec);
  o_inserts := 3;
  perform soe_pause(p_min, p_max);
  o_logons := soe_logon(v_c, p_logon);
  o_inserts := 3 + o_logons;
  perform 1 from ({CUSTOMER} from customers where customer_id = v_c limit 14) s;
  o_selects := 2;",
    },
    Function {
        tx: Tx::UpdateCustomerDetails,
        arguments: "p_first text, p_last text, p_town text, p_county text, p_country text, p_house int4",
        variables: "ids int8[]; v_a int8;",
        body: "
  select array_agg(s.customer_id) into ids from ({CUSTOMER} from customers
    where lower(cust_last_name) = lower(p_last) and lower(cust_first_name) = lower(p_first) limit 14) s;
  o_selects := 1;
  perform soe_pause(p_min, p_max);
  if cardinality(ids) > 1 then
    v_a := nextval('address_seq');
    {NEW_ADDRESS} values (v_a, ids[1], date_trunc('minute', localtimestamp), p_house::text, 'Street Name', p_town, p_county,
      p_country, 'Postcode', null);
    update customers set preferred_address = v_a where customer_id = ids[1];
    o_inserts := 1;
    o_updates := 1;
    o_found := 1;
  end if;",
    },
    Function {
        tx: Tx::BrowseProducts,
        arguments: "p_products int4[], p_n int4",
        variables: "",
        body: "
  for i in 1 .. p_n loop
    perform 1 from ({PRODUCT} {OFFERED} where p.product_id = p_products[i] limit 14) s;
    perform soe_pause(p_min, p_max);
  end loop;
  o_selects := p_n;",
    },
    Function {
        tx: Tx::OrderProducts,
        arguments: "p_customer int8, p_logon bool, p_categories int4[], p_warehouses int4[], p_n int4, p_warehouse int4, \
                    p_cost int4, p_buys int4, p_stocks int4[], p_status int4",
        variables: "v_class text; v_address int8; v_card int8; v_o int8; ps int4[]; prices numeric[]; stock int4; total numeric := 0; \
                    taken_p int4[]; taken_w int4[]; r record;",
        body: "
  select s.customer_class, s.preferred_address, s.preferred_card into v_class, v_address, v_card
    from ({CUSTOMER} from customers where customer_id = p_customer limit 14) s;
  perform 1 from ({ADDRESS} from addresses where customer_id = p_customer limit 14) s;
  perform 1 from ({CARD} from card_details where customer_id = p_customer limit 14) s;
  perform soe_pause(p_min, p_max);
  o_logons := soe_logon(p_customer, p_logon);
  perform soe_pause(p_min, p_max);
  for i in 1 .. p_n loop
    select array_agg(s.product_id), array_agg(s.list_price) into ps, prices from
      ({PRODUCT} {OFFERED} where p.category_id = p_categories[i] and v.warehouse_id = p_warehouses[i] limit 14) s;
    perform soe_pause(p_min, p_max);
  end loop;
  {NEW_ORDER} values (nextval('orders_seq'), clock_timestamp(), 'online', p_customer, 1, p_warehouse, 'Standard', v_address,
    p_cost, 'ship_asap', v_class, v_card, v_address) returning order_id into v_o;
  o_selects := 4 + p_n;
  o_inserts := 1 + o_logons;
  perform soe_pause(p_min, p_max);
  for i in 1 .. least(p_buys, coalesce(cardinality(ps), 0)) loop
    perform soe_pause(p_min, p_max);
    select v.quantity_on_hand into stock from inventories v join product_information p using (product_id)
      where v.product_id = ps[i] and v.warehouse_id = p_stocks[i];
    o_selects := o_selects + 1;
    if stock > 0 then
      {NEW_ITEM} values (v_o, i, ps[i], prices[i], 1, 'None', 'New', current_date + 3);
      total := total + prices[i];
      o_lines := o_lines + 1;
      taken_p := taken_p || ps[i];
      taken_w := taken_w || p_stocks[i];
    end if;
  end loop;
  update orders set order_mode = 'online', order_status = p_status, order_total = total where order_id = v_o;
  for r in select t.p, t.w from unnest(taken_p, taken_w) as t(p, w) order by 1, 2 loop
    update inventories set quantity_on_hand = quantity_on_hand - 1 where product_id = r.p and warehouse_id = r.w;
  end loop;
  o_inserts := o_inserts + o_lines;
  o_updates := 1 + o_lines;",
    },
    Function {
        tx: Tx::ProcessOrders,
        arguments: "p_warehouse int4, p_status int4",
        variables: "v_o int8;",
        body: "
  {WORK_LIST} limit 1;
  o_selects := 1;
  perform soe_pause(p_min, p_max);
  if v_o is not null then
    update orders set order_status = p_status where order_id = v_o and order_status <= 4;
    o_found := found::int;
    o_updates := 1;
  end if;",
    },
    Function {
        tx: Tx::BrowseOrders,
        arguments: "p_customer int8, p_logon bool, p_pick1 int8, p_pick2 int8",
        variables: "ids int8[]; lines int4[]; prices numeric[]; v_o int8; v_at int4;",
        body: "
  perform 1 from ({CUSTOMER} from customers where customer_id = p_customer limit 14) s;
  perform 1 from ({ADDRESS} from addresses where customer_id = p_customer limit 14) s;
  perform soe_pause(p_min, p_max);
  o_logons := soe_logon(p_customer, p_logon);
  o_inserts := o_logons;
  perform soe_pause(p_min, p_max);
  select array_agg(s.order_id) into ids from (select * from orders where customer_id = p_customer limit 14) s;
  o_selects := 4;
  if cardinality(ids) > 1 then
    v_o := ids[1 + p_pick1 % (cardinality(ids) - 1)];
    select array_agg(s.line_item_id), array_agg(s.unit_price) into lines, prices
      from (select * from order_items where order_id = v_o limit 14) s;
    o_selects := 5;
    if cardinality(lines) > 0 then
      v_at := 1 + p_pick2 % greatest(cardinality(lines) - 1, 1);
      update order_items set quantity = quantity + 1 where order_id = v_o and line_item_id = lines[v_at];
      update orders set order_total = order_total + prices[v_at] where order_id = v_o;
      o_updates := 2;
      o_found := 1;
    end if;
  end if;",
    },
    Function {
        tx: Tx::SalesRepQuery,
        arguments: "p_rep int4",
        variables: "",
        body: "\n  perform 1 from ({BEST}) s;\n  o_selects := 1;\n  perform soe_pause(p_min, p_max);",
    },
    Function {
        tx: Tx::WarehouseQuery,
        arguments: "p_warehouse int4",
        variables: "",
        body: "\n  perform 1 from ({TOTALS}) s;\n  o_selects := 1;\n  perform soe_pause(p_min, p_max);",
    },
    Function {
        tx: Tx::WarehouseActivityQuery,
        arguments: "p_warehouse int4",
        variables: "",
        body: "\n  perform 1 from ({HOUR}) s;\n  o_selects := 1;\n  perform soe_pause(p_min, p_max);",
    },
];

/// S17, with the only variable of its function.
const WORK_LIST: &str = "with todo as (select order_id from orders where warehouse_id = p_warehouse and order_status <= 4 limit 9)
  select w.order_id into v_o from (select o.order_id, i.line_item_id, i.product_id, i.unit_price, i.quantity, o.order_mode,
    o.order_status, o.order_total, o.sales_rep_id, o.promotion_id, c.customer_id, c.cust_first_name, c.cust_last_name,
    c.credit_limit, c.cust_email, o.order_date from todo join orders o using (order_id)
    join customers c on c.customer_id = o.customer_id left join order_items i on i.order_id = o.order_id) w";

/// All statements that create functions, in order; each replaces an existing one.
pub(super) fn create(schema: &str) -> Vec<String> {
    let in_schema = |name: &str| format!("{}.{name}", crate::postgres::layout::quote(schema));
    let mut sql = vec![
        format!(
            "create or replace function {}({PAUSE}) returns void language plpgsql as $$ begin if p_min > 0 or p_max > 0 \
             then perform pg_sleep(p_min + random() * (p_max - p_min)); end if; end $$",
            in_schema(PAUSE_NAME)
        ),
        format!(
            "create or replace function {}(p_customer int8, p_logon bool) returns int8 language plpgsql as $$ begin \
             perform 1 from ({CUSTOMER} from customers where customer_id = p_customer limit 14) s; if p_logon then \
             insert into logon (logon_id, customer_id, logon_date) values (nextval('logon_seq'), p_customer, \
             localtimestamp(0)); return 1; end if; return 0; end $$",
            in_schema(LOGON_NAME)
        ),
    ];
    let one = |function: &Function, head: &str, returns: &str, body: &str| {
        format!(
            "create or replace {head}({}, {PAUSE}, {returns}) language plpgsql as $$\ndeclare {}\nbegin\n  \
             o_selects := 0; o_inserts := 0; o_updates := 0; o_logons := 0; o_lines := 0; o_found := 0;{body}\nend $$",
            function.arguments, function.variables,
        )
    };
    for function in &FUNCTIONS {
        let body = body(function);
        let head = format!("function {}", in_schema(&name(function.tx)));
        sql.push(one(function, &head, RETURNS, &body));
        if function.tx.logs_on() {
            let head = format!("procedure {}", in_schema(&early_name(function.tx)));
            // Before 14 procedures have no OUT arguments.
            let returns = RETURNS.replace("out ", "inout ");
            let body = body.replace(", p_logon);", ", p_logon);\n  if o_logons > 0 then commit; end if;");
            sql.push(one(function, &head, &returns, &body));
        }
    }
    sql
}

fn body(function: &Function) -> String {
    let query = |text: &str, argument: &str| text.replace("$1", argument);
    let parts = [
        ("{NEW_ITEM}", NEW_ITEM.to_owned()),
        ("{WORK_LIST}", WORK_LIST.to_owned()),
        ("{BEST}", query(BEST, "p_rep")),
        ("{TOTALS}", query(TOTALS, "p_warehouse")),
        ("{HOUR}", query(HOUR, "p_warehouse")),
    ];
    // Calling an empty function costs more than testing its argument.
    let pause = "perform soe_pause(p_min, p_max);";
    let text = function.body.replace(pause, &format!("if p_max > 0 then {pause} end if;"));
    filled(&text, &parts)
}

/// The call of a transaction, including the pause; `early` commits a logon separately.
pub(super) fn call(tx: Tx, early: bool) -> String {
    let function = &FUNCTIONS[tx.index()];
    let arguments = function.arguments.split(", ").count() + 2;
    let marks: Vec<String> = (1..=arguments).map(|at| format!("${at}")).collect();
    let marks = marks.join(", ");
    if early && tx.logs_on() {
        format!("call {}({marks}, null, null, null, null, null, null)", early_name(tx))
    } else {
        format!("select * from {}({marks})", name(tx))
    }
}

/// Types of a call's arguments, so that the values are sent in binary.
pub(super) fn call_types(tx: Tx) -> Vec<u32> {
    let function = &FUNCTIONS[tx.index()];
    let types = function.arguments.split(", ").chain(PAUSE.split(", "));
    types.map(|argument| oid(argument.rsplit(' ').next().unwrap_or_default())).collect()
}

fn oid(name: &str) -> u32 {
    match name {
        "int8" => 20,
        "int4" => 23,
        "text" => 25,
        "bool" => 16,
        "float8" => 701,
        "int4[]" => 1007,
        _ => 0,
    }
}

/// A single statement. Numbers are `int8`, money is in cents; each result row starts with three numbers and a text.
pub(super) fn statement(statement: Statement) -> String {
    change(statement).unwrap_or_else(|| question(statement))
}

fn question(statement: Statement) -> String {
    let product = "p.product_id::int8, (p.list_price * 100)::int8, null::int8, null::text";
    match statement {
        Statement::Customer => {
            let what = "preferred_address, preferred_card, customer_id, customer_class::text";
            wanted(what, CUSTOMER) + " from customers where customer_id = $1 limit 14"
        }
        Statement::Stock => "select v.quantity_on_hand::int8, null::int8, null::int8, null::text from inventories v \
                             join product_information p using (product_id) where v.product_id = $1 and v.warehouse_id = $2"
            .to_owned(),
        Statement::ByName => {
            let what = "customer_id, null::int8, null::int8, null::text";
            wanted(what, CUSTOMER)
                + " from customers where lower(cust_last_name) = lower($1::text) and lower(cust_first_name) = \
                   lower($2::text) limit 14"
        }
        Statement::WorkList => WORK_LIST
            .replace("p_warehouse", "$1")
            .replacen("w.order_id into v_o", "w.order_id, null::int8, null::int8, null::text", 1)
            + " limit 1",
        Statement::Orders => "select order_id, null::int8, null::int8, null::text, o.* from orders o where customer_id = $1 \
                              limit 14"
            .to_owned(),
        Statement::Items => "select line_item_id::int8, (unit_price * 100)::int8, null::int8, null::text, i.* from \
                             order_items i where order_id = $1 limit 14"
            .to_owned(),
        Statement::Totals => wanted(NOTHING, TOTALS),
        Statement::LastHour => format!("select {NOTHING}, s.* from ({HOUR}) s"),
        Statement::NextIds => {
            "select nextval('customer_seq'), nextval('address_seq'), nextval('card_details_seq'), null::text".to_owned()
        }
        Statement::NextAddress => "select nextval('address_seq'), null::int8, null::int8, null::text".to_owned(),
        _ => text::question(statement, NOTHING, product, " limit 14"),
    }
}

/// A statement that changes rows.
fn change(statement: Statement) -> Option<String> {
    Some(match statement {
        Statement::Logon => "insert into logon (logon_id, customer_id, logon_date) values (nextval('logon_seq'), $1, \
                             localtimestamp(0))"
            .to_owned(),
        Statement::NewOrder => format!(
            "{NEW_ORDER} values (nextval('orders_seq'), clock_timestamp(), 'online', $1, 1, $2::int8, 'Standard', $3, $4::int8, \
             'ship_asap', nullif($5, ''), $6, $3) returning order_id, null::int8, null::int8, null::text"
        ),
        Statement::NewItem => {
            format!("{NEW_ITEM} values ($1, $2::int8, $3::int8, $4::int8 / 100.0, 1, 'None', 'New', current_date + 3)")
        }
        Statement::CloseOrder => "update orders set order_mode = 'online', order_status = $1::int8, \
                                  order_total = $2::int8 / 100.0 where order_id = $3"
            .to_owned(),
        Statement::NewAddress => format!(
            "{NEW_ADDRESS} values ($1, $2, date_trunc('minute', localtimestamp), ($3::int8)::text, 'Street Name', $4, $5, $6, \
             'Postcode', null)"
        ),
        Statement::NewCustomer => format!(
            "{NEW_CUSTOMER} values ($1, $2::text, $3::text, $4, $5, $6::int8, $2::text || '.' || $3::text || '@oracle.com', $7, \
             current_date, 'Occasional', 'Music', current_date - ($8::int8)::int4, 'Y', 'N', $9, $10)"
        ),
        Statement::NewCard => {
            format!("{NEW_CARD} values ($1, $2, 'Visa(Debit)', $3, current_date + ($4::int8)::int4, 'Y', $5::int8)")
        }
        Statement::Ship => {
            "update orders set order_status = $1::int8 where order_id = $2 and order_status <= 4 returning order_id, \
                             null::int8, null::int8, null::text"
                .to_owned()
        }
        Statement::AddPrice => {
            "update orders set order_total = order_total + $1::int8 / 100.0 where order_id = $2".to_owned()
        }
        _ => return text::change(statement),
    })
}

/// Placeholder columns of a row that returns no values.
const NOTHING: &str = "null::int8, null::int8, null::int8, null::text";

/// Types of a statement's parameters, as many as its text has.
pub(super) fn statement_types(statement: Statement, sql: &str) -> Vec<u32> {
    let texts: &[usize] = match statement {
        Statement::NewOrder => &[5],
        Statement::NewAddress => &[4, 5, 6],
        Statement::NewCustomer => &[2, 3, 4, 5],
        Statement::ByName => &[1, 2],
        _ => &[],
    };
    (1..)
        .take_while(|at| sql.contains(&format!("${at}")))
        .map(|at| oid(if texts.contains(&at) { "text" } else { "int8" }))
        .collect()
}
