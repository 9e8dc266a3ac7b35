//! The transactions as lists of statements, which a session sends one after another (client side). The server-side
//! functions have the same steps and produce the same rows for the same inputs.

use crate::inputs::{BUYS_MAX, Inputs};
use crate::mix::Tx;

/// A statement, by its number in `docs/guides/orders.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statement {
    /// S1: a customer by id. Returns preferred address, preferred card and id, then class.
    Customer,
    /// S2: addresses of a customer.
    Addresses,
    /// S3: cards of a customer.
    Cards,
    /// S4: records the logon.
    Logon,
    /// S5: a product by id, in any warehouse.
    Product,
    /// S6: products of a category in a warehouse. Returns id and price in cents.
    Category,
    /// S7: creates an order. Returns its id.
    NewOrder,
    /// S8: stock of a product in a warehouse. Returns the stock.
    Stock,
    /// S9: adds a line to the order.
    NewItem,
    /// S10: sets status and total of the order.
    CloseOrder,
    /// S11: takes one unit of a product from the stock of a warehouse.
    TakeStock,
    /// S12: customers by name. Returns the id.
    ByName,
    /// S13: adds an address.
    NewAddress,
    /// S14: makes that address the preferred one.
    PreferAddress,
    /// S15: adds a customer.
    NewCustomer,
    /// S16: adds a card.
    NewCard,
    /// S17: orders that a warehouse has to ship. Returns the order's id; one row is fetched.
    WorkList,
    /// S18: ships the order unless another session has shipped it. Returns a row if this session shipped it.
    Ship,
    /// S19: orders of a customer. Returns the id.
    Orders,
    /// S20: lines of an order. Returns the line and its price in cents.
    Items,
    /// S21: adds one unit to a line.
    OneMore,
    /// S22: adds its price to the order's total.
    AddPrice,
    /// SQ: the best orders of a sales representative.
    BestOrders,
    /// WQ: the totals of a warehouse.
    Totals,
    /// WA: the last hour of a warehouse.
    LastHour,
    /// The next ids of a customer, an address and a card.
    NextIds,
    /// The next id of an address.
    NextAddress,
}

/// All statements.
pub const STATEMENTS: [Statement; 27] = [
    Statement::Customer,
    Statement::Addresses,
    Statement::Cards,
    Statement::Logon,
    Statement::Product,
    Statement::Category,
    Statement::NewOrder,
    Statement::Stock,
    Statement::NewItem,
    Statement::CloseOrder,
    Statement::TakeStock,
    Statement::ByName,
    Statement::NewAddress,
    Statement::PreferAddress,
    Statement::NewCustomer,
    Statement::NewCard,
    Statement::WorkList,
    Statement::Ship,
    Statement::Orders,
    Statement::Items,
    Statement::OneMore,
    Statement::AddPrice,
    Statement::BestOrders,
    Statement::Totals,
    Statement::LastHour,
    Statement::NextIds,
    Statement::NextAddress,
];

/// A value bound to a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// An 8-byte integer; money is in cents.
    Int(i64),
    /// A text.
    Text(&'a str),
    /// A NULL number.
    Null,
}

/// A row that a statement returned: its first three columns are numbers, its fourth may be a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// `None` is NULL.
    pub numbers: [Option<i64>; 3],
    /// The fourth column.
    pub text: Option<String>,
}

impl Row {
    fn id(&self) -> i64 {
        self.numbers[0].unwrap_or(0)
    }
}

/// Sends statements.
pub trait Session {
    /// Why a statement failed.
    type Error;

    /// Sends a statement and waits for all its rows.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, Self::Error>;

    /// Pauses within a transaction.
    fn think(&mut self);

