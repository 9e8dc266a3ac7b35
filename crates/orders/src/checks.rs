//! The consistency checks of a data set after runs: seventeen queries, each of which returns rows of (found, minimum,
//! maximum).
//!
//! They compare the data with what was loaded ([`BASELINE`]) and with what the sessions recorded ([`LEDGER`]). An
//! order's total is the sum of its lines, and each line takes one unit of stock. Adding a unit to a line adds its price
//! to the order. Nothing is ever deleted. The queries are SQL that every server understands; [`Words`] covers the
//! differences.

use crate::ledger::{BASELINE, ENTRIES, LEDGER, OPEN_RUNS};
use crate::model::{Column, SEQUENCES, Table};
use assay_measure::figures::figures;

/// A server's own SQL expressions.
pub trait Words {
    /// The qualified name of a table or sequence of the data set.
    fn relation(&self, name: &str) -> String;

    /// A column's name, quoted if necessary.
    fn name(&self, column: &str) -> String;

    /// The number that a column's value contributes to the checksum ([`crate::lines`]); never NULL.
    fn counted(&self, column: &Column) -> String;

    /// An expression for the last number that a sequence has returned or reserved.
    fn last_of(&self, sequence: &str) -> String;

    /// The end of a query that reads no table.
    fn of_nothing(&self) -> &'static str {
        ""
    }
}

fn sum_of(words: &dyn Words, table: Table) -> String {
    let terms: Vec<String> =
        (1..).zip(table.columns()).map(|(weight, column)| format!("{weight} * {}", words.counted(column))).collect();
    format!("coalesce(sum({}), 0)", terms.join(" + "))
}

/// The query for the row count and checksum of a table.
#[must_use]
pub fn checksum_sql(words: &dyn Words, table: Table) -> String {
    let (sum, table) = (sum_of(words, table), words.relation(table.name()));
    format!("select count(*), {sum} from {table}")
}

/// The statements that record what was loaded. `sums` are the checksums of the tables that never change.
#[must_use]
pub fn baseline_sql(words: &dyn Words, sums: &[(Table, i128)]) -> Vec<String> {
    let of = |table: Table| words.relation(table.name());
    let (orders, items) = (of(Table::Orders), of(Table::OrderItems));
    let mut entries = vec![
        ("ord_max".to_owned(), format!("select max(order_id) from {orders}")),
        ("cust_max".to_owned(), format!("select max(customer_id) from {}", of(Table::Customers))),
        (
            "gap".to_owned(),
            format!(
                "select (select sum(order_total) from {orders}) - (select sum(unit_price * quantity) from {items}){}",
                words.of_nothing()
            ),
        ),
        ("qty".to_owned(), format!("select sum(quantity) from {items}")),
        ("shipped".to_owned(), format!("select count(*) from {orders} where order_status > 4")),
        ("inv".to_owned(), format!("select sum(quantity_on_hand) from {}", of(Table::Inventories))),
    ];
    for (key, table) in COUNTED {
        entries.push((key.to_owned(), format!("select count(*) from {}", of(table))));
    }
    for (table, sum) in sums {
        entries.push((sum_key(*table), format!("select {sum}{}", words.of_nothing())));
    }
    let (baseline, ledger) = (words.relation(BASELINE), words.relation(LEDGER));
    let mut sql = vec![format!("delete from {baseline}"), format!("delete from {ledger}")];
    sql.extend(
        entries.into_iter().map(|(key, query)| format!("insert into {baseline} (k, v) values ('{key}', ({query}))")),
    );
    sql.extend(
        ENTRIES
            .into_iter()
            .chain([OPEN_RUNS])
            .map(|key| format!("insert into {ledger} (k, acked, in_doubt) values ('{key}', 0, 0)")),
    );
    sql
}

/// Tables whose rows the load counts, and the keys of these counts.
const COUNTED: [(&str, Table); 5] = [
    ("inv_n", Table::Inventories),
    ("cust_n", Table::Customers),
    ("addr_n", Table::Addresses),
    ("card_n", Table::CardDetails),
    ("logon_n", Table::Logon),
];

/// Tables that never change.
pub const STATIC: [Table; 3] = [Table::Warehouses, Table::ProductInformation, Table::ProductDescriptions];

