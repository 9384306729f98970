//! What must hold after the load and after any number of complete transactions.
//!
//! Source: clauses 3.3.2.1 to 3.3.2.12. Deviation: condition 11 of the specification holds only right after
//! the load, when each district has 2,100 delivered orders. Here the deliveries since then, which customers
//! count (`c_delivery_cnt`), are added. So the condition always holds.

/// One of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Of the specification: 3.3.2.1 is 1.
    pub number: u32,
    /// What holds, in a sentence without a full stop.
    pub what: &'static str,
    /// A query of one row and column, a `bigint`: how many rows or groups break it; 0 if it holds.
    pub sql: &'static str,
}

/// The conditions, 1 to 12.
///
/// Shape: a query reads each of its tables once. Payments count for the warehouse and district that took
/// them (`h_w_id`, `h_d_id`) in conditions 8 and 9, and for the customer who paid (`h_c_*`) in condition 10.
pub fn conditions() -> [Condition; 12] {
    let mut number = 0;
    ALL.map(|(what, sql)| {
        number += 1;
        Condition { number, what, sql }
    })
}

const ALL: [(&str, &str); 12] = [
    (
        "the year-to-date sum of each warehouse is that of its districts",
        "select count(*) from warehouse \
         full join (select d_w_id, sum(d_ytd) as ytd from district group by d_w_id) d on d_w_id = w_id \
         where w_ytd is distinct from ytd",
    ),
    (
        "the next order of each district follows its newest order and its newest undelivered order",
        "select count(*) from district \
         full join (select o_w_id, o_d_id, max(o_id) as newest from orders group by o_w_id, o_d_id) o \
         on o_w_id = d_w_id and o_d_id = d_id \
         left join (select no_w_id, no_d_id, max(no_o_id) as undelivered from new_order \
         group by no_w_id, no_d_id) n on no_w_id = d_w_id and no_d_id = d_id \
         where d_next_o_id - 1 is distinct from newest or undelivered <> newest",
    ),
    (
        "the numbers of the undelivered orders of each district have no gap",
        "select count(*) from (select no_w_id, no_d_id from new_order group by no_w_id, no_d_id \
         having max(no_o_id) - min(no_o_id) + 1 <> count(*)) n",
    ),
    (
        "the orders of each district count as many lines as there are",
        "select count(*) from \
         (select o_w_id, o_d_id, sum(o_ol_cnt) as counted from orders group by o_w_id, o_d_id) o \
         full join (select ol_w_id, ol_d_id, count(*) as lines from order_line group by ol_w_id, ol_d_id) l \
         on ol_w_id = o_w_id and ol_d_id = o_d_id \
         where counted is distinct from lines",
    ),
    (
        "exactly the orders without a carrier are undelivered orders",
        "select count(*) from orders \
         full join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id \
         where (o_id is not null and o_carrier_id is null) <> (no_o_id is not null)",
    ),
    (
        "each order counts as many lines as it has",
        "select count(*) from orders \
         full join (select ol_w_id, ol_d_id, ol_o_id, count(*) as lines from order_line \
         group by ol_w_id, ol_d_id, ol_o_id) l \
         on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
         where o_ol_cnt is distinct from lines",
    ),
    (
        "exactly the lines of orders without a carrier have no time of delivery",
        "select count(*) from order_line \
         left join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id \
         where o_id is null or (ol_delivery_d is null) <> (o_carrier_id is null)",
    ),
    (
        "the year-to-date sum of each warehouse is that of the payments it took",
        "select count(*) from warehouse \
         full join (select h_w_id, sum(h_amount) as paid from history group by h_w_id) h on h_w_id = w_id \
         where w_ytd is distinct from paid",
    ),
    (
        "the year-to-date sum of each district is that of the payments it took",
        "select count(*) from district \
         full join (select h_w_id, h_d_id, sum(h_amount) as paid from history group by h_w_id, h_d_id) h \
         on h_w_id = d_w_id and h_d_id = d_id \
         where d_ytd is distinct from paid",
    ),
    (
        "the balance of each customer is the sum of what was delivered minus the payments",
        "select count(*) from customer \
         left join (select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered from orders \
         join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
         where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id) o \
         on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id \
         left join (select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from history \
         group by h_c_w_id, h_c_d_id, h_c_id) h \
         on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id \
         where c_balance is distinct from coalesce(delivered, 0) - coalesce(paid, 0)",
    ),
    (
        "each district has delivered 2,100 orders in the load and those that its customers count since",
        "select count(*) from district \
         left join (select o_w_id, o_d_id, count(*) as placed from orders group by o_w_id, o_d_id) o \
         on o_w_id = d_w_id and o_d_id = d_id \
         left join (select no_w_id, no_d_id, count(*) as undelivered from new_order \
         group by no_w_id, no_d_id) n on no_w_id = d_w_id and no_d_id = d_id \
         left join (select c_w_id, c_d_id, sum(c_delivery_cnt) as delivered from customer \
         group by c_w_id, c_d_id) c on c_w_id = d_w_id and c_d_id = d_id \
         where coalesce(placed, 0) - coalesce(undelivered, 0) is distinct from 2100 + coalesce(delivered, 0)",
    ),
    (
        "the balance and the payments of each customer are together what was delivered",
        "select count(*) from customer \
         left join (select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered from orders \
         join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
         where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id) o \
         on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id \
         where c_balance + c_ytd_payment is distinct from coalesce(delivered, 0)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::tables::{DELIVERED, OrdersTable};

    #[test]
    fn conditions_are_numbered_as_in_the_specification() {
        let numbers = conditions().map(|condition| condition.number);
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }

    #[test]
    fn a_query_reads_each_table_once_and_returns_one_count() {
        for condition in conditions() {
            assert!(condition.sql.starts_with("select count(*) from "));
            assert!(!condition.what.ends_with('.') && !condition.sql.contains("  "));
            let words: Vec<&str> = condition.sql.split(' ').collect();
            let read = |table: OrdersTable| {
                let name = table.name();
                let after = |pair: &&[&str]| {
                    matches!(pair[0], "from" | "join") && pair[1].trim_end_matches(')') == name
                };
                words.windows(2).filter(after).count()
            };
            let reads = OrdersTable::ALL.map(read);
            assert!(reads.iter().all(|count| *count <= 1), "{condition:?}");
            assert!(reads.iter().sum::<usize>() >= 1, "{condition:?}");
        }
    }

    #[test]
    fn the_orders_that_the_load_delivers_are_counted() {
        assert!(conditions()[10].sql.contains(&format!(" {DELIVERED} + ")));
    }
}
