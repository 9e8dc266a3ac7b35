//! The transactions as single statements in Oracle's SQL. `$n` is the n-th value; numbers are inserted as they are,
//! money is in cents. Each row of a query starts with three numbers and a text.

use crate::orders::text::{self, CUSTOMER, NEW_ADDRESS, NEW_CARD, NEW_CUSTOMER, NEW_ORDER, marked, wanted};
use assay_orders::program::Statement;

pub(super) const NEW_ITEM: &str = "insert into order_items (order_id, line_item_id, product_id, unit_price, quantity, gift_wrap, \
    condition, estimated_delivery)";

/// WQ, for the warehouse `$1`.
pub(super) const TOTALS: &str = "select o.order_mode, o.warehouse_id, sum(o.order_total) as total, count(*) as orders \
    from orders o join warehouses h on h.warehouse_id = o.warehouse_id where h.warehouse_id = $1 \
    group by cube (o.order_mode, o.warehouse_id)";

/// WA, for the warehouse `$1`.
pub(super) const HOUR: &str = "select o.warehouse_id, s.hi, s.lo, sum(o.order_total) as total, count(*) as orders from \
    (select systimestamp - numtodsinterval((level - 1) * 5, 'MINUTE') as hi, \
    systimestamp - numtodsinterval(level * 5, 'MINUTE') as lo from dual connect by level <= 12) s \
    join orders o on o.order_date between s.lo and s.hi where o.warehouse_id = $1 \
    group by o.warehouse_id, s.hi, s.lo order by s.hi, s.lo desc";

/// S17, for the warehouse `$1`; one row is fetched.
pub(super) const WORK_LIST: &str = "select w.* from (with todo as \
    (select order_id from orders where warehouse_id = $1 and order_status <= 4 and rownum < 10) \
    select o.order_id, i.line_item_id, i.product_id, i.unit_price, i.quantity, o.order_mode, o.order_status, o.order_total, \
    o.sales_rep_id, o.promotion_id, c.customer_id, c.cust_first_name, c.cust_last_name, c.credit_limit, c.cust_email, \
    o.order_date from todo t join orders o on o.order_id = t.order_id join customers c on c.customer_id = o.customer_id \
    left join order_items i on i.order_id = o.order_id) w where rownum < 2";

/// Placeholder columns of a row that returns no values.
const NOTHING: &str = "null, null, null, null";
/// A product's ID, and its price in cents.
const PRICED: &str = "p.product_id, p.list_price * 100, null, null";

/// How a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// A query.
    Rows,
    /// Only its changes matter.
    Run,
    /// A block with one output.
    Block,
}

/// A statement, which value, from 0, each of its placeholders stands for, and how it is sent.
pub(super) type Sent = (String, Vec<usize>, How);

/// See [`Sent`].
pub(super) fn statement(statement: Statement) -> Sent {
    let (text, how) = match change(statement) {
        Some(text) if text.starts_with("declare") => (text, How::Block),
        Some(text) => (text, How::Run),
        None => (question(statement), How::Rows),
    };
    let (sql, values) = marked(&text, |at| format!(":{at}"));
    match how {
        How::Block => (sql.replace(":out", &format!(":{}", values.len() + 1)), values, how),
        _ => (sql, values, how),
    }
}

fn question(statement: Statement) -> String {
    match statement {
        Statement::Customer => {
            let what = "preferred_address, preferred_card, customer_id, customer_class";
            wanted(what, CUSTOMER) + " from customers where customer_id = $1 and rownum < 15"
        }
        Statement::Stock => {
            "select v.quantity_on_hand, null, null, null from inventories v join product_information p \
                             on p.product_id = v.product_id where v.product_id = $1 and v.warehouse_id = $2"
                .to_owned()
        }
        Statement::ByName => {
            wanted("customer_id, null, null, null", CUSTOMER)
                + " from customers where lower(cust_last_name) = lower($1) and lower(cust_first_name) = lower($2) \
                   and rownum < 15"
        }
        Statement::WorkList => WORK_LIST.replacen("w.*", "w.order_id, null, null, null, w.*", 1),
        Statement::Orders => {
            "select order_id, null, null, null, o.* from orders o where customer_id = $1 and rownum < 15".to_owned()
        }
        Statement::Items => {
            "select line_item_id, unit_price * 100, null, null, i.* from order_items i where order_id = $1 \
                             and rownum < 15"
                .to_owned()
        }
        Statement::Totals => wanted(NOTHING, TOTALS),
        Statement::LastHour => wanted(NOTHING, HOUR),
        Statement::NextIds => {
            "select customer_seq.nextval, address_seq.nextval, card_details_seq.nextval, null from dual".to_owned()
        }
        Statement::NextAddress => "select address_seq.nextval, null, null, null from dual".to_owned(),
        _ => text::question(statement, NOTHING, PRICED, " and rownum < 15"),
    }
}

/// A statement that changes rows.
fn change(statement: Statement) -> Option<String> {
    Some(match statement {
        Statement::Logon => "insert into logon (logon_id, customer_id, logon_date) values (logon_seq.nextval, $1, \
                             localtimestamp(0))"
            .to_owned(),
        Statement::NewOrder => format!(
            "declare o number; begin {NEW_ORDER} values (orders_seq.nextval, systimestamp, 'online', $1, 1, $2, 'Standard', \
             $3, $4, 'ship_asap', $5, $6, $3) returning order_id into o; :out := to_char(o); end;"
        ),
        Statement::NewItem => {
            format!("{NEW_ITEM} values ($1, $2, $3, $4 / 100, 1, 'None', 'New', trunc(current_date) + 3)")
        }
        Statement::NewAddress => format!(
            "{NEW_ADDRESS} values ($1, $2, trunc(localtimestamp, 'MI'), to_char($3), 'Street Name', $4, $5, $6, 'Postcode', null)"
        ),
        Statement::NewCustomer => format!(
            "{NEW_CUSTOMER} values ($1, $2, $3, $4, $5, $6, $2 || '.' || $3 || '@oracle.com', $7, trunc(current_date), \
             'Occasional', 'Music', trunc(current_date) - $8, 'Y', 'N', $9, $10)"
        ),
        Statement::NewCard => {
            format!("{NEW_CARD} values ($1, $2, 'Visa(Debit)', $3, trunc(current_date) + $4, 'Y', $5)")
        }
        _ => return text::change(statement),
    })
}
