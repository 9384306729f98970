//! The tables: the text of the statements that make, fill and index them.
//!
//! The order is [`create_sql`]; in one transaction [`truncate_sql`] and the rows, which are
//! [`CopyRows`](super::rows::CopyRows) of each of [`OrdersTable::ALL`] after its
//! [`OrdersTable::copy_sql`]; then [`keys_sql`], [`foreign_keys_sql`] if wanted, [`vacuum_sql`].
//!
//! Source: clause 1.3 for columns and keys, clause 4.3.3.1 for the numbers of rows. Deviation: counters and
//! sums have more digits than the specification asks for at least.

/// Rows of `item`, whatever the number of warehouses.
pub const ITEMS: u64 = 100_000;
/// Rows of `district` for each warehouse.
pub const DISTRICTS: u64 = 10;
/// Rows of `customer`, and at first of `orders`, for each district.
pub const CUSTOMERS: u64 = 3_000;
/// Orders of each district that are delivered at first; the others have a row in `new_order`.
pub const DELIVERED: u64 = 2_100;
/// Fewest and most lines of an order.
pub const LINES: (u64, u64) = (5, 15);

/// One of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrdersTable {
    Item,
    Warehouse,
    Stock,
    District,
    Customer,
    History,
    Orders,
    NewOrder,
    OrderLine,
}

impl OrdersTable {
    /// All of them in the order in which they are loaded.
    pub const ALL: [Self; 9] = [
        Self::Item,
        Self::Warehouse,
        Self::Stock,
        Self::District,
        Self::Customer,
        Self::History,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
    ];

    /// Its name, without a schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Warehouse => "warehouse",
            Self::Stock => "stock",
            Self::District => "district",
            Self::Customer => "customer",
            Self::History => "history",
            Self::Orders => "orders",
            Self::NewOrder => "new_order",
            Self::OrderLine => "order_line",
        }
    }

    /// Its rows after the load, for `order_line` the number to expect: 10 lines for each order.
    /// [`OrdersTable::rows`] counts those of a seed.
    pub fn nominal_rows(self, warehouses: u32) -> u64 {
        let each = match self {
            Self::Item => return ITEMS,
            Self::Warehouse => 1,
            Self::Stock => ITEMS,
            Self::District => DISTRICTS,
            Self::Customer | Self::History | Self::Orders => DISTRICTS * CUSTOMERS,
            Self::NewOrder => DISTRICTS * (CUSTOMERS - DELIVERED),
            Self::OrderLine => DISTRICTS * CUSTOMERS * u64::midpoint(LINES.0, LINES.1),
        };
        each * u64::from(warehouses)
    }

    /// The statement that takes its rows: with `freeze` from PostgreSQL 14 on, as pgbench has it.
    ///
    /// Shape: the server freezes rows only if the same transaction made or truncated the table.
    pub fn copy_sql(self, version_num: u32) -> String {
        let freeze = if version_num >= 140_000 {
            " with (freeze on)"
        } else {
            ""
        };
        format!("copy {} from stdin{freeze}", self.name())
    }

    /// Its columns with their types, in the order of the specification.
    ///
    /// Counters are `integer`, because many are updated more than 9,999 times. The sums of a warehouse and
    /// of a district have 14 digits, because four million payments, of 2,500 on average, fill 12.
    fn columns(self) -> &'static str {
        match self {
            Self::Item => {
                "i_id integer not null,i_im_id integer,i_name varchar(24),i_price numeric(5,2),\
                 i_data varchar(50)"
            }
            Self::Warehouse => {
                "w_id integer not null,w_name varchar(10),w_street_1 varchar(20),w_street_2 varchar(20),\
                 w_city varchar(20),w_state char(2),w_zip char(9),w_tax numeric(4,4),w_ytd numeric(14,2)"
            }
            Self::Stock => {
                "s_i_id integer not null,s_w_id integer not null,s_quantity smallint,\
                 s_dist_01 char(24),s_dist_02 char(24),s_dist_03 char(24),s_dist_04 char(24),\
                 s_dist_05 char(24),s_dist_06 char(24),s_dist_07 char(24),s_dist_08 char(24),\
                 s_dist_09 char(24),s_dist_10 char(24),s_ytd integer,s_order_cnt integer,\
                 s_remote_cnt integer,s_data varchar(50)"
            }
            Self::District => {
                "d_id smallint not null,d_w_id integer not null,d_name varchar(10),d_street_1 varchar(20),\
                 d_street_2 varchar(20),d_city varchar(20),d_state char(2),d_zip char(9),\
                 d_tax numeric(4,4),d_ytd numeric(14,2),d_next_o_id integer"
            }
            Self::Customer => {
                "c_id integer not null,c_d_id smallint not null,c_w_id integer not null,\
                 c_first varchar(16),c_middle char(2),c_last varchar(16),c_street_1 varchar(20),\
                 c_street_2 varchar(20),c_city varchar(20),c_state char(2),c_zip char(9),c_phone char(16),\
                 c_since timestamp,c_credit char(2),c_credit_lim numeric(12,2),c_discount numeric(4,4),\
                 c_balance numeric(12,2),c_ytd_payment numeric(12,2),c_payment_cnt integer,\
                 c_delivery_cnt integer,c_data varchar(500)"
            }
            Self::History => {
                "h_c_id integer,h_c_d_id smallint,h_c_w_id integer,h_d_id smallint,h_w_id integer,\
                 h_date timestamp,h_amount numeric(6,2),h_data varchar(24)"
            }
            Self::Orders => {
                "o_id integer not null,o_d_id smallint not null,o_w_id integer not null,o_c_id integer,\
                 o_entry_d timestamp,o_carrier_id smallint,o_ol_cnt smallint,o_all_local smallint"
            }
            Self::NewOrder => {
                "no_o_id integer not null,no_d_id smallint not null,no_w_id integer not null"
            }
            Self::OrderLine => {
                "ol_o_id integer not null,ol_d_id smallint not null,ol_w_id integer not null,\
                 ol_number smallint not null,ol_i_id integer,ol_supply_w_id integer,\
                 ol_delivery_d timestamp,ol_quantity smallint,ol_amount numeric(6,2),ol_dist_info char(24)"
            }
        }
    }

    /// The columns of its primary key; `history` has none.
    fn primary_key(self) -> Option<&'static str> {
        Some(match self {
            Self::Item => "i_id",
            Self::Warehouse => "w_id",
            Self::Stock => "s_w_id,s_i_id",
            Self::District => "d_w_id,d_id",
            Self::Customer => "c_w_id,c_d_id,c_id",
            Self::History => return None,
            Self::Orders => "o_w_id,o_d_id,o_id",
            Self::NewOrder => "no_w_id,no_d_id,no_o_id",
            Self::OrderLine => "ol_w_id,ol_d_id,ol_o_id,ol_number",
        })
    }
}

