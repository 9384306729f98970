-- Payment: a customer pays an amount. 60 of 100 customers are found by last name.
-- Source: TPC Benchmark C, revision 5.11, clause 2.5.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
--
-- Texts stay in the server, because a variable's text cannot be a parameter in one mode and SQL in another.
-- So the row of history takes the names from warehouse and district itself.
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
BEGIN;
SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = :w_id;
UPDATE warehouse SET w_ytd = w_ytd + :h_amount WHERE w_id = :w_id;
SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip
  FROM district WHERE d_w_id = :w_id AND d_id = :d_id;
UPDATE district SET d_ytd = d_ytd + :h_amount WHERE d_w_id = :w_id AND d_id = :d_id;
-- Of n customers with that name it is number n/2, rounded up.
\if :by_name
SELECT count(*) AS namesakes FROM customer
 WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id
   AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_2]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_3] \gset
\set middle (:namesakes - 1) / 2
SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
       c_credit, c_credit_lim, c_discount, c_balance, c_credit = 'BC' AS bad_credit
  FROM customer
 WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id
   AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_2]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:syllable_3]
 ORDER BY c_first LIMIT 1 OFFSET :middle \gset
\else
SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
       c_credit, c_credit_lim, c_discount, c_balance, c_credit = 'BC' AS bad_credit
  FROM customer WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id AND c_id = :c_id \gset
\endif
\if :bad_credit
UPDATE customer
   SET c_balance = c_balance - :h_amount, c_ytd_payment = c_ytd_payment + :h_amount,
       c_payment_cnt = c_payment_cnt + 1,
       c_data = left(c_id || ' ' || c_d_id || ' ' || c_w_id || ' ' || :d_id || ' ' || :w_id || ' '
                     || :h_amount || ' ' || c_data, 500)
 WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id AND c_id = :c_id
RETURNING c_balance, left(c_data, 200) AS c_data;
\else
UPDATE customer
   SET c_balance = c_balance - :h_amount, c_ytd_payment = c_ytd_payment + :h_amount,
       c_payment_cnt = c_payment_cnt + 1
 WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id AND c_id = :c_id
RETURNING c_balance;
\endif
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
SELECT :c_id, :c_d_id, :c_w_id, :d_id, :w_id, CURRENT_TIMESTAMP, :h_amount, w_name || '    ' || d_name
  FROM warehouse, district WHERE w_id = :w_id AND d_w_id = :w_id AND d_id = :d_id;
END;
