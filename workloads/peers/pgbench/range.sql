-- 100 rows by primary key; see workloads/peers/sysbench/range.lua.
\set first random(1, :rows - 99)
\set last :first + 99
SELECT c FROM sbtest1 WHERE id BETWEEN :first AND :last;
