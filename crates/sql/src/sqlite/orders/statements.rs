//! The transactions as single statements in SQLite's SQL. `$n` is the n-th value; numbers are inserted as they are,
//! money is in cents. Each result row starts with three numbers and a text.

use crate::orders::text::{self, CUSTOMER, NEW_ADDRESS, NEW_CARD, NEW_CUSTOMER, NEW_ORDER, marked, wanted};
use assay_orders::program::Statement;

const NEW_ITEM: &str = "insert into order_items (order_id, line_item_id, product_id, unit_price, quantity, gift_wrap, \
    condition, estimated_delivery)";
/// Columns of a row that returns no values.
const NOTHING: &str = "null, null, null, null";
/// The present, with the zone that loaded rows have.
const NOW: &str = "strftime('%Y-%m-%d %H:%M:%S+00:00', 'now')";

/// WQ, for the warehouse `$1`: SQLite has no CUBE.
fn totals() -> String {
    let part = |mode: &str, warehouse: &str, by: &str| {
        format!(
            "select {NOTHING}, {mode}, {warehouse}, sum(o.order_total) as total, count(*) as orders from orders o join \
             warehouses h using (warehouse_id) where h.warehouse_id = $1{by}"
        )
    };
    [
        part("o.order_mode", "warehouse_id", " group by o.order_mode, warehouse_id"),
        part("o.order_mode", "null", " group by o.order_mode"),
        part("null", "warehouse_id", " group by warehouse_id"),
        part("null", "null", ""),
    ]
    .join(" union all ")
}

/// WA, for the warehouse `$1`.
fn hour() -> String {
    let ago = |slots: &str| format!("strftime('%Y-%m-%d %H:%M:%S+00:00', 'now', (-5 * ({slots})) || ' minutes')");
    format!(
        "with recursive slot (i) as (select 1 union all select i + 1 from slot where i < 12) \
         select {NOTHING}, o.warehouse_id, s.hi, s.lo, sum(o.order_total) as total, count(*) as orders from \
         (select {} as hi, {} as lo from slot) s join orders o on o.order_date between s.lo and s.hi \
         where o.warehouse_id = $1 group by o.warehouse_id, s.hi, s.lo order by s.hi, s.lo desc",
        ago("i - 1"),
        ago("i")
    )
}

/// S17, for the warehouse `$1`; one row is fetched.
const WORK_LIST: &str = "with todo as (select order_id from orders where warehouse_id = $1 and order_status <= 4 limit 9) \
    select o.order_id, null, null, null, i.line_item_id, i.product_id, i.unit_price, i.quantity, o.order_mode, o.order_status, \
    o.order_total, o.sales_rep_id, o.promotion_id, c.customer_id, c.cust_first_name, c.cust_last_name, c.credit_limit, \
    c.cust_email, o.order_date from todo join orders o using (order_id) join customers c on c.customer_id = o.customer_id \
    left join order_items i on i.order_id = o.order_id limit 1";

/// Takes the next number of a sequence.
fn next(sequence: &str) -> String {
    format!("update {sequence} set value = value + 1 returning value, null, null, null")
}

/// What a statement sends, one after the other, with which value, from 0, each placeholder stands for; the rows are
/// those of the last, the numbers of [`Statement::NextIds`] those of all.
pub(super) fn statement(statement: Statement) -> Vec<(String, Vec<usize>)> {
    let sql = match statement {
        Statement::NextIds => ["customer_seq", "address_seq", "card_details_seq"].map(next).to_vec(),
        Statement::NextAddress => vec![next("address_seq")],
        Statement::Logon => vec![
            next("logon_seq"),
            "insert into logon (logon_id, customer_id, logon_date) values ((select value from logon_seq), $1, \
             strftime('%Y-%m-%d %H:%M:%S', 'now'))"
                .to_owned(),
        ],
        Statement::NewOrder => vec![
            next("orders_seq"),
            format!(
                "{NEW_ORDER} values ((select value from orders_seq), {NOW}, 'online', $1, 1, $2, 'Standard', $3, $4, \
                 'ship_asap', nullif($5, ''), $6, $3) returning order_id, null, null, null"
            ),
        ],
        _ => vec![change(statement).unwrap_or_else(|| question(statement))],
    };
    sql.iter().map(|text| marked(text, |at| format!("?{at}"))).collect()
}

fn question(statement: Statement) -> String {
    let product = "p.product_id, cast(p.list_price * 100 as integer), null, null";
    match statement {
        Statement::Customer => {
            let what = "preferred_address, preferred_card, customer_id, customer_class";
            wanted(what, CUSTOMER) + " from customers where customer_id = $1 limit 14"
        }
        Statement::Stock => "select v.quantity_on_hand, null, null, null from inventories v join product_information p using \
             (product_id) where product_id = $1 and v.warehouse_id = $2"
            .to_owned(),
        Statement::ByName => {
            wanted("customer_id, null, null, null", CUSTOMER)
                + " from customers where lower(cust_last_name) = lower($1) and lower(cust_first_name) = lower($2) limit 14"
        }
        Statement::WorkList => WORK_LIST.to_owned(),
        Statement::Orders => {
            "select order_id, null, null, null, o.* from orders o where customer_id = $1 limit 14".to_owned()
        }
        Statement::Items => {
            "select line_item_id, cast(unit_price * 100 as integer), null, null, i.* from order_items i where order_id = $1 \
             limit 14"
                .to_owned()
        }
        Statement::Totals => totals(),
        Statement::LastHour => hour(),
        _ => text::question(statement, NOTHING, product, " limit 14"),
    }
}

/// A statement that changes rows.
fn change(statement: Statement) -> Option<String> {
    Some(match statement {
        Statement::NewItem => {
            format!("{NEW_ITEM} values ($1, $2, $3, $4 / 100, 1, 'None', 'New', date('now', '+3 days'))")
        }
        Statement::NewAddress => format!(
            "{NEW_ADDRESS} values ($1, $2, strftime('%Y-%m-%d %H:%M:00', 'now'), $3, 'Street Name', $4, $5, $6, 'Postcode', \
             null)"
        ),
        Statement::NewCustomer => format!(
            "{NEW_CUSTOMER} values ($1, $2, $3, $4, $5, $6, $2 || '.' || $3 || '@oracle.com', $7, date('now'), 'Occasional', \
             'Music', date('now', (-$8) || ' days'), 'Y', 'N', $9, $10)"
        ),
        Statement::NewCard => {
            format!("{NEW_CARD} values ($1, $2, 'Visa(Debit)', $3, date('now', $4 || ' days'), 'Y', $5)")
        }
        _ => return text::change(statement),
    })
}
