//! The data set and the transactions, without a server.

use crate::generate::{Counts, Generator};
use crate::inputs::{Bounds, Inputs};
use crate::lines::Lines;
use crate::mix::{ALL, Tx};
use crate::model::{TABLES, Table};
use crate::names::Lists;
use crate::program::{Effects, Row, Session, Statement, Value, perform};
use proptest::prelude::*;

/// The rows of a few units of a table, as columns.
fn rows(generator: &Generator, table: Table, units: std::ops::Range<u64>) -> Vec<Vec<String>> {
    let mut lines = Lines::new("", "+00");
    for unit in units {
        generator.write(table, unit, &mut lines);
    }
    let text = String::from_utf8(lines.bytes().to_vec()).expect("ASCII");
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(row).collect()
}

fn column(table: Table, name: &str) -> usize {
    let found = table.columns().iter().position(|column| column.name == name);
    found.unwrap_or_else(|| panic!("{name}"))
}

/// The numbers of a column, and how many of its rows have none.
fn numbers(generator: &Generator, table: Table, name: &str, units: u64) -> (Vec<f64>, usize) {
    let at = column(table, name);
    let rows = rows(generator, table, 1..units + 1);
    let all = rows.len();
    let numbers: Vec<f64> = rows.iter().filter_map(|row| row[at].parse().ok()).collect();
    let nulls = all - numbers.len();
    (numbers, nulls)
}

#[test]
fn row_counts_are_the_published_ones() {
    // One scale unit: 14,961,724 rows that grow and about 903,000 that do not, give or take the noise of the items.
    let generator = Generator::new(1, 1000, false);
    let grows: u64 = generator.rows_in_all()
        - [Table::Warehouses, Table::ProductInformation, Table::ProductDescriptions, Table::Inventories]
            .map(|table| generator.rows(table))
            .iter()
            .sum::<u64>();
    assert!(grows.abs_diff(14_961_724) < 14_961_724 / 500, "{grows}");
    let held = generator.rows(Table::Inventories);
    assert!(held.abs_diff(900_000) < 6_000, "{held}");
    assert!((15_746_133..=15_887_043).contains(&generator.rows_in_all()), "the public loads' range");
    let items = generator.rows(Table::OrderItems) as f64 / generator.rows(Table::Orders) as f64;
    assert!((4.92..=5.02).contains(&items), "{items}");
    let counts = Counts::of(5000);
    assert_eq!((counts.customers, counts.orders, counts.logons), (5_000_000, 7_148_950, 11_914_920));
    assert_eq!((counts.addresses, counts.cards), (7_500_000, 7_500_000));
}

#[test]
fn rows_written_are_rows_planned_and_fit_their_columns() {
    let generator = Generator::new(7, 10, false);
    for table in TABLES {
        let units = generator.counts().units(table).min(300);
        let rows = rows(&generator, table, 1..units + 1);
        assert_eq!(rows.len() as u64, generator.rows_of(table, 1..units + 1), "{table:?}");
        for row in rows {
            assert_eq!(row.len(), table.columns().len(), "{table:?} {row:?}");
            for (value, column) in row.iter().zip(table.columns()) {
                assert!(!column.required || value != "\\N", "{column:?}");
                if let crate::model::Type::Text(most) = column.kind {
                    assert!(value.len() <= usize::from(most), "{column:?} {value}");
                }
            }
        }
    }
}