fn sum_key(table: Table) -> String {
    format!("sum_{}", table.name())
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// `C1` to `C17`
    pub id: &'static str,
    /// The invariant.
    pub what: &'static str,
    /// Query for rows of (found, minimum, maximum).
    pub sql: String,
    /// Whether it compares with the books, which a killed run leaves open.
    pub by_books: bool,
}

/// The result of a check.
#[figures]
#[derive(Eq)]
pub struct Checked {
    /// `C1` to `C17`
    pub id: String,
    /// The invariant.
    pub what: String,
    /// `holds`, `broken` or `n/a`.
    pub verdict: String,
    /// What was found instead, or why the check has no verdict.
    pub found: String,
}

impl Check {
    /// Judges the rows that its query returned.
    #[must_use]
    pub fn judge(&self, rows: &[[f64; 3]]) -> Checked {
        let broken: Vec<String> = rows
            .iter()
            .filter(|[found, least, most]| found < least || found > most)
            .map(|[found, least, most]| {
                if least == most {
                    format!("found {found}, expected {least}")
                } else {
                    format!("found {found}, expected {least} to {most}")
                }
            })
            .collect();
        let verdict = match (rows.is_empty(), broken.is_empty()) {
            (true, _) => "n/a",
            (false, true) => HOLDS,
            (false, false) => BROKEN,
        };
        let found = if rows.is_empty() { "the server gave no answer".to_owned() } else { broken.join("; ") };
        self.told(verdict, found)
    }

    /// The result when the check has no verdict.
    #[must_use]
    pub fn not_known(&self, why: &str) -> Checked {
        self.told("n/a", why.to_owned())
    }

    fn told(&self, verdict: &str, found: String) -> Checked {
        Checked { id: self.id.to_owned(), what: self.what.to_owned(), verdict: verdict.to_owned(), found }
    }
}

/// Verdict: the invariant holds.
pub const HOLDS: &str = "holds";
/// Verdict: the data set violates the invariant.
pub const BROKEN: &str = "broken";

/// Why the books cannot be used while this many runs have them open.
#[must_use]
pub fn books_open(runs: u64) -> String {
    format!(
        "{} started on this data set and not closed the books (killed, or still running). Prepare the data set again \
         to check all of it",
        match runs {
            1 => "a run has".to_owned(),
            n => format!("{n} runs have"),
        }
    )
}

/// The query for the number of runs with open books.
#[must_use]
pub fn open_runs_sql(words: &dyn Words) -> String {
    format!("select acked from {} where k = '{OPEN_RUNS}'", words.relation(LEDGER))
}

/// Id of each check, its invariant, and whether it relies on the books.
const KNOWN: [(&str, &str, bool); 17] = [
    ("C1", "every new order's total is the sum of its lines", false),
    ("C2", "totals and lines of loaded orders changed by the same amount", false),
    ("C3", "every line has its order", false),
    ("C4", "every order, address, card and logon has its customer", false),
    ("C5", "stock taken = lines sold", false),
    ("C6", "no inventory is lost or below zero", false),
    ("C7", "new orders = acknowledged new orders", true),
    ("C8", "new customers, cards, addresses, logons = acknowledged ones", true),
    ("C9", "each new customer owns its preferred address and card", false),
    ("C10", "quantities grew by new lines and acknowledged additions", true),
    ("C11", "no sequence is behind its table", false),
    ("C12", "status, total and mode of every order are legal", false),
    ("C13", "new lines are numbered 1 to 7 and have a quantity of at least 1", false),
    ("C14", "each new line has the catalogue's price", false),
    ("C15", "no logon id occurs twice", false),
    ("C16", "warehouses and products are as loaded", false),
    ("C17", "each order is shipped once, by an acknowledged shipment", true),
];

/// All seventeen checks.
#[must_use]
pub fn all(words: &dyn Words) -> Vec<Check> {
    let ask = Ask(words);
    let questions = [
        ask.totals(),
        ask.drift(),
        ask.orphan_lines(),
        ask.orphans(),
        ask.stock(),
        ask.inventories(),
        ask.orders(),
        ask.others(),
        ask.owners(),
        ask.quantities(),
        ask.sequences(),
        ask.domains(),
        ask.lines(),
        ask.prices(),
        ask.logons(),
        ask.fixed(),
        ask.shipments(),
    ];
    let known = KNOWN.into_iter().zip(questions);
    known.map(|((id, what, by_books), sql)| Check { id, what, sql, by_books }).collect()
}

