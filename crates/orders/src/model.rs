//! The tables, keys, indexes and sequences of the data set, independent of any database's SQL dialect.

use Type::{Big, Date, Instant, Int, Money, Months, Small, Text, Time};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 8-byte integer.
    Big,
    /// 4-byte integer.
    Int,
    /// 2-byte integer.
    Small,
    /// Decimal number with this many digits in total, two of them after the point.
    Money(u8),
    /// Text of at most this many characters.
    Text(u16),
    /// A date.
    Date,
    /// A local time in whole seconds.
    Time,
    /// A point in time with microseconds.
    Instant,
    /// A period in whole months.
    Months,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    /// Whether it is NOT NULL.
    pub required: bool,
}

const fn must(name: &'static str, kind: Type) -> Column {
    Column { name, kind, required: true }
}

const fn may(name: &'static str, kind: Type) -> Column {
    Column { name, kind, required: false }
}

/// The ten tables with generated rows, parents before children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Customers.
    Customers,
    /// Addresses of customers.
    Addresses,
    /// Payment cards of customers.
    CardDetails,
    /// Warehouses.
    Warehouses,
    /// Products.
    ProductInformation,
    /// Product descriptions in other languages.
    ProductDescriptions,
    /// Stock of each product by warehouse.
    Inventories,
    /// Orders, without their lines.
    Orders,
    /// Lines of orders.
    OrderItems,
    /// Logons of customers.
    Logon,
}

/// All tables.
pub const TABLES: [Table; 10] = [
    Table::Customers,
    Table::Addresses,
    Table::CardDetails,
    Table::Warehouses,
    Table::ProductInformation,
    Table::ProductDescriptions,
    Table::Inventories,
    Table::Orders,
    Table::OrderItems,
    Table::Logon,
];

/// The table that describes the data set: keys and values.
pub const METADATA: &str = "orderentry_metadata";
/// Maximum length of a value there, in characters.
pub const METADATA_CHARS: u16 = 200;

/// The sequences, each with the table and column that it numbers.
pub const SEQUENCES: [(&str, Table, &str); 5] = [
    ("customer_seq", Table::Customers, "customer_id"),
    ("orders_seq", Table::Orders, "order_id"),
    ("address_seq", Table::Addresses, "address_id"),
    ("logon_seq", Table::Logon, "logon_id"),
    ("card_details_seq", Table::CardDetails, "card_id"),
];

/// The views.
pub const VIEWS: [&str; 2] = ["products", "product_prices"];

/// A secondary index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its table.
    pub table: Table,
    /// Its columns, in order.
    pub columns: &'static [&'static str],
    /// Whether the index is on the lower-case form of the columns.
    pub lower: bool,
}

const fn index(name: &'static str, table: Table, columns: &'static [&'static str]) -> Index {
    Index { name, table, columns, lower: false }
}

/// The 18 secondary indexes.
pub const INDEXES: [Index; 18] = [
    index("address_cust_ix", Table::Addresses, &["customer_id"]),
    index("carddetails_cust_ix", Table::CardDetails, &["customer_id"]),
    index("cust_account_manager_ix", Table::Customers, &["account_mgr_id"]),
    index("cust_dob_ix", Table::Customers, &["dob"]),
    index("cust_email_ix", Table::Customers, &["cust_email"]),
    Index { lower: true, ..index("cust_func_lower_name_ix", Table::Customers, &["cust_last_name", "cust_first_name"]) },
    index("inv_product_ix", Table::Inventories, &["product_id"]),
    index("inv_warehouse_ix", Table::Inventories, &["warehouse_id"]),
    index("item_order_ix", Table::OrderItems, &["order_id"]),
    index("item_product_ix", Table::OrderItems, &["product_id"]),
    index("ord_customer_ix", Table::Orders, &["customer_id"]),
    index("ord_order_date_ix", Table::Orders, &["order_date"]),
    index("ord_sales_rep_ix", Table::Orders, &["sales_rep_id"]),
    index("ord_warehouse_ix", Table::Orders, &["warehouse_id", "order_status"]),
    index("prod_category_ix", Table::ProductInformation, &["category_id"]),
    index("prod_supplier_ix", Table::ProductInformation, &["supplier_id"]),
    index("prod_name_ix", Table::ProductDescriptions, &["translated_name"]),
    index("whs_location_ix", Table::Warehouses, &["location_id"]),
];

/// A foreign key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its name.
    pub name: &'static str,
    /// The referencing table.
    pub table: Table,
    /// The column, which has the same name in both tables.
    pub column: &'static str,
    /// The referenced table.
    pub parent: Table,
    /// SQL action on rows when their parent is deleted; empty: deletion is refused.
    pub on_delete: &'static str,
}

