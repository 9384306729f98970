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
SELECT * FROM orders_order_status(:w_id, :d_id, :by_name, :c_id,
    ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_1]
    || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_2]
    || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_3]);
