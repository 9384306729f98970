-- One row by primary key; see workloads/peers/sysbench/point.lua.
\set id random(1, :rows)
SELECT c FROM sbtest1 WHERE id=:id;