/// All seven foreign keys.
pub const REFERENCES: [Reference; 7] = {
    const fn to(
        name: &'static str,
        table: Table,
        column: &'static str,
        parent: Table,
        on_delete: &'static str,
    ) -> Reference {
        Reference { name, table, column, parent, on_delete }
    }
    [
        to("orders_customer_id_fk", Table::Orders, "customer_id", Table::Customers, "on delete set null"),
        to("order_items_order_id_fk", Table::OrderItems, "order_id", Table::Orders, "on delete cascade"),
        to("order_items_product_id_fk", Table::OrderItems, "product_id", Table::ProductInformation, ""),
        to("inventories_warehouse_id_fk", Table::Inventories, "warehouse_id", Table::Warehouses, ""),
        to("inventories_product_id_fk", Table::Inventories, "product_id", Table::ProductInformation, ""),
        to("add_cust_fk", Table::Addresses, "customer_id", Table::Customers, ""),
        to("pd_product_id_fk", Table::ProductDescriptions, "product_id", Table::ProductInformation, ""),
    ]
};

/// Check constraints: name, table, SQL expression.
pub const RULES: [(&str, Table, &str); 5] = [
    ("customer_credit_limit_max", Table::Customers, "credit_limit <= 50000"),
    ("customer_id_min", Table::Customers, "customer_id > 0"),
    ("order_mode_lov", Table::Orders, "order_mode in ('direct', 'online')"),
    ("order_total_min", Table::Orders, "order_total >= 0"),
    (
        "product_status_lov",
        Table::ProductInformation,
        "product_status in ('orderable', 'planned', 'under development', 'obsolete')",
    ),
];

impl Table {
    /// Its name in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Customers => "customers",
            Self::Addresses => "addresses",
            Self::CardDetails => "card_details",
            Self::Warehouses => "warehouses",
            Self::ProductInformation => "product_information",
            Self::ProductDescriptions => "product_descriptions",
            Self::Inventories => "inventories",
            Self::Orders => "orders",
            Self::OrderItems => "order_items",
            Self::Logon => "logon",
        }
    }

    /// The table of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TABLES.into_iter().find(|table| table.name() == name)
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Customers => CUSTOMERS,
            Self::Addresses => ADDRESSES,
            Self::CardDetails => CARD_DETAILS,
            Self::Warehouses => WAREHOUSES,
            Self::ProductInformation => PRODUCT_INFORMATION,
            Self::ProductDescriptions => PRODUCT_DESCRIPTIONS,
            Self::Inventories => INVENTORIES,
            Self::Orders => ORDERS,
            Self::OrderItems => ORDER_ITEMS,
            Self::Logon => LOGON,
        }
    }

    /// The columns of its primary key; `logon` has none.
    #[must_use]
    pub fn key(self) -> &'static [&'static str] {
        match self {
            Self::Customers => &["customer_id"],
            Self::Addresses => &["address_id"],
            Self::CardDetails => &["card_id"],
            Self::Warehouses => &["warehouse_id"],
            Self::ProductInformation => &["product_id"],
            Self::ProductDescriptions => &["product_id", "language_id"],
            Self::Inventories => &["product_id", "warehouse_id"],
            Self::Orders => &["order_id"],
            Self::OrderItems => &["order_id", "line_item_id"],
            Self::Logon => &[],
        }
    }

    /// The column for hash partitioning, if the data set is partitioned; `None` if the table is never partitioned.
    #[must_use]
    pub fn hashed_by(self) -> Option<&'static str> {
        match self {
            Self::Customers | Self::CardDetails | Self::Logon => Some("customer_id"),
            Self::Addresses => Some("address_id"),
            Self::Orders | Self::OrderItems => Some("order_id"),
            _ => None,
        }
    }

    /// The partitioning column on a server where the primary key must contain it.
    #[must_use]
    pub fn hashed_by_key(self) -> Option<&'static str> {
        match self {
            Self::CardDetails => Some("card_id"),
            Self::Logon => Some("logon_id"),
            other => other.hashed_by(),
        }
    }
}