/// Builds the queries of the checks.
struct Ask<'a>(&'a dyn Words);

impl Ask<'_> {
    fn of(&self, table: Table) -> String {
        self.0.relation(table.name())
    }

    fn loaded(&self, key: &str) -> String {
        format!("(select v from {} where k = '{key}')", self.0.relation(BASELINE))
    }

    fn acked(&self, key: &str) -> String {
        format!("(select acked from {} where k = '{key}')", self.0.relation(LEDGER))
    }

    fn doubt(&self, key: &str) -> String {
        format!("(select in_doubt from {} where k = '{key}')", self.0.relation(LEDGER))
    }

    /// Returns one row of three expressions. An expression that reads a table is a subquery of its own: Oracle may
    /// refuse one beside an aggregate.
    fn row(&self, found: &str, least: &str, most: &str) -> String {
        format!("select {found}, {least}, {most}{}", self.0.of_nothing())
    }

    fn new_lines(&self, what: &str) -> String {
        let (items, last) = (self.of(Table::OrderItems), self.loaded("ord_max"));
        format!("select {what} from {items} where order_id > {last}")
    }

    fn totals(&self) -> String {
        let (orders, last) = (self.of(Table::Orders), self.loaded("ord_max"));
        let sums = self.new_lines("order_id, sum(unit_price * quantity) as t") + " group by order_id";
        format!(
            "select count(*), 0, 0 from {orders} o left join ({sums}) s on s.order_id = o.order_id \
             where o.order_id > {last} and coalesce(o.order_total, -1) <> coalesce(s.t, 0)"
        )
    }

    fn drift(&self) -> String {
        let (orders, items) = (self.of(Table::Orders), self.of(Table::OrderItems));
        let (last, gap) = (self.loaded("ord_max"), self.loaded("gap"));
        let drifted = format!(
            "(select sum(order_total) from {orders} where order_id <= {last}) \
             - (select sum(unit_price * quantity) from {items} where order_id <= {last}) - {gap}"
        );
        self.row(&drifted, "0", "0")
    }

    fn orphan_lines(&self) -> String {
        let (orders, items) = (self.of(Table::Orders), self.of(Table::OrderItems));
        format!(
            "select count(*), 0, 0 from {items} i where not exists (select 1 from {orders} o where o.order_id = i.order_id)"
        )
    }

    fn orphans(&self) -> String {
        let customers = self.of(Table::Customers);
        let children = [Table::Orders, Table::Addresses, Table::CardDetails, Table::Logon];
        let one = |table: Table| {
            format!(
                "select count(*), 0, 0 from {} x where x.customer_id is not null and not exists \
                 (select 1 from {customers} c where c.customer_id = x.customer_id)",
                self.of(table)
            )
        };
        children.map(one).join(" union all ")
    }

    fn stock(&self) -> String {
        let (inventories, loaded) = (self.of(Table::Inventories), self.loaded("inv"));
        let lines = self.new_lines("count(*)");
        let off = format!("{loaded} - (select sum(quantity_on_hand) from {inventories}) - ({lines})");
        self.row(&off, "0", "0")
    }

    fn inventories(&self) -> String {
        let (inventories, loaded) = (self.of(Table::Inventories), self.loaded("inv_n"));
        let lost = format!("(select count(*) from {inventories}) - {loaded}");
        format!(
            "{} union all select count(*), 0, 0 from {inventories} where quantity_on_hand < 0",
            self.row(&lost, "0", "0")
        )
    }

    fn orders(&self) -> String {
        let (orders, last) = (self.of(Table::Orders), self.loaded("ord_max"));
        let (acked, doubt) = (self.acked("OP"), self.doubt("OP"));
        let new = format!("(select count(*) from {orders} where order_id > {last})");
        self.row(&new, &acked, &format!("{acked} + {doubt}"))
    }

    fn others(&self) -> String {
        let grown = |table: Table, key: &str, entries: &[&str]| {
            let sum = |of: fn(&Self, &str) -> String| {
                let parts: Vec<String> = entries.iter().map(|entry| of(self, entry)).collect();
                parts.join(" + ")
            };
            let (table, loaded) = (self.of(table), self.loaded(key));
            let (acked, doubt) = (sum(Self::acked), sum(Self::doubt));
            let grown = format!("(select count(*) from {table}) - {loaded}");
            self.row(&grown, &acked, &format!("{acked} + {doubt}"))
        };
        [
            grown(Table::Customers, "cust_n", &["NCR"]),
            grown(Table::CardDetails, "card_n", &["NCR"]),
            grown(Table::Addresses, "addr_n", &["NCR", "UCD"]),
            grown(Table::Logon, "logon_n", &["logon"]),
        ]
        .join(" union all ")
    }

    fn owners(&self) -> String {
        let (customers, last) = (self.of(Table::Customers), self.loaded("cust_max"));
        let (addresses, cards) = (self.of(Table::Addresses), self.of(Table::CardDetails));
        format!(
            "select count(*), 0, 0 from {customers} c where c.customer_id > {last} and (not exists \
             (select 1 from {addresses} a where a.address_id = c.preferred_address and a.customer_id = c.customer_id) \
             or not exists (select 1 from {cards} d where d.card_id = c.preferred_card and d.customer_id = c.customer_id))"
        )
    }

    fn quantities(&self) -> String {
        let (items, loaded) = (self.of(Table::OrderItems), self.loaded("qty"));
        let (acked, doubt) = (self.acked("BO"), self.doubt("BO"));
        let lines = self.new_lines("count(*)");
        let grown = format!("(select sum(quantity) from {items}) - {loaded} - ({lines})");
        self.row(&grown, &acked, &format!("{acked} + {doubt}"))
    }

    fn sequences(&self) -> String {
        let behind = |(sequence, table, column): (&str, Table, &str)| {
            let behind = format!(
                "case when {} < (select max({column}) from {}) then 1 else 0 end",
                self.0.last_of(sequence),
                self.of(table)
            );
            self.row(&behind, "0", "0")
        };
        SEQUENCES.map(behind).join(" union all ")
    }

    fn domains(&self) -> String {
        let orders = self.of(Table::Orders);
        format!(
            "select count(*), 0, 0 from {orders} where order_status not between 0 and 9 or order_total < 0 \
             or order_mode not in ('direct', 'online')"
        )
    }

    fn lines(&self) -> String {
        self.new_lines("count(*), 0, 0") + " and (line_item_id not between 1 and 7 or quantity < 1)"
    }

    fn prices(&self) -> String {
        let (items, last) = (self.of(Table::OrderItems), self.loaded("ord_max"));
        let products = self.of(Table::ProductInformation);
        format!(
            "select count(*), 0, 0 from {items} i join {products} p on p.product_id = i.product_id \
             where i.order_id > {last} and i.unit_price <> p.list_price"
        )
    }

    fn logons(&self) -> String {
        format!("select count(*) - count(distinct logon_id), 0, 0 from {}", self.of(Table::Logon))
    }

    fn shipments(&self) -> String {
        let (orders, loaded) = (self.of(Table::Orders), self.loaded("shipped"));
        let (acked, doubt) = (self.acked("PO"), self.doubt("PO"));
        let shipped = format!("(select count(*) from {orders} where order_status > 4) - {loaded}");
        self.row(&shipped, &acked, &format!("{acked} + {doubt}"))
    }

    fn fixed(&self) -> String {
        let one = |table: Table| {
            let loaded = self.loaded(&sum_key(table));
            let sum = sum_of(self.0, table);
            let now = format!("(select {sum} from {})", self.of(table));
            self.row(&now, &loaded, &loaded)
        };
        STATIC.map(one).join(" union all ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_within_its_bounds_holds_and_one_without_is_told() {
        let check = Check { id: "C7", what: "x", sql: String::new(), by_books: true };
        assert_eq!(check.judge(&[[5.0, 5.0, 7.0], [7.0, 5.0, 7.0]]).verdict, HOLDS);
        let broken = check.judge(&[[4.0, 5.0, 7.0], [1.0, 0.0, 0.0]]);
        assert_eq!(broken.verdict, BROKEN);
        assert_eq!(broken.found, "found 4, expected 5 to 7; found 1, expected 0");
        assert_eq!(check.judge(&[]).verdict, "n/a");
        assert_eq!(check.not_known("why").found, "why");
    }
}
