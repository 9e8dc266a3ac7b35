//! The transactions as procedures of the package ORDERENTRY that the server performs by itself: the steps of
//! `assay_orders::program` on the same inputs. A call is one transaction, including its commit, and returns its
//! effects. Lists of numbers are passed as text, four digits each.

use super::statements::{HOUR, NEW_ITEM, TOTALS, WORK_LIST};
use crate::orders::text::{BEST, NEW_ADDRESS, filled};
use assay_orders::mix::Tx;

/// The package.
pub(super) const PACKAGE: &str = "orderentry";
/// Last arguments of every procedure: the range of the pause, in microseconds, and the output of its effects.
const TAIL: &str = "p_min number, p_max number, o_done out varchar2";
/// Makes a session's calls commit a logon separately.
pub(super) const COMMIT_LOGON: &str = "begin orderentry.commits_logons := true; end;";
/// The first version whose users may sleep without a privilege.
const SLEEPS: u32 = 18;

/// A procedure: its arguments before the tail, its variables, its body.
struct Procedure {
    tx: Tx,
    arguments: &'static str,
    variables: &'static str,
    body: &'static str,
}

/// In the order of [`assay_orders::mix::ALL`].
const PROCEDURES: [Procedure; 9] = [
    Procedure {
        tx: Tx::CustomerRegistration,
        arguments: "p_first varchar2, p_last varchar2, p_lang varchar2, p_terr varchar2, p_town varchar2, p_county varchar2, \
                    p_country varchar2, p_house number, p_credit number, p_mgr number, p_age number, p_card number, \
                    p_expires number, p_sec number, p_logon number",
        variables: "v_c number := customer_seq.nextval; v_a number := address_seq.nextval; \
                    v_k number := card_details_seq.nextval;",
        body: "
  {NEW_CUSTOMER} values (v_c, p_first, p_last, p_lang, p_terr, p_credit, p_first || '.' || p_last || '@oracle.com', p_mgr,
    trunc(current_date), 'Occasional', 'Music', trunc(current_date) - p_age, 'Y', 'N', v_a, v_k);
  {ADDED_ADDRESS};
  {NEW_CARD} values (v_k, v_c, 'Visa(Debit)', p_card, trunc(current_date) + p_expires, 'Y', p_sec);
  {PAUSE}
  logs_on(v_c, p_logon, o_logons);
  for r in ({CUSTOMER} from customers where customer_id = v_c and rownum < 15) loop v_n := v_n + 1; end loop;
  o_selects := 2;
  o_inserts := 3 + o_logons;",
    },
    Procedure {
        tx: Tx::UpdateCustomerDetails,
        arguments: "p_first varchar2, p_last varchar2, p_town varchar2, p_county varchar2, p_country varchar2, p_house number",
        variables: "v_c number; v_a number;",
        body: "
  for r in ({CUSTOMER} from customers where lower(cust_last_name) = lower(p_last) and lower(cust_first_name) = lower(p_first)
      and rownum < 15) loop
    v_n := v_n + 1;
    v_c := nvl(v_c, r.customer_id);
  end loop;
  o_selects := 1;
  {PAUSE}
  if v_n > 1 then
    v_a := address_seq.nextval;
    {ADDED_ADDRESS};
    update customers set preferred_address = v_a where customer_id = v_c;
    o_inserts := 1;
    o_updates := 1;
    o_found := 1;
  end if;",
    },
    Procedure {
        tx: Tx::BrowseProducts,
        arguments: "p_products varchar2, p_n number",
        variables: "",
        body: "
  for i in 1 .. p_n loop
    v_p := item(p_products, i);
    for r in ({PRODUCT} {OFFERED} where p.product_id = v_p and rownum < 15) loop v_n := v_n + 1; end loop;
    {PAUSE}
  end loop;
  o_selects := p_n;",
    },
    Procedure {
        tx: Tx::OrderProducts,
        arguments: "p_customer number, p_logon number, p_categories varchar2, p_warehouses varchar2, p_n number, \
                    p_warehouse number, p_cost number, p_buys number, p_stocks varchar2, p_status number",
        variables: "v_class varchar2(40); v_address number; v_card number; v_o number; v_total number := 0; v_stock number; \
                    v_ps numbers; v_prices numbers; v_taken places; v_key varchar2(8);",
        body: "
  for r in ({CUSTOMER} from customers where customer_id = p_customer and rownum < 15) loop
    v_class := r.customer_class;
    v_address := r.preferred_address;
    v_card := r.preferred_card;
  end loop;
  for r in ({ADDRESS} from addresses where customer_id = p_customer and rownum < 15) loop v_n := v_n + 1; end loop;
  for r in ({CARD} from card_details where customer_id = p_customer and rownum < 15) loop v_n := v_n + 1; end loop;
  {PAUSE}
  logs_on(p_customer, p_logon, o_logons);
  {PAUSE}
  for i in 1 .. p_n loop
    v_n := 0;
    v_p := item(p_categories, i);
    v_w := item(p_warehouses, i);
    for r in ({PRODUCT} {OFFERED} where p.category_id = v_p and v.warehouse_id = v_w and rownum < 15) loop
      v_n := v_n + 1;
      v_ps(v_n) := r.product_id;
      v_prices(v_n) := r.list_price;
    end loop;
    {PAUSE}
  end loop;
  {NEW_ORDER} values (orders_seq.nextval, systimestamp, 'online', p_customer, 1, p_warehouse, 'Standard', v_address, p_cost,
    'ship_asap', v_class, v_card, v_address) returning order_id into v_o;
  o_selects := 4 + p_n;
  {PAUSE}
  for i in 1 .. least(p_buys, v_n) loop
    {PAUSE}
    v_stock := 0;
    v_p := v_ps(i);
    v_w := item(p_stocks, i);
    for r in (select v.quantity_on_hand from inventories v join product_information p on p.product_id = v.product_id
        where v.product_id = v_p and v.warehouse_id = v_w) loop
      v_stock := r.quantity_on_hand;
    end loop;
    o_selects := o_selects + 1;
    if v_stock > 0 then
      {NEW_ITEM} values (v_o, i, v_p, v_prices(i), 1, 'None', 'New', trunc(current_date) + 3);
      v_total := v_total + v_prices(i);
      o_lines := o_lines + 1;
      v_taken(to_char(v_p, 'fm0000') || to_char(v_w, 'fm0000')) := i;
    end if;
  end loop;
  update orders set order_mode = 'online', order_status = p_status, order_total = v_total where order_id = v_o;
  v_key := v_taken.first;
  while v_key is not null loop
    v_p := item(v_key, 1);
    v_w := item(v_key, 2);
    update inventories set quantity_on_hand = quantity_on_hand - 1 where product_id = v_p and warehouse_id = v_w;
    v_key := v_taken.next(v_key);
  end loop;
  o_inserts := 1 + o_logons + o_lines;
  o_updates := 1 + o_lines;",
    },
    Procedure {
        tx: Tx::ProcessOrders,
        arguments: "p_warehouse number, p_status number",
        variables: "v_o number;",
        body: "
  for r in ({WORK_LIST}) loop v_o := r.order_id; end loop;
  o_selects := 1;
  {PAUSE}
  if v_o is not null then
    update orders set order_status = p_status where order_id = v_o and order_status <= 4;
    o_found := sql%rowcount;
    o_updates := 1;
  end if;",
    },
    Procedure {
        tx: Tx::BrowseOrders,
        arguments: "p_customer number, p_logon number, p_pick1 number, p_pick2 number",
        variables: "v_ids numbers; v_lines numbers; v_prices numbers; v_o number; v_at number;",
        body: "
  for r in ({CUSTOMER} from customers where customer_id = p_customer and rownum < 15) loop v_n := v_n + 1; end loop;
  for r in ({ADDRESS} from addresses where customer_id = p_customer and rownum < 15) loop v_n := v_n + 1; end loop;
  {PAUSE}
  logs_on(p_customer, p_logon, o_logons);
  o_inserts := o_logons;
  {PAUSE}
  v_n := 0;
  for r in (select o.* from orders o where o.customer_id = p_customer and rownum < 15) loop
    v_n := v_n + 1;
    v_ids(v_n) := r.order_id;
  end loop;
  o_selects := 4;
  if v_n > 1 then
    v_o := v_ids(1 + mod(p_pick1, v_n - 1));
    v_n := 0;
    for r in (select i.* from order_items i where i.order_id = v_o and rownum < 15) loop
      v_n := v_n + 1;
      v_lines(v_n) := r.line_item_id;
      v_prices(v_n) := r.unit_price;
    end loop;
    o_selects := 5;
    if v_n > 0 then
      v_at := 1 + mod(p_pick2, greatest(v_n - 1, 1));
      update order_items set quantity = quantity + 1 where order_id = v_o and line_item_id = v_lines(v_at);
      update orders set order_total = order_total + v_prices(v_at) where order_id = v_o;
      o_updates := 2;
      o_found := 1;
    end if;
  end if;",
    },
    Procedure {
        tx: Tx::SalesRepQuery,
        arguments: "p_of number",
        variables: "",
        body: "\n  for r in ({BEST}) loop v_n := v_n + 1; end loop;\n  o_selects := 1;\n  {PAUSE}",
    },
    Procedure {
        tx: Tx::WarehouseQuery,
        arguments: "p_of number",
        variables: "",
        body: "\n  for r in ({TOTALS}) loop v_n := v_n + 1; end loop;\n  o_selects := 1;\n  {PAUSE}",
    },
    Procedure {
        tx: Tx::WarehouseActivityQuery,
        arguments: "p_of number",
        variables: "",
        body: "\n  for r in ({HOUR}) loop v_n := v_n + 1; end loop;\n  o_selects := 1;\n  {PAUSE}",
    },
];

