//! The transactions as procedures that the server performs by itself: the steps of `assay_orders::program` on the same
//! inputs. A call is one transaction and returns its effects. Lists of numbers are passed as text, four digits each.

use super::ddl::Named;
use super::statements::{NEW_ITEM, hour, totals, work_list};
use crate::mariadb::product::Product;
use crate::orders::text::{BEST, PRODUCT, filled};
use assay_orders::checks::Words;
use assay_orders::mix::Tx;
use assay_orders::model::SEQUENCES;

/// Last arguments of every procedure.
const PAUSE: &str = "p_min double, p_max double";

/// A procedure: its arguments before the pause, its variables, its body.
struct Procedure {
    tx: Tx,
    arguments: &'static str,
    variables: &'static str,
    body: &'static str,
}

/// The procedure's name.
pub(super) fn name(tx: Tx) -> String {
    format!("soe_{}", tx.key())
}

/// In the order of [`assay_orders::mix::ALL`].
const PROCEDURES: [Procedure; 9] = [
        Procedure {
            tx: Tx::CustomerRegistration,
            arguments: "p_first varchar(40), p_last varchar(40), p_lang varchar(3), p_terr varchar(90), p_town varchar(60), \
                        p_county varchar(60), p_country varchar(60), p_house int, p_credit int, p_mgr int, p_age int, \
                        p_card bigint, p_expires int, p_sec int, p_logon int",
            variables: "declare v_c bigint default nextval(customer_seq); declare v_a bigint default nextval(address_seq); \
                        declare v_k bigint default nextval(card_details_seq);",
            body: "
  {NEW_CUSTOMER} values (v_c, p_first, p_last, p_lang, p_terr, p_credit, concat(p_first, '.', p_last, '@oracle.com'), p_mgr,
    utc_date(), 'Occasional', 'Music', utc_date() - interval p_age day, 'Y', 'N', v_a, v_k);
  {NEW_ADDRESS} values (v_a, v_c, date_format(utc_timestamp(), '%Y-%m-%d %H:%i:00'), p_house, 'Street Name', p_town, p_county,
    p_country, 'Postcode', null);
  {NEW_CARD} values (v_k, v_c, 'Visa(Debit)', p_card, utc_date() + interval p_expires day, 'Y', p_sec);
  {PAUSE}
  set p_customer = v_c;
  {LOGON}
  select count(*) into v_n from ({CUSTOMER} from customers where customer_id = v_c limit 14) s;
  set o_selects = 2, o_inserts = 3 + o_logons;",
        },
        Procedure {
            tx: Tx::UpdateCustomerDetails,
            arguments: "p_first varchar(40), p_last varchar(40), p_town varchar(60), p_county varchar(60), p_country varchar(60), \
                        p_house int",
            variables: "declare v_c, v_a bigint;",
            body: "
  select count(*), min(s.customer_id) into v_n, v_c from
    ({CUSTOMER} from customers where l_last = lower(p_last) and l_first = lower(p_first) limit 14) s;
  set o_selects = 1;
  {PAUSE}
  if v_n > 1 then
    set v_a = nextval(address_seq);
    {NEW_ADDRESS} values (v_a, v_c, date_format(utc_timestamp(), '%Y-%m-%d %H:%i:00'), p_house, 'Street Name', p_town, p_county,
      p_country, 'Postcode', null);
    update customers set preferred_address = v_a where customer_id = v_c;
    set o_inserts = 1, o_updates = 1, o_found = 1;
  end if;",
        },
        Procedure {
            tx: Tx::BrowseProducts,
            arguments: "p_products varchar(96), p_n int",
            variables: "",
            body: "
  while v_i < p_n do
    set v_i = v_i + 1;
    set v_id = substr(p_products, 4 * v_i - 3, 4);
    select count(*) into v_n from ({PRODUCT} {OFFERED} where p.product_id = v_id limit 14) s;
    {PAUSE}
  end while;
  set o_selects = p_n;",
        },
        Procedure {
            tx: Tx::OrderProducts,
            arguments: "p_customer bigint, p_logon int, p_categories varchar(96), p_warehouses varchar(96), p_n int, \
                        p_warehouse int, p_cost int, p_buys int, p_stocks varchar(32), p_status int",
            variables: "declare v_class varchar(40); declare v_address, v_card, v_o, v_cents, v_total bigint default 0; \
                        declare v_place, v_stock int; declare v_ps, v_prices, v_taken varchar(400) default '';",
            body: "
  select s.customer_class, s.preferred_address, s.preferred_card into v_class, v_address, v_card
    from ({CUSTOMER} from customers where customer_id = p_customer limit 14) s;
  select count(*) into v_n from ({ADDRESS} from addresses where customer_id = p_customer limit 14) s;
  select count(*) into v_n from ({CARD} from card_details where customer_id = p_customer limit 14) s;
  {PAUSE}
  {LOGON}
  {PAUSE}
  while v_i < p_n do
    set v_i = v_i + 1;
    set v_id = substr(p_categories, 4 * v_i - 3, 4), v_place = substr(p_warehouses, 4 * v_i - 3, 4);
    select count(*), group_concat(lpad(s.product_id, 4, '0') separator ''),
      group_concat(lpad(cast(s.list_price * 100 as signed), 8, '0') separator '') into v_n, v_ps, v_prices
      from ({PRODUCT} {OFFERED} where p.category_id = v_id and v.warehouse_id = v_place limit 14) s;
    {PAUSE}
  end while;
  set v_o = nextval(orders_seq);
  {NEW_ORDER} values (v_o, utc_timestamp(6), 'online', p_customer, 1, p_warehouse, 'Standard', v_address, p_cost, 'ship_asap',
    v_class, v_card, v_address);
  set o_selects = 4 + p_n, o_inserts = 1 + o_logons;
  {PAUSE}
  set v_i = 0;
  while v_i < least(p_buys, v_n) do
    {PAUSE}
    set v_i = v_i + 1;
    set v_id = substr(v_ps, 4 * v_i - 3, 4), v_place = substr(p_stocks, 4 * v_i - 3, 4), v_cents = substr(v_prices, 8 * v_i - 7, 8),
      v_stock = 0;
    select v.quantity_on_hand into v_stock from inventories v join product_information p using (product_id)
      where v.product_id = v_id and v.warehouse_id = v_place;
    set o_selects = o_selects + 1;
    if v_stock > 0 then
      {NEW_ITEM} values (v_o, v_i, v_id, v_cents / 100, 1, 'None', 'New', utc_date() + interval 3 day);
      set v_total = v_total + v_cents, o_lines = o_lines + 1;
      set v_taken = concat(v_taken, lpad(v_id, 4, '0'), lpad(v_place, 4, '0'));
    end if;
  end while;
  update orders set order_mode = 'online', order_status = p_status, order_total = v_total / 100 where order_id = v_o;
  select group_concat(s.t order by s.t separator ''), 0 into v_taken, v_i from (select substr(v_taken, 8 * n.j - 7, 8) as t
    from (with recursive t as (select 1 as j union all select j + 1 from t where j < 8) select j from t) n where n.j <= o_lines) s;
  while v_i < o_lines do
    set v_i = v_i + 1;
    set v_id = substr(v_taken, 8 * v_i - 7, 4), v_place = substr(v_taken, 8 * v_i - 3, 4);
    update inventories set quantity_on_hand = quantity_on_hand - 1 where product_id = v_id and warehouse_id = v_place;
  end while;
  set o_inserts = o_inserts + o_lines, o_updates = 1 + o_lines;",
        },
        Procedure {
            tx: Tx::ProcessOrders,
            arguments: "p_warehouse int, p_status int",
            variables: "declare v_o bigint;",
            body: "
  select s.order_id into v_o from ({WORK_LIST}) s;
  set o_selects = 1;
  {PAUSE}
  if v_o is not null then
    update orders set order_status = p_status where order_id = v_o and order_status <= 4;
    set o_found = row_count(), o_updates = 1;
  end if;",
        },
        Procedure {
            tx: Tx::BrowseOrders,
            arguments: "p_customer bigint, p_logon int, p_pick1 bigint, p_pick2 bigint",
            variables: "declare v_at, v_line bigint; declare v_price decimal(10, 2); declare v_ids varchar(400);",
            body: "
  select count(*) into v_n from ({CUSTOMER} from customers where customer_id = p_customer limit 14) s;
  select count(*) into v_n from ({ADDRESS} from addresses where customer_id = p_customer limit 14) s;
  {PAUSE}
  {LOGON}
  {PAUSE}
  set o_inserts = o_logons, o_selects = 4;
  select count(*), group_concat(lpad(s.order_id, 16, '0') separator '') into v_n, v_ids
    from (select * from orders where customer_id = p_customer limit 14) s;
  if v_n > 1 then
    set v_id = substr(v_ids, 16 * (p_pick1 % (v_n - 1)) + 1, 16);
    select count(*), group_concat(concat(lpad(s.line_item_id, 4, '0'), lpad(s.unit_price, 12, '0')) separator '') into v_n, v_ids
      from (select * from order_items where order_id = v_id limit 14) s;
    set o_selects = 5;
    if v_n > 0 then
      set v_at = 16 * (p_pick2 % greatest(v_n - 1, 1));
      set v_line = substr(v_ids, v_at + 1, 4), v_price = substr(v_ids, v_at + 5, 12);
      update order_items set quantity = quantity + 1 where order_id = v_id and line_item_id = v_line;
      update orders set order_total = order_total + v_price where order_id = v_id;
      set o_updates = 2, o_found = 1;
    end if;
  end if;",
        },
        Procedure {
            tx: Tx::SalesRepQuery,
            arguments: "p_of int",
            variables: "",
            body: "\n  select count(*) into v_n from ({BEST}) s;\n  set o_selects = 1;\n  {PAUSE}",
        },
        Procedure {
            tx: Tx::WarehouseQuery,
            arguments: "p_of int",
            variables: "",
            body: "\n  select count(*) into v_n from ({TOTALS}) s;\n  set o_selects = 1;\n  {PAUSE}",
        },
        Procedure {
            tx: Tx::WarehouseActivityQuery,
            arguments: "p_of int",
            variables: "",
            body: "\n  select count(*) into v_n from ({HOUR}) s;\n  set o_selects = 1;\n  {PAUSE}",
        },
];

