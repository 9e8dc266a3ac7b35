//! The transactions as single statements in the SQL of MariaDB and MySQL. `$n` is the n-th value; numbers are inserted
//! as they are, money is in cents. Each result row starts with three numbers and a text.

use crate::mariadb::product::Product;
use crate::orders::text::{self, CUSTOMER, NEW_ADDRESS, NEW_CARD, NEW_CUSTOMER, NEW_ORDER, marked, wanted};
use assay_orders::model::SEQUENCES;
use assay_orders::program::Statement;

pub(super) const NEW_ITEM: &str = "insert into order_items (order_id, line_item_id, product_id, unit_price, quantity, gift_wrap, \
    `condition`, estimated_delivery)";
/// WQ, for the warehouse `$1`; this server has no CUBE. `head` is `select`, optionally with columns before the statement's own.
pub(super) fn totals(head: &str) -> String {
    let from = "sum(o.order_total) as total, count(*) as orders from orders o join warehouses h using (warehouse_id) \
                where h.warehouse_id = $1";
    format!(
        "{head}o.order_mode, o.warehouse_id, {from} group by o.order_mode, o.warehouse_id with rollup \
         union all {head}null, o.warehouse_id, {from} group by o.warehouse_id"
    )
}

/// WA, for the warehouse `$1`.
pub(super) fn hour(head: &str) -> String {
    format!(
        "with recursive slot as (select 1 as i union all select i + 1 from slot where i < 12) \
         {head}o.warehouse_id, s.hi, s.lo, sum(o.order_total) as total, count(*) as orders from \
         (select utc_timestamp(6) - interval (i - 1) * 5 minute as hi, utc_timestamp(6) - interval i * 5 minute as lo \
         from slot) s join orders o on o.order_date between s.lo and s.hi where o.warehouse_id = $1 \
         group by o.warehouse_id, s.hi, s.lo order by s.hi, s.lo desc"
    )
}

/// S17, for the warehouse `$1`; one row is fetched.
pub(super) fn work_list(head: &str) -> String {
    format!(
        "with todo as (select order_id from orders where warehouse_id = $1 and order_status <= 4 limit 9) \
         {head}i.line_item_id, i.product_id, i.unit_price, i.quantity, o.order_mode, o.order_status, o.order_total, \
         o.sales_rep_id, o.promotion_id, c.customer_id, c.cust_first_name, c.cust_last_name, c.credit_limit, c.cust_email, \
         o.order_date from todo join orders o using (order_id) join customers c on c.customer_id = o.customer_id \
         left join order_items i on i.order_id = o.order_id limit 1"
    )
}

/// Returns the number of a new order.
const RETURNED: &str = " returning order_id, null, null, null";
/// Placeholder columns of a row that returns no values.
const NOTHING: &str = "null, null, null, null";

/// Placeholders from this number on stand for numbers that the session draws, one for each of [`SEQUENCES`].
pub(super) const DRAWN: usize = 20;

/// A statement, and which value, from 0, each of its placeholders stands for. Without sequences on the server, the session passes their numbers.
pub(super) fn statement(statement: Statement, product: Product) -> (String, Vec<usize>) {
    let mut text = change(statement).unwrap_or_else(|| question(statement));
    if !product.has_sequences() {
        for (at, (name, ..)) in SEQUENCES.iter().enumerate() {
            text = text.replace(&format!("nextval({name})"), &format!("${}", DRAWN + at + 1));
        }
        text = text.replace(RETURNED, "");
    }
    marked(&text, |_| "?".to_owned())
}

fn question(statement: Statement) -> String {
    let nothing = format!("select {NOTHING}, ");
    let product = "p.product_id, cast(p.list_price * 100 as signed), null, null";
    match statement {
        Statement::Customer => {
            let what = "preferred_address, preferred_card, customer_id, customer_class";
            wanted(what, CUSTOMER) + " from customers where customer_id = $1 limit 14"
        }
        Statement::Stock => {
            "select v.quantity_on_hand, null, null, null from inventories v join product_information p using (product_id) \
             where v.product_id = $1 and v.warehouse_id = $2"
                .to_owned()
        }
        Statement::ByName => {
            let what = "customer_id, null, null, null";
            wanted(what, CUSTOMER)
                + " from customers where l_last = lower($1) and l_first = lower($2) limit 14"
        }
        Statement::WorkList => work_list("select o.order_id, null, null, null, "),
        Statement::Orders => {
            "select order_id, null, null, null, o.* from orders o where customer_id = $1 limit 14".to_owned()
        }
        Statement::Items => {
            "select line_item_id, cast(unit_price * 100 as signed), null, null, i.* from order_items i \
             where order_id = $1 limit 14"
                .to_owned()
        }
        Statement::Totals => totals(&nothing),
        Statement::LastHour => hour(&nothing),
        Statement::NextIds => {
            "select nextval(customer_seq), nextval(address_seq), nextval(card_details_seq), null".to_owned()
        }
        Statement::NextAddress => "select nextval(address_seq), null, null, null".to_owned(),
        _ => text::question(statement, NOTHING, product, " limit 14"),
    }
}

/// A statement that changes rows.
fn change(statement: Statement) -> Option<String> {
    Some(match statement {
        Statement::Logon => "insert into logon (logon_id, customer_id, logon_date) values (nextval(logon_seq), $1, \
                             utc_timestamp())"
            .to_owned(),
        Statement::NewOrder => format!(
            "{NEW_ORDER} values (nextval(orders_seq), utc_timestamp(6), 'online', $1, 1, $2, 'Standard', $3, $4, \
             'ship_asap', nullif($5, ''), $6, $3){RETURNED}"
        ),
        Statement::NewItem => {
            format!("{NEW_ITEM} values ($1, $2, $3, $4 / 100, 1, 'None', 'New', utc_date() + interval 3 day)")
        }
        Statement::NewAddress => format!(
            "{NEW_ADDRESS} values ($1, $2, date_format(utc_timestamp(), '%Y-%m-%d %H:%i:00'), $3, 'Street Name', $4, $5, $6, \
             'Postcode', null)"
        ),
        Statement::NewCustomer => format!(
            "{NEW_CUSTOMER} values ($1, $2, $3, $4, $5, $6, concat($2, '.', $3, '@oracle.com'), $7, utc_date(), 'Occasional', \
             'Music', utc_date() - interval $8 day, 'Y', 'N', $9, $10)"
        ),
        Statement::NewCard => {
            format!("{NEW_CARD} values ($1, $2, 'Visa(Debit)', $3, utc_date() + interval $4 day, 'Y', $5)")
        }
        _ => return text::change(statement),
    })
}