/// Helpers of the procedures. A pause is dynamic SQL, so that the package compiles even if its user may not sleep.
const HELPERS: &str = "\
function item(p_list varchar2, p_at number) return number is
begin
  return to_number(substr(p_list, 4 * p_at - 3, 4));
end;
procedure takes_a_break(p_min number, p_max number) is
begin
  execute immediate 'begin {SLEEP}(:1); end;' using dbms_random.value(p_min, p_max) / 1000000;
end;
procedure logs_on(p_customer number, p_logon number, o_logons out number) is
  v_n pls_integer := 0;
begin
  for r in ({CUSTOMER} from customers where customer_id = p_customer and rownum < 15) loop v_n := v_n + 1; end loop;
  o_logons := 0;
  if p_logon = 1 then
    insert into logon (logon_id, customer_id, logon_date) values (logon_seq.nextval, p_customer, localtimestamp(0));
    o_logons := 1;
    if commits_logons then commit write wait; end if;
  end if;
end;
";

/// Specification and body of the package for this version; each replaces an existing one.
pub(super) fn create(major: u32) -> [String; 2] {
    let heads: Vec<String> = PROCEDURES.iter().map(|one| head(one) + ";\n").collect();
    let bodies: Vec<String> = PROCEDURES.iter().map(whole).collect();
    let sleep = if major >= SLEEPS { "dbms_session.sleep" } else { "dbms_lock.sleep" };
    [
        format!(
            "create or replace package {PACKAGE} authid definer as\ncommits_logons boolean := false;\n{}end {PACKAGE};",
            heads.concat()
        ),
        format!(
            "create or replace package body {PACKAGE} as\ntype numbers is table of number index by pls_integer;\n\
             type places is table of number index by varchar2(8);\n{}{}end {PACKAGE};",
            body(&HELPERS.replace("{SLEEP}", sleep)),
            bodies.concat()
        ),
    ]
}

