-- Payment: a customer pays an amount. 60 of 100 customers are found by last name.
-- Source: TPC Benchmark C, revision 5.11, clause 2.5.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
\set w_id random(1, :warehouses)
\set d_id random(1, 10)
\set remote random(1, 100) > 85
\set c_w_id case when :remote and :warehouses > 1 \
  then (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1 else :w_id end
\set c_d_id case when :remote then random(1, 10) else :d_id end
\set by_name random(1, 100) <= 60
\set name ((random(0, 255) | random(0, 999)) + 223) % 1000
\set syllable_1 :name / 100 + 1
\set syllable_2 :name / 10 % 10 + 1
\set syllable_3 :name % 10 + 1
\set c_id (((random(0, 1023) | random(1, 3000)) + 259) % 3000) + 1
\set h_amount random(100, 500000) / 100.0
SELECT * FROM orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, :by_name, :c_id,
    ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_1]
    || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_2]
    || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_3],
    :h_amount);
