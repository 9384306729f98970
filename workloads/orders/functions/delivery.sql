-- Delivery: of each of the ten districts the oldest order that waits is delivered, all in one transaction.
-- The specification queues deliveries; here the client waits for each.
-- Source: TPC Benchmark C, revision 5.11, clause 2.7.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
\set w_id random(1, :warehouses)
\set carrier_id random(1, 10)
SELECT * FROM orders_delivery(:w_id, :carrier_id);