    /// Called when a logon has been recorded.
    ///
    /// # Errors
    /// As [`Session::send`].
    fn logged_on(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// What a transaction did before it ended or failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// SELECT statements.
    pub selects: u32,
    /// INSERT statements.
    pub inserts: u32,
    /// UPDATE statements.
    pub updates: u32,
    /// Logon rows written.
    pub logons: u32,
    /// Order lines written.
    pub lines: u32,
    /// 1 if UCD wrote an address, BO added a unit or PO shipped an order.
    pub found: u32,
}

impl Effects {
    /// Built from the values that a function returns, in the order of the fields.
    #[must_use]
    pub fn of(numbers: [i64; 6]) -> Self {
        let [selects, inserts, updates, logons, lines, found] = numbers.map(|n| u32::try_from(n).unwrap_or(0));
        Self { selects, inserts, updates, logons, lines, found }
    }
}

/// A transaction in progress.
struct Run<'a, 'b, S> {
    inputs: &'a Inputs<'b>,
    session: &'a mut S,
    done: Effects,
}

/// Performs a transaction statement by statement; the caller begins and commits it.
///
/// # Errors
/// The error of the first statement that failed.
pub fn perform<S: Session>(inputs: &Inputs<'_>, session: &mut S) -> Result<Effects, S::Error> {
    let mut run = Run { inputs, session, done: Effects::default() };
    match inputs.tx {
        Tx::CustomerRegistration => run.register(),
        Tx::UpdateCustomerDetails => run.update_details(),
        Tx::BrowseProducts => run.browse_products(),
        Tx::OrderProducts => run.order(),
        Tx::ProcessOrders => run.process(),
        Tx::BrowseOrders => run.browse_orders(),
        Tx::SalesRepQuery => run.query(Statement::BestOrders, inputs.sales_rep),
        Tx::WarehouseQuery => run.query(Statement::Totals, inputs.warehouse),
        Tx::WarehouseActivityQuery => run.query(Statement::LastHour, inputs.warehouse),
    }?;
    Ok(run.done)
}

use Value::{Int, Null, Text};

fn int(n: i32) -> Value<'static> {
    Int(i64::from(n))
}

fn maybe(n: Option<i64>) -> Value<'static> {
    n.map_or(Null, Int)
}

