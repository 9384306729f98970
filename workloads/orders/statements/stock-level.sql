-- Stock-level: how many items of a district's last 20 orders are low in stock.
-- Source: TPC Benchmark C, revision 5.11, clause 2.8.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
\set w_id random(1, :warehouses)
\set d_id random(1, 10)
\set threshold random(10, 20)
BEGIN;
SELECT d_next_o_id FROM district WHERE d_w_id = :w_id AND d_id = :d_id \gset
\set first_o_id :d_next_o_id - 20
SELECT count(DISTINCT s_i_id) AS low_stock FROM order_line, stock
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id >= :first_o_id AND ol_o_id < :d_next_o_id
   AND s_w_id = :w_id AND s_i_id = ol_i_id AND s_quantity < :threshold;
END;
