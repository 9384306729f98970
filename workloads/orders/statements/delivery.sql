-- Delivery: of each of the ten districts the oldest order that waits is delivered, all in one transaction.
-- The specification queues deliveries; here the client waits for each.
-- Source: TPC Benchmark C, revision 5.11, clause 2.7.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
--
-- The row of new_order is locked: a second delivery waits for it, and then takes the next order. A district
-- without one is skipped: then the select has no row, and waiting_o_id stays 0.
\set w_id random(1, :warehouses)
\set carrier_id random(1, 10)
BEGIN;
\set d_id 1
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 2
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 3
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 4
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 5
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 6
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 7
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 8
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 9
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
\set d_id 10
\set waiting_o_id 0
SELECT no_o_id AS waiting_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id
 ORDER BY no_o_id LIMIT 1 FOR UPDATE \aset
\if :waiting_o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = :d_id AND no_o_id = :waiting_o_id;
SELECT o_c_id AS c_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id \gset
UPDATE orders SET o_carrier_id = :carrier_id WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_id = :waiting_o_id;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id;
SELECT sum(ol_amount) AS amount FROM order_line
 WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :waiting_o_id \gset
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
 WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
\endif
END;