/// The server keeps a derived table in memory only if it has no value longer than 512 characters. With the full
/// description, each product query created a file, which took ten times as long as everything else.
const LONG: &str = "p.product_description,";
const SHORTER: &str = "left(p.product_description, 512) as description,";

const LOGON: &str =
    "select count(*) into v_n from ({CUSTOMER} from customers where customer_id = p_customer limit 14) s;
  if p_logon then
    insert into logon (logon_id, customer_id, logon_date) values (nextval(logon_seq), p_customer, utc_timestamp());
    set o_logons = 1;
    if @soe_commit_logon then commit; start transaction; end if;
  end if;";

/// Makes a session's calls commit a logon separately.
pub(super) const COMMIT_LOGON: &str = "set @soe_commit_logon = 1";

/// All statements that create procedures, in order; existing ones are dropped first.
pub(super) fn create(names: &Named, product: Product) -> Vec<String> {
    PROCEDURES
        .iter()
        .flat_map(|procedure| {
            let name = names.relation(&name(procedure.tx));
            [format!("drop procedure if exists {name}"), one(&name, procedure, product)]
        })
        .collect()
}

/// Indexes in [`SEQUENCES`] of the sequences that a procedure's caller draws from; none if the server has sequences.
pub(super) fn drawn(tx: Tx, product: Product) -> Vec<usize> {
    let Procedure { body: text, variables, .. } = &PROCEDURES[tx.index()];
    let text = body(text) + variables;
    let drawn = SEQUENCES
        .iter()
        .enumerate()
        .filter(|(_, (name, ..))| !product.has_sequences() && text.contains(&nextval(name)));
    drawn.map(|(at, _)| at).collect()
}

