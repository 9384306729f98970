-- New-order: a customer orders 5 to 15 items. 1 order of 100 names an unused item and is rolled back.
-- Source: TPC Benchmark C, revision 5.11, clause 2.4.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
--
-- Texts stay in the server, because a variable's text cannot be a parameter in one mode and SQL in another.
-- So the order line takes s_dist from stock itself, and the update of stock takes the place of its select.
-- The updates of district and stock return what they read: a select before them would let two transactions
-- read the same order number or quantity in read committed.
\set w_id random(1, :warehouses)
\set d_id random(1, 10)
\set c_id (((random(0, 1023) | random(1, 3000)) + 259) % 3000) + 1
\set ol_cnt random(5, 15)
\set unused random(1, 100) = 1
-- The lines. All 15 are drawn, and ol_cnt of them are used. 100001 is no item's number.
\set i_id_1 (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1
\set supply_w_id_1 case when :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_1 random(1, 10)
\set i_id_2 (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1
\set supply_w_id_2 case when :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_2 random(1, 10)
\set i_id_3 (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1
\set supply_w_id_3 case when :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_3 random(1, 10)
\set i_id_4 (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1
\set supply_w_id_4 case when :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_4 random(1, 10)
\set i_id_5 case when :unused and :ol_cnt = 5 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_5 case when :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_5 random(1, 10)
\set i_id_6 case when :unused and :ol_cnt = 6 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_6 case when :ol_cnt >= 6 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_6 random(1, 10)
\set i_id_7 case when :unused and :ol_cnt = 7 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_7 case when :ol_cnt >= 7 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_7 random(1, 10)
\set i_id_8 case when :unused and :ol_cnt = 8 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_8 case when :ol_cnt >= 8 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_8 random(1, 10)
\set i_id_9 case when :unused and :ol_cnt = 9 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_9 case when :ol_cnt >= 9 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_9 random(1, 10)
\set i_id_10 case when :unused and :ol_cnt = 10 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_10 case when :ol_cnt >= 10 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_10 random(1, 10)
\set i_id_11 case when :unused and :ol_cnt = 11 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_11 case when :ol_cnt >= 11 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_11 random(1, 10)
\set i_id_12 case when :unused and :ol_cnt = 12 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_12 case when :ol_cnt >= 12 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_12 random(1, 10)
\set i_id_13 case when :unused and :ol_cnt = 13 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_13 case when :ol_cnt >= 13 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_13 random(1, 10)
\set i_id_14 case when :unused and :ol_cnt = 14 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_14 case when :ol_cnt >= 14 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_14 random(1, 10)
\set i_id_15 case when :unused and :ol_cnt = 15 then 100001 \
  else (((random(0, 8191) | random(1, 100000)) + 7911) % 100000) + 1 end
\set supply_w_id_15 case when :ol_cnt >= 15 and :warehouses > 1 and random(1, 100) = 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set quantity_15 random(1, 10)
-- What the client computes.
\set remote_1 case when :supply_w_id_1 = :w_id then 0 else 1 end
\set remote_2 case when :supply_w_id_2 = :w_id then 0 else 1 end
\set remote_3 case when :supply_w_id_3 = :w_id then 0 else 1 end
\set remote_4 case when :supply_w_id_4 = :w_id then 0 else 1 end
\set remote_5 case when :supply_w_id_5 = :w_id then 0 else 1 end
\set remote_6 case when :supply_w_id_6 = :w_id then 0 else 1 end
\set remote_7 case when :supply_w_id_7 = :w_id then 0 else 1 end
\set remote_8 case when :supply_w_id_8 = :w_id then 0 else 1 end
\set remote_9 case when :supply_w_id_9 = :w_id then 0 else 1 end
\set remote_10 case when :supply_w_id_10 = :w_id then 0 else 1 end
\set remote_11 case when :supply_w_id_11 = :w_id then 0 else 1 end
\set remote_12 case when :supply_w_id_12 = :w_id then 0 else 1 end
\set remote_13 case when :supply_w_id_13 = :w_id then 0 else 1 end
\set remote_14 case when :supply_w_id_14 = :w_id then 0 else 1 end
\set remote_15 case when :supply_w_id_15 = :w_id then 0 else 1 end
\set all_local case when :remote_1 + :remote_2 + :remote_3 + :remote_4 + :remote_5 + :remote_6 + :remote_7 \
  + :remote_8 + :remote_9 + :remote_10 + :remote_11 + :remote_12 + :remote_13 + :remote_14 + :remote_15 = 0 \
  then 1 else 0 end
\set total 0
BEGIN;
SELECT w_tax FROM warehouse WHERE w_id = :w_id \gset
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_next_o_id - 1 AS o_id, d_tax \gset
SELECT c_discount, c_last, c_credit
  FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id \gset
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
VALUES (:o_id, :d_id, :w_id, :c_id, CURRENT_TIMESTAMP, NULL, :ol_cnt, :all_local);
INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (:o_id, :d_id, :w_id);
-- Each line. An unused item has no row: then `item` keeps the number of the line before. Only the last line
-- can be one.
\set ol_number 1
SELECT i_id AS item, i_price, i_name, i_price * :quantity_1 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_1 \aset
\set found :item = :i_id_1
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_1 + CASE WHEN s_quantity >= :quantity_1 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_1
 WHERE s_w_id = :supply_w_id_1 AND s_i_id = :i_id_1
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_1, :supply_w_id_1, NULL, :quantity_1, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_1 AND s_i_id = :i_id_1;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\set ol_number 2
SELECT i_id AS item, i_price, i_name, i_price * :quantity_2 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_2 \aset
\set found :item = :i_id_2
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_2 + CASE WHEN s_quantity >= :quantity_2 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_2, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_2
 WHERE s_w_id = :supply_w_id_2 AND s_i_id = :i_id_2
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_2, :supply_w_id_2, NULL, :quantity_2, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_2 AND s_i_id = :i_id_2;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\set ol_number 3
SELECT i_id AS item, i_price, i_name, i_price * :quantity_3 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_3 \aset
\set found :item = :i_id_3
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_3 + CASE WHEN s_quantity >= :quantity_3 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_3, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_3
 WHERE s_w_id = :supply_w_id_3 AND s_i_id = :i_id_3
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_3, :supply_w_id_3, NULL, :quantity_3, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_3 AND s_i_id = :i_id_3;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\set ol_number 4
SELECT i_id AS item, i_price, i_name, i_price * :quantity_4 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_4 \aset
\set found :item = :i_id_4
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_4 + CASE WHEN s_quantity >= :quantity_4 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_4, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_4
 WHERE s_w_id = :supply_w_id_4 AND s_i_id = :i_id_4
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_4, :supply_w_id_4, NULL, :quantity_4, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_4 AND s_i_id = :i_id_4;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\set ol_number 5
SELECT i_id AS item, i_price, i_name, i_price * :quantity_5 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_5 \aset
\set found :item = :i_id_5
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_5 + CASE WHEN s_quantity >= :quantity_5 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_5, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_5
 WHERE s_w_id = :supply_w_id_5 AND s_i_id = :i_id_5
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_5, :supply_w_id_5, NULL, :quantity_5, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_5 AND s_i_id = :i_id_5;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\if :ol_cnt >= 6
\set ol_number 6
SELECT i_id AS item, i_price, i_name, i_price * :quantity_6 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_6 \aset
\set found :item = :i_id_6
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_6 + CASE WHEN s_quantity >= :quantity_6 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_6, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_6
 WHERE s_w_id = :supply_w_id_6 AND s_i_id = :i_id_6
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_6, :supply_w_id_6, NULL, :quantity_6, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_6 AND s_i_id = :i_id_6;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 7
\set ol_number 7
SELECT i_id AS item, i_price, i_name, i_price * :quantity_7 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_7 \aset
\set found :item = :i_id_7
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_7 + CASE WHEN s_quantity >= :quantity_7 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_7, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_7
 WHERE s_w_id = :supply_w_id_7 AND s_i_id = :i_id_7
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_7, :supply_w_id_7, NULL, :quantity_7, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_7 AND s_i_id = :i_id_7;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 8
\set ol_number 8
SELECT i_id AS item, i_price, i_name, i_price * :quantity_8 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_8 \aset
\set found :item = :i_id_8
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_8 + CASE WHEN s_quantity >= :quantity_8 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_8, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_8
 WHERE s_w_id = :supply_w_id_8 AND s_i_id = :i_id_8
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_8, :supply_w_id_8, NULL, :quantity_8, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_8 AND s_i_id = :i_id_8;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 9
\set ol_number 9
SELECT i_id AS item, i_price, i_name, i_price * :quantity_9 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_9 \aset
\set found :item = :i_id_9
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_9 + CASE WHEN s_quantity >= :quantity_9 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_9, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_9
 WHERE s_w_id = :supply_w_id_9 AND s_i_id = :i_id_9
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_9, :supply_w_id_9, NULL, :quantity_9, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_9 AND s_i_id = :i_id_9;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 10
\set ol_number 10
SELECT i_id AS item, i_price, i_name, i_price * :quantity_10 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_10 \aset
\set found :item = :i_id_10
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_10 + CASE WHEN s_quantity >= :quantity_10 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_10, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_10
 WHERE s_w_id = :supply_w_id_10 AND s_i_id = :i_id_10
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_10, :supply_w_id_10, NULL, :quantity_10, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_10 AND s_i_id = :i_id_10;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 11
\set ol_number 11
SELECT i_id AS item, i_price, i_name, i_price * :quantity_11 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_11 \aset
\set found :item = :i_id_11
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_11 + CASE WHEN s_quantity >= :quantity_11 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_11, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_11
 WHERE s_w_id = :supply_w_id_11 AND s_i_id = :i_id_11
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_11, :supply_w_id_11, NULL, :quantity_11, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_11 AND s_i_id = :i_id_11;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 12
\set ol_number 12
SELECT i_id AS item, i_price, i_name, i_price * :quantity_12 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_12 \aset
\set found :item = :i_id_12
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_12 + CASE WHEN s_quantity >= :quantity_12 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_12, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_12
 WHERE s_w_id = :supply_w_id_12 AND s_i_id = :i_id_12
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_12, :supply_w_id_12, NULL, :quantity_12, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_12 AND s_i_id = :i_id_12;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 13
\set ol_number 13
SELECT i_id AS item, i_price, i_name, i_price * :quantity_13 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_13 \aset
\set found :item = :i_id_13
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_13 + CASE WHEN s_quantity >= :quantity_13 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_13, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_13
 WHERE s_w_id = :supply_w_id_13 AND s_i_id = :i_id_13
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_13, :supply_w_id_13, NULL, :quantity_13, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_13 AND s_i_id = :i_id_13;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 14
\set ol_number 14
SELECT i_id AS item, i_price, i_name, i_price * :quantity_14 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_14 \aset
\set found :item = :i_id_14
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_14 + CASE WHEN s_quantity >= :quantity_14 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_14, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_14
 WHERE s_w_id = :supply_w_id_14 AND s_i_id = :i_id_14
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_14, :supply_w_id_14, NULL, :quantity_14, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_14 AND s_i_id = :i_id_14;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :ol_cnt >= 15
\set ol_number 15
SELECT i_id AS item, i_price, i_name, i_price * :quantity_15 AS ol_amount,
       position('ORIGINAL' IN i_data) > 0 AS i_original
  FROM item WHERE i_id = :i_id_15 \aset
\set found :item = :i_id_15
\if :found
UPDATE stock
   SET s_quantity = s_quantity - :quantity_15 + CASE WHEN s_quantity >= :quantity_15 + 10 THEN 0 ELSE 91 END,
       s_ytd = s_ytd + :quantity_15, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote_15
 WHERE s_w_id = :supply_w_id_15 AND s_i_id = :i_id_15
RETURNING s_quantity, position('ORIGINAL' IN s_data) > 0 AS s_original \gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                        ol_quantity, ol_amount, ol_dist_info)
SELECT :o_id, :d_id, :w_id, :ol_number, :i_id_15, :supply_w_id_15, NULL, :quantity_15, :ol_amount,
       CASE :d_id::integer
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END
  FROM stock WHERE s_w_id = :supply_w_id_15 AND s_i_id = :i_id_15;
\set brand :i_original and :s_original
\set total :total + :ol_amount
\endif
\endif
\if :found
\set total :total * (1 - :c_discount) * (1 + :w_tax + :d_tax)
END;
\else
ROLLBACK;
\endif