#[test]
fn distributions_are_the_published_ones() {
    let generator = Generator::new(3, 100, false);
    let n = 20_000;
    let (totals, _) = numbers(&generator, Table::Orders, "order_total", n);
    let mean = totals.iter().sum::<f64>() / totals.len() as f64;
    let deviation = (totals.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / totals.len() as f64).sqrt();
    assert!((mean - 5000.0).abs() < 50.0 && (deviation - 1111.0).abs() < 25.0, "{mean} {deviation}");
    // About 31 % of loaded orders are still to be shipped.
    let (statuses, _) = numbers(&generator, Table::Orders, "order_status", n);
    let open = statuses.iter().filter(|status| **status <= 4.0).count() as f64 / n as f64;
    assert!((open - 0.31).abs() < 0.04, "{open}");
    let modes = rows(&generator, Table::Orders, 1..n + 1);
    let at = column(Table::Orders, "order_mode");
    let none = modes.iter().filter(|row| row[at] == "\\N").count() as f64 / n as f64;
    assert!((none - 0.2).abs() < 0.015, "{none}");
    let (limits, _) = numbers(&generator, Table::Customers, "credit_limit", 2000);
    assert!(limits.iter().all(|limit| *limit <= 50_000.0), "the rule is valid");
    let (owners, _) = numbers(&generator, Table::Addresses, "customer_id", n);
    let mut owned = vec![0_u8; 100_001];
    owners.iter().for_each(|owner| owned[*owner as usize] += 1);
    assert!(owners.iter().all(|owner| (1.0..=100_000.0).contains(owner)));
}

#[test]
fn bells_of_a_row_are_independent_unless_the_old_correlation_is_asked_for() {
    let alike = |legacy: bool| {
        let generator = Generator::new(3, 100, legacy);
        let [total, rep] = ["order_total", "sales_rep_id"].map(|name| numbers(&generator, Table::Orders, name, 2000).0);
        let near = |(total, rep): &(&f64, &f64)| (*total / 10.0 - *rep).abs() < 3.0;
        total.iter().zip(&rep).filter(near).count()
    };
    assert_eq!(alike(true), 2000);
    assert!(alike(false) < 200);
}

