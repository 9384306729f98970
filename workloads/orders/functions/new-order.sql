-- New-order: a customer orders 5 to 15 items. 1 order of 100 names an unused item and is rolled back.
-- Source: TPC Benchmark C, revision 5.11, clause 2.4.
-- Each transaction draws its home warehouse, as sysbench-tpcc does; a terminal of TPC-C keeps one.
-- The statements and the functions form draw the same inputs: keep their \set lines the same.
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
SELECT * FROM orders_new_order(:w_id, :d_id, :c_id, :ol_cnt,
    ARRAY[:i_id_1, :i_id_2, :i_id_3, :i_id_4, :i_id_5, :i_id_6, :i_id_7, :i_id_8, :i_id_9, :i_id_10,
          :i_id_11, :i_id_12, :i_id_13, :i_id_14, :i_id_15]::integer[],
    ARRAY[:supply_w_id_1, :supply_w_id_2, :supply_w_id_3, :supply_w_id_4, :supply_w_id_5,
          :supply_w_id_6, :supply_w_id_7, :supply_w_id_8, :supply_w_id_9, :supply_w_id_10,
          :supply_w_id_11, :supply_w_id_12, :supply_w_id_13, :supply_w_id_14, :supply_w_id_15]::integer[],
    ARRAY[:quantity_1, :quantity_2, :quantity_3, :quantity_4, :quantity_5, :quantity_6, :quantity_7,
          :quantity_8, :quantity_9, :quantity_10, :quantity_11, :quantity_12, :quantity_13,
          :quantity_14, :quantity_15]::integer[]);