fn nextval(sequence: &str) -> String {
    format!("nextval({sequence})")
}

fn one(name: &str, procedure: &Procedure, product: Product) -> String {
    // Only the procedure itself knows a new customer.
    let customer = if procedure.arguments.contains("p_customer") { "" } else { "declare p_customer bigint; " };
    let (begin, commit) = if procedure.tx.reads_only() { ("", "") } else { ("start transaction;", "commit;") };
    let text = format!(
        "create procedure {name}({}, {PAUSE}{{DRAWN}}) sql security invoker modifies sql data begin {customer}\
         declare v_n, v_i int default 0; declare v_id bigint; \
         declare o_selects, o_inserts, o_updates, o_logons, o_lines, o_found bigint default 0; {} {begin}{}\n  {commit} \
         select o_selects, o_inserts, o_updates, o_logons, o_lines, o_found; end",
        procedure.arguments,
        procedure.variables,
        body(procedure.body)
    );
    let mut arguments = String::new();
    let drawn = drawn(procedure.tx, product).into_iter();
    let text = drawn.fold(text, |text, at| {
        let argument = format!("p_{}", SEQUENCES[at].0);
        arguments.push_str(&format!(", {argument} bigint"));
        text.replace(&nextval(SEQUENCES[at].0), &argument)
    });
    text.replace("{DRAWN}", &arguments)
}

fn body(text: &str) -> String {
    let query = |text: &str, argument: &str| text.replace("$1", argument);
    let pause = "if p_max > 0 then do sleep(p_min + rand() * (p_max - p_min)); end if;";
    let parts = [
        ("{LOGON}", LOGON.to_owned()),
        ("{PAUSE}", pause.to_owned()),
        ("{NEW_ITEM}", NEW_ITEM.to_owned()),
        ("{PRODUCT}", PRODUCT.replace(LONG, SHORTER)),
        ("{WORK_LIST}", query(&work_list("select o.order_id, "), "p_warehouse")),
        ("{BEST}", query(BEST, "p_of")),
        ("{TOTALS}", query(&totals("select "), "p_of")),
        ("{HOUR}", query(&hour("select "), "p_of")),
    ];
    filled(text, &parts)
}

/// The call of a procedure, including the pause and the caller's sequence numbers.
pub(super) fn call(tx: Tx, product: Product) -> String {
    let arguments = PROCEDURES[tx.index()].arguments.split(", ").count();
    let arguments = arguments + 2 + drawn(tx, product).len();
    format!("call {}({})", name(tx), vec!["?"; arguments].join(", "))
}