#[test]
fn as_many_name_pairs_hit_two_customers_as_published() {
    // 17 % of pairs picked uniformly hit two or more of a million customers.
    let generator = Generator::new(11, 1000, false);
    let lists = Lists::default();
    let at = |list: &[String], name: &str| list.iter().position(|known| known == name).expect("of the list");
    let places: std::collections::HashMap<&str, usize> =
        lists.first.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    let last: std::collections::HashMap<&str, usize> =
        lists.last.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    let mut hits = vec![0_u8; 1_000_000];
    let mut lines = Lines::new("", "+00");
    for id in 1..=1_000_000 {
        generator.write(Table::Customers, id, &mut lines);
        {
            let row = std::str::from_utf8(lines.bytes()).expect("ASCII");
            let mut columns = row.split('\t').skip(1);
            let (first, second) = (columns.next().expect("a name"), columns.next().expect("a name"));
            let cell = places[first] * 1000 + last[second];
            hits[cell] = hits[cell].saturating_add(1);
        }
        lines.clear();
    }
    let several = hits.iter().filter(|n| **n >= 2).count() as f64 / 1e6;
    assert!((0.15..0.19).contains(&several), "{several}");
    assert_eq!(at(&lists.first, &lists.first[5]), 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_row_is_a_function_of_seed_table_and_number(seed in any::<u64>(), unit in 1_u64..900) {
        let (one, two) = (Generator::new(seed, 10, false), Generator::new(seed, 10, false));
        let other = Generator::new(seed ^ 1, 10, false);
        for table in TABLES {
            prop_assert_eq!(rows(&one, table, unit..unit + 1), rows(&two, table, unit..unit + 1));
            prop_assert_ne!(rows(&one, table, unit..unit + 1), rows(&other, table, unit..unit + 1));
        }
    }

    #[test]
    fn a_checksum_is_the_sum_of_its_parts(seed in any::<u64>(), cut in 2_u64..40) {
        let generator = Generator::new(seed, 10, false);
        let sum = |units: std::ops::Range<u64>| {
            let mut lines = Lines::new("", "+00");
            units.for_each(|unit| generator.write(Table::OrderItems, unit, &mut lines));
            (lines.sum(), lines.rows())
        };
        let (a, b, all) = (sum(1..cut), sum(cut..41), sum(1..41));
        prop_assert_eq!((a.0 + b.0, a.1 + b.1), all);
    }

    #[test]
    fn inputs_are_within_their_ranges(number in any::<u64>(), which in 0_usize..9) {
        let lists = Lists::default();
        let bounds = Bounds { customers: (1, 1000) };
        let inputs = Inputs::draw(ALL[which], number, bounds, &lists);
        prop_assert!((1..1000).contains(&inputs.customer), "the last customer is never drawn");
        prop_assert!((1..24).contains(&inputs.looks) && (2..8).contains(&inputs.buys));
        prop_assert!(inputs.products.iter().all(|p| (1..1000).contains(p)));
        prop_assert!(inputs.categories.iter().all(|c| (1..199).contains(c)));
        let statuses = match ALL[which] {
            Tx::ProcessOrders => 5..10,
            _ => 0..4,
        };
        prop_assert!(statuses.contains(&inputs.status));
        prop_assert_eq!(&inputs, &Inputs::draw(ALL[which], number, bounds, &lists));
    }
}

/// A server that has always two of everything.
#[derive(Default)]
struct Plenty {
    sent: Vec<Statement>,
    taken: Vec<(i64, i64)>,
    pauses: usize,
    offered: i64,
    stock: i64,
}

impl Session for Plenty {
    type Error = ();

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, ()> {
        self.sent.push(statement);
        let number = |n: i64| Row { numbers: [Some(n), Some(250), Some(n + 1)], text: Some("Prime".to_owned()) };
        Ok(match statement {
            Statement::Stock => vec![number(self.stock)],
            Statement::Category => (1..=self.offered).rev().map(number).collect(),
            Statement::TakeStock => {
                if let [Value::Int(product), Value::Int(warehouse)] = values {
                    self.taken.push((*product, *warehouse));
                }
                Vec::new()
            }
            _ => vec![number(1), number(2)],
        })
    }

    fn think(&mut self) {
        self.pauses += 1;
    }
}

fn done(tx: Tx, number: u64, server: &mut Plenty) -> Effects {
    let lists = Lists::default();
    let bounds = Bounds { customers: (1, 1000) };
    perform(&Inputs::draw(tx, number, bounds, &lists), server).expect("it always works")
}

#[test]
fn every_statement_is_counted_as_what_it_is() {
    for tx in ALL {
        for number in 0..50 {
            let mut server = Plenty { offered: 5, stock: 9, ..Plenty::default() };
            let done = done(tx, number, &mut server);
            let ids = [Statement::NextIds, Statement::NextAddress];
            let counted = server.sent.iter().filter(|sent| !ids.contains(sent)).count();
            assert_eq!((done.selects + done.inserts + done.updates) as usize, counted, "{tx:?}");
            assert_eq!(done.inserts + done.updates > 0, !tx.reads_only(), "{tx:?}");
            assert!(server.pauses > 0, "{tx:?} pauses somewhere");
        }
    }
}

#[test]
fn an_order_takes_one_piece_a_line_in_the_order_of_keys() {
    let mut lines = 0;
    for number in 0..200 {
        let mut server = Plenty { offered: 8, stock: 1, ..Plenty::default() };
        let done = done(Tx::OrderProducts, number, &mut server);
        assert_eq!(done.lines as usize, server.taken.len());
        assert_eq!(done.inserts, 1 + done.lines + done.logons);
        assert!((2..8).contains(&done.lines));
        assert!(server.taken.is_sorted(), "{:?}", server.taken);
        lines += done.lines;
    }
    assert!((4.2..4.8).contains(&(f64::from(lines) / 200.0)));
}

#[test]
fn an_order_without_stock_stays_without_lines() {
    for (offered, stock) in [(0, 5), (5, 0)] {
        let mut server = Plenty { offered, stock, ..Plenty::default() };
        let done = done(Tx::OrderProducts, 3, &mut server);
        assert_eq!((done.lines, done.updates), (0, 1));
        assert!(server.sent.contains(&Statement::NewOrder) && server.sent.contains(&Statement::CloseOrder));
    }
}