const CUSTOMERS: &[Column] = &[
    must("customer_id", Big),
    must("cust_first_name", Text(40)),
    must("cust_last_name", Text(40)),
    may("nls_language", Text(3)),
    may("nls_territory", Text(90)),
    may("credit_limit", Money(9)),
    may("cust_email", Text(100)),
    may("account_mgr_id", Big),
    may("customer_since", Date),
    may("customer_class", Text(40)),
    may("suggestions", Text(40)),
    may("dob", Date),
    may("mailshot", Text(1)),
    may("partner_mailshot", Text(1)),
    may("preferred_address", Big),
    may("preferred_card", Big),
];

const ADDRESSES: &[Column] = &[
    must("address_id", Big),
    must("customer_id", Big),
    must("date_created", Time),
    may("house_no_or_name", Text(60)),
    may("street_name", Text(60)),
    may("town", Text(60)),
    may("county", Text(60)),
    may("country", Text(60)),
    may("post_code", Text(12)),
    may("zip_code", Text(12)),
];

const CARD_DETAILS: &[Column] = &[
    must("card_id", Big),
    must("customer_id", Big),
    must("card_type", Text(60)),
    must("card_number", Big),
    must("expiry_date", Date),
    must("is_valid", Text(30)),
    may("security_code", Int),
];

const WAREHOUSES: &[Column] = &[must("warehouse_id", Int), may("warehouse_name", Text(35)), may("location_id", Small)];

const PRODUCT_INFORMATION: &[Column] = &[
    must("product_id", Int),
    must("product_name", Text(50)),
    may("product_description", Text(2000)),
    must("category_id", Small),
    may("weight_class", Small),
    may("warranty_period", Months),
    may("supplier_id", Int),
    may("product_status", Text(20)),
    may("list_price", Money(8)),
    may("min_price", Money(8)),
    may("catalog_url", Text(50)),
];

const PRODUCT_DESCRIPTIONS: &[Column] = &[
    must("product_id", Int),
    must("language_id", Text(3)),
    must("translated_name", Text(50)),
    must("translated_description", Text(2000)),
];

const INVENTORIES: &[Column] = &[must("product_id", Int), must("warehouse_id", Int), must("quantity_on_hand", Int)];

const ORDERS: &[Column] = &[
    must("order_id", Big),
    must("order_date", Instant),
    may("order_mode", Text(8)),
    may("customer_id", Big),
    may("order_status", Small),
    may("order_total", Money(10)),
    may("sales_rep_id", Int),
    may("promotion_id", Int),
    may("warehouse_id", Int),
    may("delivery_type", Text(60)),
    may("cost_of_delivery", Int),
    may("wait_till_all_available", Text(60)),
    may("delivery_address_id", Big),
    may("customer_class", Text(60)),
    may("card_id", Big),
    may("invoice_address_id", Big),
];

const ORDER_ITEMS: &[Column] = &[
    must("order_id", Big),
    must("line_item_id", Small),
    must("product_id", Int),
    may("unit_price", Money(8)),
    may("quantity", Int),
    may("dispatch_date", Date),
    may("return_date", Date),
    may("gift_wrap", Text(45)),
    may("condition", Text(45)),
    may("supplier_id", Int),
    may("estimated_delivery", Date),
];

const LOGON: &[Column] = &[must("logon_id", Big), must("customer_id", Big), must("logon_date", Time)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_indexes_references_and_sequences_name_columns_that_are_there() {
        let has = |table: Table, name: &str| table.columns().iter().any(|c| c.name == name);
        for table in TABLES {
            assert_eq!(Table::named(table.name()), Some(table));
            for key in table.key() {
                let column = table.columns().iter().find(|c| c.name == *key);
                assert!(column.is_some_and(|c| c.required), "{key}");
            }
        }
        for index in INDEXES {
            assert!(index.columns.iter().all(|c| has(index.table, c)), "{}", index.name);
        }
        for one in REFERENCES {
            assert!(has(one.table, one.column) && one.parent.key().contains(&one.column));
        }
        for (_, table, column) in SEQUENCES {
            assert!(has(table, column));
        }
        let columns: usize = TABLES.iter().map(|table| table.columns().len()).sum();
        assert_eq!(columns, 16 + 10 + 7 + 3 + 11 + 4 + 3 + 16 + 11 + 3);
    }
}