/// The statements that make the tables, without keys.
pub fn create_sql() -> Vec<String> {
    OrdersTable::ALL
        .map(|table| format!("create table {}({})", table.name(), table.columns()))
        .into()
}

/// The statement that empties all tables, in the transaction of the load.
pub fn truncate_sql() -> String {
    format!("truncate {}", names())
}

/// The statements that make primary keys, and the two indexes by which transactions find customers by
/// their last name and a customer's last order.
pub fn keys_sql() -> Vec<String> {
    let primary = OrdersTable::ALL.iter().filter_map(|table| {
        let (name, key) = (table.name(), table.primary_key()?);
        Some(format!("alter table {name} add primary key ({key})"))
    });
    let secondary = [
        "create index customer_name_idx on customer (c_w_id,c_d_id,c_last,c_first)",
        "create index orders_customer_idx on orders (o_w_id,o_d_id,o_c_id,o_id)",
    ];
    primary.chain(secondary.map(str::to_owned)).collect()
}

/// The statements that make the foreign keys of the specification; they need the primary keys.
pub fn foreign_keys_sql() -> Vec<String> {
    [
        ("stock", "item", "s_i_id", "item"),
        ("stock", "warehouse", "s_w_id", "warehouse"),
        ("district", "warehouse", "d_w_id", "warehouse"),
        ("customer", "district", "c_w_id,c_d_id", "district"),
        (
            "history",
            "customer",
            "h_c_w_id,h_c_d_id,h_c_id",
            "customer",
        ),
        ("history", "district", "h_w_id,h_d_id", "district"),
        ("orders", "customer", "o_w_id,o_d_id,o_c_id", "customer"),
        ("new_order", "orders", "no_w_id,no_d_id,no_o_id", "orders"),
        ("order_line", "orders", "ol_w_id,ol_d_id,ol_o_id", "orders"),
        ("order_line", "stock", "ol_supply_w_id,ol_i_id", "stock"),
    ]
    .map(|(table, what, key, other)| {
        format!(
            "alter table {table} add constraint {table}_{what}_fkey \
             foreign key ({key}) references {other}"
        )
    })
    .into()
}

