//! The nine transactions and their weights.

use serde::{Deserialize, Serialize};

/// A transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tx {
    /// Registers a customer with an address and a card.
    CustomerRegistration,
    /// Adds a new preferred address.
    UpdateCustomerDetails,
    /// Views products.
    BrowseProducts,
    /// Orders products.
    OrderProducts,
    /// Ships an order of a warehouse.
    ProcessOrders,
    /// Views a customer's orders and adds one unit to a line.
    BrowseOrders,
    /// Lists the best orders of a sales representative.
    SalesRepQuery,
    /// Totals the orders of a warehouse by mode.
    WarehouseQuery,
    /// Lists the last hour of a warehouse.
    WarehouseActivityQuery,
}

/// All transactions, in the order of every list.
pub const ALL: [Tx; 9] = [
    Tx::CustomerRegistration,
    Tx::UpdateCustomerDetails,
    Tx::BrowseProducts,
    Tx::OrderProducts,
    Tx::ProcessOrders,
    Tx::BrowseOrders,
    Tx::SalesRepQuery,
    Tx::WarehouseQuery,
    Tx::WarehouseActivityQuery,
];

/// The names of the transactions in records, in the order of [`ALL`].
pub const KINDS: &[&str] = &[
    "customer_registration",
    "update_customer_details",
    "browse_products",
    "order_products",
    "process_orders",
    "browse_orders",
    "sales_rep_query",
    "warehouse_query",
    "warehouse_activity_query",
];

impl Tx {
    /// Its index in [`ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its short name.
    #[must_use]
    pub fn short(self) -> &'static str {
        ["NCR", "UCD", "BP", "OP", "PO", "BO", "SQ", "WQ", "WA"][self.index()]
    }

    /// Its name in records.
    #[must_use]
    pub fn key(self) -> &'static str {
        KINDS[self.index()]
    }

    /// Its name in Swingbench results.
    #[must_use]
    pub fn title(self) -> &'static str {
        [
            "Customer Registration",
            "Update Customer Details",
            "Browse Products",
            "Order Products",
            "Process Orders",
            "Browse Orders",
            "Sales Rep Query",
            "Warehouse Query",
            "Warehouse Activity Query",
        ][self.index()]
    }

    /// Whether it only reads.
    #[must_use]
    pub fn reads_only(self) -> bool {
        matches!(self, Self::BrowseProducts | Self::SalesRepQuery | Self::WarehouseQuery | Self::WarehouseActivityQuery)
    }

    /// Whether it may record a logon.
    #[must_use]
    pub fn logs_on(self) -> bool {
        matches!(self, Self::CustomerRegistration | Self::OrderProducts | Self::BrowseOrders)
    }

    /// The transaction with this short name, ignoring case.
    #[must_use]
    pub fn of_short(name: &str) -> Option<Self> {
        ALL.into_iter().find(|tx| tx.short().eq_ignore_ascii_case(name))
    }
}

/// A published mix: weights in the order of [`ALL`], and its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name in assay.
    pub name: &'static str,
    /// The release that has it.
    pub about: &'static str,
    weights: [u32; 9],
    /// Transactions that are part of the mix but switched off.
    off: &'static [Tx],
    /// Default number of sessions.
    pub users: u32,
}

/// The published mixes.
pub const PRESETS: [Preset; 3] = [
    Preset {
        name: "current",
        about: "2.7 and later, server side",
        weights: [15, 10, 50, 40, 5, 5, 2, 2, 2],
        off: &[Tx::SalesRepQuery, Tx::WarehouseQuery, Tx::WarehouseActivityQuery],
        users: 16,
    },
    Preset {
        name: "classic",
        about: "2.6, server side",
        weights: [15, 10, 90, 40, 5, 15, 2, 1, 1],
        off: &[],
        users: 4,
    },
    Preset {
        name: "classic-client",
        about: "2.6, client side",
        weights: [20, 10, 90, 50, 5, 15, 2, 1, 1],
        off: &[],
        users: 4,
    },
];

