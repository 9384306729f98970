-- Order-status: a customer's newest order, with its lines. 60 of 100 customers are found by last name.
-- Source: TPC Benchmark C, revision 5.11, clause 2.6.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
\set w_id random(1, :warehouses)
\set d_id random(1, 10)
\set by_name random(1, 100) <= 60
\set name ((random(0, 255) | random(0, 999)) + 223) % 1000
\set syllable_1 :name / 100 + 1
\set syllable_2 :name / 10 % 10 + 1
\set syllable_3 :name % 10 + 1
\set c_id (((random(0, 1023) | random(1, 3000)) + 259) % 3000) + 1
BEGIN;
-- Of n customers with that name it is number n/2, rounded up.
\if :by_name
SELECT count(*) AS namesakes FROM customer
 WHERE c_w_id = :w_id AND c_d_id = :d_id
   AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_2]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_3] \gset
\set middle (:namesakes - 1) / 2
SELECT c_id, c_balance, c_first, c_middle, c_last
  FROM customer
 WHERE c_w_id = :w_id AND c_d_id = :d_id
   AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_2]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_3]
 ORDER BY c_first LIMIT 1 OFFSET :middle \gset
\else
SELECT c_id, c_balance, c_first, c_middle, c_last
  FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id \gset
\endif
SELECT o_id, o_entry_d, o_carrier_id
  FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_c_id = :c_id ORDER BY o_id DESC LIMIT 1 \gset
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
  FROM order_line WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;
END;