/// The statements that vacuum and analyze; outside of a transaction.
pub fn vacuum_sql() -> Vec<String> {
    OrdersTable::ALL
        .map(|table| format!("vacuum analyze {}", table.name()))
        .into()
}

/// Bytes of `item` with its index, and of all other tables with their indexes for each warehouse.
///
/// Source: `pg_total_relation_size` after the load of 4 warehouses; the same on PostgreSQL 9.6.24 and 18.6.
const ITEM_BYTES: u64 = 12_951_552;
const WAREHOUSE_BYTES: u64 = 104_271_872;

/// About how large tables and indexes are after the load, bytes.
pub fn estimate_bytes(warehouses: u32) -> u64 {
    ITEM_BYTES + WAREHOUSE_BYTES * u64::from(warehouses)
}

fn names() -> String {
    OrdersTable::ALL.map(OrdersTable::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_rows_of_the_specification() {
        let rows = |warehouses| OrdersTable::ALL.map(|table| table.nominal_rows(warehouses));
        let one = [
            100_000, 1, 100_000, 10, 30_000, 30_000, 30_000, 9_000, 300_000,
        ];
        assert_eq!(rows(1), one);
        assert_eq!(rows(7)[0], one[0]);
        for (seven, one) in rows(7).iter().zip(one).skip(1) {
            assert_eq!(*seven, 7 * one);
        }
    }

    #[test]
    fn each_table_has_the_columns_of_the_specification() {
        let columns = OrdersTable::ALL.map(|table| {
            // Each type with two numbers has one comma more.
            let text = table.columns();
            text.matches(',').count() + 1 - text.matches("numeric(").count()
        });
        assert_eq!(columns, [5, 9, 17, 11, 21, 8, 8, 3, 10]);
        assert_eq!(
            create_sql()[7],
            "create table new_order(no_o_id integer not null,no_d_id smallint not null,\
             no_w_id integer not null)"
        );
    }

    #[test]
    fn every_column_of_a_key_is_a_column_of_its_table_and_never_null() {
        for table in OrdersTable::ALL {
            let keys = table.primary_key().unwrap_or("").split(',');
            for key in keys.filter(|key| !key.is_empty()) {
                let column = |column: &str| {
                    column.starts_with(&format!("{key} ")) && column.ends_with(" not null")
                };
                assert!(table.columns().split(',').any(column), "{table:?} {key}");
            }
        }
        assert_eq!(keys_sql().len(), 10);
        assert_eq!(
            keys_sql()[2],
            "alter table stock add primary key (s_w_id,s_i_id)"
        );
    }

    #[test]
    fn foreign_keys_point_at_primary_keys_of_the_same_length() {
        let statements = foreign_keys_sql();
        assert_eq!(statements.len(), 10);
        for sql in statements {
            let (head, other) = sql.rsplit_once(" references ").unwrap();
            let key = head.rsplit_once('(').unwrap().1;
            let mut all = OrdersTable::ALL.into_iter();
            let other = all.find(|table| table.name() == other).unwrap();
            let columns = other.primary_key().unwrap();
            assert_eq!(key.split(',').count(), columns.split(',').count(), "{sql}");
        }
    }

    #[test]
    fn freezing_is_for_new_servers() {
        let copy = |version| OrdersTable::NewOrder.copy_sql(version);
        assert_eq!(copy(130_000), "copy new_order from stdin");
        assert_eq!(copy(140_000), "copy new_order from stdin with (freeze on)");
        assert!(truncate_sql().starts_with("truncate item, warehouse, "));
        assert!(truncate_sql().ends_with(" new_order, order_line"));
        assert_eq!(vacuum_sql().len(), 9);
    }

    #[test]
    fn the_estimate_is_near_what_a_server_says() {
        // Sums of pg_total_relation_size on PostgreSQL 9.6.24 and 18.6.
        for (warehouses, bytes) in [(1, 117_686_272_u64), (4, 430_039_040)] {
            let off = estimate_bytes(warehouses).abs_diff(bytes);
            assert!(off < bytes / 100, "{warehouses}: {off}");
        }
    }
}