/// Names of [`PRESETS`].
pub const PRESET_NAMES: &[&str] = &["current", "classic", "classic-client"];

/// The weights of a run's transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// The preset it is based on.
    pub preset: String,
    /// Weights in the order of [`ALL`]; 0 for transactions that are not performed.
    pub weights: [u32; 9],
}

impl Mix {
    /// A preset with some transactions switched off or on.
    ///
    /// # Errors
    /// If the preset or a short name is unknown, or no transaction is left.
    pub fn new(preset: &str, disable: &str, enable: &str) -> Result<Self, String> {
        let found = PRESETS.iter().find(|known| known.name == preset);
        let found = found.ok_or_else(|| format!("{preset} is not a mix; give one of {}", PRESET_NAMES.join(", ")))?;
        let mut on: [bool; 9] = ALL.map(|tx| !found.off.contains(&tx));
        for (list, state) in [(disable, false), (enable, true)] {
            for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                let tx = Tx::of_short(name).ok_or_else(|| {
                    format!("{name} is not a transaction; give one of {}", ALL.map(Tx::short).join(", "))
                })?;
                on[tx.index()] = state;
            }
        }
        let weights = ALL.map(|tx| if on[tx.index()] { found.weights[tx.index()] } else { 0 });
        if weights.iter().sum::<u32>() == 0 {
            return Err("every transaction is disabled: nothing is left to do".to_owned());
        }
        Ok(Self { preset: preset.to_owned(), weights })
    }

    /// Its preset.
    #[must_use]
    pub fn preset(&self) -> Option<&'static Preset> {
        PRESETS.iter().find(|known| known.name == self.preset)
    }

    /// Sum of the weights.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.weights.iter().sum()
    }

    /// The transaction for a draw below [`Mix::total`].
    #[must_use]
    pub fn pick(&self, draw: u32) -> Tx {
        let mut left = draw;
        for (tx, weight) in ALL.into_iter().zip(self.weights) {
            if left < weight {
                return tx;
            }
            left -= weight;
        }
        ALL[self.weights.iter().rposition(|weight| *weight > 0).unwrap_or(0)]
    }

    /// The transactions that are performed.
    pub fn enabled(&self) -> impl Iterator<Item = Tx> + '_ {
        ALL.into_iter().filter(|tx| self.weights[tx.index()] > 0)
    }

    /// The mix as shown in reports: `NCR 15, UCD 10, ...`
    #[must_use]
    pub fn told(&self) -> String {
        let told = |tx: Tx| format!("{} {}", tx.short(), self.weights[tx.index()]);
        self.enabled().map(told).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_published_weights() {
        let current = Mix::new("current", "", "").expect("it is one");
        assert_eq!(current.told(), "NCR 15, UCD 10, BP 50, OP 40, PO 5, BO 5");
        let classic = Mix::new("classic", "SQ,wq,WA", "").expect("it is one");
        assert_eq!(classic.told(), "NCR 15, UCD 10, BP 90, OP 40, PO 5, BO 15");
        let with = Mix::new("current", "", "SQ").expect("it is one");
        assert_eq!(with.weights[Tx::SalesRepQuery.index()], 2);
        assert_eq!(PRESETS.map(|preset| preset.name), PRESET_NAMES[..]);
    }

    #[test]
    fn a_draw_of_every_number_gives_each_transaction_its_weight() {
        let mix = Mix::new("classic", "", "").expect("it is one");
        let mut seen = [0; 9];
        for draw in 0..mix.total() {
            seen[mix.pick(draw).index()] += 1;
        }
        assert_eq!(seen, mix.weights);
    }

    #[test]
    fn what_cannot_be_is_told() {
        assert!(Mix::new("new", "", "").expect_err("none").contains("current, classic"));
        assert!(Mix::new("current", "XX", "").expect_err("none").contains("XX is not a transaction"));
        let all = "NCR,UCD,BP,OP,PO,BO";
        assert!(Mix::new("current", all, "").expect_err("none").contains("nothing is left"));
    }
}
