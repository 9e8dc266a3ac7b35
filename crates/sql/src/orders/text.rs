//! Parts of statements that are the same on every server: columns and joins.

use assay_orders::checks::Words;
use assay_orders::model::{Table, VIEWS};
use assay_orders::program::Statement;

pub(crate) const CUSTOMER: &str = "select customer_id, cust_first_name, cust_last_name, nls_language, nls_territory, credit_limit, \
    cust_email, account_mgr_id, customer_since, customer_class, suggestions, dob, mailshot, partner_mailshot, \
    preferred_address, preferred_card";
pub(crate) const ADDRESS: &str = "select address_id, customer_id, date_created, house_no_or_name, street_name, town, county, \
    country, post_code, zip_code";
pub(crate) const CARD: &str =
    "select card_id, customer_id, card_type, card_number, expiry_date, is_valid, security_code";
pub(crate) const PRODUCT: &str = "select p.product_id, p.product_name, p.product_description, p.category_id, p.weight_class, \
    p.warranty_period, p.supplier_id, p.product_status, p.list_price, p.min_price, p.catalog_url, v.quantity_on_hand";
pub(crate) const OFFERED: &str = "from products p join inventories v on v.product_id = p.product_id";
pub(crate) const NEW_ADDRESS: &str = "insert into addresses (address_id, customer_id, date_created, house_no_or_name, street_name, \
    town, county, country, post_code, zip_code)";
pub(crate) const NEW_CUSTOMER: &str = "insert into customers (customer_id, cust_first_name, cust_last_name, nls_language, \
    nls_territory, credit_limit, cust_email, account_mgr_id, customer_since, customer_class, suggestions, dob, \
    mailshot, partner_mailshot, preferred_address, preferred_card)";
pub(crate) const NEW_CARD: &str = "insert into card_details (card_id, customer_id, card_type, card_number, expiry_date, is_valid, \
    security_code)";
pub(crate) const NEW_ORDER: &str = "insert into orders (order_id, order_date, order_mode, customer_id, order_status, warehouse_id, \
    delivery_type, delivery_address_id, cost_of_delivery, wait_till_all_available, customer_class, card_id, \
    invoice_address_id)";
/// SQ: orders of the sales representative `$1`.
pub(crate) const BEST: &str = "select t.order_total, t.sales_rep_id, t.order_date, c.cust_first_name, c.cust_last_name from \
    (select o.*, rank() over (order by o.order_total desc) as rk from orders o where o.sales_rep_id = $1) t \
    join customers c using (customer_id) where t.rk <= 10";

/// A query with these columns put before its own.
pub(crate) fn wanted(what: &str, sql: &str) -> String {
    sql.replacen("select ", &format!("select {what}, "), 1)
}

/// The queries that are the same on every server. `nothing`, or the columns of a `product`, come before the selected
/// columns; further words limit the number of rows.
pub(crate) fn question(statement: Statement, nothing: &str, product: &str, few: &str) -> String {
    let of_customer = "where customer_id = $1";
    let sql = match statement {
        Statement::Addresses => wanted(nothing, ADDRESS) + " from addresses " + of_customer,
        Statement::Cards => wanted(nothing, CARD) + " from card_details " + of_customer,
        Statement::Product => wanted(product, PRODUCT) + &format!(" {OFFERED} where p.product_id = $1"),
        Statement::Category => {
            wanted(product, PRODUCT) + &format!(" {OFFERED} where p.category_id = $1 and v.warehouse_id = $2")
        }
        Statement::BestOrders => return wanted(nothing, BEST),
        _ => return String::new(),
    };
    sql + few
}

/// The changing statements that are the same on every server, with numbers inserted as they are. `Ship` returns the
/// number of rows it changed.
pub(crate) fn change(statement: Statement) -> Option<String> {
    let sql = match statement {
        Statement::CloseOrder => {
            "update orders set order_mode = 'online', order_status = $1, order_total = $2 / 100 where order_id = $3"
        }
        Statement::TakeStock => {
            "update inventories set quantity_on_hand = quantity_on_hand - 1 where product_id = $1 and warehouse_id = $2"
        }
        Statement::PreferAddress => "update customers set preferred_address = $1 where customer_id = $2",
        Statement::Ship => "update orders set order_status = $1 where order_id = $2 and order_status <= 4",
        Statement::OneMore => {
            "update order_items set quantity = quantity + 1 where order_id = $1 and line_item_id = $2"
        }
        Statement::AddPrice => "update orders set order_total = order_total + $1 / 100 where order_id = $2",
        _ => return None,
    };
    Some(sql.to_owned())
}

/// The views, from the words that create one and an expression for the language of a session.
pub(crate) fn views(words: &dyn Words, create: &str, language: &str) -> [String; 2] {
    let [products, prices] = VIEWS.map(|name| words.relation(name));
    let [information, descriptions] =
        [Table::ProductInformation, Table::ProductDescriptions].map(|table| words.relation(table.name()));
    [
        format!(
            "{create} {products} as select i.product_id, d.language_id, \
             coalesce(d.translated_name, i.product_name) as product_name, i.category_id, \
             coalesce(d.translated_description, i.product_description) as product_description, i.weight_class, \
             i.warranty_period, i.supplier_id, i.product_status, i.list_price, i.min_price, i.catalog_url \
             from {information} i left join {descriptions} d on d.product_id = i.product_id \
             and d.language_id = {language}"
        ),
        format!(
            "{create} {prices} as select category_id, count(*) as products, min(list_price) as low_price, \
             max(list_price) as high_price from {information} group by category_id"
        ),
    ]
}

/// The text of a procedure: replaces the marks by the server's own parts and by those common to all servers.
pub(crate) fn filled(text: &str, own: &[(&str, String)]) -> String {
    let alike = [
        ("{NEW_CUSTOMER}", NEW_CUSTOMER),
        ("{NEW_ADDRESS}", NEW_ADDRESS),
        ("{NEW_CARD}", NEW_CARD),
        ("{NEW_ORDER}", NEW_ORDER),
        ("{CUSTOMER}", CUSTOMER),
        ("{ADDRESS}", ADDRESS),
        ("{CARD}", CARD),
        ("{PRODUCT}", PRODUCT),
        ("{OFFERED}", OFFERED),
    ];
    let own = own.iter().map(|(mark, sql)| (*mark, sql.as_str()));
    own.chain(alike).fold(text.to_owned(), |text, (mark, sql)| text.replace(mark, sql))
}

/// Replaces `$n` by the server's placeholders, numbered from 1; also returns which value, from 0, each placeholder stands for.
pub(crate) fn marked(text: &str, mark: impl Fn(usize) -> String) -> (String, Vec<usize>) {
    let mut parts = text.split('$');
    let mut sql = parts.next().unwrap_or_default().to_owned();
    let mut values = Vec::new();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        values.push(part[..digits].parse().unwrap_or(1) - 1);
        sql.push_str(&mark(values.len()));
        sql.push_str(&part[digits..]);
    }
    (sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_stands_twice_is_bound_twice() {
        let (sql, values) = marked("values ($1, $10, $2, $1)", |_| "?".to_owned());
        assert_eq!(sql, "values (?, ?, ?, ?)");
        assert_eq!(values, [0, 9, 1, 0]);
        let (sql, values) = marked("values ($2, $2)", |at| format!(":{at}"));
        assert_eq!((sql.as_str(), values.as_slice()), ("values (:1, :2)", &[1, 1][..]));
    }
}