impl<S: Session> Run<'_, '_, S> {
    fn select(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, S::Error> {
        self.done.selects += 1;
        self.session.send(statement, values)
    }

    fn insert(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, S::Error> {
        self.done.inserts += 1;
        self.session.send(statement, values)
    }

    fn update(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<(), S::Error> {
        self.done.updates += 1;
        self.session.send(statement, values).map(drop)
    }

    /// L: looks up the customer and, in one case of three, records the logon.
    fn logon(&mut self, customer: i64) -> Result<(), S::Error> {
        self.select(Statement::Customer, &[Int(customer)])?;
        if self.inputs.logon {
            self.insert(Statement::Logon, &[Int(customer)])?;
            self.done.logons += 1;
            self.session.logged_on()?;
        }
        Ok(())
    }

    fn new_address(&mut self, address: i64, customer: i64) -> Result<(), S::Error> {
        let [town, county, country] = self.inputs.place;
        let values = [Int(address), Int(customer), int(self.inputs.house), Text(town), Text(county), Text(country)];
        self.insert(Statement::NewAddress, &values).map(drop)
    }

    fn register(&mut self) -> Result<(), S::Error> {
        let ids = self.session.send(Statement::NextIds, &[])?;
        let ids = ids.first().map(|row| row.numbers).unwrap_or_default();
        let [customer, address, card] = ids.map(|id| id.unwrap_or(0));
        let i = self.inputs;
        let values = [
            Int(customer),
            Text(i.first),
            Text(i.last),
            Text(i.language()),
            Text(i.territory),
            int(i.credit),
            int(i.manager),
            int(i.age_days),
            Int(address),
            Int(card),
        ];
        self.insert(Statement::NewCustomer, &values)?;
        self.new_address(address, customer)?;
        let values = [Int(card), Int(customer), Int(i.card), int(i.expires_days), int(i.security)];
        self.insert(Statement::NewCard, &values)?;
        self.session.think();
        self.logon(customer)?;
        self.select(Statement::Customer, &[Int(customer)]).map(drop)
    }

    fn update_details(&mut self) -> Result<(), S::Error> {
        let found = self.select(Statement::ByName, &[Text(self.inputs.last), Text(self.inputs.first)])?;
        self.session.think();
        let [first, _, ..] = found.as_slice() else {
            return Ok(());
        };
        let address = self.session.send(Statement::NextAddress, &[])?;
        let address = address.first().map_or(0, Row::id);
        self.new_address(address, first.id())?;
        self.done.found += 1;
        self.update(Statement::PreferAddress, &[Int(address), Int(first.id())])
    }

    fn browse_products(&mut self) -> Result<(), S::Error> {
        for product in &self.inputs.products[..self.inputs.looks] {
            self.select(Statement::Product, &[int(*product)])?;
            self.session.think();
        }
        Ok(())
    }

    fn order(&mut self) -> Result<(), S::Error> {
        let i = self.inputs;
        let customer = self.select(Statement::Customer, &[Int(i.customer)])?;
        let customer = customer.into_iter().next().unwrap_or_default();
        self.select(Statement::Addresses, &[Int(i.customer)])?;
        self.select(Statement::Cards, &[Int(i.customer)])?;
        self.session.think();
        self.logon(i.customer)?;
        self.session.think();
        let mut offered = Vec::new();
        for (category, warehouse) in i.categories.iter().zip(&i.warehouses).take(i.looks) {
            offered = self.select(Statement::Category, &[int(*category), int(*warehouse)])?;
            self.session.think();
        }
        let [address, card, _] = customer.numbers;
        let values = [
            Int(i.customer),
            int(i.warehouse),
            maybe(address),
            int(i.cost),
            Text(customer.text.as_deref().unwrap_or_default()),
            maybe(card),
        ];
        let head = self.insert(Statement::NewOrder, &values)?;
        let order = head.first().map_or(0, Row::id);
        self.session.think();
        let total = self.lines(order, &offered)?;
        self.update(Statement::CloseOrder, &[int(i.status), Int(total.cents), Int(order)])?;
        self.take(&total.taken[..self.done.lines as usize])
    }

    /// Writes the lines of an order.
    fn lines(&mut self, order: i64, offered: &[Row]) -> Result<Bought, S::Error> {
        let mut bought = Bought::default();
        let wanted = offered.iter().take(self.inputs.buys).zip(self.inputs.stocks);
        for (line, (product, warehouse)) in (1..).zip(wanted) {
            self.session.think();
            let stock = self.select(Statement::Stock, &[Int(product.id()), int(warehouse)])?;
            if stock.first().is_none_or(|row| row.id() <= 0) {
                continue;
            }
            let cents = product.numbers[1].unwrap_or(0);
            let values = [Int(order), Int(line), Int(product.id()), Int(cents)];
            self.insert(Statement::NewItem, &values)?;
            bought.taken[self.done.lines as usize] = (product.id(), i64::from(warehouse));
            bought.cents += cents;
            self.done.lines += 1;
        }
        Ok(bought)
    }

    /// S11 for each line, in the order of (product, warehouse), so that two orders lock common rows in the same order.
    fn take(&mut self, taken: &[(i64, i64)]) -> Result<(), S::Error> {
        let mut taken = taken.to_vec();
        taken.sort_unstable();
        for (product, warehouse) in taken {
            self.update(Statement::TakeStock, &[Int(product), Int(warehouse)])?;
        }
        Ok(())
    }

    fn process(&mut self) -> Result<(), S::Error> {
        let first = self.select(Statement::WorkList, &[int(self.inputs.warehouse)])?;
        self.session.think();
        let Some(order) = first.first().map(Row::id) else {
            return Ok(());
        };
        self.done.updates += 1;
        let values = [int(self.inputs.status), Int(order)];
        // Two sessions may have read the same order: the one whose statement finds it unshipped ships it.
        let shipped = self.session.send(Statement::Ship, &values)?;
        self.done.found += u32::from(!shipped.is_empty());
        Ok(())
    }

    fn browse_orders(&mut self) -> Result<(), S::Error> {
        let i = self.inputs;
        self.select(Statement::Customer, &[Int(i.customer)])?;
        self.select(Statement::Addresses, &[Int(i.customer)])?;
        self.session.think();
        self.logon(i.customer)?;
        self.session.think();
        let orders = self.select(Statement::Orders, &[Int(i.customer)])?;
        let Some(order) = not_the_last(&orders, i.picks[0]).map(Row::id) else {
            return Ok(());
        };
        let items = self.select(Statement::Items, &[Int(order)])?;
        let Some(item) = not_the_last(&items, i.picks[1]).or(items.first()) else {
            return Ok(());
        };
        self.done.found += 1;
        self.update(Statement::OneMore, &[Int(order), Int(item.id())])?;
        let cents = item.numbers[1].unwrap_or(0);
        self.update(Statement::AddPrice, &[Int(cents), Int(order)])
    }

    fn query(&mut self, statement: Statement, of: i32) -> Result<(), S::Error> {
        self.select(statement, &[int(of)])?;
        self.session.think();
        Ok(())
    }
}

/// The total of an order and what it takes from stock.
#[derive(Default)]
struct Bought {
    cents: i64,
    /// Product and warehouse of each line.
    taken: [(i64, i64); BUYS_MAX],
}

/// Picks a row other than the last; `None` if there are fewer than two.
fn not_the_last(rows: &[Row], pick: u32) -> Option<&Row> {
    match rows.len() {
        0 | 1 => None,
        n => rows.get(pick as usize % (n - 1)),
    }
}