fn head(one: &Procedure) -> String {
    format!("procedure {}({}, {TAIL})", one.tx.key(), one.arguments)
}

fn whole(one: &Procedure) -> String {
    let commit = if one.tx.reads_only() {
        ""
    } else {
        // Without WAIT, a commit in a block does not wait for the log.
        "\n  commit write wait;"
    };
    format!(
        "{} is\n  v_n pls_integer := 0; v_p number; v_w number; o_selects number := 0; o_inserts number := 0; o_updates number := 0; \
         o_logons number := 0; o_lines number := 0; o_found number := 0; {}\nbegin{}{commit}\n  \
         o_done := o_selects || ',' || o_inserts || ',' || o_updates || ',' || o_logons || ',' || o_lines || ',' || o_found;\nend;\n",
        head(one),
        one.variables,
        body(one.body)
    )
}

fn body(text: &str) -> String {
    let query = |text: &str, argument: &str| text.replace("$1", argument);
    let address = format!(
        "{NEW_ADDRESS} values (v_a, v_c, trunc(localtimestamp, 'MI'), to_char(p_house), 'Street Name', p_town, p_county, \
         p_country, 'Postcode', null)"
    );
    let parts = [
        ("{PAUSE}", "if p_max > 0 then takes_a_break(p_min, p_max); end if;".to_owned()),
        ("{ADDED_ADDRESS}", address),
        ("{NEW_ITEM}", NEW_ITEM.to_owned()),
        ("{WORK_LIST}", query(WORK_LIST, "p_warehouse")),
        ("{BEST}", query(BEST, "p_of")),
        ("{TOTALS}", query(TOTALS, "p_of")),
        ("{HOUR}", query(HOUR, "p_of")),
    ];
    filled(text, &parts)
}

/// The call of a procedure; its last placeholder receives the answer.
pub(super) fn call(tx: Tx) -> String {
    let arguments = PROCEDURES[tx.index()].arguments.split(", ").count() + 3;
    let marks: Vec<String> = (1..=arguments).map(|at| format!(":{at}")).collect();
    format!("begin {PACKAGE}.{}({}); end;", tx.key(), marks.join(", "))
}
