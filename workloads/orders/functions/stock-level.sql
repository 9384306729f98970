-- Stock-level: how many items of a district's last 20 orders are low in stock.
-- Source: TPC Benchmark C, revision 5.11, clause 2.8.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
\set w_id random(1, :warehouses)
\set d_id random(1, 10)
\set threshold random(10, 20)
SELECT * FROM orders_stock_level(:w_id, :d_id, :threshold);
